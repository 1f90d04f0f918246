"""Near-duplicate facts are listed, merged on request, and restored on request."""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any
from unittest.mock import Mock
from uuid import UUID, uuid4

import pytest
from ebb.contract.facts import Edit
from ebb.contract.retention import Forget
from memory import Memory, day

from workers.admin import export, search_indexes
from workers.core.fidelity import FINGERPRINT, FULL
from workers.core.near_duplicates import MOST_BITS
from workers.decay import consolidate
from workers.decay.consolidate import Group, Merged, compare
from workers.errors import InvalidInputError
from workers.memory import embed
from workers.memory.add import Stored
from workers.memory.edit import edit
from workers.memory.forget import forget_subject
from workers.memory.unpack import last_kept
from workers.storage import duplicate_pairs, signatures, subjects

MOVED = "Mira moved to Leipzig and rents a flat near the canal"
HAS_MOVED = "Mira has moved to Leipzig and rents a flat near the canal"
MOVED_TOO = "Mira moved to Leipzig and also rents a flat near the canal"
DARK = "The user prefers dark mode in every editor"
DARK_TOO = "User prefers dark mode in every editor"


def compared(memory: Memory, at: float = 0, namespace: str = "default") -> int:
    """Compare all uncompared facts; return how many."""
    total = 0
    while batch := compare(memory.context, namespace, day(at)):
        total += batch
    return total


def near_duplicates(memory: Memory, at: float = 0, namespace: str = "default") -> list[Group]:
    compared(memory, at, namespace)
    return consolidate.near_duplicates(memory.context, namespace, day(at))


def names(groups: list[Group]) -> list[tuple[UUID, set[UUID]]]:
    return [(group.keep.id, {member.id for member, _ in group.merge}) for group in groups]


def merge(memory: Memory, at: float = 1, run: UUID | None = None, namespace: str = "default", **options: Any) -> Merged:
    groups = near_duplicates(memory, at, namespace)
    return consolidate.merge(memory.context, namespace, run or uuid4(), groups, day(at), **options)


def everything(memory: Memory) -> Iterator[list[Any]]:
    for statement in (
        "select facts::text from facts order by id",
        "select (to_jsonb(activity) - 'compared')::text from activity order by fact",
        "select events::text from events order by id",
        "select signatures::text from signatures order by fact",
        "select vectors::text from vectors order by fact",
    ):
        yield memory.rows(statement)


def live(memory: Memory) -> set[UUID]:
    return {id_ for (id_,) in memory.rows("select id from facts where forgotten_at is null")}


def test_near_duplicates_are_listed_with_their_similarity_and_nothing_else_changes(memory: Memory) -> None:
    first, second = memory.add(MOVED), memory.add(HAS_MOVED, at=1)
    memory.add(DARK)
    before = list(everything(memory))
    (group,) = near_duplicates(memory, at=2)
    assert (group.keep.id, group.keep.text) == (first, MOVED)
    ((member, similarity),) = group.merge
    assert (member.id, member.text) == (second, HAS_MOVED)
    assert 0.92 <= similarity < 1
    assert list(everything(memory)) == before
    assert live(memory) >= {first, second}


def test_each_fact_is_compared_once_with_all_that_are_there(memory: Memory) -> None:
    old = memory.add(MOVED)
    memory.store(*[f"Guest {number} sleeps in the attic." for number in range(60)])
    assert compared(memory) == 61
    assert compared(memory) == 0
    new = memory.add(HAS_MOVED)
    assert compared(memory) == 1
    assert names(near_duplicates(memory)) == [(old, {new})]


def test_a_fact_that_still_waits_for_its_vector_is_compared_once_it_has_one(memory: Memory) -> None:
    first, second = memory.add(MOVED), memory.add(HAS_MOVED)
    embed.reset(memory.context)
    assert near_duplicates(memory) == []
    place: embed.Position | None = embed.START
    while place is not None:
        place = embed.embed_pending(memory.context, place, day(0))
    assert names(near_duplicates(memory)) == [(first, {second})]


PATTERNS = ("{} keeps a boat near the canal", "{} has also kept a boat near the canal", "A boat near the canal: {}'s")


def with_many_near_duplicates(memory: Memory) -> None:
    """Store facts in groups, some of them pinned, forgotten or with a signature alone."""
    people = ("Mira", "Otto", "Ilse", "Hugo", "Jonas", "Emil")
    memory.store(*[pattern.format(one) for one in people for pattern in PATTERNS])
    memory.pin(memory.add("Mira has kept a boat near the canal", at=0), at=0)
    memory.decay(at=300)
    memory.store(
        *[f"{one} now {how} a boat near the canal" for one in people for how in ("keeps", "also keeps")], at=300
    )
    memory.forget(memory.ids("Otto keeps a boat", at=300)[0], at=300)


