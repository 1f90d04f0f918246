"""The benchmark of forgetting: its measures of kept and outdated facts."""

from datetime import UTC, datetime

import pytest

from tests.benchmarks.conversations import Asked, Change
from tests.benchmarks.figures import Answers
from tests.benchmarks.forgetting import curve
from tests.benchmarks.forgetting.curve import Point
from tests.benchmarks.quality import measures
from tests.benchmarks.quality.measures import Outcome


def test_outdated_is_the_share_of_replaced_facts_in_the_first_ten() -> None:
    changes = (Change(frozenset({"new"}), frozenset({"old", "older"})),)
    asked = Asked("one", "Where?", frozenset({"new"}), datetime(2025, 1, 1, tzinfo=UTC), changes=changes)
    assert measures.outdated(Outcome(asked, ["new", "old"])) == 0.5
    assert measures.outdated(Outcome(asked, ["x"] * 10 + ["old", "older"])) == 0


def test_figures_are_means_over_seeds_of_each_question_and_of_each_piece_of_evidence() -> None:
    answers = Answers("none")
    seeds = [dict.fromkeys(curve.SHARES, Point([0.0, 1.0], [one], [])) for one in (0.0, 1.0)]
    curve._report(answers, "small", {"random": seeds, "Ebb": seeds[:1]})
    by_name = {figure.name: figure.measured for figure in answers.figures}
    assert by_name["evidence kept, 50 % kept, random, small"].median == pytest.approx(0.5)
    assert by_name["recall@10, 20 % kept, Ebb, small"].runs == 2
    assert not any("outdated" in name for name in by_name)
