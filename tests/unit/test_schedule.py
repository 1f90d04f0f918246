"""Beat sends every pass by itself: nobody needs a cron of their own."""

import json
import os
import subprocess
import sys

PROGRAM = """
import json
from workers.celery import app
print(json.dumps({name: entry["schedule"].total_seconds() for name, entry in app.conf.beat_schedule.items()}))
"""


def test_a_prune_is_sent_every_hour_and_a_pass_as_often_as_set() -> None:
    environment = os.environ | {"EBB_REDIS_URL": "redis://nowhere/0", "EBB_DECAY_INTERVAL_MINUTES": "7"}
    program = [sys.executable, "-c", PROGRAM]
    answer = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    schedule = json.loads(answer.stdout)
    assert (schedule["decay.prune"], schedule["decay.plan"]) == (3_600, 420)