def test_all_signatures_are_compared_at_once_as_the_database_would_one_by_one(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_many_near_duplicates(memory)
    monkeypatch.setattr(signatures, "PART", 7)
    ids = [id_ for (id_,) in memory.rows("select id from facts")]
    with memory.context.namespace("default") as (db, tenant):
        one_by_one = signatures.nearest_of_each(db, tenant, ids, consolidate.NEAREST, MOST_BITS)
        assert len(one_by_one) > len(ids)
        assert sorted(consolidate._nearest_of_each(db, tenant, ids)) == sorted(one_by_one)


def test_in_small_steps_and_by_an_index_the_same_near_duplicates_are_found(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_many_near_duplicates(memory)
    at_once = near_duplicates(memory, at=301)
    assert len(at_once) > 3
    for name, most in {"COMPARED": 5, "COMPARED_BY_INDEX": 4, "PAIRS": 3}.items():
        monkeypatch.setattr(consolidate, name, most)
    uncompare = "truncate likenesses; update activity set compared = false"
    memory.rows(uncompare)
    assert near_duplicates(memory, at=301) == at_once
    memory.rows(uncompare)
    search_indexes.index_large_namespaces(memory.having(ann_threshold=1).context)
    assert compare(memory.context, "default", day(301)) == 4
    assert near_duplicates(memory, at=301) == at_once


def test_a_fact_that_is_edited_while_it_is_compared_is_compared_again(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = {"entity": "Mira", "key": "home"}
    first, second = memory.add(MOVED, **home, value="Leipzig"), memory.add(HAS_MOVED, **home, value="Halle")
    mark_compared = duplicate_pairs.mark_compared

    def mark_after_an_edit(*given: Any) -> int:
        monkeypatch.undo()
        edit(memory.context, Edit(id=second, value="Leipzig"), day(0))
        return mark_compared(*given)

    monkeypatch.setattr(duplicate_pairs, "mark_compared", mark_after_an_edit)
    assert compare(memory.context, "default", day(0)) == 1
    assert names(near_duplicates(memory)) == [(first, {second})]


def test_a_comparison_that_is_broken_off_is_done_again(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = memory.add(MOVED), memory.add(HAS_MOVED)
    with monkeypatch.context() as patch:
        patch.setattr(duplicate_pairs, "mark_compared", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            compared(memory)
    assert memory.rows("select 1 from likenesses") == []
    assert names(near_duplicates(memory)) == [(first, {second})]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"entity": "Mira"}, {"entity": "Mara"}),
        ({"entity": "Mira"}, {}),
        ({"entity": "Mira", "key": "home"}, {"entity": "Mira", "key": "holiday"}),
        ({"entity": "Mira", "key": "home", "value": "Leipzig"}, {"entity": "Mira", "key": "home", "value": "canal"}),
        ({"kind": "semantic"}, {"kind": "episodic"}),
        ({"kind": "episodic"}, {"kind": "episodic"}),
        ({"kind": "chunk"}, {"kind": "chunk"}),
    ],
)
def test_what_is_about_something_else_is_no_duplicate(memory: Memory, one: Any, two: Any) -> None:
    memory.add(MOVED, **one)
    memory.add(HAS_MOVED, **two)
    assert near_duplicates(memory) == []


def test_case_of_entity_key_and_value_makes_no_difference(memory: Memory) -> None:
    first = memory.add(MOVED, entity="Mira", key="Home", value="LEIPZIG")
    second = memory.add(HAS_MOVED, entity="MIRA", key="home", value="Leipzig")
    assert names(near_duplicates(memory)) == [(first, {second})]


def test_values_that_differ_in_a_word_in_which_case_counts_are_never_merged(memory: Memory) -> None:
    for value in ("Hunter2", "hunter2"):
        memory.add("The password of the router", entity="router", key="password", value=value)
    assert near_duplicates(memory) == []


def test_texts_that_differ_in_a_figure_or_a_negation_are_never_merged(memory: Memory) -> None:
    memory.store("She does like strong coffee in the morning", "She does not like strong coffee in the morning")
    memory.store(*[f"The guest of room {number} pays for breakfast in advance." for number in range(12)])
    assert near_duplicates(memory) == []


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Mein Bruder trinkt morgens im Garten gern Kaffee", "Mein Bruder trinkt morgens im Garten nicht gern Kaffee"),
        ("王伟每天早上在北京的公园里跑步五公里然后去上班", "李娜每天早上在北京的公园里跑步五公里然后去上班"),
        ("מיכל שותה קפה עם חלב כל בוקר בגינה", "מיכל לא שותה קפה עם חלב כל בוקר בגינה"),
    ],
)
def test_texts_in_other_languages_that_differ_in_a_word_are_never_merged(memory: Memory, one: str, two: str) -> None:
    memory.store(one, two)
    assert near_duplicates(memory) == []


def test_namespaces_are_never_merged_with_each_other(memory: Memory) -> None:
    ours, theirs = memory.add(MOVED, namespace="ours"), memory.add(HAS_MOVED, namespace="theirs")
    assert near_duplicates(memory, namespace="ours") == near_duplicates(memory, namespace="theirs") == []
    again = memory.add(HAS_MOVED, namespace="ours")
    assert names(near_duplicates(memory, namespace="ours")) == [(ours, {again})]
    merge(memory, namespace="ours")
    assert live(memory) == {ours, theirs}
    assert near_duplicates(memory, namespace="unknown") == []
    assert merge(memory, namespace="unknown") == Merged()


def test_what_is_forgotten_superseded_or_over_is_no_duplicate_any_more(memory: Memory) -> None:
    first, second = memory.add(MOVED), memory.add(HAS_MOVED)
    third = memory.add(MOVED_TOO, decay_class="session")
    assert len(near_duplicates(memory)[0].merge) == 2
    memory.forget(second, at=0.5)
    assert names(near_duplicates(memory, at=0.6)) == [(first, {third})]
    assert near_duplicates(memory, at=1.1) == []
    memory.store({"text": "Mira lives in Porto.", "supersedes": str(first)}, at=1.2)
    assert near_duplicates(memory, at=1.2) == []


