"""Links and relations through the client and the command line, on real workers."""

from typing import Any

import pytest
from live_system import LiveSystem

from workers.errors import InvalidInputError

pytestmark = pytest.mark.acceptance

DAY_0 = "2025-01-01T00:00:00Z"
DAY_400 = "2026-02-05T00:00:00Z"
EDGE = {"from": "Alex", "to": "ProjectAlpha", "type": "works_on", "weight": 1.0, "lastObserved": "2025-01-01"}


def relate(live: LiveSystem, namespace: str, **given: Any) -> dict[str, Any]:
    """Observe a relation on the first day."""
    arguments = {"source": "Alex", "target": "ProjectAlpha", "type": "works_on", "namespace": namespace, "now": DAY_0}
    with live.client(namespace) as client:
        return client.call("memory.relate", arguments | given, 30)


def test_relations_are_observed_shown_and_fade(live: LiveSystem, namespace: str) -> None:
    own = ("--namespace", namespace)
    assert relate(live, namespace) == EDGE | {"pinned": False}
    relate(live, namespace, target="JWTLibrary", type="depends_on", weight=0.9, pinned=True)
    shown = live.ebb("relations", *own).stdout
    assert "JWTLibrary" in shown
    assert "ProjectAlpha" not in shown
    faded = live.ebb_json("relations", "--decayed", *own)
    assert faded["total"] == 1
    assert faded["edges"][0].keys() == EDGE.keys()
    assert faded["edges"][0]["weight"] < 0.1
    dry = live.ebb_json("relations", "--decay", "--dry-run", *own)
    assert dry == {
        "processed": 2,
        "decayed": 1,
        "belowMinimum": 1,
        "newlyBelow": 1,
        "pinned": 1,
        "edges": faded["edges"],
    }
    done = live.ebb_json("relations", "--decay", *own)
    assert done == {"processed": 2, "decayed": 1, "belowMinimum": 1, "newlyBelow": 1, "pinned": 1}
    assert live.ebb_json("relations", "--decay", *own) == done | {"decayed": 0, "newlyBelow": 0}
    again = live.ebb_json("relate", "alex", "works_on", "projectalpha", "--weight", "0.8", *own)
    assert (again["from"], again["weight"]) == ("Alex", 0.8)
    assert [edge["weight"] for edge in live.ebb_json("relations", "--entity", "ALEX", *own)["edges"]] == [0.9, 0.8]
    assert live.ebb("unrelate", "Alex", "works_on", "ProjectAlpha", *own).returncode == 0
    assert live.ebb("unrelate", "Alex", "works_on", "ProjectAlpha", *own).returncode == 1


def test_names_in_brackets_are_shown_as_they_were_given(live: LiveSystem, namespace: str) -> None:
    related = live.ebb("relate", "[/red] team", "owns", "lists[bold]", "--namespace", namespace)
    assert (related.returncode, related.stderr) == (0, "")
    assert "[/red] team owns lists[bold], weight 1" in related.stdout
    asked = live.ebb("lookup", "[/red] unknown", "--namespace", namespace)
    assert "is about [/red] unknown." in asked.stdout, asked.stderr


def test_a_pass_as_of_an_instant_says_what_it_would_say_then(live: LiveSystem, namespace: str) -> None:
    relate(live, namespace)
    (edge,) = live.ebb_json("relations", "--decay", "--dry-run", "--now", DAY_400, "--namespace", namespace)["edges"]
    assert edge == EDGE | {"weight": 0.0459}
    for misplaced in (["--dry-run"], ["--decay", "--entity", "Mira"], ["--decay", "--decayed"]):
        assert live.ebb("relations", *misplaced, "--namespace", namespace).returncode == 2


def test_observations_and_passes_that_come_twice_change_nothing_the_second_time(
    live: LiveSystem, namespace: str
) -> None:
    arguments = {"source": "Alex", "target": "ProjectAlpha", "type": "works_on", "weight": 0.5, "namespace": namespace}
    first, second = live.delivered("memory.relate", arguments, 2)
    assert first == second
    rows = live.rows(
        "select count(*) from relations join namespaces on namespaces.id = namespace where name = %s", [namespace]
    )
    assert rows == [(1,)]
    given = {"namespace": namespace, "now": "2030-01-01"}
    passes = [*live.delivered("relations.decay", given, 2), live.send("relations.decay", given).get()]
    assert [one["decayed"] for one in passes] == [1, 1, 0]


