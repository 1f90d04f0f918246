"""The outbox: when what was accepted is sent again."""

from dataclasses import replace

import pytest

from workers.storage import outbox
from workers.storage.outbox import Entry
from workers.storage.redis import own_keys

NOW = 1_800_000_000.0
PATIENCE = 150.0


@pytest.mark.parametrize(
    ("age", "overdue"), [(0, False), (149, False), (151, True), (-149, False), (-151, True), (-1e7, True)]
)
def test_what_was_accepted_long_ago_or_by_a_clock_far_ahead_is_sent_again(age: float, overdue: bool) -> None:
    assert Entry("1", "memory.store", {}, NOW - age).overdue(NOW, PATIENCE) == overdue


def test_what_cannot_be_done_is_sent_ever_more_seldom_but_never_given_up() -> None:
    entry = Entry("1", "memory.store", {}, NOW - 1e6, sent_at=NOW)
    waits = [
        next(wait for wait in range(0, 100_000, 75) if replace(entry, tries=tries).overdue(NOW + wait, PATIENCE))
        for tries in (0, 1, 2, 9, 100)
    ]
    assert waits == [225, 375, 675, 76_875, 76_875]


def test_an_entry_comes_back_as_it_was_put(redis_url: str) -> None:
    with own_keys(redis_url) as redis:
        entry = Entry("7", "memory.store", {"text": "The otter swims."}, NOW, NOW + 1, 3)
        outbox.put(redis, entry)
        assert outbox.entries(redis) == [entry]
        outbox.remove(redis, "7")
        assert outbox.entries(redis) == []