def test_after_an_edit_facts_about_different_things_are_not_merged(memory: Memory) -> None:
    home = {"entity": "Mira", "key": "home"}
    first = memory.add(MOVED, **home, value="Leipzig")
    second = memory.add(HAS_MOVED, **home, value="leipzig")
    assert names(near_duplicates(memory)) == [(first, {second})]
    edit(memory.context, Edit(id=second, value="Halle"), day(1))
    assert near_duplicates(memory, at=2) == []
    assert merge(memory, at=2) == Merged()
    edit(memory.context, Edit(id=second, value="Leipzig"), day(3))
    assert names(near_duplicates(memory, at=4)) == [(first, {second})]
    third = memory.add(MOVED_TOO, entity="Jo")
    assert names(near_duplicates(memory, at=5)) == [(first, {second})]
    edit(memory.context, Edit(id=third, **home, value="Leipzig"), day(6))
    assert names(near_duplicates(memory, at=7)) == [(first, {second, third})]


def test_what_is_true_until_another_time_is_no_duplicate(memory: Memory) -> None:
    memory.add(MOVED, valid_until=day(3).isoformat())
    second = memory.add(HAS_MOVED, at=5)
    assert merge(memory, at=6) == Merged()
    assert memory.ids("Where does Mira rent?", at=6) == [second]
    edit(memory.context, Edit(id=second, valid_from=day(0), valid_until=day(3)), day(7))
    assert len(near_duplicates(memory, at=8)) == 1
    edit(memory.context, Edit(id=second, valid_until=None), day(9))
    assert near_duplicates(memory, at=10) == []


@pytest.mark.parametrize("fading", [0, 40, 70, 100, 300])
def test_faded_facts_are_still_recognised(memory: Memory, fading: float) -> None:
    old = memory.add(MOVED)
    compared(memory)
    memory.decay(fading)
    new = memory.add(HAS_MOVED, at=fading)
    assert names(near_duplicates(memory, at=fading)) == [(old, {new})]


def test_two_signatures_are_enough(memory: Memory) -> None:
    ids = {memory.add(MOVED), memory.add(HAS_MOVED)}
    memory.decay(300)
    assert {memory.row(id_)["fidelity"] for id_ in ids} == {FINGERPRINT}
    ((kept, merged),) = names(near_duplicates(memory, at=300))
    assert {kept} | merged == ids


def test_merging_keeps_one_and_turns_the_others_into_tombstones_with_events_on_both_sides(memory: Memory) -> None:
    first, second = memory.add(MOVED), memory.add(HAS_MOVED)
    (group,) = merge(memory).groups
    ((_, similarity),) = group.merge
    assert live(memory) == {first}
    assert (memory.row(second)["forgotten_reason"], memory.row(second)["live"]) == ("merged", False)
    assert memory.history(first) == [("stored", 0), ("took in", 1)]
    assert memory.history(second) == [("stored", 0), ("forgotten", 1), ("merged into", 1)]
    details = "select details from events where fact = %s and what <> 'forgotten'"
    assert memory.value(details, first) == {"id": str(second), "similarity": round(similarity, 4)}
    assert memory.value(details, second) == {"id": str(first), "similarity": round(similarity, 4)}
    assert memory.ids("Where does Mira rent?", at=1) == [first]


def test_the_kept_fact_is_reinforced_and_has_all_tags_and_the_highest_importance(memory: Memory) -> None:
    first = memory.add(MOVED, confidence=0.5, tags=["home", "mira"], importance=0.2)
    memory.add(HAS_MOVED, confidence=0.5, tags=["canal", "home"], importance=0.7)
    merge(memory, at=10)
    row = memory.row(first)
    assert (row["confidence"], row["confirmed"]) == (pytest.approx(0.55), 10)
    assert memory.value("select confirmations from activity where fact = %s", first) == 1
    ((tags, importance),) = memory.rows("select tags, importance from facts where id = %s", first)
    assert (tags, importance) == (["home", "mira", "canal"], 0.7)
    assert memory.ids("Leipzig", at=10, tag="canal") == [first]


def test_the_kept_fact_is_linked_with_what_the_merged_was_linked_with(memory: Memory) -> None:
    first, second, canal = memory.add(MOVED), memory.add(HAS_MOVED), memory.add("The canal freezes over in January")
    for pair in ((second, canal), (canal, second), (second, first)):
        memory.link(*pair, strength=0.4)
    memory.link(first, canal, strength=0.2)
    merge(memory)
    own = "select source, target, strength from links where source = %s and target = %s"
    assert memory.rows(own, first, canal) == [(first, canal, 0.4)]
    assert memory.rows(own, canal, first) == [(canal, first, 0.4)]
    assert memory.rows(own, second, canal) == [(second, canal, 0.4)]


def test_the_kept_fact_has_the_sessions_of_the_merged_and_stays_until_the_last_is_forgotten(memory: Memory) -> None:
    first = memory.add(MOVED, session="monday", turn=0)
    second = memory.add(HAS_MOVED, session="friday", turn=3, role="user")
    memory.store({"text": HAS_MOVED, "session": 7, "turn": 1}, at=1)
    assert merge(memory, at=2).groups[0].keep.id == first
    own = "select session, turn, role from occurrences where fact = %s order by turn"
    assert memory.rows(own, first) == [(7, 1, None), ("friday", 3, "user")]
    assert memory.rows(own, second) == [(7, 1, None)]
    assert memory.ids("Where does Mira rent?", at=2, session="friday") == [first]

    for session in ("monday", 7):
        forget_subject(memory.context, Forget(session=session), day(3), uuid4(), math.inf)
        assert live(memory) == {first}
    assert memory.row(first)["session"] == "friday"


