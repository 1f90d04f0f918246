"""The faults: each disturbs a running system once, and leaves all programs running."""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import psutil
import psycopg
import redis

from api.client import Client
from tests.chaos import launch
from tests.chaos.cells import NAMESPACES
from tests.chaos.endpoint import FAILURES, Endpoint
from tests.chaos.system import System
from tests.citus import Node, address_of, holder
from workers.errors import EbbError

AWAY_SECONDS = 2.0
MIDST_SECONDS = 0.5
"""A fault is injected after a random delay of at most this."""

AWAIT_SECONDS = 3.0
IN_THE_MIDDLE = "in the middle of"
STATEMENTS = {
    "store_many": "%insert into facts%",
    "touch": "%recall_count = recall_count%",
    "apply": "%update decay_parts%",
    "regenerate": "%insert into signatures%",
}
AT_IT = """
    select coalesce(backend_xid::text, '') from pg_stat_activity
    where datname = current_database() and application_name = 'ebb' and state in ('active', 'idle in transaction')
        and query like %s and (backend_xid is not null or %s)
"""
"""The transaction of a connection; on a cluster, it has its number on another node."""

ENDED = "select pg_xact_status(%s::text::xid8)"
UPGRADE_SECONDS = 60.0
YEAR = 365 * 86_400.0
ENDED_SECONDS = 5.0
"""PostgreSQL rolls back the transaction of a dead client after its current statement."""

GARBAGE = (
    b"",
    b"nonsense",
    b"[1, 2",
    b"[]",
    b"null",
    b"{}",
    b"\xff\xfe\x00",
    b'{"body": "bm9uc2Vuc2U=", "headers": {}, "properties": {}}',
)


def kill_children(system: System, rng: random.Random) -> str:
    """Kill children of a worker while they work: one at a random moment, or all in the middle of a transaction."""
    if rng.random() < 0.6:
        children = [child for worker in system.workers() for child in worker.children()]
        return "killed children " + _strike(system, rng.choice(list(STATEMENTS)), lambda: _kill(children))
    time.sleep(rng.uniform(0, MIDST_SECONDS))
    _kill(rng.choice(system.workers()).children()[:1])
    return "killed a child"


def _strike(system: System, what: str, act: Callable[[], None]) -> str:
    """Act as soon as a connection is within such a transaction; return whether it was rolled back."""
    transaction = _awaited(system, STATEMENTS[what])
    act()
    if transaction is None:
        return f"after waiting for {what} in vain"
    if not transaction:
        return f"during {what}"
    return f"{IN_THE_MIDDLE} {what}" if _rolled_back(system, transaction) else f"just after {what}"


def _awaited(system: System, pattern: str) -> str | None:
    """Wait, up to a timeout, for a connection with such a statement in an open transaction; return the transaction."""
    deadline = time.monotonic() + AWAIT_SECONDS
    with suppress(psycopg.Error), psycopg.connect(system.database_url, autocommit=True) as db:
        while time.monotonic() < deadline:
            if found := db.execute(AT_IT, [pattern, bool(system.citus)]).fetchone():
                return str(found[0])
            time.sleep(0.001)
    return None


def _rolled_back(system: System, transaction: str) -> bool:
    """Wait until a transaction has ended; return whether it was rolled back."""
    deadline, ended = time.monotonic() + ENDED_SECONDS, "in progress"
    with suppress(psycopg.Error), psycopg.connect(system.database_url, autocommit=True) as db:
        while ended == "in progress" and time.monotonic() < deadline:
            (ended,) = db.execute(ENDED, [transaction]).fetchone() or ("",)
            time.sleep(0.005)
    return ended == "aborted"


def _kill(children: list[psutil.Process]) -> None:
    for child in children:
        with suppress(psutil.NoSuchProcess):
            child.kill()


def kill_parent(system: System, rng: random.Random) -> str:
    """Kill the main process of one worker, or of both, at a random moment or in the middle of a transaction.

    Its children end when they notice; half of the time they are killed with it.
    """
    workers = system.workers() if rng.random() < 0.5 else [rng.choice(system.workers())]
    children = [child for worker in workers for child in worker.children()] if rng.random() < 0.5 else []

    def act() -> None:
        for worker in workers:
            worker.signal(signal.SIGKILL)
        _kill(children)

    with_children = " with its children" if children else ""
    if len(workers) > 1:
        return f"killed workers{with_children} " + _strike(system, rng.choice(list(STATEMENTS)), act)
    time.sleep(rng.uniform(0, MIDST_SECONDS))
    act()
    return f"killed a worker{with_children}"


