"""Contradictions through the client and the command line, on real workers."""

from typing import Any
from uuid import uuid4

import pytest
from live_system import LiveSystem

from workers.errors import InvalidInputError

pytestmark = pytest.mark.acceptance


def stored(live: LiveSystem, namespace: str, *values: str) -> list[str]:
    """Store a fact for each value of one key; return their ids."""
    with live.client(namespace) as client:
        return [client.store(f"Ana lives in {value}.", entity="Ana", key="city", value=value)["id"] for value in values]


def listed(live: LiveSystem, namespace: str) -> list[set[str]]:
    found: dict[str, Any] = live.ebb_json("contradictions", "--namespace", namespace)
    assert found["total"] == live.ebb_json("stats", "--namespace", namespace)["contradictions"]
    return [{fact["id"] for fact in pair["facts"]} for pair in found["contradictions"]]


def test_a_contradiction_is_listed_until_one_fact_is_kept(live: LiveSystem, namespace: str) -> None:
    old, new = stored(live, namespace, "Porto", "Lisbon")
    assert listed(live, namespace) == [{old, new}]
    shown = live.ebb("contradictions", "--namespace", namespace).stdout
    assert shown.index("Porto") < shown.index("Lisbon")
    assert f"settle one: ebb resolve -n {namespace} OLD --keep NEW" in shown
    asked = ("Where does Ana live?", "--namespace", namespace)
    assert [one.get("outdated_by", []) for one in live.ebb_json("recall", *asked)["results"]] == [[], [new]]
    for command in (("recall", *asked), ("lookup", "Ana", "city", *asked[1:])):
        shown = live.ebb(*command).stdout
        assert "(perhaps outdated) Ana lives" in shown
        assert shown.count("outdated") == 1
    with live.client(namespace) as client:
        assert [one.get("outdated_by", []) for one in client.context("Where does Ana live?")["facts"]] == [[], [new]]
    answer = live.ebb_json("resolve", old, "--keep", new, "--namespace", namespace)
    assert answer == {"kept": new, "superseded": [old]}
    assert live.ebb_json("resolve", old, "--keep", new, "--namespace", namespace) == answer
    assert listed(live, namespace) == []
    assert "Nothing in" in live.ebb("contradictions", "--namespace", namespace).stdout
    assert [id_ for id_, _ in live.facts(namespace)] == sorted([old, new])


def test_storing_another_value_says_how_to_settle_it(live: LiveSystem, namespace: str) -> None:
    (old,) = stored(live, namespace, "Porto")
    given = ("--entity", "Ana", "--key", "city", "--value", "Faro", "--namespace", namespace)
    new, settle = live.ebb("store", "Ana lives in Faro.", *given).stdout.split()[1], f"ebb resolve -n {namespace}"
    shown = live.ebb("store", "Ana lives in Braga.", *given[:-3], "Braga", *given[-2:]).stdout
    braga = shown.split()[1]
    assert all(f"contradicts {one}; if that is outdated: {settle} {one} --keep {braga}" in shown for one in (old, new))


@pytest.mark.parametrize(
    ("listing", "entries"),
    [
        (["contradictions"], ["Porto", "Lisbon", "Faro"]),
        (["timeline", "Ana", "city"], ["Porto", "Lisbon", "Faro"]),
        (["relations"], ["Braga", "Tomar"]),
        (["held"], ["in Porto", "in Lisbon", "in Faro"]),
    ],
)
def test_a_cut_list_names_the_command_for_the_rest(
    live: LiveSystem, namespace: str, listing: list[str], entries: list[str]
) -> None:
    facts = stored(live, namespace, "Porto", "Lisbon", "Faro")
    live.rows("update activity set held = true, ends_at = now(), due_at = 'infinity' where fact = any(%s)", [facts])
    for town in ("Braga", "Tomar"):
        live.ebb("relate", "Ana", "knows", town, "--namespace", namespace)
    own, pages, more = (*listing, "--namespace", namespace), list[str](), list[str]()
    while not pages or more:
        pages.append(live.ebb(*own, "--limit", "1", *more).stdout)
        more = pages[-1].partition("There are more: ")[2].split()
    assert len(pages) > 1
    assert {entry for entry in entries for page in pages if entry in page} == set(entries)
    assert "There are more" not in live.ebb(*own).stdout


def test_both_facts_may_be_accepted(live: LiveSystem, namespace: str) -> None:
    one, two = stored(live, namespace, "Porto", "Lisbon")
    assert live.ebb_json("resolve", one, two, "--both", "--namespace", namespace) == {"accepted": [one, two]}
    assert listed(live, namespace) == []


@pytest.mark.parametrize("options", [[], ["--both", "--keep", str(uuid4())]])
def test_resolving_requires_an_explicit_choice(live: LiveSystem, namespace: str, options: list[str]) -> None:
    assert live.ebb("resolve", str(uuid4()), *options, "--namespace", namespace).returncode == 2


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"ids": []}, "ids: list should have at least 1 item"),
        ({"ids": "seven"}, "ids: input should be a valid list"),
        ({"ids": ["seven"], "keep": str(uuid4())}, "input should be a valid UUID"),
        ({"ids": [str(uuid4())]}, "give the fact to keep"),
        ({"ids": [str(uuid4())], "both": True}, "give the fact to keep"),
        ({"ids": [str(uuid4())], "keep": str(uuid4())}, "no fact"),
        ({"ids": [str(uuid4()), str(uuid4())], "both": True}, "not known to contradict"),
    ],
)
def test_contradictions_that_cannot_be_resolved_are_refused(
    live: LiveSystem, namespace: str, arguments: dict[str, Any], fault: str
) -> None:
    stored(live, namespace, "Porto")
    with live.client(namespace) as client, pytest.raises(InvalidInputError, match=fault):
        client.call("memory.resolve", arguments | {"namespace": namespace}, 30)


def test_a_resolution_that_comes_twice_changes_nothing_the_second_time(live: LiveSystem, namespace: str) -> None:
    old, new = stored(live, namespace, "Porto", "Lisbon")
    answers = live.delivered("memory.resolve", {"ids": [old], "keep": new, "namespace": namespace}, 2)
    assert answers == [{"kept": new, "superseded": [old]}] * 2
    assert live.rows("select superseded_by::text from facts where id = %s", [old]) == [(new,)]
