"""Notices: facts that end soon are in one notice, with their values and the request that keeps them."""

from collections.abc import Iterator
from math import inf
from uuid import UUID

import pytest
from ebb.contract.decay import KEEP, Keep
from memory import Memory, day
from stand_in import Reply, StandIn, drip_headers, endless, failure, serving

from workers.decay import endings, forget_limit


@pytest.fixture
def owner() -> Iterator[StandIn]:
    with serving(StandIn(lambda handler: handler.send(204, b""))) as server:
        yield server


def test_what_ends_soon_is_in_one_notice_with_its_value_and_the_call_that_keeps_it(
    memory: Memory, owner: StandIn
) -> None:
    memory = memory.having(ending_notice_days=7, ending_webhook=owner.url)
    soon = memory.add("I moved to Porto in March 2024.", decay_class="stable")
    memory.add("It stays.", decay_class="permanent")
    assert list(endings.notices(memory.context, "default", day(30))) == []
    (notice,) = endings.notices(memory.context, "default", day(62))
    endings.deliver(memory.context, notice)
    assert list(endings.notices(memory.context, "default", day(63))) == []
    (said,) = owner.requests
    assert (said["event"], said["namespace"], [fact["id"] for fact in said["facts"]]) == (
        "memory.ending", "default", [str(soon)]
    )  # fmt: skip
    assert said["keep"] == {
        "method": "POST", "path": "/memory/held/keep", "headers": {"X-Ebb-Namespace": "default"},
        "body": {"ids": [str(soon)]},
    }  # fmt: skip
    assert said["keep"]["path"] in KEEP.route
    Keep.model_validate(said["keep"]["body"])
    assert 0 < said["facts"][0]["value"] < 1
    assert forget_limit.keep(memory.context, "default", [soon], day(63), inf).ids == [soon]
    assert memory.row(soon)["expires"] == pytest.approx(63 + 90)


def test_a_notice_that_the_webhook_refused_comes_again(memory: Memory, owner: StandIn) -> None:
    memory = memory.having(ending_notice_days=7, ending_webhook=owner.url)
    memory.add("I moved to Porto in March 2024.", decay_class="stable")
    owner.replies.append(failure(500))
    (notice,) = endings.notices(memory.context, "default", day(62))
    endings.deliver(memory.context, notice)
    assert [one.facts for one in endings.notices(memory.context, "default", day(62))] == [notice.facts]


@pytest.mark.parametrize(("reply", "delivered"), [(drip_headers, False), (endless, True)])
def test_a_webhook_whose_answer_does_not_end_holds_up_no_other_notice(
    memory: Memory, owner: StandIn, monkeypatch: pytest.MonkeyPatch, reply: Reply, delivered: bool
) -> None:
    monkeypatch.setattr(endings, "WEBHOOK_SECONDS", 0.2)
    memory = memory.having(ending_notice_days=7, ending_webhook=owner.url)
    memory.add("I moved to Porto in March 2024.", decay_class="stable")
    owner.replies.append(reply)
    (notice,) = endings.notices(memory.context, "default", day(62))
    endings.deliver(memory.context, notice)
    assert (list(endings.notices(memory.context, "default", day(62))) == []) == delivered


