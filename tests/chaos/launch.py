"""`python -m tests.chaos.launch worker|beat …`: Celery as `ebb up` runs it, with its clock and messages controlled.

The redelivery timeout is seconds instead of two minutes, beat's minutes are seconds, and slices of batches are small,
for hundreds of rounds in some minutes. The clock of running processes can be changed, and every message can be
delivered twice. No code of Ebb is replaced.
"""

import mmap
import os
import signal
import struct
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import kombu.transport.redis
import time_machine

CLOCK, DOUBLED = "CHAOS_CLOCK", "CHAOS_DOUBLED"
VISIBILITY_SECONDS = 8
WORK_SECONDS = 6.0
LOST_AFTER_SECONDS = 12.0
BEAT_MINUTE_SECONDS = 2.0
CLOCK_SECONDS = 0.02
SLICE, SMALL = 10, 5
"""Size of slices, small enough that most batches of the load have several."""

QUEUES = ("recall", "store", "maintenance")
POISON = "chaos.poison"


def hurry() -> None:
    """Shorten the timeouts after which Ebb sends or delivers messages again."""
    from workers import queues  # before anything reads it

    queues.VISIBILITY_SECONDS = VISIBILITY_SECONDS
    from workers.coordination import bulk
    from workers.decay import passes
    from workers.tasks import bulk as slices
    from workers.tasks import task

    task.WORK_SECONDS = WORK_SECONDS
    bulk.LEASE_SECONDS = LOST_AFTER_SECONDS
    slices.SLICE, slices.SMALL = SLICE, SMALL
    passes.LOST_AFTER_SECONDS = LOST_AFTER_SECONDS
    _hurry_beat()


def _hurry_beat() -> None:
    from workers.celery import app

    for name, entry in list(app.conf.beat_schedule.items()):
        seconds = getattr(entry["schedule"], "total_seconds", lambda: 0.0)()
        if 0 < seconds <= 600:
            entry["schedule"] = max(seconds / 60 * BEAT_MINUTE_SECONDS, 1.0)
        else:  # a clock that is set right again makes it due at once, which the twin does not replay
            del app.conf.beat_schedule[name]


def follow(clock: Path) -> None:
    """Shift the clock of this process, and of those that it forks, by the number of seconds in a file."""
    with clock.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 8, prot=mmap.PROT_READ)
    applied = 0.0
    traveller = time_machine.travel(time.time(), tick=True).start()

    def keep_up() -> None:
        nonlocal applied
        while True:
            (shift,) = struct.unpack("d", mapped[:8])
            traveller.shift(shift - applied)
            applied = shift
            time.sleep(CLOCK_SECONDS)

    def start() -> None:
        Thread(target=keep_up, daemon=True).start()

    os.register_at_fork(after_in_child=start)
    start()


def double() -> None:
    """Send every message of Ebb's queues twice, as two deliveries of the same task."""
    channels: Any = kombu.transport.redis.Channel
    put = channels._put

    def twice(channel: Any, queue: str, message: dict[str, Any], **options: Any) -> None:
        put(channel, queue, message, **options)
        if queue in QUEUES:
            properties = message["properties"] | {"delivery_tag": str(uuid4())}
            put(channel, queue, message | {"properties": properties}, **options)

    channels._put = twice


UPGRADE = {
    "transaction": "alter table {table} add column added_{number} text not null default 'none';",
    "outside a transaction": """drop index concurrently if exists {table}_{number};
create index concurrently {table}_{number} on {table} (added_{previous});
""",
    "in batches": """
        update {table} set added_{before} = 'some'
        where {key} in (select {key} from {table} where added_{before} = 'none' limit 50)
    """,
}
"""What an upgrade under load does to a table: add a column, an index on it, and a value in every row."""

ADDED = "added_"
"""Prefix of the columns that an upgrade adds."""

UPGRADED = {"facts": "id", "activity": "fact", "signatures": "fact"}


def upgrade(database_url: str) -> None:
    """Run three migrations after the newest of the database, one of each kind, on one of three tables."""
    from workers.storage import routing  # after the clock and the timeouts are set

    shards = int(os.environ.get("EBB_SHARDS", "1"))
    for shard in range(shards):
        with routing.at(shard, shards):
            _upgrade_shard(database_url)


def _upgrade_shard(database_url: str) -> None:
    from workers.storage import migrations

    with migrations.exclusive(database_url, print) as db:
        had = migrations.number(db)
        begun = had - (had - migrations.known()[-1].number) % len(UPGRADE)
        table = list(UPGRADED)[(begun - migrations.known()[-1].number) // len(UPGRADE) % len(UPGRADED)]
        numbers = range(begun + 1, begun + 1 + len(UPGRADE))
        own = [
            migrations.Migration(number, f"of_chaos_{mode}", _upgrade_sql(mode, table, number), mode)  # type: ignore[arg-type]  # a mode of the command line
            for number, mode in zip(numbers, UPGRADE, strict=True)
        ]
        migrations.run(database_url, db, tuple(own), print)


def _upgrade_sql(mode: str, table: str, number: int) -> str:
    return UPGRADE[mode].format(table=table, key=UPGRADED[table], number=number, previous=number - 1, before=number - 2)


def _learn_poison() -> None:
    """Register a task that kills the child that runs it."""
    from workers.celery import app
    from workers.tasks.task import EbbTask

    app.task(_die, base=EbbTask, name=POISON)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Run Celery, or an upgrade."""
    if sys.argv[1] == "upgrade":
        upgrade(sys.argv[2])
        return
    if CLOCK in os.environ:
        follow(Path(os.environ[CLOCK]))
    if DOUBLED in os.environ:
        double()
    hurry()
    _learn_poison()
    from celery.__main__ import main as celery  # after the clock and the timeouts are set

    sys.argv = ["celery", "-A", "workers", *sys.argv[1:]]
    celery()


if __name__ == "__main__":
    main()
