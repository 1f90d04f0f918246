"""The scenarios: a system under load, rounds of one kind of fault, and the oracle's verdict at the end."""

import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, TypeAlias

import kombu.transport.redis
import psycopg
import redis

from api.client import Client
from tests.chaos import endpoint, faults, launch, ledger, load, oracle
from tests.chaos.cells import ACCEPTED, ACKNOWLEDGED, PLAN, UNKNOWN, Cell, Step
from tests.chaos.oracle import Verdict
from tests.chaos.system import SHARDS, System, until
from workers.admin import shard_moves
from workers.coordination import pause, signals
from workers.coordination.redis import own_keys
from workers.errors import EbbError
from workers.storage.connection import close_pools

Fault: TypeAlias = Callable[[System, random.Random], str]

ACTORS = 3
BREATH_SECONDS = 0.3
DISK = "384m"
ON_A_SMALL_DISK = ("-c", "max_wal_size=64MB", "-c", "min_wal_size=32MB", "-c", "shared_buffers=64MB")
RECOVERY_SECONDS = 90.0
SETTLE_SECONDS = 240.0
"""Longer than the lock of a killed task, the longest pause of the embedder and a minute of beat, one after another."""

EMBEDDER = {"EBB_EMBEDDER": "openai", "EBB_EMBEDDING_MODEL": "chaos", "EBB_EMBEDDING_TIMEOUT": "1"}

