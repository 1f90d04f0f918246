"""Answers of the library have every field that verbs return, as attributes that mypy knows."""

import re
from pathlib import Path

import every_entry
import pytest
from ebb import Memory, Rejected
from ebb.contract.retention import Forgot
from type_check import mypy

from tests.undeclared import undeclared

pytestmark = pytest.mark.acceptance

PROGRAM = Path(every_entry.__file__)
FIELDS = (
    "action", "error", "rule", "fit", "line", "value", "text", "strength", "similarity", "complete", "work", "ended_at",
    "forgotten", "change",
)  # fmt: skip


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what mypy says of the program and of one that misspells the fields."""
    folder, program = tmp_path_factory.mktemp("programs"), PROGRAM.read_text(encoding="utf-8")
    misspelt = re.sub(rf"\.({'|'.join(FIELDS)})\b", r".\1_", program)
    (folder / "right.py").write_text(program, encoding="utf-8")
    (folder / "misspelt.py").write_text(misspelt, encoding="utf-8")
    return mypy(folder).stdout


def test_the_contract_declares_every_field_of_entries(url: str, namespace: str) -> None:
    with Memory(url, namespace=namespace) as memory:
        answers = [answer for answer, _ in every_entry.use(memory)]

    assert {path for one in answers for path in undeclared(one, type(one).__name__)} == set()


def test_a_field_that_is_not_declared_is_found_at_any_depth() -> None:
    answer = Forgot.model_validate({"results": [{"id": "0" * 32, "action": "forgotten", "mood": "sad"}]})

    assert list(undeclared(answer)) == [".results[].mood"]


def test_mypy_knows_the_fields_of_every_entry(faults: str) -> None:
    assert "checked 2 source files" in faults
    assert "right.py" not in faults


def test_mypy_finds_misspelt_fields(faults: str) -> None:
    assert [field for field in FIELDS if f'has no attribute "{field}_"' not in faults] == []


def test_a_rejected_record_names_its_place(url: str, namespace: str) -> None:
    with Memory(url, namespace=namespace) as memory:
        _, rejected = memory.import_records([{"relation": every_entry.RELATION}, {"text": ""}]).results

    assert isinstance(rejected, Rejected)
    assert rejected.index == 1
