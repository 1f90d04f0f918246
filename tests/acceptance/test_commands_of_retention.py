"""An owner's decisions about facts, through the command line and the client, on real workers."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from live_system import LiveSystem, eventually

from api.client import Client
from workers.core.fidelity import FULL
from workers.errors import InvalidInputError

pytestmark = pytest.mark.acceptance

TEXT = "The spare key hangs behind the kitchen clock."
MONTHS_LATER = "2100-01-01T00:00:00Z"


def found(client: Client) -> list[str]:
    return [one["id"] for one in client.recall("Where is the spare key?", touch=False)["results"]]


def fidelity(live: LiveSystem, id_: str) -> int:
    return int(live.rows("select fidelity from activity where fact = %s", [id_])[0][0])


def test_a_forgotten_fact_stays_forgotten_when_stored_again_and_is_restored_completely(
    live: LiveSystem, client: Client
) -> None:
    id_ = client.store(TEXT)["id"]
    (fate,) = client.forget([id_])["results"]
    assert (fate["action"], fate["reason"], found(client)) == ("forgotten", "asked", [])
    assert client.store(TEXT).items() >= {"id": id_, "action": "forgotten", "embedded": False}.items()
    assert client.restore([id_]) == {"results": [{"id": id_, "action": "restored"}]}
    assert found(client) == [id_]
    eventually(lambda: fidelity(live, id_) == FULL, "the vector is computed again")
    assert [one["what"] for one in client.history(id_)["events"]] == ["stored", "forgotten", "restored"]


def test_tables_of_the_command_line_show_whole_ids_and_are_never_empty(live: LiveSystem, client: Client) -> None:
    own, texts = ("--namespace", client.namespace), (TEXT, "A text that needs more than one line of a narrow terminal.")
    kept, forgotten = (client.store(text)["id"] for text in texts)
    client.forget([forgotten])
    assert kept in live.ebb("list", *own).stdout
    shown = live.ebb("forgotten", *own).stdout
    assert forgotten in shown
    assert "erased on" in " ".join(shown.split())
    assert live.ebb("forecast", "--ending", "7d", *own).stdout == "Nothing ends until then.\n"
    assert live.ebb("keys", "list", *own).stdout == f"No key opens {client.namespace!r}.\n"
    assert live.ebb("branch", "--list", *own).stdout == "There is no branch.\n"


def test_the_commands_that_a_list_of_held_facts_names_decide_about_them(live: LiveSystem, client: Client) -> None:
    own, ids = ("--namespace", client.namespace), [client.store(f"Rumour {number}.")["id"] for number in range(3)]
    over = (
        "update activity set held = true, ends_at = now() - interval '1 day', due_at = 'infinity' where fact = any(%s)"
    )
    live.rows(over, [ids])
    shown = " ".join(live.ebb("held", *own).stdout.split())
    assert "3 facts are over but stay visible." in shown
    name = client.namespace
    for command in (f"`ebb held -n {name} --let-go ID…`", f"`ebb held -n {name} --keep ID…`", "--all"):
        assert command in shown
    assert f"List them with `ebb held -n {name}`." in " ".join(live.ebb("stats", *own).stdout.split())
    live.ebb("held", "--let-go", ids[0], *own)
    live.ebb("held", "--keep", ids[1], *own)
    assert "1 fact is over but stays visible." in " ".join(live.ebb("held", *own).stdout.split())
    live.ebb("held", "--let-go", "--all", *own)
    assert live.ebb("held", *own).stdout == f"Nothing is held in {client.namespace!r}.\n"
    assert {one["id"] for one in client.facts()["facts"]} == {ids[1]}


def test_any_salience_that_is_given_is_used_in_place_of_the_estimate(live: LiveSystem, client: Client) -> None:
    def content_salience(*given: str) -> float:
        stored = live.ebb_json("store", f"Paid {len(given)}30 euros in Graz.", *given, "-n", client.namespace)
        return float(client.fact(stored["id"])["content_salience"])

    assert content_salience("--salience", "0.5") == 0.5
    assert content_salience() != 0.5


def test_a_restoration_that_comes_twice_changes_nothing_the_second_time(live: LiveSystem, client: Client) -> None:
    id_ = client.store(TEXT)["id"]
    client.forget([id_])
    task_id, states = str(uuid4()), []
    for _ in range(2):
        live.send("memory.restore", {"ids": [id_], "namespace": client.namespace}, task_id)
        live.settle()
        states.append(live.state())
    assert states[0] == states[1]


def test_all_about_a_subject_is_forgotten_with_preview_and_receipt(live: LiveSystem, client: Client) -> None:
    for text in ("Mira lives in Leipzig", "Mira has a cat", "Anselm bakes"):
        client.store(text, entity=text.split()[0])
    name = ("--namespace", client.namespace)
    preview = live.ebb("forget", "--entity", "mira", *name)
    assert "facts that fit: 2" in preview.stdout
    assert "run the same command with --yes" in preview.stderr
    assert len(live.facts(client.namespace)) == 3

    receipt = json.loads(live.ebb("forget", "--entity", "mira", "--yes", "--json", *name).stdout)
    assert (receipt["matching"], receipt["done"], receipt["left"]) == (2, 2, False)
    assert [text for _, text in live.facts(client.namespace)] == ["Anselm bakes"]
    assert "match only with --reason asked" in live.ebb("restore", "--run", receipt["run"], *name).stdout
    restored = live.ebb("restore", "--run", receipt["run"], "--reason", "asked", "--yes", *name)
    assert "2 facts restored" in restored.stdout
    for wrong in ((), ("--yes",), (str(uuid4()), "--entity", "mira"), (str(uuid4()), "--dry-run")):
        refused = live.ebb("forget", *wrong, *name)
        assert refused.returncode == 2
        assert "give either ids, or any of --entity, --key" in " ".join(refused.stderr.split())


def test_what_fits_no_fact_has_a_receipt_too(live: LiveSystem, client: Client) -> None:
    found = live.ebb("forget", "--entity", "nobody", "--yes", "--json", "--namespace", client.namespace).stdout
    assert json.loads(found).keys() == client.forget(entity="nobody").keys()


def test_forgetting_a_session_asks_about_the_facts_that_go(live: LiveSystem) -> None:
    name = ("--namespace", f"sessions-{uuid4()}")
    live.ebb("store", "Mira bakes bread.", "--session", "one", *name)
    live.ebb("store", "Mira bakes bread.", "--session", "two", *name)
    assert "1 fact would leave the session" in live.ebb("forget", "--session", "one", *name).stderr
    live.ebb("store", "Mira sells bread.", "--session", "one", *name)
    asked = live.ebb("forget", "--session", "one", *name)
    assert "facts that fit: 2, 1 of them was also said elsewhere and stays" in " ".join(asked.stdout.split())
    assert "1 fact would be forgotten" in asked.stderr
    receipt = live.ebb("forget", "--session", "one", "--yes", *name).stdout
    assert receipt.strip().endswith("; 1 was also said elsewhere and stays")


def test_purging_is_permanent(live: LiveSystem, client: Client) -> None:
    gone, kept = client.store(TEXT)["id"], client.store("Tea at four.")["id"]
    assert client.forget([gone], purge=True)["results"][0]["action"] == "purged"
    client.forget([kept])
    assert client.purge(dry_run=True)["left"] == 0
    assert live.rows("select id::text from facts where id in (%s, %s)", [gone, kept]) == [(kept,)]
    assert client.purge(now=MONTHS_LATER, dry_run=True)["left"] >= 1
    assert live.ebb_json("purge", "--now", MONTHS_LATER, "--all", "--yes")["left"] == 0
    assert live.rows("select id from facts where id in (%s, %s)", [gone, kept]) == []
    assert "it was purged" in client.restore([kept])["results"][0]["error"]


def test_words_of_purged_facts_are_no_longer_counted(live: LiveSystem, client: Client) -> None:
    counted = """
        select count(*) from lexemes join namespaces on namespaces.id = lexemes.namespace
        where name = %s and lexeme = 'kitchen'
    """
    id_ = client.store(TEXT)["id"]
    live.send("memory.lexemes", {})
    eventually(lambda: live.rows(counted, [client.namespace]) == [(1,)], "the word is counted")
    client.forget([id_], purge=True)
    live.send("memory.lexemes", {})
    eventually(lambda: live.rows(counted, [client.namespace]) == [(0,)], "the word is gone")


def test_the_command_line_does_all_of_it(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    def ebb(*arguments: str) -> Any:
        return live.ebb_json(*arguments, "--namespace", namespace)

    id_ = ebb("store", TEXT)["id"]
    assert ebb("pin", id_, "--until", "2100-01-01") == {
        "id": id_, "action": "pinned", "pinned": True, "until": "2100-01-01T00:00:00Z",
    }  # fmt: skip
    assert ebb("stats")["pinned"] == 1
    assert ebb("pin", id_, "--off")["action"] == "unpinned"
    assert ebb("forget", id_)["results"][0]["action"] == "forgotten"
    assert ebb("stats")["forgotten_by_reason"] == {"asked": 1}
    assert ebb("restore", id_)["results"][0]["action"] == "restored"
    assert ebb("history", id_)["state"] == "live"
    ebb("forget", id_)
    file = tmp_path / "facts.jsonl"
    file.write_text(json.dumps({"text": TEXT}), encoding="utf-8")
    assert ebb("import", str(file))["forgotten"] == 1
    assert ebb("import", str(file), "--again")["added"] == 1
    assert ebb("store", TEXT, "--again")["action"] == "duplicate"


def test_metadata_is_stored_from_the_command_line_as_json(live: LiveSystem, namespace: str) -> None:
    id_ = live.ebb_json("store", TEXT, "--metadata", '{"seen": {"by": "Mira"}}', "-n", namespace)["id"]
    (fact,) = live.ebb_json("list", "-n", namespace)["facts"]
    assert (fact["id"], fact["metadata"]) == (id_, {"seen": {"by": "Mira"}})
    refused = live.ebb("store", TEXT, "--metadata", "[1]", "-n", namespace)
    assert "metadata: must be an object, or the JSON of one" in " ".join(refused.stderr.split())


def test_the_text_output_shows_the_outcome_for_each_fact(live: LiveSystem, namespace: str) -> None:
    def ebb(*arguments: str) -> tuple[int, str]:
        done = live.ebb(*arguments, "--namespace", namespace)
        return done.returncode, done.stdout + done.stderr

    id_, unknown = live.ebb_json("store", TEXT, "--namespace", namespace)["id"], str(uuid4())
    assert ebb("pin", id_) == (0, f"pinned {id_}, pinned for good\n")
    assert ebb("forget", id_, unknown) == (1, f"forgotten {id_}\nunknown {unknown}\n")
    code, said = ebb("forget", id_)
    assert (code, said.split(", forgotten ")[0], said.strip().endswith(": asked")) == (0, f"unchanged {id_}", True)
    assert ebb("store", TEXT)[1].startswith(f"not stored: it was forgotten on request as {id_}")
    code, said = ebb("restore", id_, "--dry-run")
    assert (code, "--dry-run belongs" in " ".join(said.split())) == (2, True)
    code, said = ebb("restore", "--reason", "asked")
    assert (code, said.startswith("Error: 1 fact would be restored; nothing was done. To do so, run")) == (2, True)
    code, said = ebb("restore", id_, unknown)
    assert (code, f"restored {id_}" in said, f"no fact {unknown}" in said) == (1, True, True)
    code, said = ebb("history", id_)
    assert (code, said.splitlines()[:2]) == (0, [TEXT, "live, pinned for good"])
    ebb("edit", id_, "--entity", "Mira", "--tag", "home")
    assert "entity none" in " ".join(ebb("history", id_)[1].split())


@pytest.mark.parametrize("ids", [[], "text", None, ["seven"], [7], [str(uuid4())] * 10_001])
def test_an_invalid_list_of_ids_is_refused_as_a_whole(client: Client, ids: Any) -> None:
    for task in ("memory.forget", "memory.restore"):
        with pytest.raises(InvalidInputError, match="id"):
            client.call(task, {"ids": ids, "namespace": client.namespace}, 30)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"until": "yesterday"}, "until: "),
        ({"until": "2000-01-01"}, "is past at .*; give an instant to come, or `off` to end the pin"),
        ({"until": "2100-01-01", "off": True}, "cannot be given together"),
        ({"id": "seven"}, "id: input should be a valid UUID"),
        ({"id": str(uuid4())}, "no live fact"),
    ],
)
def test_an_impossible_pin_is_refused_with_a_message(client: Client, options: dict[str, Any], fault: str) -> None:
    id_ = client.store(TEXT)["id"]
    with pytest.raises(InvalidInputError, match=fault):
        client.pin(**({"id": id_} | options))


def test_history_is_shown_in_pages_and_the_forgotten_without_what_was_asked_for(
    live: LiveSystem, client: Client
) -> None:
    id_ = client.store(TEXT)["id"]
    client.forget([id_])
    own = ("--namespace", client.namespace, "--home", "")
    first = live.ebb("history", id_, "--limit", "1", *own).stdout
    _, cursor = first.splitlines()[-1].split("There are more: --cursor ")
    rest = live.ebb("history", id_, "--cursor", cursor, "--no-links", *own).stdout
    assert [" stored " in first, " forgotten " in first] == [True, False]
    assert [" stored " in rest, " forgotten " in rest, "There are more" in rest] == [False, True, False]
    assert id_ in live.ebb("forgotten", *own).stdout
    assert live.ebb("forgotten", "--no-asked", *own).stdout == "Nothing that can be restored matches.\n"


def test_a_forecast_shows_the_days_on_which_something_changes(live: LiveSystem, client: Client) -> None:
    own = ("forecast", "--shown", "0", "--namespace", client.namespace)
    assert live.ebb(*own).stdout.startswith("Nothing changes on 7 days.\n")
    client.store(TEXT)
    shown = live.ebb(*own, "--days", "90").stdout.splitlines()
    busy = [line for line in shown if line.startswith("20")]
    assert 1 < len(busy) < 10
    assert f"Nothing changes on the other {90 - len(busy)} days." in shown


def test_a_dry_run_says_what_the_forget_limit_would_hold(live: LiveSystem, client: Client) -> None:
    own = ("--namespace", client.namespace)
    for number in range(30):
        client.store(f"Rumour {number}.")
    shown = " ".join(live.ebb("decay", "--dry-run", "--now", MONTHS_LATER, *own).stdout.split())
    assert shown.endswith("Forget limit: it would hold 24 facts back.")
    assert live.ebb("held", *own).stdout == f"Nothing is held in {client.namespace!r}.\n"
