"""Episodes age by turns and days, permanent ones become stale instead, and no turn is counted twice."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import pytest
from memory import Memory, day

from workers.admin import export
from workers.decay import forecast
from workers.memory.add import Stored

LIMIT = "hygiene.episodicTTL.persistentTurns"
OPERATOR = "hygiene.episodicTTL.operator"
EVENTS = "select what from events where fact = %s order by id"


def episode(memory: Memory, text: str = "We missed the last train to Basel.", **fields: Any) -> UUID:
    return memory.add(text, kind="episodic", **fields)


def seen(memory: Memory, id_: UUID, at: float, **question: Any) -> bool:
    return id_ in memory.ids("last train to Basel", at=at, limit=50, **question)


def exported(memory: Memory, id_: UUID, at: float, namespace: str = "default") -> dict[str, Any]:
    return next(line for line in export.export(memory.context, namespace, day(at)) if line.get("id") == id_)


def test_an_episode_is_over_after_more_than_ninety_days_whether_or_not_a_pass_comes(memory: Memory) -> None:
    id_ = episode(memory)
    assert seen(memory, id_, 90)
    assert not seen(memory, id_, 90.001)
    assert memory.decay(90).counters.aged == 0
    assert memory.decay(90.001).counters.aged == 1
    assert memory.row(id_)["forgotten_reason"] == "aged"


def test_use_does_not_make_an_episode_younger(memory: Memory) -> None:
    id_ = episode(memory)
    memory.touch(id_, at=80)
    assert memory.decay(91).counters.aged == 1


def test_an_episode_is_over_with_the_five_hundred_and_first_turn(memory: Memory) -> None:
    id_ = episode(memory, session="train", turn=1)
    memory.store_turns(500, at=1)
    assert memory.stats(1).turns == 501
    assert seen(memory, id_, 1)
    memory.store_turns(1, at=2)
    assert not seen(memory, id_, 2)
    assert memory.row(id_)["ends"] == 2
    assert memory.decay(2.001).counters.aged == 1
    assert memory.row(id_)["forgotten_reason"] == "aged"


def test_episodes_of_an_archive_without_a_turn_are_from_before_the_first_one(memory: Memory) -> None:
    ids = [episode(memory, text) for text in ("The last train to Basel is late.", "The last train to Basel is full.")]
    memory.rows("update activity set occurred = null where fact = %s", ids[0])
    memory.store_turns(501, at=1)
    assert [memory.row(id_)["ends"] for id_ in ids] == [1, 1]


def test_turns_are_counted_once_however_often_and_as_what_kinds_they_are_stored(memory: Memory) -> None:
    said = [{"text": "Tea?", "session": "a", "turn": 1}, {"text": "Yes.", "session": "a", "turn": 1}]
    said += [
        {"text": "Milk?", "session": "a", "turn": 2, "kind": "episodic"},
        {"text": "Hm.", "session": "b", "turn": 1},
    ]
    for _ in range(2):
        memory.store(*said)
    memory.store(
        {"text": "No sugar.", "session": "a", "turn": 2}, {"text": "No turn.", "session": "a"}, "Nor a session."
    )
    assert memory.stats().turns == 3
    assert memory.rows("select occurred from activity where branch = 1") == [(3,)]


def test_a_turn_stored_concurrently_is_counted_once(memory: Memory) -> None:
    def tell(number: int) -> None:
        memory.store({"text": f"Version {number}.", "session": "a", "turn": number % 3, "kind": "episodic"})

    tell(0)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(tell, range(30)))
    assert memory.stats().turns == 3
    assert memory.value("select count(*) from activity where occurred between 1 and 3") == 30


def conversation(turns: int, session: str = "a") -> list[dict[str, Any]]:
    return [{"text": f"{session} turn {i}.", "session": session, "turn": i, "kind": "episodic"} for i in range(turns)]


def test_a_conversation_stored_in_one_batch_does_not_age_its_own_first_episodes(memory: Memory) -> None:
    memory.store(*conversation(600))
    memory.decay(1)
    assert memory.stats(1).turns == 600
    assert memory.value("select count(*) from facts where forgotten_at is null") == 600


def test_many_turns_in_one_batch_age_the_episodes_before_it(memory: Memory) -> None:
    memory.choose({LIMIT: 10})
    memory.store(*conversation(1_500))
    memory.store(*conversation(11, "b"), at=1)
    assert memory.value("select count(*) from activity where ends_at <= %s", day(1)) == 1_500


def test_turns_that_are_not_counted_age_no_episode(memory: Memory) -> None:
    memory.choose({LIMIT: 10})
    id_ = episode(memory, session="train", turn=1)
    for session in "ab":
        memory.store(*conversation(600, session), count_turns=False)
    assert memory.stats().turns == 1
    assert memory.row(id_)["ends"] == pytest.approx(90)
    assert memory.decay(1).counters.aged == 0


def test_an_episode_that_is_stated_again_is_as_young_as_a_new_one(memory: Memory) -> None:
    id_ = episode(memory)
    memory.store({"text": "We missed the last train to Basel.", "kind": "episodic"}, at=89)
    assert memory.decay(178).counters.aged == 0
    assert memory.row(id_)["ends"] == pytest.approx(179)


def test_with_and_both_limits_are_needed(memory: Memory) -> None:
    memory.choose({LIMIT: 5, OPERATOR: "AND"})
    by_turns_first, by_days_first = episode(memory), episode(memory, "The next train was full.")
    memory.store_turns(6, at=1)
    assert memory.row(by_turns_first)["ends"] == pytest.approx(90)
    later = episode(memory, "A tramp slept on the bench.", at=2)
    assert memory.row(later)["ends"] == float("inf")
    memory.decay(91)
    assert [memory.row(one)["forgotten_reason"] for one in (by_turns_first, by_days_first, later)] == [
        "aged",
        "aged",
        None,
    ]
    memory.decay(100)
    memory.store_turns(6, at=101)
    assert memory.row(later)["ends"] == 101


def test_a_permanent_episode_is_kept_for_ever_and_stale_after_long_silence(memory: Memory) -> None:
    id_ = episode(memory, durability="permanent")
    memory.store_turns(501, at=1)
    assert not exported(memory, id_, 180)["stale"]
    assert memory.decay(180).counters.stale == 0
    assert exported(memory, id_, 181)["stale"]
    assert memory.decay(181).counters.stale == 1
    assert memory.decay(182).counters.stale == 0
    assert (memory.row(id_)["stale"], memory.row(id_)["fidelity"]) == (True, 1)
    assert memory.stats(3_000).episodes == {"persistent": 0, "permanent": 1, "stale": 1}
    memory.decay(3_000)
    assert seen(memory, id_, 3_000)


def test_staleness_is_shown_by_recall_and_ends_with_it(memory: Memory) -> None:
    id_ = episode(memory, durability="permanent")
    memory.decay(200)
    (found,) = memory.ask("last train to Basel", at=200).results
    assert (found.durability, found.stale) == ("permanent", True)
    memory.touch(id_, at=200)
    assert not memory.row(id_)["stale"]
    assert not memory.ask("last train to Basel", at=201).results[0].stale
    assert memory.decay(380.5).counters.stale == 1
    assert [what for (what,) in memory.rows(EVENTS, id_)] == ["stale", "stale"]


def test_a_recall_that_does_not_strengthen_ends_the_silence_all_the_same(memory: Memory) -> None:
    quiet = memory.having(decay_reinforce_on_query=False)
    id_ = episode(quiet, durability="permanent")
    quiet.touch(id_, at=100)
    assert quiet.decay(181).counters.stale == 0
    assert quiet.decay(281).counters.stale == 1


def test_no_doubt_culls_episodes_and_chunks(memory: Memory) -> None:
    doubted = {"confidence": 0.11}
    semantic, chunk = memory.add("A rumour.", **doubted), memory.add("# Notes", kind="chunk", **doubted)
    episodic = episode(memory, **doubted)
    assert memory.decay(60).counters.culled == 1
    assert [memory.row(one)["forgotten_reason"] for one in (semantic, chunk, episodic)] == ["culled", None, None]
    assert exported(memory, episodic, 60)["effective_confidence"] == 0.11
    memory.decay(4_000)
    assert memory.row(chunk)["forgotten_reason"] is None


def test_what_ages_counts_towards_the_forget_limit_and_is_held(memory: Memory) -> None:
    facts = [{"text": f"Episode {i}.", "kind": "episodic"} for i in range(30)]
    memory.store(*facts)
    done = memory.decay(91).counters
    assert (done.aged, done.held) == (6, 24)
    assert len(memory.ids("episode", at=91, limit=200)) == 24
    assert memory.decay(92, force=True).counters.aged == 24


def test_the_forecast_reports_aging_and_stale_facts(memory: Memory) -> None:
    episode(memory)
    episode(memory, "The wedding.", durability="permanent")
    ahead = forecast.forecast(memory.context, "default", 200, day(0))
    assert [number for number, one in enumerate(ahead, 1) if one.counts["aged"]] == [91]
    assert [number for number, one in enumerate(ahead, 1) if one.counts["stale"]] == [181]


def test_a_restored_episode_is_as_if_stored_now(memory: Memory) -> None:
    id_ = episode(memory, session="train", turn=1)
    memory.store_turns(501, at=1)
    memory.decay(2)
    memory.restore(id_, at=3)
    assert (memory.row(id_)["forgotten_reason"], memory.row(id_)["ends"]) == (None, pytest.approx(93))
    memory.store_turns(500, at=4)
    assert seen(memory, id_, 5)
    memory.store_turns(1, at=6)
    assert not seen(memory, id_, 7)


def test_a_pinned_episode_begins_to_age_when_its_pin_ends(memory: Memory) -> None:
    memory.choose({LIMIT: 5})
    id_ = episode(memory)
    memory.pin(id_, at=1, until=200)
    memory.store_turns(6, at=2)
    memory.decay(199)
    assert memory.row(id_)["ends"] == pytest.approx(290)
    assert memory.decay(289).counters.aged == 0
    assert memory.decay(291).counters.aged == 1


def test_unpinned_an_episode_outlives_as_many_turns_again(memory: Memory) -> None:
    memory.choose({LIMIT: 5})
    id_ = episode(memory)
    memory.pin(id_, at=1)
    memory.store_turns(20, at=2)
    memory.unpin(id_, at=3)
    memory.store_turns(5, at=4)
    assert seen(memory, id_, 4)
    memory.store_turns(1, at=5)
    assert not seen(memory, id_, 5)


def test_an_episode_gets_no_lifetime_by_its_words(memory: Memory) -> None:
    (stored,) = memory.store({"text": "We need to leave right now.", "kind": "episodic"}, classify=True)
    assert isinstance(stored, Stored)
    assert memory.row(stored.id)["decay_class"] is None
    assert memory.backfill(1).examined == 0


def test_an_export_can_be_imported_again_with_its_durability(memory: Memory) -> None:
    id_ = episode(memory, durability="permanent")
    line = exported(memory, id_, 0)
    assert (line["durability"], line["decay_class"], line["stale"]) == ("permanent", "permanent", False)
    again = episode(memory, namespace="copy", durability=line["durability"], decay_class=line["decay_class"])
    assert exported(memory, again, 0, "copy")["durability"] == "permanent"


def test_repeated_and_missed_passes_leave_what_one_leaves(memory: Memory, twin: Memory) -> None:
    ids = [uuid4() for _ in range(4)]
    for one, days in ((memory, [1, 30, 30, 89, 90, 95, 95, 181, 400]), (twin, [400])):
        for number, id_ in enumerate(ids):
            durability = "permanent" if number % 2 else "persistent"
            episode(one, f"Episode {number}.", id=str(id_), durability=durability, at=number)
        for at in days:
            one.decay(at)
    for id_ in ids:
        here, there = memory.row(id_), twin.row(id_)
        assert {name: here[name] for name in ("forgotten_reason", "stale", "ends", "due")} == {
            name: there[name] for name in ("forgotten_reason", "stale", "ends", "due")
        }