LACKING = "select count(*) from activity where fidelity = 0 and not retired"
OPEN_PARTS = "select count(*) from decay_parts where done_at is null"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of fault, its number of rounds, and the environment that it needs."""

    name: str
    rounds: int
    fault: Fault
    beats: int = 1
    doubled: bool = False
    loses_accepted: bool = False
    small_disk: bool = False
    failing_embedder: bool = False
    ledger: bool = False
    shards: int = 1
    purpose: str = ""
    """What the fault must have done in one round at least, by how its description begins."""

    cluster: bool | None = None
    """Whether it needs a cluster of Citus, or a server of its own; None: neither."""


SCENARIOS = (
    Scenario("children killed", 60, faults.kill_children),
    Scenario("workers killed", 20, faults.kill_parent),
    Scenario("Redis killed", 20, faults.kill_redis),
    Scenario("Redis lost", 12, faults.lose_redis, loses_accepted=True),
    Scenario("Redis full", 20, faults.fill_redis),
    Scenario("processes stopped", 15, faults.stop_processes),
    Scenario("schema upgraded", 12, faults.upgrade, cluster=False),
    Scenario("PostgreSQL stopped", 20, faults.restart_postgres),
    Scenario("PostgreSQL crashed", 20, faults.crash_postgres),
    Scenario("statements cancelled", 20, faults.cancel_statements),
    Scenario("sessions ended", 20, faults.end_sessions),
    Scenario("writes refused", 12, faults.refuse_writes, cluster=False),
    Scenario("disk full", 12, faults.fill_disk, small_disk=True, cluster=False),
    Scenario("beats doubled", 20, faults.kill_beat, beats=3),
    Scenario("messages doubled", 30, faults.deliver_twice, doubled=True),
    Scenario("clock set back", 25, faults.set_clock_back),
    Scenario("clocks apart", 25, faults.set_clocks_apart, ledger=True),
    Scenario("poison", 25, faults.poison),
    Scenario("embedder failing", 20, faults.kill_children, failing_embedder=True),
    Scenario("namespaces moved", 20, faults.move_namespace, shards=3, purpose=faults.MOVED),
    Scenario("shards on other nodes", 20, faults.place_elsewhere, shards=3, purpose="moved", cluster=True),
    Scenario("anything", 25, faults.anything, beats=2, shards=3),
)


@dataclass
class Outcome:
    """The result of a scenario."""

    name: str
    seed: int
    rounds: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    lost_children: dict[str, int] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)
    acknowledged: int = 0
    facts: int = 0
    verdict: Verdict = field(default_factory=Verdict)
    left_over: dict[str, int] = field(default_factory=dict)
    doctor: list[dict[str, Any]] = field(default_factory=list)
    recoveries: list[float] = field(default_factory=list)
    seconds: float = 0.0
    skipped: str = ""
    broken: str = ""

    @property
    def sound(self) -> bool:
        """Return whether nothing is wrong."""
        return not (self.broken or self.verdict.faults or any(self.left_over.values()) or self.doctor)


class UnableError(Exception):
    """This machine lacks what a scenario needs."""


def run(
    scenario: Scenario,
    rounds: int,
    seed: int,
    *,
    seconds: float = inf,
    keep: bool = False,
    shards: int | None = None,
    citus: str = "",
) -> Outcome:
    """Run a scenario, with another number of shards if one is given; no round starts after `seconds`.

    With the address of a cluster in `citus`, its nodes are PostgreSQL.
    """
    scenario = replace(scenario, shards=shards or scenario.shards)
    outcome, began = Outcome(scenario.name, seed), time.monotonic()
    with ExitStack() as stack:
        try:
            system, fault = stack.enter_context(_system(scenario, stack, citus, keep=keep))
        except UnableError as error:
            outcome.skipped = str(error)
            return outcome
        try:
            _under_load(system, fault, scenario, rounds, began + seconds, seed, outcome)
        except (TimeoutError, EbbError, psycopg.Error, redis.RedisError) as error:
            outcome.broken = f"{type(error).__name__}: {error}; {system.folder} has the logs with --keep"
    outcome.seconds = time.monotonic() - began
    return outcome


@contextmanager
def _system(scenario: Scenario, stack: ExitStack, citus: str, *, keep: bool) -> Iterator[tuple[System, Fault]]:
    if scenario.cluster not in (None, bool(citus)):
        raise UnableError(
            "it needs a cluster of Citus (--citus)" if scenario.cluster else "it needs a server of its own"
        )
    folder = Path(tempfile.mkdtemp(prefix="ebb-chaos-", dir="/tmp"))
    if not keep:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
    disk = stack.enter_context(_small_disk(folder)) if scenario.small_disk else folder
    settings, own_fault = dict[str, str](), scenario.fault
    if scenario.failing_embedder:
        server = stack.enter_context(endpoint.serving())
        settings = EMBEDDER | {"EBB_EMBEDDING_URL": server.url}
        own_fault = partial(faults.fail_embedder, server)
    if scenario.shards > 1:
        settings[SHARDS] = str(scenario.shards)
    world = {launch.DOUBLED: "1"} if scenario.doubled else {}
    system = System(folder, disk, settings, world, ON_A_SMALL_DISK if scenario.small_disk else (), citus)
    try:
        system.start(beats=scenario.beats)
        with _doubling() if scenario.doubled else nullcontext():
            yield system, own_fault
    finally:
        close_pools()
        system.stop()


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    """Mount a small file system, which requires root."""
    disk = folder / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=755", "tmpfs", str(disk)]
    done = subprocess.run(command, capture_output=True, text=True, check=False) if shutil.which("mount") else None
    if done is None or done.returncode:
        said = done.stderr.strip() if done else "there is no `mount`"
        raise UnableError(f"a disk that can be filled needs the right to mount one ({said}): run it as root")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=False)


@contextmanager
def _doubling() -> Iterator[None]:
    """Make this process send every message twice, as the workers do."""
    channels: Any = kombu.transport.redis.Channel
    put = channels._put
    launch.double()
    try:
        yield
    finally:
        channels._put = put


def _under_load(
    system: System, fault: Fault, scenario: Scenario, rounds: int, deadline: float, seed: int, outcome: Outcome
) -> None:
    rng = random.Random(f"{seed} {scenario.name}")
    clock = load.ticking()
    probes: list[Cell] = []
    began, actors = _clock(system), 0 if scenario.ledger else ACTORS
    clients = [system.add_client(number, seed) for number in range(ACTORS)] if scenario.ledger else []
    until(lambda: len(ledger.noted(system.ledgers())) >= len(clients), "all clients are at work")
    work = load.started(system.redis_url, seed, actors, clock, own=not scenario.failing_embedder)
    try:
        while outcome.rounds < rounds and (not outcome.rounds or time.monotonic() < deadline):
            time.sleep(rng.uniform(0, BREATH_SECONDS))
            did = fault(system, rng)
            outcome.faults[did] = outcome.faults.get(did, 0) + 1
            outcome.recoveries.append(_recover(system, rng, clock, probes))
            outcome.rounds += 1
    finally:
        work.stop()
        for client in clients:
            client.stop(signal.SIGTERM)
    if not any(did.startswith(scenario.purpose) for did in outcome.faults):
        raise TimeoutError(f"In no round it {scenario.purpose}: {outcome.faults}")
    cells = [*work.cells, *probes]
    if scenario.loses_accepted:
        _mark_accepted_uncertain(cells)
    at = _settle(system, cells, outcome)
    _describe(system, cells, outcome)
    if scenario.ledger:
        entries = ledger.noted(system.ledgers())
        outcome.acknowledged += sum(entry.acknowledged for entry in entries)
        outcome.verdict = ledger.judge(system.shard_urls, entries, began)
        return
    twin = system.create(f"{system.database}_twin")
    outcome.verdict = oracle.judge(system.shard_urls, twin, cells, at, unembedded=scenario.failing_embedder)
    outcome.verdict.decayed_twice += ledger.miscounted(system.shard_urls, cells)


def _clock(system: System) -> datetime:
    """Return the time of the database's clock."""
    with psycopg.connect(system.database_url) as db:
        row = db.execute("select clock_timestamp()").fetchone()
    assert row is not None
    return row[0]


