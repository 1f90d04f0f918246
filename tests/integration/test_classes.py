"""Every stored fact has a decay class, given or by its words; older facts get one by a backfill."""

from math import inf
from typing import Any
from uuid import UUID

import pytest
from memory import Memory, day

from workers.admin import export
from workers.decay import backfill
from workers.memory.add import Stored
from workers.memory.namespace_settings import settings_of

WORDS = {
    "Ana decided to stay.": "permanent",
    "It rains right now.": "session",
    "Ben needs help, he is working on a novel.": "active",
    "The checkpoint is at noon.": "checkpoint",
    "Tea is at four.": "stable",
}
LIFETIMES = {"permanent": inf, "session": 1, "active": 14, "checkpoint": 4 / 24, "stable": 90}
VERSIONS = "select xmin, ctid from activity"


def classified(memory: Memory, text: str, *, at: float = 0, **fields: Any) -> UUID:
    """Store a fact as a user does, and return its id."""
    (stored,) = memory.store({"text": text, **fields}, at=at, classify=True)
    assert isinstance(stored, Stored)
    return stored.id


def of(memory: Memory, id_: UUID) -> tuple[str | None, str | None, float]:
    """Return a fact's decay class, its source, and the day of its expiry."""
    row = memory.row(id_)
    return row["decay_class"], row["decay_class_source"], row["expires"]


@pytest.mark.parametrize(("text", "decay_class"), WORDS.items())
def test_a_fact_without_class_gets_one_by_its_words(memory: Memory, text: str, decay_class: str) -> None:
    id_ = classified(memory, text)
    assert of(memory, id_) == (decay_class, "auto", pytest.approx(LIFETIMES[decay_class]))


NEEDED = (
    "I need to take insulin twice a day.", "He lives there right now.", "The border checkpoint is closed at night.",
)  # fmt: skip


def test_with_care_words_alone_give_no_short_lifetime_and_the_answer_says_why(memory: Memory) -> None:
    careful = memory.having(lifetimes="careful")
    for text in NEEDED:
        (stored,) = careful.store({"text": text}, classify=True)
        assert isinstance(stored, Stored)
        answer = stored.answer
        assert (answer.decay_class, answer.class_reason) == ("stable", "no rule matched")
        assert answer.ends_at is not None
    assert of(careful, classified(careful, "Ana decided to stay."))[0] == "permanent"
    assert of(careful, classified(careful, "Ben is working on it.", entity="Ben"))[0] == "active"
    assert of(careful, classified(careful, "It is due on Friday.", key="todo"))[0] == "active"


def test_each_namespace_may_have_its_words_read_with_care_or_as_documented(memory: Memory) -> None:
    memory.choose({"lifetimes": "careful"})
    assert settings_of(memory.context, "default").settings["lifetimes"] == "careful"
    id_ = classified(memory, NEEDED[0])
    assert of(memory, id_)[0] == "stable"
    memory.choose({"lifetimes": "documented"})
    memory.backfill(0.1)
    assert of(memory, id_)[0] == "active"


def test_key_and_entity_count_too(memory: Memory) -> None:
    assert of(memory, classified(memory, "It is ana@example.org.", key="email"))[0] == "permanent"
    assert of(memory, classified(memory, "Tabs, no blanks.", entity="convention"))[0] == "permanent"


def test_an_explicit_class_overrides_the_words(memory: Memory) -> None:
    id_ = classified(memory, "Ana decided to stay.", decay_class="short")
    assert of(memory, id_) == ("short", "explicit", 2)


def test_what_is_permanent_never_expires_and_never_ends(memory: Memory) -> None:
    ids = [classified(memory, "Tea at four.", decay_class="permanent"), classified(memory, "Ana decided to stay.")]
    assert [(memory.row(id_)["expires"], memory.row(id_)["ends"]) for id_ in ids] == [(inf, inf)] * 2


def test_what_is_stored_unclassified_has_no_lifetime(memory: Memory) -> None:
    (stored,) = memory.store("Tea at four.", classify=False)
    assert isinstance(stored, Stored)
    assert of(memory, stored.id) == (None, None, inf)