@pytest.mark.parametrize("again", [{}, {"session": "friday"}])
def test_the_kept_fact_stays_without_its_session_if_the_merged_was_said_outside_any(
    memory: Memory, again: dict[str, str]
) -> None:
    first = memory.add(MOVED, session="monday", turn=0)
    memory.add(HAS_MOVED, at=0.5, role="user", **again)
    if again:
        memory.store({"text": HAS_MOVED, "role": "user"}, at=0.5)
    merge(memory, at=1)
    for session in ("monday", "friday"):
        forget_subject(memory.context, Forget(session=session), day(2), uuid4(), math.inf)
    assert live(memory) == {first}
    own = "select session, turn, role, source_date from facts where id = %s"
    assert memory.rows(own, first) == [(None, None, "user", day(0.5))]


def test_each_merged_fact_reinforces_and_confidence_never_exceeds_one(memory: Memory) -> None:
    first = memory.add(MOVED, confidence=0.92)
    memory.store({"text": HAS_MOVED, "confidence": 0.5}, {"text": MOVED_TOO, "confidence": 0.94})
    merge(memory)
    assert memory.row(first)["confidence"] == 1.0
    assert memory.value("select confirmations from activity where fact = %s", first) == 2


def test_the_kept_fact_is_as_strong_and_long_lived_as_the_best_of_its_group(memory: Memory) -> None:
    first = memory.add(MOVED, decay_class="session", salience=0.2)
    second = memory.add(HAS_MOVED, at=0.5, decay_class="session", salience=0.9)
    assert memory.row(first)["expires"] == 1
    merge(memory, at=0.6)
    assert live(memory) == {first}
    row = memory.row(first)
    assert (row["expires"], row["last_seen"]) == (1.5, 0.5)
    assert row["base"] == pytest.approx(memory.row(second)["base"])
    assert memory.ids("Leipzig", at=1.3) == [first]


def test_a_kept_fact_that_had_faded_is_named_so_that_its_vector_comes_back(memory: Memory) -> None:
    first = memory.add(MOVED)
    memory.decay(300)
    memory.add(HAS_MOVED, at=300)
    done = merge(memory, at=300)
    assert done.faded == [first]
    memory.regenerate(first, at=300)
    assert memory.row(first)["fidelity"] == FULL


@pytest.mark.parametrize("how", ["pinned", "longer", "confirmed", "older", "id"])
def test_which_fact_is_kept_follows_from_the_facts_alone(memory: Memory, how: str) -> None:
    ids = sorted(uuid4() for _ in range(2))
    later = [how == "older", False]
    classes = ["stable", "permanent" if how == "longer" else "stable"]
    for place in (1, 0) if how == "id" else (0, 1):
        text = (MOVED, HAS_MOVED)[place]
        memory.add(text, id=str(ids[place]), at=float(later[place]), decay_class=classes[place])
    if how == "pinned":
        memory.pin(ids[1], at=2)
    if how == "confirmed":
        memory.rows("update activity set confirmations = 3 where fact = %s", ids[1])
    kept = ids[0] if how == "id" else ids[1]
    assert [group.keep.id for group in near_duplicates(memory, at=3)] == [kept]


def test_a_permanent_fact_takes_in_an_older_one_without_a_class(memory: Memory) -> None:
    older, kept = memory.add(MOVED), memory.add(HAS_MOVED, at=1, decay_class="permanent")
    assert names(near_duplicates(memory, at=2)) == [(kept, {older})]


def test_pinned_and_permanent_facts_are_never_merged_away(memory: Memory) -> None:
    first, second = memory.add(MOVED, decay_class="permanent"), memory.add(HAS_MOVED)
    memory.pin(second, at=0)
    third = memory.add(MOVED_TOO)
    assert names(near_duplicates(memory)) == [(second, {third})]
    merge(memory)
    assert live(memory) == {first, second}


def test_what_is_pinned_or_forgotten_between_the_report_and_the_merge_stays_as_it_is(memory: Memory) -> None:
    first, second, third = memory.add(MOVED), memory.add(HAS_MOVED), memory.add(MOVED_TOO)
    groups = near_duplicates(memory)
    memory.pin(second, at=0.5)
    memory.forget(third, at=0.5)
    assert consolidate.merge(memory.context, "default", uuid4(), groups, day(1)) == Merged()
    assert live(memory) == {first, second}
    assert memory.row(first)["confidence"] == 1.0
    assert memory.value("select sum(confirmations) from activity") == 0


def test_what_is_edited_between_the_report_and_the_merge_stays_as_it_is(memory: Memory) -> None:
    about = {"entity": "Mira", "key": "home", "value": "Leipzig"}
    first, second, third = (memory.add(text, **about) for text in (MOVED, HAS_MOVED, MOVED_TOO))
    groups = near_duplicates(memory)
    edit(memory.context, Edit(id=second, value="Halle"), day(0.5))
    merged = consolidate.merge(memory.context, "default", uuid4(), groups, day(1))
    assert names(merged.groups) == [(first, {third})]
    assert live(memory) == {first, second}


def test_what_is_set_apart_between_the_report_and_the_merge_stays_as_it_is(memory: Memory) -> None:
    first, second, third = memory.add(MOVED), memory.add(HAS_MOVED), memory.add(MOVED_TOO)
    groups = near_duplicates(memory)
    with memory.context.namespace("default") as (db, tenant):
        duplicate_pairs.mark_different(db, tenant, [second], day(0.5))
    merged = consolidate.merge(memory.context, "default", uuid4(), groups, day(1))
    assert names(merged.groups) == [(first, {third})]
    assert live(memory) == {first, second}


def test_repeating_a_merge_changes_nothing(memory: Memory) -> None:
    for one, two in ((MOVED, HAS_MOVED), (DARK, DARK_TOO)):
        memory.store({"text": one, "confidence": 0.5}, {"text": two, "confidence": 0.5})
    groups, run = near_duplicates(memory), uuid4()
    assert len(consolidate.merge(memory.context, "default", run, groups, day(1)).groups) == 2
    before = list(everything(memory))
    for again in (run, uuid4()):
        assert consolidate.merge(memory.context, "default", again, groups, day(1)).groups == []
        assert merge(memory, at=2, run=again).groups == []
    assert list(everything(memory)) == before