def test_no_log_shows_the_address_of_the_webhook(
    memory: Memory, owner: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    address = owner.url.replace("://", "://mira:secret@") + "/secret"
    memory = memory.having(ending_notice_days=7, ending_webhook=address)
    memory.add("I moved to Porto in March 2024.", decay_class="stable")
    owner.replies.append(failure(404))
    (notice,) = endings.notices(memory.context, "default", day(62))
    for _ in range(2):
        endings.deliver(memory.context, notice)
    assert "it answered 404" in caplog.text
    assert "secret" not in caplog.text


def test_without_days_nothing_is_noticed(memory: Memory) -> None:
    memory.add("I moved to Porto in March 2024.", decay_class="stable")
    assert list(endings.notices(memory.context, "default", day(62))) == []


def test_a_fact_that_is_stored_after_a_notice_and_ends_before_its_last_is_in_the_next(memory: Memory) -> None:
    memory = memory.having(ending_notice_days=7)
    memory.add("I moved to Porto in March 2024.", decay_class="stable")
    for notice in endings.notices(memory.context, "default", day(62)):
        endings.deliver(memory.context, notice)
    brief = memory.add("The plumber comes today.", at=63, decay_class="session")
    (notice,) = endings.notices(memory.context, "default", day(63))
    assert [one.id for one in notice.facts] == [brief]


def test_a_fact_that_was_kept_is_in_a_notice_again_at_the_end_of_its_next_life(memory: Memory) -> None:
    memory = memory.having(ending_notice_days=7)
    soon = memory.add("I moved to Porto in March 2024.", decay_class="stable")
    for notice in endings.notices(memory.context, "default", day(62)):
        endings.deliver(memory.context, notice)
    forget_limit.keep(memory.context, "default", [soon], day(63), inf)
    assert list(endings.notices(memory.context, "default", day(64))) == []
    (notice,) = endings.notices(memory.context, "default", day(63 + 62))
    assert [one.id for one in notice.facts] == [soon]


def test_more_facts_than_a_notice_has_are_in_further_notices(memory: Memory) -> None:
    memory = memory.having(ending_notice_days=7)
    ids = {memory.add(f"Appointment number {number}.", decay_class="session") for number in range(endings.MOST + 1)}
    sent = list(endings.notices(memory.context, "default", day(0)))
    for notice in sent:
        endings.deliver(memory.context, notice)
    assert [len(one.facts) for one in sent] == [endings.MOST, 1]
    assert {fact.id for one in sent for fact in one.facts} == ids
    assert list(endings.notices(memory.context, "default", day(0))) == []


def test_a_notice_of_what_ends_today_repeats_none_of_what_ends_in_a_week(memory: Memory) -> None:
    memory = memory.having(ending_notice_days=7)
    memory.add("I moved to Porto in March 2024.", decay_class="stable")
    for number in (0, 1):
        for notice in endings.notices(memory.context, "default", day(62 + number / 24)):
            endings.deliver(memory.context, notice)
        memory.store({"text": "The plumber comes today.", "decay_class": "session"}, at=62)
    (key,) = memory.context.redis.keys("ebb:noticed:*")
    days = memory.context.redis.ttl(key) / 86_400
    assert days > 5


def test_what_ends_in_a_branch_is_in_no_notice(memory: Memory) -> None:
    memory = memory.having(ending_notice_days=7)
    memory.add("I moved to Porto in March 2024.", decay_class="stable")
    memory.rows("update namespaces set branch_of = 'other', branch_age = interval '1 day'")
    assert noticed(memory, 62) == []


def noticed(memory: Memory, at: float, until: float = inf) -> list[tuple[str, int]]:
    """Send the notices of every namespace; return (namespace, facts) of each."""
    sent: list[endings.Notice] = []
    place: endings.Position | None = (0, UUID(int=0))
    while place is not None:
        place = endings.notify(memory.context, place, day(at), until, sent.append)
    return [(notice.namespace, len(notice.facts)) for notice in sent]


def test_many_notices_of_one_namespace_keep_no_other_from_its_own(memory: Memory) -> None:
    memory = memory.having(ending_notice_days=7)
    many: list[str | dict[str, str]] = [
        {"text": f"Appointment number {number}.", "decay_class": "session"} for number in range(endings.MOST + 1)
    ]
    memory.store(*many, namespace="busy")
    memory.add("I moved to Porto in March 2024.", decay_class="session", namespace="quiet")
    assert noticed(memory, 0, until=0) == [("busy", endings.MOST), ("quiet", 1)]
    assert noticed(memory, 0) == [("busy", 1)]