def test_a_fact_with_its_class_goes_out_and_comes_in_again_with_its_source(memory: Memory, twin: Memory) -> None:
    classified(memory, "Tea is at four.")
    classified(memory, "The key is under the mat.", decay_class="durable")
    memory.store("Cake on Sunday.")
    fields = ("text", "decay_class", "decay_class_source")
    lines = [{name: line[name] for name in fields} for line in export.export(memory.context, "default", day(0))]
    twin.store(*lines)
    again = [{name: line[name] for name in fields} for line in export.export(twin.context, "default", day(0))]
    assert again == lines
    assert sorted(str(line["decay_class_source"]) for line in lines) == ["None", "auto", "explicit"]


def test_stats_count_classes_and_who_chose_them(memory: Memory) -> None:
    for text in WORDS:
        classified(memory, text)
    classified(memory, "The key is under the mat.", decay_class="stable")
    memory.store("Cake on Sunday.")
    found = memory.stats()
    assert found.decay_classes == {"active": 1, "checkpoint": 1, "none": 1, "permanent": 1, "session": 1, "stable": 2}
    assert found.decay_class_sources == {"auto": 5, "explicit": 1, "none": 1}


def test_a_backfill_classifies_what_was_stored_without_class(memory: Memory) -> None:
    ids = {decay_class: memory.add(text) for text, decay_class in WORDS.items()}
    done = memory.backfill(0.1)
    assert {name: of(memory, id_) for name, id_ in ids.items()} == {
        name: (name, "auto", pytest.approx(LIFETIMES[name])) for name in ids
    }
    assert done.examined == 5
    assert done.changes == {("none", name): 1 for name in ids}


def test_a_backfill_leaves_the_own_lifetimes_of_items_alone(memory: Memory) -> None:
    of_item = {"document": "{}", "created_at": day(0).isoformat(), "indexed": True}
    for key, minutes in (("drink", 60), ("food", None)):
        memory.add("likes tea", kind="item", entity='"users"/', key=key, metadata=of_item | {"minutes": minutes})
    before = memory.rows(VERSIONS)
    assert memory.backfill(0.01).examined == 0
    assert memory.rows(VERSIONS) == before


def test_a_backfill_leaves_explicit_classes_alone(memory: Memory) -> None:
    id_ = memory.add("Ana decided to stay.", decay_class="normal")
    before = memory.rows(VERSIONS)
    assert memory.backfill(1).examined == 0
    assert of(memory, id_) == ("normal", "explicit", 14)
    assert memory.rows(VERSIONS) == before


def test_a_backfill_gives_every_automatic_class_the_one_of_todays_rules(memory: Memory) -> None:
    ids = {decay_class: memory.add(text) for text, decay_class in WORDS.items()}
    memory.rows("update activity set decay_class = 'normal', decay_class_source = 'auto', expires_at = %s", day(0 + 14))
    memory.backfill(0.1)
    assert {name: of(memory, id_)[0] for name, id_ in ids.items()} == {name: name for name in ids}


def test_a_backfill_gives_a_class_its_lifetime_of_today(memory: Memory) -> None:
    id_ = classified(memory, "Tea is at four.")
    memory.rows("update activity set expires_at = %s", day(30))
    assert memory.backfill(1).changes == {("stable", "stable"): 1}
    assert of(memory, id_) == ("stable", "auto", 90)


def test_a_lifetime_begins_at_the_last_confirmation(memory: Memory) -> None:
    id_ = memory.add("Tea is at four.")
    memory.touch(id_, at=40)
    memory.backfill(60)
    row = memory.row(id_)
    assert (row["expires"], row["confirmed"]) == (130, 40)


@pytest.mark.parametrize("at", [70, 100])
def test_a_fact_that_would_be_over_by_it_keeps_what_it_has(memory: Memory, at: float) -> None:
    """On day 70 it would not have expired yet, but soft decay would have removed it."""
    id_ = memory.add("Tea is at four.")
    done = memory.backfill(at)
    assert (done.overdue, done.changes) == (1, {})
    assert of(memory, id_) == (None, None, inf)
    assert memory.decay(at).counters.forgotten == 0
    assert memory.ids("tea", at=at) == [id_]


