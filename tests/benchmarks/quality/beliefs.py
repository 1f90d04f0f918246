"""Precision where one or two of some thirty facts fit a question: the retrieval cases of PrecisionMemBench.

As for other systems there, a belief is stored as its name, aliases, content and reason; beliefs that are always shown
do not count in an answer, and the participants of a relation that was found are added, within the case's scope.
Superseded beliefs are left out, since they are superseded in Ebb as well.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.figures import Answers
from tests.benchmarks.libraries import Ebb

LEAST_PRECISION, LEAST_RECALL = 0.6, 0.95
MOST = 20
"""Facts of an answer, unless a case says otherwise."""

SAID = ("canonical_name", "aliases", "content", "why_it_matters")

Belief = Mapping[str, Any]


def measure(answers: Answers, name: str, memory: Ebb, folder: Path) -> None:
    """Ask the questions of all cases that expect an answer, and note precision and recall with intervals."""
    beliefs = {one["_id"]: one for one in _read(folder, "beliefs.seed.json") if not one.get("superseded_by")}
    ids = {_text(one): id_ for id_, one in beliefs.items()}
    for user in {one["user_id"] for one in beliefs.values()}:
        memory.add_many(user, [_text(one) for one in beliefs.values() if one["user_id"] == user])
    precision, recall = [], []
    for case in _read(folder, "retrieval.cases.json"):
        wanted, most = _wanted(case, beliefs), case.get("budget", {}).get("maxBeliefs", MOST)
        if not wanted or not most:
            continue
        user, scope = case.get("userId", "test-user"), {*case["scope"]}
        own = {id_: one for id_, one in beliefs.items() if one["user_id"] == user and scope & {*one["scope"]}}
        shown = {id_ for id_, one in own.items() if one.get("pinned") and one["type"] != "open_question"}
        found = [ids[text] for text in memory.search(user, case["query"], most)]
        found += [id_ for one in found for id_ in beliefs[one].get("participants", ()) if id_ in own]
        answer = {*[id_ for id_ in dict.fromkeys(found) if id_ not in shown][: max(most - len(shown), 0)]}
        precision.append(len(wanted & answer) / max(len(answer), 1))
        recall.append(len(wanted & answer) / len(wanted))
    answers.details[f"beliefs, {name}"] = {"cases": len(recall)}
    answers.add_mean(f"precision where few facts fit, {name}", "", precision, least=LEAST_PRECISION)
    answers.add_mean(f"recall where few facts fit, {name}", "", recall, least=LEAST_RECALL)


def _read(folder: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "fixtures" / name).read_text(encoding="utf-8"))
    return found


def _text(belief: Belief) -> str:
    parts: Sequence[Any] = [belief.get(name) for name in SAID]
    return " ".join(" ".join(part) if isinstance(part, list) else part for part in parts if part)


def _wanted(case: Mapping[str, Any], beliefs: Mapping[str, Belief]) -> set[str]:
    """Return the beliefs that a case expects in the answer, without those that are always shown."""
    expected = case["expect"].get("relevantBeliefs", {})
    if "shouldOnlyInclude" in expected:
        return {*expected["shouldOnlyInclude"]}
    return {id_ for id_ in expected.get("mustInclude", ()) if id_ in beliefs and not beliefs[id_].get("pinned")}
