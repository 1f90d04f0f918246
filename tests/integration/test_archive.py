"""An import restores an export in another database, with the history of facts."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import pytest
from ebb.contract.documents import Upload
from ebb.contract.facts import Edit
from ebb.contract.graph import Relate
from ebb.contract.retention import Forget, ListForgotten
from memory import LOCK_WAITS, Memory, day, wait_for
from pydantic import ValidationError

from workers import graph
from workers.admin import export, import_archive
from workers.documents import files
from workers.errors import InvalidInputError, UnavailableError
from workers.memory import edit
from workers.memory.forget import forget_subject
from workers.storage import activity, events, statements
from workers.storage.connection import transaction
from workers.validation.archived import ArchivedFact, State, archived

BESIDE = ("own", "link", "contradiction", "likeness", "occurrence", "document", "relation", "wish")
DERIVED_COLUMNS = {"namespace", "fact", "segment", "tier", "fidelity", "ends_at", "due_at", "retired", "worth", "asked"}
COLUMNS = "select column_name from information_schema.columns where table_name = %s"


@pytest.fixture
def lived(memory: Memory) -> Memory:
    """Return a memory with facts that have faded, ended for every reason, and are linked."""
    tea, cake, key = memory.add("Tea at four."), memory.add("Cake on Sunday.", tags=["food"]), memory.add("Key lost.")
    memory.add("The ticket is in the car.", decay_class="checkpoint")
    old = memory.add("Ana lives in Rome.", entity="Ana", key="city", value="Rome")
    city = {"entity": "Ana", "key": "city"}
    memory.store({"text": "Ana lives in Bonn.", "value": "Bonn", "supersedes": str(old), **city}, at=2)
    memory.store({"text": "Ana lives in Kyiv.", "value": "Kyiv", **city}, at=3)
    memory.link(tea, cake, strength=0.5, at=3)
    memory.relate("Ana", "Kyiv", "lives_in", at=3, weight=0.9, pinned=True)
    memory.rows("insert into documents values (1, 'notes/a.md', '/notes', 'x', now())")
    pair = sorted([tea, cake])
    memory.rows("insert into likenesses values (1, %s, %s, 0.95, now(), now())", *pair)
    memory.store({"text": "Tea at four.", "session": "chat", "turn": 3}, at=3)
    memory.touch(tea, at=4)
    memory.pin(cake, at=5)
    memory.forget(key, at=6)
    memory.decay(40)
    return memory


def settled(memory: Memory, at: float) -> list[dict[str, Any]]:
    """Return an archive after a pass, without fields that depend on the database."""
    memory.decay(at)
    return memory.archive(at)


def test_an_archive_brought_back_elsewhere_is_the_same_archive(lived: Memory, twin: Memory) -> None:
    lines = settled(lived, 41)
    assert {line.get("forgotten_reason") for line in lines} >= {"asked", "expired"}
    assert {kind for line in lines for kind in BESIDE if kind in line} == set(BESIDE)
    twin.import_records(lines, at=41)
    assert settled(twin, 41) == lines
    assert twin.examine(41) == {}


@pytest.mark.parametrize(
    "settings",
    [
        {"hygiene": {"episodicTTL": "x"}},
        {"hygiene": {"confidenceDecay": {"halfLife": 0}}},
        {"capacity": {"facts": "many"}},
        {"lifetimes": [1]},
        {"unknown": 1},
    ],
)
def test_wrong_settings_in_an_archive_are_refused(settings: dict[str, Any]) -> None:
    """Passes over all namespaces compute with them, so one namespace would end the decay of others."""
    with pytest.raises(InvalidInputError, match=r"settings: .*(must be|is no setting)"):
        archived({"own": {"salt": str(uuid4()), "settings": settings}}, 100)


def test_a_line_with_the_least_that_it_needs_is_imported(memory: Memory) -> None:
    at = {"created_at": "2025-01-01T00:00:00Z", "valid_from": "2025-01-01T00:00:00Z"}
    state = {"base": 5e-324, "last_seen_at": at["created_at"], "last_confirmed_at": at["created_at"]}
    line = {"id": str(uuid4()), "text": "Tea at four.", "content_salience": 5e-324, "state": state, **at}
    assert memory.import_records([line]) == ["added"]
    assert memory.rows("select tags, content_salience from facts") == [([], 0.0)]
    assert memory.examine(1) == {}


@pytest.mark.parametrize("part", [{"decay_class": "stable"}, {"decay_class_source": "auto"}])
def test_a_decay_class_without_its_source_is_refused(part: dict[str, Any]) -> None:
    at = "2025-01-01T00:00:00Z"
    state = {"base": 0.5, "last_seen_at": at, "last_confirmed_at": at, **part}
    with pytest.raises(InvalidInputError, match="state: decay_class and decay_class_source go together"):
        archived({"id": str(uuid4()), "text": "Tea.", "created_at": at, "valid_from": at, "state": state}, 100)


def test_a_reason_that_nothing_writes_is_imported_but_not_asked_for(memory: Memory) -> None:
    at = "2025-01-01T00:00:00Z"
    state = {"base": 0.5, "last_seen_at": at, "last_confirmed_at": at}
    line = {"id": str(uuid4()), "text": "Tea.", "created_at": at, "valid_from": at, "state": state}
    ended = {"forgotten_reason": "retracted", "forgotten_at": "2025-01-02T00:00:00Z"}
    assert memory.import_records([line | ended], at=2) == ["kept"]
    with pytest.raises(ValidationError, match="Input should be 'expired'"):
        ListForgotten.model_validate({"reason": "retracted"})


@pytest.mark.parametrize(
    ("end", "event"),
    [
        ({"forgotten_reason": "merged", "forgotten_at": "2025-01-02T00:00:00Z"}, ("merged into", {"id": "x"})),
        ({"superseded_at": "2025-01-02T00:00:00Z"}, ("closed", {"valid_until": "x"})),
        ({"superseded_at": "2025-01-02T00:00:00Z"}, ("closed", {"valid_until": "2025-13-01T00:00:00Z"})),
        ({"superseded_at": "2025-01-02T00:00:00Z"}, ("closed", {"valid_until": 5})),
    ],
)
def test_a_fact_whose_imported_history_says_nonsense_is_restored(
    memory: Memory, end: dict[str, Any], event: tuple[str, dict[str, Any]]
) -> None:
    at, id_ = "2025-01-01T00:00:00Z", uuid4()
    state = {"base": 0.5, "last_seen_at": at, "last_confirmed_at": at}
    events = [{"at": "2025-01-02T00:00:00Z", "what": event[0], "details": event[1]}]
    line = {"id": str(id_), "text": "Tea.", "created_at": at, "valid_from": at, "state": state, "events": events, **end}
    assert memory.import_records([line], at=2) == ["kept"]
    memory.restore(id_, at=3)
    assert memory.value("select forgotten_at is null and superseded_at is null from facts")


def test_an_archive_leaves_room_for_turns_to_come(memory: Memory) -> None:
    own = {"salt": str(uuid4()), "turns": 2**53}
    assert memory.import_records([{"own": own}]) == ["settled"]
    memory.store({"text": "Tea?", "session": "chat", "turn": 1}, at=1)
    assert memory.value("select turns from namespaces") == 2**53 + 1
    with pytest.raises(InvalidInputError, match="turns: input should be less than or equal to 9007199254740992"):
        archived({"own": own | {"turns": 2**63 - 1}}, 100)


def test_importing_twice_changes_nothing(lived: Memory, twin: Memory) -> None:
    lines = lived.archive(41)
    first = twin.import_records(lines, at=41)
    before = settled(twin, 42)
    second = twin.import_records(lines, at=43)
    assert set(first[1:8]) == {"added", "kept"}
    assert set(second[1:8]) == {"unchanged"}
    assert (first[0], *first[8:]) == (second[0], *second[8:])
    assert twin.archive(42) == before


def test_what_is_forgotten_while_an_import_computes_vectors_stays_forgotten(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = memory.add("Tea at four.")
    lines = [line | {"id": str(uuid4())} for line in memory.archive() if "text" in line]
    memory.decay(900, force=True)
    embedded = import_archive.vectors_of

    def then_forgotten(*given: Any) -> Any:
        memory.forget(id_, at=901)
        return embedded(*given)

    monkeypatch.setattr(import_archive, "vectors_of", then_forgotten)
    with pytest.raises(UnavailableError, match="forgotten at this very moment"):
        memory.import_records(lines, at=902)
    assert memory.import_records(lines, at=902) == ["forgotten"]
    assert memory.stats(at=902).facts == 0


@pytest.mark.parametrize("ended", ["faded", "superseded"])
def test_an_older_archive_does_not_bring_back_what_was_erased_on_request(memory: Memory, ended: str) -> None:
    id_ = memory.add("Tea at four.", entity="Tea", key="time", value="four")
    if ended == "faded":
        memory.decay(900, force=True)
    else:
        memory.store({"text": "Tea at five.", "supersedes": str(id_), "entity": "Tea", "key": "time", "value": "five"})
    lines = [line for line in memory.archive(901) if line.get("id") == str(id_)]
    memory.forget(id_, at=902, purge=True)
    assert memory.import_records(lines, at=903) == ["forgotten"]
    assert memory.value("select count(*) from facts where id = %s", id_) == 0
    assert memory.value("select count(*) from deep") == 0


def test_an_older_archive_does_not_bring_back_an_ended_fact_whose_statement_was_erased_as_another_one(
    memory: Memory,
) -> None:
    ended = memory.add("Tea at four.", decay_class="session")
    memory.decay(20)
    again = memory.add("Tea at four.", at=21)
    lines = memory.archive(21)
    memory.forget(ended, again, at=22, purge=True)
    assert memory.import_records(lines, at=23) == ["forgotten", "forgotten"]
    assert memory.value("select count(*) from facts") == 0


def test_what_another_part_of_an_import_stores_at_the_same_time_is_a_duplicate(
    memory: Memory, twin: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.add("Tea at four.", session="chat")
    (line,) = (one for one in memory.archive() if "text" in one)
    other, embedded = {**line, "id": str(uuid4()), "session": "call"}, import_archive.vectors_of

    def meanwhile(*given: Any) -> Any:
        monkeypatch.undo()
        assert twin.import_records([other]) == ["added"]
        return embedded(*given)

    monkeypatch.setattr(import_archive, "vectors_of", meanwhile)
    assert twin.import_records([line]) == ["duplicate"]
    assert twin.rows("select id::text, session from facts") == [(other["id"], "call")]
    assert twin.rows("select session from occurrences") == [("chat",)]


def test_what_is_purged_while_an_import_runs_is_called_forgotten(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_, embedded = memory.add("Tea at four."), import_archive.vectors_of

    def meanwhile(*given: Any) -> Any:
        memory.forget(id_, at=1, purge=True)
        return embedded(*given)

    (line,) = (one for one in memory.archive() if "text" in one)
    monkeypatch.setattr(import_archive, "vectors_of", meanwhile)
    assert memory.import_records([line], at=1) == ["forgotten"]


def test_an_import_that_is_delivered_twice_at_once_says_that_all_is_there(
    lived: Memory, twin: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, embedded = lived.archive(41), import_archive.vectors_of

    def meanwhile(*given: Any) -> Any:
        monkeypatch.undo()
        twin.import_records(lines, at=41)
        return embedded(*given)

    monkeypatch.setattr(import_archive, "vectors_of", meanwhile)
    done = twin.import_records(lines, at=41)
    assert set(done[1:8]) == {"unchanged"}
    assert done == twin.import_records(lines, at=41)


def test_what_another_delivery_has_just_imported_is_not_said_again(
    memory: Memory, twin: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.add("It rained.", session="chat", turn=1)
    lines, known = memory.archive(), statements.known_exactly
    twin.add("It is dry.")  # so that the namespace is there

    def meanwhile(*given: Any) -> Any:
        monkeypatch.undo()
        twin.import_records(lines)
        return known(*given)

    monkeypatch.setattr(statements, "known_exactly", meanwhile)
    assert twin.import_records(lines)[-1] == "unchanged"
    assert twin.rows("select from occurrences") == []


def test_links_are_imported_in_the_lock_order_of_an_erasure(memory: Memory) -> None:
    one, two = memory.add("The cellar is flooded."), memory.add("It rained.")
    memory.link(one, two)
    lines = [line for line in memory.archive() if "link" in line]
    with ThreadPoolExecutor(1) as pool, transaction(memory.context.database_url) as db:
        activity.lock(db, 1, [one])
        importing = pool.submit(memory.import_records, lines)
        wait_for(lambda: bool(memory.value(LOCK_WAITS)))
        db.execute("delete from facts where id = %s", [one])
        db.commit()
        assert "cannot be linked" in importing.result()[0]


@pytest.mark.parametrize("deep", [False, True])
def test_a_history_longer_than_a_line_comes_back_whole_and_once(
    memory: Memory, twin: Memory, monkeypatch: pytest.MonkeyPatch, deep: bool
) -> None:
    fact = memory.add("The ferry is late.", decay_class="session")
    for number in range(5):
        edit.edit(memory.context, Edit(id=fact, metadata={"note": f"{number}" * 100}), day(0.1))
    if deep:
        memory.decay(2)
        assert memory.demote(at=4) == 1
    whole = memory.archive(5)
    monkeypatch.setattr(export, "MOST_CHARACTERS", 1_000)
    lines = memory.archive(5)
    assert len([line for line in lines if "event" in line]) > 1
    for _ in range(2):
        twin.import_records(lines, at=5)
    monkeypatch.undo()
    assert [line["events"] for line in twin.archive(5)] == [line["events"] for line in whole]


def test_a_fact_that_was_here_before_gets_no_part_of_the_long_history_of_another(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = memory.add("The ferry is late.")
    memory.import_records(memory.archive(), namespace="copy")
    for number in range(3):
        edit.edit(memory.context, Edit(id=fact, metadata={"note": str(number)}), day(1))
    monkeypatch.setattr(export, "MOST_CHARACTERS", 1)
    lines = memory.archive(2)
    assert len([line for line in lines if "event" in line]) == 2
    memory.import_records(lines, 2, "copy")
    assert memory.value("select count(*) from events where namespace = 2") == 0


def test_a_long_history_that_was_continued_since_is_not_imported_again(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = memory.add("The ferry is late.")
    edit.edit(memory.context, Edit(id=fact, metadata={"note": "x" * 100}), day(0.1))
    for at in (1, 2):
        memory.store("The ferry is late.", at=at)
    monkeypatch.setattr(export, "MOST_CHARACTERS", 1)
    lines = memory.archive(2)
    assert [line["event"]["what"] for line in lines if "event" in line] == ["stored again"]
    memory.store("The ferry is late.", at=3)
    known = memory.rows("select at, what, details from events order by id")
    memory.import_records(lines, at=4)
    assert memory.rows("select at, what, details from events order by id") == known


def test_what_was_forgotten_stays_so_and_can_be_restored(lived: Memory, twin: Memory) -> None:
    twin.import_records(lived.archive(41), at=41)
    assert [one.text for one in twin.ask("Who lost the key?", at=41).results if "Key" in one.text] == []
    (stored,) = twin.store("Key lost.", at=41)
    assert stored.action == "forgotten"
    twin.restore(stored.id, at=41)
    assert "Key lost." in [one.text for one in twin.ask("Who lost the key?", at=41).results]


def dated(line: Any, at: str, names: tuple[str, ...] = ("at", "superseded_at", "forgotten_at", "tombstone_at")) -> Any:
    """Return a line of an archive with what was done to a fact, at instants of these names, dated then."""
    if isinstance(line, dict):
        return {name: at if name in names and one else dated(one, at, names) for name, one in line.items()}
    return [dated(one, at, names) for one in line] if isinstance(line, list) else line


def test_a_request_dated_in_the_future_counts_as_of_the_import(memory: Memory, twin: Memory) -> None:
    forgotten, restored = memory.add("Key lost."), memory.add("Tea at four.")
    replaced = memory.add("Ana lives in Rome.")
    memory.store({"text": "Ana lives in Bonn.", "supersedes": str(replaced)}, at=1)
    memory.forget(forgotten, restored, at=1)
    memory.restore(restored, at=1.5)
    twin = twin.having(time_travel=False)
    now = (twin.context.now() - day(0)).total_seconds() / 86_400
    assert "kept" in twin.import_records([dated(line, "2999-01-01T00:00:00Z") for line in memory.archive(2)], at=now)

    assert twin.store("Key lost.", at=now + 1)[0].action == "forgotten"
    for id_ in (forgotten, replaced):
        (outcome,) = twin.restore(id_, at=now + 1)
        assert not isinstance(outcome, InvalidInputError), outcome
    (outcome,) = twin.forget(restored, at=now + 1)
    assert not isinstance(outcome, InvalidInputError), outcome


def test_an_entry_of_the_history_from_the_future_that_spans_millennia_does_not_prevent_further_uses(
    memory: Memory, twin: Memory
) -> None:
    id_ = memory.add("Tea at four.")
    memory.reinforce(id_, at=1)
    twin = twin.having(time_travel=False)
    twin.import_records(memory.archive(2))
    entry = {"at": "9999-01-01T00:00:00Z", "what": "reinforced", "details": {"times": 3, "seconds": 3e11}}
    twin.import_records([{"event": {"fact": str(id_), "after": day(1).isoformat(), **entry}}])
    assert twin.value("select details ->> 'times' from events order by id desc limit 1") == "3"
    assert twin.reinforce(id_, at=3) is not None


def test_a_fact_and_a_relation_that_were_used_in_the_future_fade_from_the_import_on(
    memory: Memory, twin: Memory
) -> None:
    memory.add("Tea at four.")
    graph.relate(memory.context, Relate(source="Ana", target="Rome", type="lives_in"), day(0))
    names = ("created_at", "last_seen_at", "last_confirmed_at", "last_observed")
    lines = [dated(line, "2999-01-01T00:00:00Z", names) for line in memory.archive(1)]
    twin = twin.having(time_travel=False)
    before = twin.context.now()
    twin.import_records(lines, at=(before - day(0)).total_seconds() / 86_400)
    latest = """
        select greatest(
            max(created_at), max(last_seen_at), max(last_confirmed_at), (select max(last_observed) from relations)
        )
        from facts join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    """
    assert before <= twin.value(latest) <= twin.context.now()


def test_a_file_that_was_read_in_the_future_is_indexed_again_after_the_import(memory: Memory, twin: Memory) -> None:
    files.upload(memory.context, Upload(path="notes/a.md", text="Old."), day(0))
    lines = [dated(line, "2999-01-01T00:00:00Z", ("read_at",)) for line in memory.archive(1)]
    twin = twin.having(time_travel=False)
    twin.import_records(lines)
    assert not files.upload(twin.context, Upload(path="notes/a.md", text="New."), twin.context.now()).outdated


def test_a_tombstone_dated_in_the_future_is_purged_in_its_time(memory: Memory, twin: Memory) -> None:
    memory.forget(memory.add("Key lost."), at=1)
    twin = twin.having(time_travel=False)
    now = (twin.context.now() - day(0)).total_seconds() / 86_400
    twin.import_records([dated(line, "2999-01-01T00:00:00Z") for line in memory.archive(2)], at=now)
    assert (twin.purge(at=now + 29), twin.purge(at=now + 31)) == (0, 1)
    assert twin.store("Key lost.", at=now + 32)[0].action == "forgotten"


def test_a_purged_text_stays_unwanted_in_an_empty_namespace_only(memory: Memory, twin: Memory) -> None:
    code = "The code is 73417341."  # so long that it does not occur in a hash by chance
    memory.forget(memory.add(code), at=1, purge=True)
    lines = memory.archive(2)
    assert "73417341" not in str(lines)
    assert twin.import_records(lines, at=2) == ["settled", "wished"]
    assert twin.store(code, at=3)[0].action == "forgotten"
    other = twin.forget(twin.add("Something else.", namespace="other"), at=1, namespace="other")
    assert other
    refused = twin.import_records(lines, at=2, namespace="other")
    assert "another salt" in refused[1]


def test_as_of_an_instant_a_superseded_fact_is_recalled_after_the_import(lived: Memory, twin: Memory) -> None:
    twin.import_records(lived.archive(41), at=41)
    found = twin.ask("Where does Ana live?", at=41, as_of=day(1)).results
    assert found[0].text == "Ana lives in Rome."


def test_what_is_there_already_is_kept_as_it_is(memory: Memory, twin: Memory) -> None:
    memory.add("Tea at four.")
    (line,) = memory.archive()
    twin.add("Tea  at FOUR.", at=1)
    assert twin.import_records([line], at=2) == ["duplicate"]
    (other,) = memory.archive()
    twin.store({"text": "Something else.", "id": line["id"]}, at=1, namespace="other")
    assert "belongs to another" in twin.import_records([other], at=2, namespace="other")[0]


def test_of_two_facts_with_one_id_in_an_archive_the_second_is_refused(memory: Memory, twin: Memory) -> None:
    memory.add("Tea at four.")
    (tea,) = memory.archive()
    *known, refused = twin.import_records([tea, tea, tea | {"text": "Coffee at five."}], at=2)
    assert known == ["added", "unchanged"]
    assert "belongs to another" in refused


def test_a_pass_applies_the_settings_of_an_archive_to_its_facts(memory: Memory, twin: Memory) -> None:
    memory.choose({"hygiene.confidenceDecay.halfLife": 5})
    id_ = memory.add("Tea at four.")
    ends = memory.row(id_)["ends"]
    archive = memory.archive(1)
    twin.import_records(archive, 1)
    twin.decay(2)
    assert twin.row(id_)["ends"] == ends < 100
    assert twin.examine(3) == {}
    twin.rows("update namespaces set settings_changed_at = null")
    twin.import_records(archive, 4)
    assert twin.value("select settings_changed_at from namespaces") is None


def test_the_settings_of_an_archive_come_beside_those_that_the_namespace_has_set(memory: Memory, twin: Memory) -> None:
    memory.choose({"hygiene.confidenceDecay": {"halfLife": 5, "cullFloor": 0.2}, "hygiene.schedule": "onCapture"})
    twin.choose({"hygiene.confidenceDecay.halfLife": 7, "lifetimes": "careful"})
    twin.import_records(memory.archive())
    confidence = {"halfLife": 7, "cullFloor": 0.2}
    own = {"hygiene": {"confidenceDecay": confidence, "schedule": "onCapture"}, "lifetimes": "careful"}
    assert twin.value("select settings from namespaces") == own


def test_facts_fade_by_the_settings_of_their_archive_from_the_beginning(memory: Memory, twin: Memory) -> None:
    memory.choose({"hygiene.episodicTTL.permanentStaleDays": 19})
    id_ = memory.add("Tea at four.", kind="episodic", durability="permanent")
    lines = settled(memory, 20)
    for part in lines:  # a long archive comes in parts
        twin.import_records([part], at=20)
    assert settled(twin, 20) == lines
    assert [what for what, _ in twin.history(id_, at=20)].count("stale") == 1


def test_links_to_facts_that_are_not_there_are_refused(lived: Memory, twin: Memory) -> None:
    (link,) = [line for line in lived.archive(41) if "link" in line]
    assert "cannot be linked" in twin.import_records([link], at=41)[0]


def test_every_column_that_does_not_follow_from_others_is_carried(memory: Memory) -> None:
    activity = {name for (name,) in memory.rows(COLUMNS, "activity")}
    assert set(State.model_fields) == activity - DERIVED_COLUMNS
    memory.add("Tea at four.")
    facts = {name for (name,) in memory.rows(COLUMNS, "facts")}
    assert facts - set(memory.archive()[0]) == {"hash", "search"}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"state": {"base": 2}}, "state.base: "),
        ({"state": {"base": float("inf")}}, "state.base: "),
        ({"state": {"colour": "blue"}}, "state.colour"),
        ({"valid_from": "yesterday"}, "valid_from: "),
        ({"forgotten_reason": "boredom"}, "forgotten_reason: "),
        ({"forgotten_at": "2025-01-02T00:00:00Z"}, "forgotten_at and forgotten_reason go together"),
        ({"state": {"branch": 2}}, "state.branch: 2 is not of a semantic fact"),
        ({"valid_from": "2025-01-02T00:00:00Z", "valid_until": "2025-01-01T00:00:00Z"}, "valid_until: .*not lie after"),
        ({"text": " "}, "empty fact text"),
        ({"id": None}, "id: "),
    ],
)
def test_what_cannot_be_is_refused(memory: Memory, change: dict[str, Any], fault: str) -> None:
    memory.add("Tea at four.")
    (line,) = memory.archive()
    state = line["state"] | change.pop("state", {})
    with pytest.raises(InvalidInputError, match=fault):
        archived(line | change | {"state": state}, 65_536)


def test_a_fact_that_was_superseded_as_it_began_is_imported_with_its_past(memory: Memory, twin: Memory) -> None:
    old = memory.add("Tea at four.", valid_from="2025-01-05T00:00:00Z")
    memory.store({"text": "Tea at five.", "supersedes": str(old), "valid_from": "2025-01-05T00:00:00Z"})
    (line,) = [one for one in memory.archive(1) if one.get("superseded_at")]
    assert line["valid_from"] == line["valid_until"]
    assert twin.import_records([line], at=1) == ["kept"]


def test_an_archive_that_says_a_thing_twice_adds_nothing_when_it_comes_again_after_that_has_ended(
    memory: Memory, twin: Memory
) -> None:
    for namespace in ("ours", "theirs"):
        memory.add("Tea at four.", namespace=namespace, decay_class="session")
    lines = [one for one in memory.archive(namespace=None) if "text" in one]
    assert twin.import_records(lines) == ["added", "duplicate"]
    twin.decay(3)
    assert twin.import_records(lines, at=4) == ["restored", "duplicate"]
    assert twin.value("select count(*) from facts") == 1


def test_an_archive_of_everything_keeps_namespaces_apart(memory: Memory, twin: Memory) -> None:
    memory.add("Tea at four.", namespace="ours")
    memory.add("Tea at five.", namespace="theirs")
    for line in memory.archive(namespace=None):
        twin.import_records([line], namespace=line["namespace"])
    assert [one.text for one in twin.ask("When is tea?", namespace="ours").results] == ["Tea at four."]
    assert [one.text for one in twin.ask("When is tea?", namespace="theirs").results] == ["Tea at five."]


def test_an_embedder_that_fails_leaves_facts_to_be_embedded_later(lived: Memory, twin: Memory) -> None:
    lines = lived.archive(41)
    away = twin.having(embedder="openai", embedding_url="http://127.0.0.1:9", embedding_model="m")
    assert "added" in away.import_records(lines, at=41)
    live = "select count(*) from activity where fidelity <> 0"
    assert twin.value(live) == 0
    assert UUID(lines[1]["id"])


def test_a_lifetime_below_zero_of_an_earlier_version_is_none(memory: Memory) -> None:
    memory.pin(memory.add("Tea at four.", decay_class="session"), at=0.5)
    (line,) = memory.archive()
    found = archived(line | {"state": line["state"] | {"kept_lifetime": -417_600}}, 65_536)
    assert isinstance(found, ArchivedFact)
    assert found.past.state.kept_lifetime == 0


def test_the_last_deletion_request_for_a_statement_is_carried_though_its_fact_was_purged(
    memory: Memory, twin: Memory
) -> None:
    facts = [{"text": "The code.", "entity": "Door", "key": "code", "value": str(number)} for number in range(2)]
    one, other = (memory.add(**given) for given in facts)
    memory.forget(one, at=1)
    memory.forget(other, at=2, purge=True)
    lines = memory.archive(3)
    twin.import_records(lines, at=3)
    wishes = [line for line in lines if "wish" in line]
    assert [line for line in twin.archive(3) if "wish" in line] == wishes
    assert len(wishes) == 3


def test_a_deletion_request_that_was_revoked_is_not_imported(memory: Memory, twin: Memory) -> None:
    memory.forget(memory.add("The code.", entity="Door"), at=1)
    memory.add("The code.", again=True, at=2)
    lines = memory.archive(3)
    twin.import_records(lines, at=3)
    wishes = [line for line in lines if "wish" in line]
    assert [line for line in twin.archive(3) if "wish" in line] == wishes
    assert len(wishes) == 1


def test_a_deletion_request_for_a_fact_that_lives_again_is_not_imported(memory: Memory, twin: Memory) -> None:
    code = memory.add("The code.")
    memory.forget(code, at=1)
    twin.store({"id": str(code), "text": "The code.", "again": True}, at=2)
    assert twin.import_records([line for line in memory.archive(2) if "wish" in line], at=2) == ["wished"]
    twin.decay(at=4_000)
    assert twin.row(code)["forgotten_reason"] not in (None, "asked")
    assert twin.store("The code.", at=4_001)[0].action == "added"


def test_an_item_without_a_place_of_an_earlier_version_is_restored_as_it_was(memory: Memory, twin: Memory) -> None:
    memory.add("Tea at four.")
    memory.rows("update facts set kind = 'item'")
    assert twin.import_records(memory.archive())[0] == "added"
    assert twin.rows("select text, kind from facts") == [("Tea at four.", "item")]


@pytest.mark.parametrize("kind", ["link", "contradiction", "likeness", "occurrence"])
def test_an_import_beside_facts_that_are_purged_meanwhile_leaves_them_out(memory: Memory, kind: str) -> None:
    one, two = sorted([memory.add("Tea at four."), memory.add("Cake on Sunday.")])
    at = day(0).isoformat()
    records: dict[str, dict[str, Any]] = {
        "link": {"source": str(one), "target": str(two), "type": "CAUSED_BY", "strength": 1.0, "created_at": at},
        "contradiction": {"fact": str(one), "other": str(two), "found_at": at},
        "likeness": {"fact": str(one), "other": str(two), "similarity": 0.9, "found_at": at},
        "occurrence": {"fact": str(two), "id": str(two), "session": "chat", "said_at": at},
    }
    with ThreadPoolExecutor() as pool:
        with transaction(memory.context.database_url) as db:
            db.execute("delete from facts where id = %s", [two])
            importing = pool.submit(memory.import_records, [{kind: records[kind]}])
            wait_for(lambda: memory.value(LOCK_WAITS) > 0)
        (outcome,) = importing.result()
    assert kind != "link" or "cannot be linked" in outcome
    assert memory.examine(1) == {}


def test_an_import_beside_facts_that_were_packed_meanwhile_keeps_all_that_stands_beside_them(
    memory: Memory, twin: Memory
) -> None:
    """Between the facts of a large archive and its links a purge may move old tombstones into deep memory."""
    tea, ticket = memory.add("Tea at four."), memory.add("The ticket is in the car.", decay_class="checkpoint")
    memory.store({"text": "The ticket is in the car.", "session": "chat", "turn": 3}, at=0.01)
    memory.link(tea, ticket)
    pair = sorted([tea, ticket])
    memory.rows("insert into likenesses values (1, %s, %s, 0.95, now())", *pair)
    memory.rows("insert into contradictions values (1, %s, %s, now())", *pair)
    memory.decay(40)
    lines = memory.archive(41)
    beside = [line for line in lines if {*line}.intersection(BESIDE)]
    twin.import_records([line for line in lines if line not in beside], at=41)
    assert twin.demote(at=42) == 1
    assert twin.import_records(beside, at=42) == ["linked", "contradicting", "alike", "recurring"]
    assert [line for line in twin.archive(42) if {*line}.intersection(BESIDE)] == beside


def test_what_others_state_already_is_found_under_the_sessions_of_the_archive_too(memory: Memory, twin: Memory) -> None:
    memory.store({"text": "Tea at four.", "session": "chat", "turn": 3, "role": "user"})
    known = twin.add("Tea at four.", session="call")
    lines = memory.archive()
    for _ in range(2):
        assert "duplicate" in twin.import_records(lines)
    said = "select fact, session, turn, role from occurrences"
    assert twin.rows(said) == [(known, "chat", 3, "user")]
    assert twin.examine(1) == {}


def test_what_others_state_already_stays_without_its_session_if_the_archive_names_none(
    memory: Memory, twin: Memory
) -> None:
    memory.store({"text": "Tea at four.", "role": "user", "source_date": "2024-05-01T00:00:00Z"})
    known = twin.add("Tea at four.", session="call", turn=1)
    for _ in range(2):
        assert "duplicate" in twin.import_records(memory.archive())
    forget_subject(twin.context, Forget(session="call"), day(2), uuid4(), math.inf)
    ((*place, said_at),) = twin.rows("select session, turn, role, source_date from facts where id = %s", known)
    assert (*place, said_at.isoformat()) == (None, None, "user", "2024-05-01T00:00:00+00:00")


def test_a_role_that_does_not_exist_in_an_imported_history_does_not_stop_a_session_from_being_forgotten(
    memory: Memory, twin: Memory
) -> None:
    id_ = memory.add("Tea at four.", session="call", turn=1, role="user")
    with transaction(memory.context.database_url) as db:
        (tenant,) = db.execute("select namespace from facts").fetchone() or (0,)
        events.add_many(db, tenant, day(1), [(id_, "said again", {"role": "narrator"})])
    twin.import_records(memory.archive())
    forget_subject(twin.context, Forget(session="call"), day(2), uuid4(), math.inf)
    assert twin.rows("select session, role from facts") == [(None, "user")]


@pytest.mark.parametrize("expires_at", ["9999-12-30T00:00:00Z", "infinity"])
def test_an_imported_fact_dated_at_the_end_of_the_calendar_stops_no_other_from_being_packed(
    memory: Memory, expires_at: str
) -> None:
    at, id_ = "2025-01-01T00:00:00Z", uuid4()
    state: dict[str, Any] = {"base": 0.5, "last_seen_at": at, "last_confirmed_at": "9999-12-30T00:00:00Z"}
    state |= {"expires_at": expires_at, "decay_class": "stable", "decay_class_source": "auto"}
    line = {"id": str(id_), "text": "Tea.", "created_at": at, "valid_from": at, "state": state}
    ended = {"forgotten_at": at, "forgotten_reason": "faded", "tombstone_at": at}
    assert memory.import_records([line | ended], namespace="odd") == ["kept"]
    memory.add("Rain.", decay_class="session", namespace="plain")
    memory.decay(3)
    assert memory.demote(at=5) == 2
    memory.restore(id_, at=6, namespace="odd")
    assert memory.demote(at=6) == 0


def test_an_expiry_beyond_the_calendar_stops_no_other_from_being_packed(memory: Memory) -> None:
    id_ = memory.add("Tea.", decay_class="session")
    memory.decay(3)
    memory.rows("update activity set expires_at = '10000-03-28'")
    assert memory.demote(at=5) == 1
    memory.restore(id_, at=6)


@pytest.mark.parametrize("line", [{"text": "Tea."}, {"archive": "begins"}, {}])
def test_what_is_no_record_of_an_export_is_refused_with_what_to_do(line: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"Is neither a fact of an export, .* store a new fact as such"):
        archived(line, 100)
