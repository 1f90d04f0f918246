"""Notices: facts that end soon are in one notice, with their values and the request that keeps them."""

from collections.abc import Iterator
from math import inf

import pytest
from ebb.contract.decay import KEEP, Keep
from memory import Memory, day
from stand_in import StandIn, failure, serving

from workers.decay import endings, held


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
    assert list(endings.notices(memory.context, day(30))) == []
    (notice,) = endings.notices(memory.context, day(62))
    endings.deliver(memory.context, notice)
    assert list(endings.notices(memory.context, day(63))) == []
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
    assert held.keep(memory.context, "default", [soon], day(63), inf).ids == [soon]
    assert memory.row(soon)["expires"] == pytest.approx(63 + 90)


def test_a_notice_that_the_webhook_refused_comes_again(memory: Memory, owner: StandIn) -> None:
    memory = memory.having(ending_notice_days=7, ending_webhook=owner.url)
    memory.add("I moved to Porto in March 2024.", decay_class="stable")
    owner.replies.append(failure(500))
    (notice,) = endings.notices(memory.context, day(62))
    endings.deliver(memory.context, notice)
    assert [one.facts for one in endings.notices(memory.context, day(62))] == [notice.facts]


def test_without_days_nothing_is_noticed(memory: Memory) -> None:
    memory.add("I moved to Porto in March 2024.", decay_class="stable")
    assert list(endings.notices(memory.context, day(62))) == []