def kill_redis(system: System, rng: random.Random) -> str:
    """Kill Redis, and start it again with its data."""
    time.sleep(rng.uniform(0, MIDST_SECONDS))
    system.programs["redis"].stop(signal.SIGKILL)
    time.sleep(rng.uniform(0, AWAY_SECONDS))
    system.bring_up("redis")
    return "killed Redis"


def lose_redis(system: System, rng: random.Random) -> str:
    """Kill Redis, and start it again empty: all messages, results, marks and accepted writes are lost."""
    time.sleep(rng.uniform(0, MIDST_SECONDS))
    system.programs["redis"].stop(signal.SIGKILL)
    for path in system.own_redis.data.iterdir():
        if path.name not in ("password", "redis.conf"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    system.bring_up("redis")
    return "lost Redis"


def fill_redis(system: System, rng: random.Random) -> str:
    """Make Redis refuse writes for a while, as at its `maxmemory`; its data stays."""
    time.sleep(rng.uniform(0, MIDST_SECONDS))
    with redis.Redis.from_url(system.redis_url) as keys:
        keys.config_set("maxmemory", max(int(keys.info("memory")["used_memory"]) - 1, 1))
        time.sleep(rng.uniform(0.5, 1.0 + AWAY_SECONDS))
        keys.config_set("maxmemory", 0)
    return "filled Redis"


def stop_processes(system: System, rng: random.Random) -> str:
    """Suspend a worker with its children, or its children alone, and resume them after a while.

    Often that takes longer than the redelivery of their messages, which are then processed twice.
    """
    worker = rng.choice(system.workers())
    children = worker.children()
    whole = rng.random() < 0.5
    away = rng.choice((rng.uniform(0.2, AWAY_SECONDS), launch.VISIBILITY_SECONDS + rng.uniform(1, 3)))
    stopped = [*children, *([psutil.Process(worker.process.pid)] if whole and worker.process else [])]

    def act() -> None:
        _signal(stopped, signal.SIGSTOP)

    how = _strike(system, rng.choice(list(STATEMENTS)), act)
    time.sleep(away)
    _signal(stopped, signal.SIGCONT)
    long = "for longer than redelivery" if away > launch.VISIBILITY_SECONDS else "briefly"
    return f"stopped {'a worker' if whole else 'children'} {long} {how.removesuffix(' in vain')}"


def _signal(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def upgrade(system: System, rng: random.Random) -> str:
    """Run migrations under load, as `ebb migrate` does; half of the time kill them once and run them again."""
    time.sleep(rng.uniform(0, MIDST_SECONDS))
    process = _upgrading(system)
    killed = rng.random() < 0.5
    if killed:
        time.sleep(rng.uniform(0.3, 1.5))
        process.kill()
        process.wait()
        process = _upgrading(system)
    _, said = process.communicate(timeout=UPGRADE_SECONDS)
    if process.returncode:
        raise TimeoutError(f"The upgrade failed: {said}")
    return "upgraded the schema" + (", killed once" if killed else "")


def _upgrading(system: System) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.chaos.launch", "upgrade", system.database_url]
    return subprocess.Popen(
        command,
        env=system.environment(),
        cwd=system.folder,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def restart_postgres(system: System, rng: random.Random) -> str:
    """Stop PostgreSQL as `ebb down` does, for a while."""
    return _postgres(system, rng, signal.SIGINT)


def crash_postgres(system: System, rng: random.Random) -> str:
    """Stop PostgreSQL immediately; it recovers from its log."""
    return _postgres(system, rng, signal.SIGQUIT)


def _postgres(system: System, rng: random.Random, how: signal.Signals) -> str:
    time.sleep(rng.uniform(0, MIDST_SECONDS))
    if system.citus:
        return _node(system, rng, "fast" if how == signal.SIGINT else "immediate")
    system.programs["postgres"].stop(how)
    time.sleep(rng.uniform(0, AWAY_SECONDS))
    system.bring_up("postgres")
    return "stopped PostgreSQL"


def _node(system: System, rng: random.Random, mode: str) -> str:
    """Stop a node of the cluster for a while: the one that all connect to, or one that has a shard."""
    first = rng.random() < COORDINATOR
    node = Node(system.citus) if first else holder(rng.choice(system.shard_urls))
    node.stop(mode)
    time.sleep(rng.uniform(0, AWAY_SECONDS))
    node.start()
    return "stopped the coordinator" if first else "stopped a node"


CANCEL = """
    select count(*) filter (where pg_cancel_backend(pid)) from pg_stat_activity
    where datname = current_database() and application_name = 'ebb' and state = 'active'
"""
TERMINATE = """
    select count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity
    where datname = current_database() and application_name = 'ebb'
"""


def cancel_statements(system: System, rng: random.Random) -> str:
    """Cancel all running statements some times, as an administrator does, often in the middle of a transaction."""
    return _sessions(system, rng, CANCEL, "cancelled statements")


def end_sessions(system: System, rng: random.Random) -> str:
    """End all sessions some times, as an administrator does, often in the middle of a transaction."""
    return _sessions(system, rng, TERMINATE, "ended sessions")


def _sessions(system: System, rng: random.Random, statement: str, did: str) -> str:
    def act() -> None:
        with suppress(psycopg.Error), psycopg.connect(system.database_url, autocommit=True) as db:
            for _ in range(rng.randint(1, 30)):
                db.execute(statement.encode())
                time.sleep(rng.uniform(0, 0.05))

    return f"{did} {_strike(system, rng.choice(list(STATEMENTS)), act)}"


def refuse_writes(system: System, rng: random.Random) -> str:
    """Make PostgreSQL read-only for a while, as during a failover."""
    time.sleep(rng.uniform(0, MIDST_SECONDS))
    for value in ("on", "off"):
        with psycopg.connect(system.own_postgres.url("postgres"), autocommit=True) as db:
            db.execute(f"alter system set default_transaction_read_only = {value}".encode())
            db.execute("select pg_reload_conf()")
        time.sleep(rng.uniform(0.5, 1.0 + AWAY_SECONDS) if value == "on" else 0)
    return "refused writes"


COORDINATOR = 0.3
PLACED = "select citus_schema_move(quote_ident(current_schema())::regnamespace, nodename, nodeport, 'block_writes')"
ELSEWHERE = """
    from pg_dist_node where noderole = 'primary' and shouldhaveshards and nodeport <> %s order by nodeport limit 1
"""


def place_elsewhere(system: System, rng: random.Random) -> str:
    """Move a shard to another node of the cluster; half of the time stop the node that it leaves, meanwhile."""
    url = rng.choice(system.shard_urls)
    killed, (_, port) = rng.random() < 0.5, address_of(url)
    with ThreadPoolExecutor(1) as pool:
        moving = pool.submit(_place_elsewhere, url, port)
        if killed:
            node = holder(url)
            time.sleep(rng.uniform(0, 2 * MIDST_SECONDS))
            node.kill()
            node.start()
        moved = moving.result()
    return f"{'moved' if moved else 'failed to move'} a shard to another node" + ", which stopped" * killed


def _place_elsewhere(url: str, port: int) -> bool:
    with suppress(psycopg.Error), psycopg.connect(url, autocommit=True) as db:
        db.execute(PLACED + ELSEWHERE, [port])
        return True
    return False


def fill_disk(system: System, rng: random.Random) -> str:
    """Fill the disk of PostgreSQL completely for a while."""
    ballast = system.postgres_folder / "ballast"
    time.sleep(rng.uniform(0, MIDST_SECONDS))
    _fill(ballast)
    time.sleep(rng.uniform(1.0, 1.0 + AWAY_SECONDS))
    ballast.unlink()
    system.bring_up("postgres")
    return "filled the disk"


def _fill(ballast: Path) -> None:
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def kill_beat(system: System, rng: random.Random) -> str:
    """Kill one of several beats; all continue."""
    beats = [program for name, program in system.programs.items() if name.startswith("beat")]
    time.sleep(rng.uniform(0, 2 * MIDST_SECONDS))
    rng.choice(beats).signal(signal.SIGKILL)
    return "killed a beat"


def deliver_twice(system: System, rng: random.Random) -> str:
    """Only wait, half of the time with a child killed: all messages are delivered twice anyway."""
    time.sleep(rng.uniform(0, 2 * MIDST_SECONDS))
    return kill_children(system, rng) if rng.random() < 0.5 else "delivered all twice"


def set_clock_back(system: System, rng: random.Random) -> str:
    """Set the clocks of all workers and beats back by seconds to months for a moment."""
    system.set_clock(-(10 ** rng.uniform(0, 7)))
    time.sleep(rng.uniform(0.3, 1.5))
    if rng.random() < 0.3:
        kill_children(system, rng)
    system.set_clock(0.0)
    return "set the clock back"


def set_clocks_apart(system: System, rng: random.Random) -> str:
    """Set the clocks of workers and beats, of clients, or of both a year ahead or back; sometimes also kill a child."""
    shifts = {"workers": rng.choice((-YEAR, 0, YEAR)), "clients": rng.choice((-YEAR, 0, YEAR))}
    system.set_clock(shifts["workers"])
    system.set_clock(shifts["clients"], of_clients=True)
    time.sleep(rng.uniform(0.5, 2.5))
    if rng.random() < 0.3:
        kill_children(system, rng)
    far = [f"{who} a year {'ahead' if shift > 0 else 'back'}" for who, shift in shifts.items() if shift]
    return f"set {' and '.join(far)}" if far else "set all clocks right"


def poison(system: System, rng: random.Random) -> str:
    """Send messages that fail: a task that kills its child, an unknown task, invalid arguments, or garbage."""
    kind = rng.choice(("kills", "unknown", "arguments", "garbage", "garbage"))
    client = Client(system.redis_url)
    with suppress(EbbError):
        match kind:
            case "kills":
                client.send(launch.POISON, {}, queue="store", expires=30)
            case "unknown":
                client.send("memory.nonsense", {"namespace": "north"})
            case "arguments":
                client.send("memory.touch", {"ids": rng.choice([None, 7, ["x"]]), "namespace": 5, "at": []})
                client.send("memory.store_many", {"facts": [None, 3, {"text": {}}], "namespace": "north"})
            case _:
                _push_garbage(system, rng)
    client.close()
    time.sleep(rng.uniform(0, MIDST_SECONDS))
    return f"sent poison: {kind}"


def _push_garbage(system: System, rng: random.Random) -> None:
    with redis.Redis.from_url(system.redis_url) as keys:
        body = rng.choice((*GARBAGE, json.dumps({"body": "e30=", "content-type": "application/x-python"}).encode()))
        keys.lpush(rng.choice(launch.QUEUES), body)


def fail_embedder(endpoint: Endpoint, system: System, rng: random.Random) -> str:
    """Make the embedder fail for a while, and half of the time kill a child meanwhile."""
    endpoint.failure = rng.choice([name for name in FAILURES if name != "none"])
    time.sleep(rng.uniform(0.5, 1.0 + AWAY_SECONDS))
    if rng.random() < 0.5:
        kill_children(system, rng)
    said, endpoint.failure = endpoint.failure, "none"
    return f"the embedder {said}"


MOVING = 0.3, 3.0
MOVE_SECONDS = 240.0


MOVED = "moved a namespace"
"""What `move_namespace` returns if it moved one, possibly with more words."""

NOT_YET = "there is no '"
"""What a move of a namespace says that the load has not stored in yet."""

PLACE = "select coalesce((select shard from directory where name = %s), 0)"


def move_namespace(system: System, rng: random.Random) -> str:
    """Move a namespace of the load to another shard; mostly kill the move, PostgreSQL or children meanwhile."""
    name = rng.choice(NAMESPACES)
    shard = rng.choice([number for number in range(system.shards) if number != _place(system, name)])
    meanwhile = rng.choice(("killed", "killed", "PostgreSQL crashed", "children killed", ""))
    process = _moving(system, name, shard)
    if meanwhile:
        time.sleep(rng.uniform(*MOVING))
    if meanwhile == "killed":
        process.kill()
    elif meanwhile == "PostgreSQL crashed":
        crash_postgres(system, rng)
    elif meanwhile:
        kill_children(system, rng)
    said = _moved(process)
    if said and meanwhile in ("killed", "PostgreSQL crashed"):
        said = _moved(_moving(system, name, shard))
    if said and NOT_YET not in said:
        raise TimeoutError(f"The move of {name} to shard {shard} failed: {said}")
    if not said and _place(system, name) != shard:
        raise TimeoutError(f"The move of {name} to shard {shard} ended well, but the directory names another shard.")
    return (MOVED if not said else "moved nothing, as nothing was stored yet") + (f", {meanwhile}" if meanwhile else "")


def _place(system: System, name: str) -> int:
    """Return the shard of a namespace by the directory."""
    with psycopg.connect(system.database_url) as db:
        (shard,) = db.execute(PLACE, [name]).fetchone() or (0,)
        return int(shard)


def _moving(system: System, name: str, shard: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "api.cli", "shards", "move", name, str(shard)]
    return subprocess.Popen(
        command,
        env=system.environment(),
        cwd=system.folder,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def _moved(process: "subprocess.Popen[str]") -> str:
    """Wait for a move; return why it failed, or nothing."""
    try:
        _, said = process.communicate(timeout=MOVE_SECONDS)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"A move did not end within {MOVE_SECONDS:g} s.") from None
    return said or "killed" if process.returncode else ""


ANY = (
    kill_children, kill_children, kill_parent, kill_redis, restart_postgres, crash_postgres, kill_beat, set_clock_back,
)  # fmt: skip


def anything(system: System, rng: random.Random) -> str:
    """Inject one or two of the other faults, the second directly after the first."""
    among = (*ANY, *(move_namespace,) * 2 * (system.shards > 1), *(place_elsewhere,) * bool(system.citus))
    done = [rng.choice(among)(system, rng) for _ in range(rng.randint(1, 2))]
    return " and ".join(done)


def random_id(rng: random.Random) -> str:
    """Return a random UUID."""
    return str(UUID(int=rng.getrandbits(128), version=4))
