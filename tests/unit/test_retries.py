"""A task that is tried again: what is sent then."""

import os
import subprocess
import sys

SEND_AGAIN = """
from kombu import Connection
from workers.coordination import outbox
from workers.tasks.store import store

store.push_request(id="0", **{outbox.HEADER: "default"})
again = store.signature_from_request()
again.apply_async(connection=Connection("memory://"), ignore_result=True)
print(again.kwargs)
"""


def test_an_accepted_write_is_sent_again_without_its_arguments() -> None:
    environment = os.environ | {"EBB_REDIS_URL": "redis://unused/0", "EBB_DATABASE_URL": "postgresql://unused/ebb"}
    sent = subprocess.run(
        [sys.executable, "-c", SEND_AGAIN], env=environment, capture_output=True, text=True, check=False
    )
    assert sent.stdout == "{}\n", sent.stderr