def test_many_that_merge_at_once_merge_each_fact_once(memory: Memory) -> None:
    memory = memory.having(forget_limit=1.0)
    for number in range(20):
        facts = [f"Guest {number} {how} the attic and rents it from Mira" for how in ("moved to", "has moved to")]
        memory.store(*[{"text": text, "confidence": 0.5} for text in facts])
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: merge(memory), range(4)))
    assert sum(len(one.groups) for one in done) == 20
    assert memory.value("select count(*) from facts where forgotten_at is null") == 20
    assert memory.rows(
        "select distinct confirmations from activity join facts on id = fact where forgotten_at is null"
    ) == [(1,)]
    assert memory.value("select count(*) from events where what = 'took in'") == 20


def test_many_that_compare_while_others_store_miss_no_pair(memory: Memory) -> None:
    def stored_and_compared(how: str) -> None:
        for begin in range(0, 30, 10):
            numbers = range(begin, begin + 10)
            memory.store(*[f"Guest {number} {how} the attic and rents it from Mira" for number in numbers])
            compared(memory)

    memory.add("Tea at four.")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(stored_and_compared, ["moved to", "has moved to", "also moved to", "has also moved to"]))
    pairs = memory.rows("select fact, other from likenesses")
    compared(memory)
    assert memory.rows("select fact, other from likenesses") == pairs
    groups = names(near_duplicates(memory))
    assert len(groups) == 30
    assert sum(len(merged) for _, merged in groups) >= 60


def test_what_was_merged_is_restored_and_then_left_alone(memory: Memory) -> None:
    first, second = memory.add(MOVED), memory.add(HAS_MOVED)
    merge(memory)
    memory.restore(second, at=2)
    assert live(memory) == {first, second}
    assert (memory.row(second)["live"], memory.row(second)["fidelity"]) == (True, FULL)
    assert near_duplicates(memory, at=3) == []
    assert merge(memory, at=3) == Merged()
    third = memory.add(MOVED_TOO, at=4)
    assert len(near_duplicates(memory, at=4)) == 1
    assert third in names(near_duplicates(memory, at=4))[0][1]


def test_a_fact_that_comes_back_is_compared_with_what_was_stored_meanwhile(memory: Memory) -> None:
    first = memory.add(MOVED)
    compared(memory)
    memory.forget(first, at=1)
    second = memory.add(HAS_MOVED, at=2)
    assert near_duplicates(memory, at=2) == []
    memory.restore(first, at=3)
    assert names(near_duplicates(memory, at=3)) == [(first, {second})]


def test_pairs_of_earlier_versions_that_differ_are_not_merged(memory: Memory) -> None:
    facts = [memory.add(f"The user {how} dark chocolate in the afternoon") for how in ("likes", "hates")]
    compared(memory)
    memory.rows(
        "insert into likenesses (namespace, fact, other, similarity, found_at) values (1, %s, %s, 0.95, now())",
        *sorted(facts),
    )
    assert merge(memory) == Merged()


def rumours(memory: Memory, count: int) -> None:
    for how in ("moved to", "has moved to"):
        memory.store(*[f"Guest {number} {how} the attic and rents it from Mira" for number in range(count)])


def test_merging_counts_towards_the_forget_limit_and_stops_there(memory: Memory) -> None:
    rumours(memory, 30)
    run = uuid4()
    done = merge(memory, run=run)
    assert (sum(len(group.merge) for group in done.groups), done.held) == (12, 18)
    assert merge(memory, run=run).groups == merge(memory).groups == []
    assert len(merge(memory, force=True).groups) == 18
    assert memory.value("select count(*) from facts where forgotten_at is null") == 30
    runs = "select count(*) from decay_runs where work = 'consolidation' and finished_at is not null"
    assert memory.value(runs) == 3


def test_a_merged_fact_is_demoted_and_promoted_with_its_near_duplicate_pairs(memory: Memory) -> None:
    first, second = memory.add(MOVED), memory.add(HAS_MOVED)
    merge(memory)
    assert memory.value("select count(*) from likenesses") == 1
    memory.purge(at=40)
    assert memory.value("select count(*) from likenesses") == 0
    assert live(memory) == {first}
    memory.restore(second, at=41)
    assert memory.value("select count(*) from likenesses where apart_at is not null") == 1
    assert live(memory) == {first, second}


def test_what_was_merged_is_left_alone_though_what_it_was_merged_into_was_deep_when_it_was_restored(
    memory: Memory,
) -> None:
    first, second = memory.add(MOVED, decay_class="session"), memory.add(HAS_MOVED, decay_class="session")
    merge(memory, at=0.5, force=True)
    memory.decay(3)
    assert memory.demote(at=5) == 2
    memory.restore(second, at=6)
    memory.restore(first, at=6)
    assert near_duplicates(memory, at=6.1) == []
    assert memory.value("select count(*) from likenesses where apart_at is not null") == 1


def stored(memory: Memory, text: str, at: float, **fields: Any) -> tuple[str, UUID]:
    """Store a fact; return the action and the id."""
    (one,) = memory.store({"text": text, **fields}, at=at)
    assert isinstance(one, Stored)
    return one.action, one.id


