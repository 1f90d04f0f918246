"""Scope: an operation on one namespace leaves all others alone at every interface; all only by an explicit flag."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
import typer.main
from live_api import make_key, serving
from live_system import LiveSystem

from api.cli import command_line
from api.client import Client
from workers.errors import InvalidInputError

pytestmark = pytest.mark.acceptance

NEXT_YEAR = (datetime.now(UTC) + timedelta(days=365)).isoformat()
MOVED = "Mira moved to Leipzig and rents a flat near the canal"
HAS_MOVED = "Mira has moved to Leipzig and rents a flat near the canal"
OF = """
    select {columns} from facts
    join activity on activity.namespace = facts.namespace and fact = id
    join namespaces on namespaces.id = facts.namespace
    where name = %s order by facts.text
"""


def filled(client: Client) -> str:
    """Store data for every command; return the id of the fact to be forgotten."""
    gone = client.store("The code of the old door is 1234.", classify=False)["id"]
    client.store_many(
        [
            {"text": MOVED},
            {"text": HAS_MOVED},
            {"text": "It rains.", "decay_class": "session"},
            {"text": "A rumour.", "confidence": 0.2},
        ],
        classify=False,
    )
    client.relate("Mira", "Leipzig", "lives_in")
    client.forget([gone])
    return str(gone)


def state(live: LiveSystem, namespace: str) -> list[Any]:
    """Return everything that commands of this module may change in a namespace."""
    columns = (
        "text, forgotten_at, forgotten_reason, tier, fidelity, halvings, ends_at, decay_class, compared, stale, held"
    )
    relations = "select weight from relations join namespaces on namespaces.id = namespace where name = %s"
    runs = "select total_runs from janitors join namespaces on namespaces.id = namespace where name = %s"
    return [live.rows(query, [namespace]) for query in (OF.format(columns=columns), relations, runs)]


@pytest.fixture(scope="module")
def live(alone: LiveSystem) -> LiveSystem:
    """Return a system without the namespaces of other modules, each of which tasks with `everywhere` would visit."""
    return alone


@pytest.fixture
def clients(live: LiveSystem, namespace: str) -> Iterator[tuple[Client, Client]]:
    """Return the clients of two namespaces with the same content."""
    with live.client(f"{namespace}-a") as one, live.client(f"{namespace}-b") as other:
        for client in (one, other):
            filled(client)
        yield one, other


COMMANDS: dict[str, list[str]] = {
    "decay": ["decay", "--now", NEXT_YEAR],
    "prune": ["prune", "--now", NEXT_YEAR],
    "purge": ["purge", "--now", NEXT_YEAR, "--yes"],
    "backfill": ["backfill-decay"],
    "consolidate": ["consolidate", "--apply"],
    "janitor": ["janitor", "--now", NEXT_YEAR],
    "doctor": ["doctor", "--mend"],
    "relations": ["relations", "--decay", "--now", NEXT_YEAR],
}
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "decay": ("decay.plan", {"now": NEXT_YEAR}),
    "prune": ("decay.prune", {"now": NEXT_YEAR}),
    "purge": ("memory.purge", {"now": NEXT_YEAR}),
    "backfill": ("decay.backfill", {}),
    "consolidate": ("memory.consolidate", {"apply": True}),
    "janitor": ("memory.janitor", {"now": NEXT_YEAR}),
    "doctor": ("memory.doctor", {"mend": True}),
    "relations": ("relations.decay", {"now": NEXT_YEAR}),
}
CALLS: dict[str, Callable[[Client], Any]] = {
    "decay": lambda client: client.decay(now=NEXT_YEAR),
    "prune": lambda client: client.prune(now=NEXT_YEAR),
    "purge": lambda client: client.purge(now=NEXT_YEAR),
    "backfill": lambda client: client.backfill(),
    "consolidate": lambda client: client.consolidate(apply=True),
    "janitor": lambda client: client.janitor(now=NEXT_YEAR),
    "doctor": lambda client: client.doctor(mend=True),
    "relations": lambda client: client.decay_relations(now=NEXT_YEAR),
}
UNCHANGING = ("doctor",)
"""Commands that change nothing if nothing is wrong."""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_one_namespace_leaves_the_other_alone(
    live: LiveSystem, clients: tuple[Client, Client], command: str
) -> None:
    one, other = (client.namespace for client in clients)
    before = state(live, one), state(live, other)
    assert live.ebb(*COMMANDS[command], "-n", one).returncode == 0
    assert state(live, other) == before[1]
    assert (state(live, one) == before[0]) == (command in UNCHANGING)


@pytest.mark.parametrize("call", CALLS)
def test_a_client_of_one_namespace_leaves_the_other_alone(
    live: LiveSystem, clients: tuple[Client, Client], call: str
) -> None:
    one, other = clients
    before = state(live, one.namespace), state(live, other.namespace)
    CALLS[call](one)
    assert state(live, other.namespace) == before[1]
    assert (state(live, one.namespace) == before[0]) == (call in UNCHANGING)


@pytest.mark.parametrize("task", TASKS)
def test_a_task_without_a_namespace_means_the_default_one(
    live: LiveSystem, clients: tuple[Client, Client], task: str
) -> None:
    before = [state(live, client.namespace) for client in clients]
    name, arguments = TASKS[task]
    live.send(name, arguments).get()
    with pytest.raises(InvalidInputError, match="namespace: null is no name"):
        live.send(name, arguments | {"namespace": None}).get()
    assert [state(live, client.namespace) for client in clients] == before


@pytest.mark.parametrize("task", TASKS)
def test_all_namespaces_are_meant_by_an_explicit_flag(
    live: LiveSystem, clients: tuple[Client, Client], task: str
) -> None:
    before = [state(live, client.namespace) for client in clients]
    name, arguments = TASKS[task]
    live.send(name, arguments | {"everywhere": True}).get()
    live.settle()
    after = [state(live, client.namespace) for client in clients]
    same = [one == other for one, other in zip(before, after, strict=True)]
    assert same == [task in UNCHANGING] * 2


@pytest.mark.parametrize("command", ["decay", "prune", "purge", "janitor"])
def test_a_namespace_that_does_not_exist_has_no_work(live: LiveSystem, namespace: str, command: str) -> None:
    done = live.ebb(*COMMANDS[command], "-n", namespace)
    notice = f"There is no namespace {namespace!r} yet; -n names another one."
    assert (done.returncode, " ".join(done.stderr.split())) == (0, notice)


@pytest.mark.parametrize("command", ["list", "forget --tag x --yes", "export -", "keys list", "branch --list"])
def test_an_empty_name_does_not_mean_the_default_namespace(live: LiveSystem, command: str) -> None:
    refused = live.ebb(*command.split(), "-n", "")
    assert refused.returncode == 1
    assert "namespace: is no name" in refused.stderr


WITH_ALL = sorted(
    name
    for name, command in typer.main.get_group(command_line()).commands.items()
    if any(one.name == "everywhere" for one in command.params)
)


def test_the_commands_of_every_namespace_are_known() -> None:
    assert WITH_ALL == [
        "backfill-decay", "branch", "consolidate", "decay", "doctor", "export", "janitor", "prune", "purge",
    ]  # fmt: skip


@pytest.mark.parametrize("command", WITH_ALL)
def test_a_command_for_every_namespace_names_none(live: LiveSystem, namespace: str, command: str) -> None:
    listing = ["--list"] if command == "branch" else []
    both = live.ebb(command, *listing, "--all", "-n", namespace)
    assert (both.returncode, both.stdout) == (2, "")
    said = " ".join(both.stderr.replace("\u2502", " ").split())
    assert "leave out --namespace to reach every namespace, or --all to reach" in said


def test_an_export_has_one_namespace_or_with_all_every_one(live: LiveSystem, clients: tuple[Client, Client]) -> None:
    one, other = (client.namespace for client in clients)
    own, every = (live.ebb("export", *options).stdout for options in (["-n", one], ["--all"]))
    assert (f'"{one}"' in own, f'"{other}"' in own) == (True, False)
    assert f'"{one}"' in every
    assert f'"{other}"' in every


def test_a_key_reaches_its_own_namespace_alone(live: LiveSystem, clients: tuple[Client, Client]) -> None:
    one, other = (client.namespace for client in clients)
    before = state(live, other)
    with serving(live) as api:
        api.headers = httpx2.Headers(make_key(live, one, "read", "write", "admin"))
        for path, body in (
            ("/memory/decay", {"now": NEXT_YEAR}),
            ("/memory/consolidate", {"apply": True}),
            ("/memory/janitor", {"now": NEXT_YEAR}),
        ):
            assert api.post(path, json=body).status_code == 200
            assert api.post(path, json=body | {"everywhere": True}).status_code == 422
            assert api.post(path, json=body | {"namespace": other}).status_code == 422
        assert api.post("/memory/decay?everywhere=true", json={}).status_code == 403
    assert state(live, other) == before


def test_erasure_is_counted_first_and_requires_confirmation(live: LiveSystem, namespace: str) -> None:
    with live.client(namespace) as client:
        gone = filled(client)
    asked = live.ebb("purge", "--now", NEXT_YEAR, "-n", namespace)
    assert asked.returncode == 2
    assert "1 fact would be erased for good; nothing was erased" in asked.stderr
    assert "--yes" in asked.stderr
    refused = live.ebb("forget", gone, "--purge", "-n", namespace, "--json")
    assert (refused.returncode, "1 fact would be erased" in refused.stdout) == (2, True)
    assert live.rows("select count(*) from facts where id = %s", [gone]) == [(1,)]
    assert live.ebb("forget", gone, "--purge", "--yes", "-n", namespace).returncode == 0
    assert live.rows("select count(*) from facts where id = %s", [gone]) == [(0,)]
    assert live.ebb("purge", "--now", NEXT_YEAR, "-n", namespace).returncode == 0


def test_an_empty_answer_from_a_namespace_that_does_not_exist_says_so(live: LiveSystem, namespace: str) -> None:
    live.ebb("store", "The spare key hangs behind the kitchen clock", "--namespace", namespace)
    empty = (
        ["recall", "zebra"], ["list", "--tag", "zebra"], ["lookup", "zebra"], ["decay"], ["prune"], ["purge", "--yes"],
        ["consolidate"], ["held"], ["contradictions"], ["forgotten"], ["timeline", "zebra", "colour"],
        ["forget", "--tag", "zebra"], ["restore", "--reason", "faded", "--yes"], ["relations"], ["index", "--list"],
    )  # fmt: skip
    for words in empty:
        assert live.ebb(*words, "--namespace", namespace).stderr == ""
    for words in (
        *empty, ["stats"], ["janitor"], ["backfill-decay"], ["context", "zebra"], ["forecast"],
        ["forecast", "--ending", "7d"], ["relations", "--decay"],
    ):  # fmt: skip
        misspelt = live.ebb(*words, "--namespace", namespace[:-1])
        assert f"There is no namespace {namespace[:-1]!r} yet" in " ".join(misspelt.stderr.split())
        assert misspelt.returncode == 0
