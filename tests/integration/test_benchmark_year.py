"""The simulated year of the benchmark `forgetting`, on real servers."""

from datetime import timedelta

from tests.benchmarks.conversations import BEGIN, Conversation, Turn
from tests.benchmarks.forgetting import year
from tests.benchmarks.forgetting.year import Life
from workers.context import Context
from workers.storage.connection import scalar, transaction
from workers.validation.facts import new_fact


def test_facts_that_end_in_the_year_sink_into_deep_memory_as_they_do_elsewhere(context: Context) -> None:
    turns = [
        Turn(BEGIN + timedelta(hours=n), new_fact({"text": f"Right now I stand in line {n}."}, 100)) for n in range(4)
    ]
    year.live(context, [Conversation("one", turns, [])], Life("lifetimes"))
    with transaction(context.database_url) as db:
        assert scalar(db, "select count(*) from facts where forgotten_at is not null") == 0
        assert scalar(db, "select count(*) from deep") == 4
