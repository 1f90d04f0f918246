"""The table of benchmark results: a run updates its own section."""

from argparse import Namespace
from pathlib import Path

import pytest

from tests.benchmarks import __main__ as command
from tests.benchmarks.figures import RESULTS, Answers, save, split, write_table


def result(command: str, value: float) -> Answers:
    answers = Answers(command)
    answers.add("seconds", "s", [value], note=f"of {command}")
    return answers


def test_a_run_updates_its_section_of_the_table_and_leaves_the_others(tmp_path: Path) -> None:
    save(result("soak", 1), tmp_path / "soak.json", {})
    save(result("passes", 2), tmp_path / "passes.json", {})
    write_table(tmp_path, RESULTS)
    (tmp_path / "passes.json").unlink()
    save(result("soak", 3), tmp_path / "soak.json", {})
    save(result("larger", 4), tmp_path / "5000000" / "passes.json", {})
    write_table(tmp_path, RESULTS)
    text = (tmp_path / "table.md").read_text()
    titles = [line for line in text.splitlines() if line.startswith("## ")]
    assert titles == ["## passes", "## soak", "## passes, 5,000,000 facts"]
    assert [f"| seconds |  | {value} | s |" in text for value in (1, 2, 3, 4)] == [False, True, True, True]
    assert "- seconds: of passes" in text


def test_a_command_names_every_option_that_changes_its_figures() -> None:
    given = Namespace(quick=False, facts=command.FACTS, rounds=command.ROUNDS, queries=command.QUERIES)
    assert command._options(given, "recalls") == ""
    given.rounds, given.queries = 3, 20
    assert command._options(given, "recalls") == " --rounds 3 --queries 20"


def test_a_stage_whose_function_nothing_calls_is_an_error() -> None:
    stages = {"reading": (Path, "read_text"), "listing": (Path, "iterdir")}
    with split(stages) as spent:
        Path(__file__).read_text(encoding="utf-8")
        list(Path(__file__).parent.iterdir())
    assert all(spent.values())
    with pytest.raises(LookupError, match="listing"), split(stages):
        Path(__file__).read_text(encoding="utf-8")