def test_a_merged_text_that_is_stored_again_is_a_use_of_what_it_was_merged_into(memory: Memory) -> None:
    first = memory.add(MOVED)
    memory.add(HAS_MOVED)
    merge(memory)
    before = memory.row(first)
    assert stored(memory, HAS_MOVED.upper(), 2, session="chat", turn=1, tags=["home"]) == ("updated", first)
    assert memory.row(first)["last_seen"] > before["last_seen"]
    assert memory.value("select tags from facts where id = %s", first) == ["home"]
    assert memory.rows("select session, turn from occurrences where fact = %s", first) == [("chat", 1)]
    assert live(memory) == {first}


def test_a_merged_text_is_known_after_days_and_more_merges_of_what_it_was_merged_into(memory: Memory) -> None:
    second = memory.add(MOVED)
    memory.add(HAS_MOVED, at=0.1)
    merge(memory, at=0.2)
    first = memory.add(MOVED_TOO, at=0.3)
    memory.pin(first, at=0.4)
    merge(memory, at=1)
    assert memory.demote(at=3) == 2
    assert [stored(memory, text, 4) for text in (MOVED, HAS_MOVED)] == [("duplicate", first)] * 2

    memory.restore(second, at=5)
    assert stored(memory, MOVED, 6) == ("duplicate", second)
    assert stored(memory, HAS_MOVED, 6) == ("duplicate", first)


def test_a_merged_text_is_known_once_what_it_was_merged_into_left_deep_memory(memory: Memory) -> None:
    own = {"decay_class": "session"}
    second, third = memory.add(MOVED, **own), memory.add(HAS_MOVED, at=0.1, **own)
    merge(memory, at=0.2)
    first, _ = memory.add(MOVED_TOO, at=0.3, **own), memory.add(DARK, at=0.3)
    memory.pin(first, at=0.4, until=1)
    merge(memory, at=0.5)
    assert live(memory) == {first, memory.ids(DARK, at=0.5)[0]}
    memory.decay(6)
    assert memory.demote(at=8) == 3
    assert memory.value("select count(*) from merged_texts") == 0
    memory.restore(first, at=9)
    assert [stored(memory, text, 9) for text in (MOVED, HAS_MOVED)] == [("duplicate", first)] * 2
    assert not {second, third} & live(memory)


@pytest.mark.parametrize("deep", [False, True])
def test_a_merged_text_is_known_after_an_import(memory: Memory, twin: Memory, deep: bool) -> None:
    memory.add(MOVED)
    memory.add(HAS_MOVED, at=0.1)
    merge(memory, at=0.2)
    first = memory.add(MOVED_TOO, at=0.3)
    memory.pin(first, at=0.4)
    merge(memory, at=1)
    assert memory.demote(at=3) == 2 if deep else True
    for line in memory.archive(4)[:: -1 if deep else 1]:
        twin.import_records([line], at=4)
    assert [stored(twin, text, 5) for text in (MOVED, HAS_MOVED)] == [("duplicate", first)] * 2


def test_a_merged_text_is_known_after_an_import_of_its_long_history(
    memory: Memory, twin: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = memory.add(MOVED), memory.add(HAS_MOVED)
    edit(memory.context, Edit(id=second, metadata={"note": "x"}), day(0.5))
    merge(memory)
    monkeypatch.setattr(export, "MOST_CHARACTERS", 1)
    twin.import_records(memory.archive(2), at=2)
    assert stored(twin, HAS_MOVED, 3) == ("duplicate", first)


def test_an_erased_merged_text_is_not_known_after_deep_memory_or_an_import(memory: Memory, twin: Memory) -> None:
    first, second = memory.add(MOVED, decay_class="session"), memory.add(HAS_MOVED, decay_class="session")
    merge(memory, at=0.5, force=True)
    memory.decay(3)
    assert memory.demote(at=5) == 2
    memory.forget(second, at=6, purge=True)
    memory.restore(first, at=7)
    twin.import_records(memory.archive(7), at=7)
    for one in (memory, twin):
        assert live(one) == {first}
        assert one.value("select count(*) from merged_texts") == 0


def test_a_circular_history_of_merges_is_imported(memory: Memory, twin: Memory) -> None:
    first, second = memory.add(MOVED), memory.add(HAS_MOVED)
    merge(memory)
    lines = memory.archive(2)
    (kept,) = (line for line in lines if line.get("id") in (first, str(first)))
    merged = {"at": day(1).isoformat(), "what": "merged into", "details": {"id": str(second)}}
    kept |= {"forgotten_at": day(1).isoformat(), "forgotten_reason": "merged", "events": [*kept["events"], merged]}
    assert twin.import_records(lines, at=2)[:2] == ["kept", "kept"]


def test_the_last_of_a_chain_of_merges_is_found_in_time_that_grows_with_its_length() -> None:
    ids = [uuid4() for _ in range(200_000)]
    assert {*last_kept(dict(pairwise(ids))).values()} == {ids[-1]}


def test_many_that_store_a_merged_text_at_once_add_nothing(memory: Memory) -> None:
    first = memory.add(MOVED)
    memory.add(HAS_MOVED)
    merge(memory)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: stored(memory, HAS_MOVED, 2), range(8)))
    assert done == [("duplicate", first)] * 8
    facts = [{"text": text, "id": str(uuid4())} for text in (HAS_MOVED, DARK, HAS_MOVED, DARK_TOO)]
    added = [one.action for one in memory.store(*facts, at=3) if isinstance(one, Stored)]
    assert added == ["duplicate", "added", "duplicate", "added"]


def test_a_redelivered_store_of_a_fact_that_was_merged_since_changes_nothing(memory: Memory) -> None:
    memory.add(MOVED)
    own = {"text": HAS_MOVED, "id": str(uuid4())}
    memory.store(own)
    merge(memory)
    before = list(everything(memory))
    (again,) = memory.store(own, at=2)
    assert isinstance(again, Stored)
    assert (again.action, str(again.id)) == ("unchanged", own["id"])
    assert list(everything(memory)) == before


