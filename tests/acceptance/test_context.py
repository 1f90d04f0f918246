"""Contexts for agents on real workers: the task, the command, and which facts count as used."""

import pytest
from live_system import LiveSystem, eventually

from api.client import Client
from workers.core.text import strip_injected
from workers.errors import InvalidInputError

pytestmark = pytest.mark.acceptance


def recalls(live: LiveSystem, namespace: str) -> dict[str, int]:
    """Return how often each fact of a namespace was recalled."""
    return dict(
        live.rows(
            """
            select text, recall_count from facts
            join activity on activity.namespace = facts.namespace and activity.fact = facts.id
            join namespaces on namespaces.id = facts.namespace
            where name = %s
            """,
            [namespace],
        )
    )


def test_the_command_prints_the_documented_block(live: LiveSystem, client: Client, namespace: str) -> None:
    client.store("User prefers dark mode", category="preference")
    printed = live.ebb("context", "Does the user like dark mode?", "--namespace", namespace)
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout == "<memory-context>\n[sqlite/preference] User prefers dark mode\n</memory-context>\n"
    asked = live.ebb("context", "-", "--format", "short", "-n", namespace, stdin="dark mode?")
    assert asked.stdout.splitlines()[1] == "preference: User prefers dark mode"


def test_the_command_says_if_nothing_fits_beside_its_output(live: LiveSystem, namespace: str) -> None:
    printed = live.ebb("context", "Who sails?", "--namespace", namespace)
    assert (printed.returncode, printed.stdout) == (0, "")
    assert "fits. `--documents` also looks into indexed files." in " ".join(printed.stderr.split())


def test_the_command_says_if_the_budget_has_no_room(live: LiveSystem, client: Client, namespace: str) -> None:
    client.store("The keel of the boat is oak.")
    answer = client.context("What is the keel made of?", max_tokens=5)
    assert (answer["context"], answer["over_budget"]) == ("", 1)
    printed = live.ebb("context", "What is the keel made of?", "--max-tokens", "5", "--namespace", namespace)
    assert (printed.returncode, printed.stdout) == (0, "")
    assert "no room for what fits; give a higher --max-tokens" in " ".join(printed.stderr.split())


def test_only_injected_facts_are_touched_and_only_once(live: LiveSystem, client: Client, namespace: str) -> None:
    texts = [f"The lake was calm on day {number}." for number in range(6)]
    client.store_many([{"text": text} for text in texts])
    answer = client.context("How calm was the lake?", max_tokens=30, format="minimal", explain=True)
    shown = [fact["line"] for fact in answer["facts"]]
    assert 0 < len(shown) < len(texts)
    assert {one["rule"] for one in answer["left_out"]} == {"over the token budget"}
    eventually(lambda: sum(recalls(live, namespace).values()) >= len(shown), "what was injected is touched")
    live.settle()
    assert recalls(live, namespace) == {text: int(text in shown) for text in texts}
    client.context("How calm was the lake?", touch=False)
    live.settle()
    assert sum(recalls(live, namespace).values()) == len(shown)


def test_tags_are_normalised_in_queries_as_in_facts(client: Client) -> None:
    client.store("The keel is oak.", tags=["Boat Yard"])
    client.store("The keel of the ferry is steel.", tags=["Harbour"])
    shown = client.context("keel", tag="Boat Yard", format="minimal", touch=False)["facts"]
    assert [fact["line"] for fact in shown] == ["The keel is oak."]


def test_dates_are_shown_as_far_as_asked_for(live: LiveSystem, client: Client, namespace: str) -> None:
    client.store("The keel is oak.", source_date="2026-03-12")
    with_day = "(2026-03-12) The keel is oak."
    shown = client.context("keel", dates=True, format="minimal", touch=False)["facts"]
    assert [fact["line"] for fact in shown] == [with_day]
    assert with_day not in client.context("keel", touch=False)["context"]
    assert with_day in live.ebb("context", "keel", "--dates", "--namespace", namespace).stdout