def test_pruning_classifies_it_all_the_same_so_that_it_is_hidden_and_forgotten(memory: Memory) -> None:
    id_ = memory.add("Tea is at four.")
    done = memory.backfill(100, prune=True)
    assert (done.overdue, done.changes) == (1, {("none", "stable"): 1})
    assert memory.ids("tea", at=100) == []
    assert memory.decay(100).counters.faded == 1
    assert memory.row(id_)["forgotten_at"] == day(100)


def test_a_dry_run_of_a_backfill_says_what_it_would_do_and_does_nothing(memory: Memory) -> None:
    memory.store(*WORDS)
    before = memory.rows(VERSIONS)
    tried = memory.backfill(0.1, dry_run=True)
    assert memory.rows(VERSIONS) == before
    assert tried == memory.backfill(0.1)
    assert len(tried.changes) == 5


def test_a_backfill_that_is_repeated_changes_nothing(memory: Memory) -> None:
    memory.store(*WORDS)
    memory.backfill(0.1)
    before = memory.rows(VERSIONS)
    assert memory.backfill(0.1).changes == {}
    assert memory.rows(VERSIONS) == before


def test_a_backfill_goes_batch_by_batch_and_on_from_any_place(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "BATCH", 3)
    memory.store(*[f"Guest {number} takes tea." for number in range(10)])
    place, first = backfill.backfill(memory.context, "default", (0, UUID(int=0)), day(1))
    assert first.examined == 3
    assert place is not None
    assert memory.stats(1).decay_classes == {"none": 7, "stable": 3}
    assert memory.backfill(1).changes == {("none", "stable"): 7}


def test_a_backfill_keeps_to_its_namespace_unless_it_is_for_all(memory: Memory) -> None:
    memory.store("Tea is at four.", namespace="ours")
    memory.store("Tea is at four.", namespace="theirs")
    assert memory.backfill(1, namespace="ours").examined == 1
    assert memory.stats(1, "theirs").decay_classes == {"none": 1}
    assert memory.backfill(1, namespace="unknown").examined == 0
    assert memory.backfill(1, namespace=None).changes == {("none", "stable"): 1}
    assert memory.stats(1, "theirs").decay_classes == {"stable": 1}


def test_a_backfill_revives_no_ended_fact(memory: Memory) -> None:
    memory.store({"text": "Tea is at four.", "decay_class": "session", "decay_class_source": "auto"})
    forgotten = memory.add("Cake on Sunday.", decay_class="checkpoint", decay_class_source="auto")
    memory.decay(0.5)
    assert memory.backfill(2).examined == 0
    assert memory.row(forgotten)["decay_class"] == "checkpoint"


def test_a_backfill_leaves_the_forgotten_and_the_superseded_alone(memory: Memory) -> None:
    forgotten, superseded = memory.add("Tea is at four."), memory.add("Tea is at five.")
    memory.rows("update facts set forgotten_at = %s where id = %s", day(1), forgotten)
    memory.rows("update facts set superseded_at = %s where id = %s", day(1), superseded)
    assert memory.backfill(2).examined == 0
    assert memory.row(forgotten)["decay_class"] == memory.row(superseded)["decay_class"] is None


def test_a_fact_in_its_last_quarter_by_a_backfill_is_halved_by_the_next_pass(memory: Memory) -> None:
    id_ = memory.add("Tea is at four.", confidence=0.9)
    memory.backfill(67.51)
    assert memory.row(id_)["halvings"] == 0
    assert memory.decay(67.51, work="prune").counters.decayed == 1
    assert memory.row(id_)["halvings"] == 1


def test_a_held_fact_that_lives_longer_by_its_new_class_is_held_no_more(memory: Memory) -> None:
    memory.store(*(f"Buy tea {number}, I need to." for number in range(40)), classify=True)
    assert memory.decay(30).counters.held == 32
    careful = memory.having(lifetimes="careful")
    assert careful.backfill(30.1).changes == {("active", "stable"): 32}
    assert careful.stats(30.1).held == 0
    assert careful.decay(80).counters.forgotten == 6