def _recover(system: System, rng: random.Random, clock: Callable[[], datetime], probes: list[Cell]) -> float:
    """Return the seconds until a fact is stored that is sent repeatedly from now on."""
    client, over, began = Client(system.redis_url), threading.Event(), time.monotonic()
    id_ = faults.random_id(rng)
    cell = Cell("probe", [id_], f"probe {len(probes)}")
    fact = {"id": id_, "text": f"{cell.name} is here.", "created_at": (at := clock().isoformat())}
    given = {"facts": [fact], "classify": False, "now": at, "namespace": "probe"}
    step = Step("memory.store_many", given, faults.random_id(rng))
    cell.steps.append(step)
    probes.append(cell)
    while step.outcome == UNKNOWN:
        if time.monotonic() - began > RECOVERY_SECONDS:
            raise TimeoutError(f"Nothing was stored for {RECOVERY_SECONDS:g} s: {step.answer}")
        step.sent += 1
        try:
            step.answer = client.call(step.task, given, 2.0, task_id=step.task_id)
            step.outcome = ACKNOWLEDGED
        except EbbError as error:
            step.answer = str(error)
            over.wait(0.05)
    client.close()
    return time.monotonic() - began


def _settle(system: System, cells: list[Cell], outcome: Outcome) -> datetime:
    """Wait for all work, compute all vectors, run a last pass; return the instant before that pass."""
    client = Client(system.redis_url)
    for cell in cells:
        for step in cell.steps:
            if step.outcome == UNKNOWN and load.may_be_half_done(step.task, step.arguments):
                _send_until_answered(client, step)
    until(lambda: _idle(system) and not _number(system, LACKING), "no task and no vector is missing", SETTLE_SECONDS)
    with own_keys(system.redis_url) as keys:
        # the embedder works again; during a pause no vector would be regenerated
        pause.Pause(keys, pause.EMBEDDER).answered()
    at = datetime.now(UTC)
    for namespace, ids in oracle.used(cells).items():
        client.accept("memory.regenerate", {"ids": ids, "namespace": namespace, "now": at.isoformat()})
    until(lambda: _idle(system) and not _number(system, LACKING), "all vectors are made", SETTLE_SECONDS)
    for _, step in oracle.purges(cells):
        _send_until_answered(client, Step(step.task, step.arguments, faults.random_id(random.Random(step.task_id))))
    last = {"now": (at + oracle.LATER).isoformat(), "everywhere": True}
    _send_until_answered(client, Step(PLAN, last, faults.random_id(random.Random(at.isoformat()))))
    _count_words(system, cells)
    shard_moves.finish(system.context(system.database))  # rows that killed moves left, or beat would delete in an hour
    outcome.doctor = client.doctor(everywhere=True)["faults"]
    for name, program in system.programs.items():
        if name.startswith("beat"):
            program.end()
    with suppress(TimeoutError):
        until(lambda: _idle(system), "nothing is left over", SETTLE_SECONDS)
    client.close()
    return at


def _count_words(system: System, cells: list[Cell]) -> None:
    """Make beat's next task count the words of all namespaces: after a pass that only forgets, no other task does."""
    with own_keys(system.redis_url) as keys:
        for name in {cell.namespace for cell in cells}:
            signals.mark_grown(keys, name)
        until(lambda: not keys.exists(signals.GROWN, signals.COUNTING), "all words are counted", SETTLE_SECONDS)


def _send_until_answered(client: Client, step: Step) -> None:
    over, step.sent = threading.Event(), 0  # the load may have used all its attempts while Redis was away
    load.take(client, step, random.Random(step.task_id), over, patient=True)
    if step.outcome == UNKNOWN:
        raise TimeoutError(f"{step.task} was not answered: {step.answer}")


def _idle(system: System) -> bool:
    """Return whether all queues are empty for as long as a sweep takes."""
    for _ in range(6):
        if any(system.waiting().values()):
            return False
        time.sleep(0.1)
    return True


def _number(system: System, statement: str) -> int:
    """Return the sum of a statement's number over all shards."""
    total = 0
    for url in system.shard_urls:
        with psycopg.connect(url) as db:
            (found,) = db.execute(statement.encode()).fetchone() or (0,)
            total += int(found)
    return total


def _mark_accepted_uncertain(cells: list[Cell]) -> None:
    """Treat accepted writes as uncertain: they were in Redis only, whose data is lost."""
    for cell in cells:
        for step in cell.steps:
            step.outcome = UNKNOWN if step.outcome == ACCEPTED else step.outcome


def _describe(system: System, cells: list[Cell], outcome: Outcome) -> None:
    outcome.left_over = system.waiting() | {"open parts of passes": _number(system, OPEN_PARTS)}
    outcome.lost_children = system.lost_children()
    outcome.restarts = {name: program.restarts for name, program in system.programs.items() if program.restarts}
    outcome.acknowledged = sum(step.outcome == ACKNOWLEDGED for cell in cells for step in cell.steps)
    outcome.facts = _number(system, "select count(*) from facts")