def test_all_namespaces_fade_together_where_that_is_asked_for(live: LiveSystem, namespace: str) -> None:
    relate(live, namespace)
    relate(live, f"{namespace}-2")
    with live.client(namespace) as client:
        done = client.call("relations.decay", {"now": DAY_400, "everywhere": True}, 60)
    assert done["processed"] >= 2
    weights = live.rows(
        "select weight from relations join namespaces on namespaces.id = namespace where name like %s",
        [f"{namespace}%"],
    )
    assert [round(weight, 4) for (weight,) in weights] == [0.0459, 0.0459]


@pytest.mark.parametrize(
    ("task", "given", "fault"),
    [
        ("memory.relate", {"weight": 1.2}, "weight: input should be less than or equal to 1; given 1.2"),
        ("memory.relate", {"weight": True}, "weight: input should be a number; given True"),
        ("memory.relate", {"weight": float("nan")}, "weight: input should be a finite number; given nan"),
        ("memory.relate", {"target": " ALEX "}, "a relation needs two different entities; given 'ALEX' for both"),
        ("memory.relate", {"source": " "}, "source: string should have at least 1 character"),
        ("memory.relate", {"target": "x" * 201}, "target: string should have at most 200 characters"),
        ("memory.relate", {"type": 7}, "type: input should be a valid string; given 7"),
        ("memory.relate", {"type": "a\0b"}, "NUL"),
        ("memory.relate", {"pinned": "yes"}, "pinned: input should be true or false; given 'yes'"),
        ("memory.link", {"source": "x"}, "source: input should be a valid UUID"),
        ("memory.link", {"type": "CONTRADICTS"}, "type: input should be 'SUPERSEDES', 'UPDATES',"),
        ("memory.link", {"strength": -0.1}, "strength: input should be greater than or equal to 0; given -0.1"),
        ("memory.link", {}, "source: no live fact"),
    ],
)
def test_what_cannot_be_is_refused(live: LiveSystem, namespace: str, task: str, given: Any, fault: str) -> None:
    names = {"source": "Alex", "target": "ProjectAlpha", "type": "works_on"}
    ids = {"source": "0" * 32, "target": "1" * 32, "type": "PART_OF"}
    arguments = (names if task == "memory.relate" else ids) | given | {"namespace": namespace}
    with live.client(namespace) as client, pytest.raises(InvalidInputError, match=fault):
        client.call(task, arguments, 30)


def test_two_facts_are_linked_and_unlinked(live: LiveSystem, namespace: str) -> None:
    own = ("--namespace", namespace)
    one = live.ebb_json("store", "The cellar is flooded.", *own)["id"]
    two = live.ebb_json("store", "It rained for a week.", *own)["id"]
    made = live.ebb_json("link", one, two, "caused_by", "--strength", "0.6", *own)
    assert {**made, "id": ""} == {"id": "", "source": one, "target": two, "type": "CAUSED_BY", "strength": 0.6}
    assert live.ebb_json("link", one, two, "CAUSED_BY", *own) == made | {"strength": 1.0}
    assert "linked" in live.ebb("link", two, one, "PART_OF", *own).stdout
    assert live.ebb_json("unlink", one, two, *own) == {"removed": 1}
    assert live.ebb("unlink", one, two, "caused_by", *own).returncode == 1


def test_a_linked_fact_comes_along_and_is_explained(live: LiveSystem, namespace: str) -> None:
    own = ("--namespace", namespace)
    one = live.ebb_json("store", "The cellar is flooded.", *own)["id"]
    two = live.ebb_json("store", "A postcard came from Riga.", "--entity", "Olga", *own)["id"]
    live.ebb_json("link", one, two, "RELATED_TO", *own)
    found = live.ebb_json("recall", "the cellar", "--explain", *own)["results"]
    assert [fact["id"] for fact in found] == [one, two]
    assert found[1]["explain"]["graph"] > 0
    assert "links" in live.ebb("recall", "the cellar", "--explain", *own).stdout
    assert [event["what"] for event in live.ebb_json("history", two, *own)["events"]][:2] == ["stored", "linked"]
    relate(live, namespace, source="Bea", target="olga", now=None)
    found = live.ebb_json("recall", "What did Bea get?", "--explain", "--min-relevance", "0", *own)["results"]
    assert (found[0]["id"], found[0]["explain"]["graph"]) == (two, pytest.approx(0.3))