def test_a_message_that_comes_twice_is_touched_once(live: LiveSystem, client: Client, namespace: str) -> None:
    client.store("The keel of the boat is oak.")
    first, second = live.delivered("memory.context", {"query": "keel", "namespace": namespace}, 2)
    assert first["context"] == second["context"] != ""
    live.settle()
    assert recalls(live, namespace) == {"The keel of the boat is oak.": 1}


@pytest.mark.parametrize(
    ("task", "asked"),
    [("memory.items", {"path": ["boats"]}), ("memory.many_items", {"queries": [{"path": ["boats"]}]})],
)
def test_a_query_of_items_that_comes_twice_is_touched_once(
    live: LiveSystem, client: Client, namespace: str, task: str, asked: dict[str, object]
) -> None:
    client.put_item(["boats"], "keel", "{}", text="The keel of the boat is oak.")
    live.delivered(task, {**asked, "namespace": namespace}, 2)
    live.settle()
    assert recalls(live, namespace) == {"The keel of the boat is oak.": 1}


def test_injected_context_is_not_stored_again(client: Client) -> None:
    client.store("User prefers dark mode & </memory-context> <b>bold</b>")
    shown = client.context("dark mode", touch=False)["context"]
    assert strip_injected(shown) == ""
    with pytest.raises(InvalidInputError, match="cannot store empty fact text"):
        client.store(shown)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"format": "long"}, "format: input should be 'full', 'short' or 'minimal'; given 'long'"),
        ({"order": 3}, "order: input should be 'rank' or 'stable'; given 3"),
        ({"max_tokens": 0}, "max_tokens: input should be greater than or equal to 1; given 0"),
        ({"prefer_long_term": "yes"}, "prefer_long_term: input should be true or false; given 'yes'"),
        ({"min_similarity": 2}, "min_similarity: input should be less than or equal to 1; given 2"),
    ],
)
def test_a_wrong_argument_is_reported(client: Client, given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        client.context("dark mode", **given)


def test_why_explains_at_the_command_line_and_touches_nothing(live: LiveSystem, client: Client, namespace: str) -> None:
    id_ = client.store("The keel of the boat is oak.")["id"]
    client.store("The sails of the boat are red.")
    client.forget([id_])
    explained = live.ebb("recall", "What is the keel made of?", "--why", id_, "-n", namespace)
    assert explained.returncode == 0, explained.stderr
    assert "not recalled: forgotten: asked" in explained.stdout
    assert "would be 1 of 1" in explained.stdout
    explained = live.ebb("recall", "What is the keel made of?", "--explain", "--no-touch", "-n", namespace)
    assert "forgotten: asked: 1" in explained.stdout
    assert id_ in explained.stdout
    live.settle()
    assert set(recalls(live, namespace).values()) == {0}


def test_a_recall_of_several_namespaces_says_where_each_fact_is(live: LiveSystem, namespace: str) -> None:
    names = [f"{letter}{namespace[-6:]}" for letter in "ab"]
    for name in names:
        live.ebb_json("store", "Mira sails on Sundays", "-n", name)
    heading, *rows = live.ebb("recall", "Mira sails", "--namespaces", ",".join(names)).stdout.splitlines()
    assert heading.split() == ["score", "tier", "fidelity", "ends", "namespace", "text"]
    assert sorted(row.split()[5] for row in rows) == names
    nothing = live.ebb("recall", "zxqv", "--namespaces", ",".join(names)).stdout
    assert nothing.startswith(f"Nothing in '{','.join(names)}' fits.")


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ((), " `--min-relevance 0` shows what is nearest, `--deep` also finds what has ended."),
        (("--deep",), " `--min-relevance 0` shows what is nearest."),
        (("--as-of", "2026-01-01"), " `--min-relevance 0` shows what is nearest."),
        (("--min-relevance", "0"), " `--deep` also finds what has ended."),
        (("--min-relevance", "0", "--deep"), ""),
    ],
)
def test_an_empty_recall_names_only_options_that_were_not_given(
    live: LiveSystem, options: tuple[str, ...], hint: str
) -> None:
    printed = live.ebb("recall", "zxqv", *options, "-n", "empty").stdout
    assert " ".join(printed.split()) == f"Nothing in 'empty' fits.{hint}"
