"""The main use case at the command line: a year of a user is imported, recalled, aged by a year, recalled again."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from live_system import ROOT, LiveSystem, eventually

pytestmark = pytest.mark.acceptance

SAMPLE = ROOT / "api" / "sample" / "year.jsonl"
QUESTIONS = ROOT / "tests" / "acceptance" / "sample_questions.json"
FOUND_AMONG_FIRST_TEN = 0.9
LOST_BY_A_YEAR = 2
BAKES = "How early does her partner get out of bed to bake?"
OTHER_SETTINGS = ("--set", "cold_threshold=0.35", "--set", "confidenceDecay.halfLife=60")
COUNTED = re.compile(r"^(?:404 lines, 404 added|(?:cold|fingerprinted|forgotten) +\d+)$", re.MULTILINE)
FORECAST = re.compile(r"^(?:now|with --set)(?: +\d+){4}(?= +\d+$)", re.MULTILINE)
SCORED = re.compile(r"^(\d\.\d{3})  (cold  fingerprint|warm  full) .* culled  Anselm", re.MULTILINE)
BY_ESTIMATES = 0.01
"""How much a score differs by whether salience was estimated again, which happens within a minute of the import."""


@dataclass(frozen=True)
class Question:
    """A paraphrased question, and the text of the fact that answers it."""

    words: str
    answer: str


@dataclass(frozen=True)
class Year:
    """Output of the commands before and after a year."""

    imported: dict[str, Any]
    fresh: dict[str, Any]
    found: list[Question]
    tried: dict[str, Any]
    passed: dict[str, Any]
    aged: dict[str, Any]
    found_again: list[Question]


def questions() -> list[Question]:
    asked = json.loads(QUESTIONS.read_text(encoding="utf-8"))
    return [Question(one["question"], one["text"]) for one in asked if one.get("hybrid")]


def answered(alone: LiveSystem, asked: list[Question]) -> list[Question]:
    """Return the questions whose answer is in the first ten results, without touching facts."""

    with alone.client() as client:
        found = {one: client.recall(one.words, limit=10, touch=False)["results"] for one in asked}
    return [one for one, results in found.items() if one.answer in [result["text"] for result in results]]


@pytest.fixture(scope="module")
def year(alone: LiveSystem) -> Year:
    next_year = (datetime.now(UTC) + timedelta(days=365)).isoformat()
    return Year(
        imported=alone.ebb_json("import", str(SAMPLE)),
        fresh=alone.ebb_json("stats"),
        found=answered(alone, questions()),
        tried=alone.ebb_json("decay", "--dry-run", "--now", next_year),
        passed=alone.ebb_json("decay", "--now", next_year),
        aged=alone.ebb_json("stats"),
        found_again=answered(alone, questions()),
    )


def exported(alone: LiveSystem) -> dict[str, dict[str, Any]]:
    """Return every fact by its text, as of now."""
    done = alone.ebb("export", "--json")
    assert done.returncode == 0, done.stderr
    return {fact["text"]: fact for fact in map(json.loads, done.stdout.splitlines())}


def test_all_of_the_sample_is_imported_at_full_fidelity(year: Year) -> None:
    facts = len(SAMPLE.read_text(encoding="utf-8").splitlines())
    assert (year.imported["added"], year.imported["rejected"]) == (facts, 0)
    assert (year.fresh["facts"], year.fresh["fidelity"]["full"]) == (facts, facts)
    assert year.fresh["pending_embeddings"] == year.fresh["forgotten"] == 0


def test_questions_in_other_words_find_their_facts(year: Year) -> None:
    assert len(year.found) >= FOUND_AMONG_FIRST_TEN * len(questions())


def test_a_year_cools_shrinks_and_fingerprints(year: Year) -> None:
    assert year.aged["tiers"]["cold"] > year.fresh["tiers"]["cold"] + 200
    assert year.aged["tiers"]["hot"] < year.fresh["tiers"]["hot"] or year.fresh["tiers"]["hot"] == 0
    assert year.aged["fidelity"]["fingerprint"] > 200
    assert year.passed["fingerprinted"] == year.aged["fidelity"]["fingerprint"]
    assert year.passed["compressed"] == year.aged["fidelity"]["pooled"]
    assert year.passed["forgotten"] == year.aged["forgotten"]
    assert year.aged["facts"] + year.aged["forgotten"] == year.fresh["facts"]
    assert year.aged["facts"] == sum(year.aged["tiers"].values()) == sum(year.aged["fidelity"].values())


def test_the_dry_run_forecast_it(year: Year) -> None:
    assert year.tried | {"duration_ms": 0} == year.passed | {"duration_ms": 0}


def test_after_a_year_the_same_questions_find_their_facts(year: Year) -> None:
    assert len(year.found_again) >= len(year.found) - LOST_BY_A_YEAR


def test_a_recall_restores_faded_facts(alone: LiveSystem, year: Year) -> None:
    before = exported(alone)
    faded = next(one for one in year.found_again if before[one.answer]["fidelity"] == "fingerprint")
    assert before[faded.answer]["dims"] == 0
    recalled = alone.ebb_json("recall", faded.words)
    (hit,) = [result for result in recalled["results"] if result["text"] == faded.answer]
    assert hit["fidelity"] == "fingerprint"

    def at_full_fidelity() -> dict[str, Any] | None:
        fact = exported(alone)[faded.answer]
        return fact if fact["fidelity"] == "full" else None

    after = eventually(at_full_fidelity, "the fact is at full fidelity")
    assert after is not None
    assert (after["tier"], after["dims"]) == ("hot", 256)
    assert after["salience"] > before[faded.answer]["salience"]
    again = alone.ebb_json("recall", faded.words, "--no-touch")["results"]
    (shown,) = [result for result in again if result["text"] == faded.answer]
    assert (shown["fidelity"], shown["tier"]) == ("full", "hot")


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "api/docs/forgetting.md"])
def test_the_year_of_the_manual_prints_what_the_page_shows(live: LiveSystem, namespace: str, page: str) -> None:
    """As after the first steps of the manual: one fact was stored and recalled before the sample is imported."""

    def said(*arguments: str) -> str:
        done = live.ebb(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    shown, branch = (ROOT / page).read_text(encoding="utf-8"), f"{namespace}-older-365d"
    own, bakes = ("-n", namespace), ("recall", BAKES, "--limit", "1", "-n", branch)
    live.ebb_json("store", "Mira moved to Leipzig and rents a flat near the canal", *own)
    live.ebb_json("recall", "Where does Mira live?", *own)
    printed = [said("import", str(SAMPLE), *own), said("branch", "--older", "365d", *own), said("decay", "-n", branch)]
    full = live.ebb_json("stats", "-n", branch)["fidelity"]["full"]
    printed.append(said(*bakes))
    eventually(lambda: live.ebb_json("stats", "-n", branch)["fidelity"]["full"] > full, "its vector is restored")
    printed += [said(*bakes), said("branch", "--drop", "--yes", *own)]
    printed.append(said("forecast", "--days", "365", "--shown", "0", *OTHER_SETTINGS, *own))

    for figures in (COUNTED, FORECAST):
        expected = figures.findall(shown)
        assert [one for one in figures.findall("".join(printed)) if one in expected] == expected, figures
    for (score, how), (other, where) in zip(SCORED.findall(shown), SCORED.findall("".join(printed)), strict=True):
        assert how == where
        assert float(score) == pytest.approx(float(other), abs=BY_ESTIMATES)
