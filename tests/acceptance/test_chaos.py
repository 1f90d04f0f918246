"""A short run of `make chaos`, and a test that its oracle detects faults."""

import random

import psycopg
import pytest

from tests.chaos import faults, scenarios
from tests.chaos.scenarios import Scenario
from tests.chaos.system import System

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

SEED = 20_261_121

LOSE = "delete from facts where text = 'probe 0 is here.'"
TOUCH_AGAIN = """
    update activity set recall_count = recall_count + 1
    from facts where activity.namespace = facts.namespace and fact = id and text = 'probe 1 is here.'
"""
ADD_ELSEWHERE = """
    insert into facts (namespace, id, text, hash, created_at, valid_from)
    select (select id from namespaces where name <> 'probe' limit 1), gen_random_uuid(), text, hash, created_at,
        valid_from
    from facts where text = 'probe 1 is here.'
"""


def test_every_row_matches_the_acknowledged_writes_after_any_kill() -> None:
    turns = iter((faults.kill_children, faults.kill_parent, faults.kill_redis))

    def kill_in_turn(system: System, rng: random.Random) -> str:
        return next(turns)(system, rng)

    outcome = scenarios.run(Scenario("slice", 3, kill_in_turn, doubled=True), 3, SEED)
    assert outcome.sound, str(outcome)
    assert outcome.acknowledged >= outcome.rounds
    assert outcome.verdict.rows > 100


@pytest.mark.deep
def test_the_oracle_detects_lost_doubled_and_miscounted_facts() -> None:
    rounds = iter(range(3))

    def tamper(system: System, _: random.Random) -> str:
        if next(rounds) == 2:
            with psycopg.connect(system.database_url) as db:
                for statement in (LOSE, TOUCH_AGAIN, ADD_ELSEWHERE):
                    assert db.execute(statement).rowcount == 1
        return "tampered"

    found = scenarios.run(Scenario("tampered", 3, tamper), 3, SEED).verdict
    assert any("'facts'" in fault for fault in found.lost)
    assert any("'facts'" in fault for fault in found.doubled)
    assert any("recall_count is 1, should be 0" in fault for fault in found.decayed_twice)