def test_a_merged_text_is_its_own_once_it_was_restored(memory: Memory) -> None:
    first, second = memory.add(MOVED), memory.add(HAS_MOVED)
    merge(memory)
    memory.restore(second, at=2)
    assert stored(memory, HAS_MOVED, 2) == ("duplicate", second)
    _, third = stored(memory, "Mira rents a flat in Halle.", 3, supersedes=str(second))
    action, fourth = stored(memory, HAS_MOVED, 4)
    assert (action, {first, third, fourth} <= live(memory)) == ("added", True)


@pytest.mark.parametrize("purge", [False, True])
@pytest.mark.parametrize("deep", [False, True])
def test_a_merged_text_that_was_forgotten_on_request_stays_forgotten(memory: Memory, deep: bool, purge: bool) -> None:
    first, second = memory.add(MOVED), memory.add(HAS_MOVED)
    merge(memory)
    assert memory.demote(at=3) == 1 if deep else True
    memory.forget(second, at=4, purge=purge)
    assert memory.value("select count(*) from merged_texts") == 0
    assert stored(memory, HAS_MOVED, 5) == ("forgotten", second)
    action, again = stored(memory, HAS_MOVED, 6, again=True)
    assert (action, live(memory)) == ("added", {first, again})


def test_a_merged_text_is_new_once_what_it_was_merged_into_is_about_another_or_over(memory: Memory) -> None:
    first = memory.add(MOVED, entity="Mira", key="home", value="Leipzig")
    memory.add(HAS_MOVED, entity="mira", key="home", value="leipzig")
    memory.store(DARK, DARK_TOO, at=0)
    merge(memory)
    assert stored(memory, HAS_MOVED, 2) == ("duplicate", first)
    assert stored(memory, HAS_MOVED, 2, entity="Nora")[0] == "added"
    edit(memory.context, Edit(id=first, value="Halle"), day(3))
    assert stored(memory, HAS_MOVED, 4, entity="Mira", key="home", value="Leipzig")[0] == "added"
    assert stored(memory, DARK_TOO, 2_000)[0] == "added"


def test_a_merged_text_supersedes_what_it_was_merged_into(memory: Memory) -> None:
    first = memory.add(MOVED)
    memory.add(HAS_MOVED)
    merge(memory)
    action, new = stored(memory, HAS_MOVED, 2, supersedes=str(first))
    assert action == "updated"
    assert stored(memory, HAS_MOVED, 3) == ("duplicate", new)
    assert stored(memory, MOVED, 3)[0] == "added"


def test_nothing_is_left_of_a_merged_text_that_was_erased_by_its_age(memory: Memory) -> None:
    first, _ = memory.add(f"{MOVED} of AiRo"), memory.add(f"{HAS_MOVED} of AiRo")
    merge(memory, at=1)
    dark, _ = memory.add(DARK, at=2), memory.add(DARK_TOO, at=2)
    merge(memory, at=30)
    assert memory.demote(at=35) == 2
    assert memory.having(deep_days=30).purge(at=40) == 1
    assert memory.rows("select fact from merged_texts") == [(dark,)]
    assert stored(memory, DARK_TOO, 41) == ("duplicate", dark)
    action, new = stored(memory, f"{HAS_MOVED} of AiRo", 41)
    assert (action, live(memory)) == ("added", {first, dark, new})


def test_a_deletion_request_counts_more_than_a_merged_text(memory: Memory) -> None:
    memory.store({"text": MOVED, "entity": "Mira"}, {"text": HAS_MOVED, "entity": "Mira"})
    asked = memory.add(HAS_MOVED, entity="Nora")
    memory.forget(asked, at=0.5)
    merge(memory)
    assert memory.value("select count(*) from merged_texts") == 1
    assert stored(memory, HAS_MOVED, 2) == ("forgotten", asked)


def test_a_merged_text_has_a_vector_in_a_batch_that_supersedes_what_it_was_merged_into(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = memory.add(MOVED)
    memory.add(HAS_MOVED)
    merge(memory)
    monkeypatch.setattr(memory.context.embedder, "quick", False)  # so texts are embedded before the transaction
    halle, again = memory.store({"text": "Mira lives in Halle.", "supersedes": str(first)}, HAS_MOVED, at=2)
    assert isinstance(halle, Stored)
    assert isinstance(again, Stored)
    assert (halle.action, again.action, again.embedded) == ("updated", "added", True)


def test_a_merged_text_takes_the_place_of_another_fact_as_what_it_was_merged_into_unless_it_is_apart(
    memory: Memory,
) -> None:
    first, other, third = memory.add(MOVED), memory.add(DARK), memory.add("Tea is at four.")
    memory.add(HAS_MOVED)
    merge(memory)
    assert stored(memory, HAS_MOVED, 2, supersedes=str(other)) == ("updated", first)
    assert live(memory) >= {first, third}
    action, fourth = stored(memory, HAS_MOVED, 3, supersedes=str(third), apart=True)
    assert (action, fourth in {first, third}) == ("updated", False)


@pytest.mark.parametrize("purge", [False, True])
@pytest.mark.parametrize("deep", [False, True])
def test_what_was_merged_is_forgotten_with_what_it_was_merged_into(memory: Memory, deep: bool, purge: bool) -> None:
    second, third = memory.add(MOVED), memory.add(HAS_MOVED, at=0.1)
    merge(memory, at=0.2)
    assert live(memory) == {second}
    first = memory.add(MOVED_TOO, at=0.3)
    memory.pin(first, at=0.4)
    merge(memory, at=1)
    assert live(memory) == {first}
    assert memory.demote(at=3) == 2 if deep else True
    (outcome,) = memory.forget(first, at=4, purge=purge)
    assert not isinstance(outcome, InvalidInputError)
    assert outcome.action == ("purged" if purge else "forgotten")
    assert memory.forgotten(reasons=("merged",)) == []
    assert set(memory.forgotten(reasons=("asked",))) == (set() if purge else {first, second, third})
    assert memory.restore_selected(at=5, since=0) == []
    assert memory.ids("Where does Mira rent?", at=5, known_as_of=day(0.2), min_relevance=0.0) == []
    (again,) = memory.store(HAS_MOVED, at=6)
    assert isinstance(again, Stored)
    assert again.action == "forgotten"


def test_what_was_forgotten_with_what_it_was_merged_into_is_restored_with_it(memory: Memory) -> None:
    second, third = memory.add(MOVED), memory.add(HAS_MOVED, at=0.1)
    merge(memory, at=0.2)
    first = memory.add(MOVED_TOO, at=0.3)
    memory.pin(first, at=0.4)
    merge(memory, at=1)
    (before, other) = (memory.add(text, at=2) for text in ("Mira rents a boat.", "Mira sold the boat."))
    memory.forget(before, at=3)
    memory.forget(first, other, at=4)
    (outcome,) = memory.restore(first, at=5)
    assert not isinstance(outcome, InvalidInputError)
    assert live(memory) == {first, second, third}
    assert set(memory.forgotten(reasons=("asked",))) == {before, other}


def test_a_twin_that_was_forgotten_by_itself_is_not_restored_with_the_other(memory: Memory) -> None:
    first, second = memory.add(MOVED), memory.add(HAS_MOVED)
    merge(memory, at=1)
    memory.forget(second, at=2)
    memory.forget(first, at=3)
    memory.restore(first, at=4)
    assert live(memory) == {first}
    assert memory.forgotten(reasons=("asked",)) == [second]


def test_a_subject_counts_what_was_merged_and_is_deep_as_its_dry_run_does(memory: Memory) -> None:
    first, second = memory.add(MOVED, entity="Mira"), memory.add(HAS_MOVED, entity="Mira")
    merge(memory, at=1)
    assert memory.demote(at=3) == 1
    asked = Forget(entity="mira")
    preview = forget_subject(memory.context, asked.model_copy(update={"dry_run": True}), day(4), uuid4(), math.inf)
    done = forget_subject(memory.context, asked, day(4), uuid4(), math.inf)
    assert preview.matching == done.matching == done.done == 2
    assert {one.id for one in done.results} == {first, second}


@pytest.mark.parametrize("purge", [False, True])
def test_a_fact_that_takes_in_another_while_its_session_is_forgotten_leaves_the_session(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, purge: bool
) -> None:
    first, second = memory.add(MOVED, session="a"), memory.add(HAS_MOVED, session="b")
    compared(memory)
    listing = subjects.ids

    def merging(*given: Any) -> list[UUID]:
        listed = listing(*given)
        merge(memory)
        return listed

    monkeypatch.setattr(subjects, "ids", merging)
    done = forget_subject(memory.context, Forget(session="b", purge=purge), day(2), uuid4(), math.inf)
    assert {one.id: one.action for one in done.results} == {second: "purged" if purge else "forgotten", first: "kept"}
    assert (done.done, done.kept, done.matching) == (1, 1, 2)
    assert memory.ids("Where does Mira rent?", at=3) == [first]
    assert memory.rows("select session from occurrences") == []


@pytest.mark.parametrize("purge", [False, True])
def test_what_was_merged_is_forgotten_with_a_session_only_if_it_was_said_in_it(memory: Memory, purge: bool) -> None:
    first = memory.add(MOVED, session="a", turn=1)
    memory.add(MOVED_TOO, session="a", turn=2)
    outside = memory.add(HAS_MOVED, at=0.1)
    merge(memory, at=1)
    assert live(memory) == {first}
    memory.rows("delete from events where what = 'said again'")  # as after a merge by an earlier version
    done = forget_subject(memory.context, Forget(session="a", purge=purge), day(2), uuid4(), math.inf)
    assert done.done == 2
    assert memory.forgotten(reasons=("merged",)) == [outside]
    (again,) = memory.store(HAS_MOVED, at=3)
    assert isinstance(again, Stored)
    assert again.action == "added"


def test_a_late_request_to_forget_leaves_what_a_restored_fact_took_in(memory: Memory) -> None:
    first = memory.add(MOVED)
    memory.forget(first, at=1)
    memory.restore(first, at=2)
    second = memory.add(HAS_MOVED, at=2.1)
    merge(memory, at=3)
    assert live(memory) == {first}
    (refused,) = memory.forget(first, at=1)
    assert isinstance(refused, InvalidInputError)
    assert memory.forgotten(reasons=("merged",)) == [second]


def test_what_was_restored_after_a_merge_stays_when_the_other_is_forgotten(memory: Memory) -> None:
    first, second = memory.add(MOVED), memory.add(HAS_MOVED)
    merge(memory, at=1)
    memory.restore(second, at=2)
    memory.decay(1_000, force=True)
    memory.forget(first, at=1_001)
    assert memory.forgotten(reasons=("asked",)) == [first]
    assert memory.restore(second, at=1_002)
    assert live(memory) == {second}


def test_a_near_duplicate_is_found_by_meaning_after_the_first_of_both_expired(memory: Memory) -> None:
    memory.add(MOVED, decay_class="session")
    second = memory.add(HAS_MOVED)
    memory.decay(2)
    assert memory.row(second)["dims"] == 256
    assert memory.ids("renting flats at canals", at=2) == [second]
