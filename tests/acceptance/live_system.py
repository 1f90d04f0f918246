"""A running system for the tests: real workers on real servers, the command line, and access to the tables."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from uuid import uuid4

import command_line
import prepared
import psutil
import psycopg
import redis
from celery import Celery
from databases import SHARDS, on_each_shard, together
from kombu.exceptions import OperationalError
from psycopg import sql

from api.client import Client
from workers.coordination import bulk, outbox, touches, transport
from workers.coordination.redis import open_redis, own_keys
from workers.queues import UNACKED, configuration, lists_of

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "api" / "docs" / "images"
"""A folder without Markdown, which the workers of the shared system may read."""

QUEUES = {"worker": "recall,store", "maintenance": "maintenance", "all": "recall,store,maintenance"}
"""Queues of each worker; one worker for all of them starts in half the time of two."""

TABLES = (
    "facts", "activity", "vectors", "signatures", "events", "forgotten_hashes", "lexemes", "contradictions",
    "links", "relations", "likenesses", "documents",
)  # fmt: skip

Found = TypeVar("Found")

SHORTEST_PAUSE = 0.02

SOON = (0.1, 0.1, 0.2, 0.2, 0.3, 0.4)
"""Seconds to wait for a starting worker's answer: a question that comes before the worker is never answered."""


def eventually(
    look: Callable[[], Found],
    what: str,  # noqa: ARG001 - shown in the report of a failed test
    longest_pause: float = 0.1,
) -> Found:
    """Return the first true value of `look`, with growing pauses in seconds: looking costs more than waiting."""
    pause = SHORTEST_PAUSE
    while not (found := look()):
        time.sleep(pause)
        pause = min(1.5 * pause, longest_pause)
    return found


def clean_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with these Ebb settings only."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("EBB_")}
    return {**outside, "PYTHONPATH": str(ROOT), **settings}


@dataclass
class LiveSystem:
    """Workers on given PostgreSQL and Redis, with logs in a folder."""

    database_url: str
    redis_url: str
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    workers: dict[str, prepared.Process] = field(default_factory=dict)
    orphans: list[psutil.Process] = field(default_factory=list)
    shared: bool = False
    apis: dict[tuple[tuple[str, str], ...], str] = field(default_factory=dict)
    until_stopped: ExitStack = field(default_factory=ExitStack)
    pooled: ClassVar[Callable[[str], str | None]] = lambda _: None
    """Returns the URL of a database by way of PgBouncer, where the tests run through one."""

    def environment(self) -> dict[str, str]:
        pooled = LiveSystem.pooled(self.database_url)
        urls = {"EBB_DATABASE_URL": pooled or self.database_url, "EBB_REDIS_URL": self.redis_url}
        urls |= {"EBB_DIRECT_DATABASE_URL": self.database_url} if pooled else {}
        own = {"EBB_HOME": str(self.folder / "home"), "EBB_TIME_TRAVEL": "true"}
        own |= {"EBB_SHARDS": str(SHARDS)} if SHARDS > 1 else {}
        return clean_environment(urls | own | self.settings)

    def start(self, *names: str) -> None:
        """Start workers and return when all of them answer."""
        for name in names:
            self.workers[name] = self._launch(name)
        for name in names:
            patience = chain(SOON, repeat(1.0))
            eventually(lambda name=name, wait=patience: self._answers(name, next(wait)), f"worker {name} answers")  # type: ignore[misc]

    def _launch(self, name: str) -> prepared.Process:
        command = ["workers", "worker", f"--queues={QUEUES[name]}", "--concurrency=2"]
        command += [f"--hostname={node(name)}", "--without-mingle", "--without-gossip"]
        environment = self.environment() | {"REMAP_SIGTERM": "SIGQUIT", "OMP_NUM_THREADS": "1"}
        with (self.folder / f"{name}.log").open("ab") as log:
            return prepared.start(command, environment, log, new_session=True)

    def _answers(self, name: str, seconds: float) -> bool:
        assert self.workers[name].poll() is None, f"worker {name} ended:\n{self.logs()}"
        return bool(self.ask("ping", name, seconds=seconds))

    def kill_worker(self, name: str) -> None:
        """Send SIGKILL to a worker's main process; its children stay."""
        self.orphans += psutil.Process(self.workers[name].pid).children(recursive=True)
        self.workers[name].kill()
        self.workers.pop(name).wait()

    def stop(self) -> None:
        """End the workers and their process groups; running tasks are abandoned."""
        self.until_stopped.close()
        self.apis.clear()
        for worker in self.workers.values():
            with suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
        for orphan in self.orphans:
            kill_child(orphan)
        self.workers.clear()
        self.control.close()
        self.own_keys.close()

    def logs(self, characters: int = 6000) -> str:
        """Return the end of each worker's log."""
        ends = ((log.name, log.read_text(errors="replace")[-characters:]) for log in sorted(self.folder.glob("*.log")))
        return "\n".join(f"--- {name}\n{end}" for name, end in ends)

    def log_sizes(self) -> dict[Path, int]:
        """Return how many bytes each log has now."""
        return {log: log.stat().st_size for log in self.folder.glob("*.log")}

    def traceback_after(self, sizes: Mapping[Path, int]) -> str:
        """Return the first traceback, and what surrounds it, that was logged since the logs had these sizes."""
        added = (log.read_bytes()[sizes.get(log, 0) :] for log in sorted(self.folder.glob("*.log")))
        text = b"".join(added).decode(errors="replace")
        found = text.find("Traceback")
        return "" if found < 0 else text[max(found - 500, 0) :][:3_000]

    def show_stuck_workers(self) -> None:
        """Make workers that do not answer write the stacks of their main process to their log."""
        answered: dict[str, Any] = {}
        with suppress(redis.RedisError, OperationalError):
            answered = self.ask("ping", seconds=2.0) if self.workers else {}
        for name, worker in self.workers.items():
            if node(name) not in answered and worker.poll() is None:
                worker.send_signal(signal.SIGUSR1)
                time.sleep(1.0)

    @cached_property
    def control(self) -> Celery:
        """Return a Celery app for sending tasks and inspecting workers, whose channels keep their client as Ebb's."""
        transport.install()
        app = Celery("tests", set_as_current=False)
        app.conf.update(configuration(self.redis_url))
        return app

    @cached_property
    def own_keys(self) -> redis.Redis:
        """Return the Redis database of Ebb's own keys."""
        return own_keys(self.redis_url)

    def accepted(self, task_id: str) -> bool:
        """Return whether a write is in the outbox."""
        return any(entry.id == task_id for entry in outbox.entries(self.own_keys))

    def ask(self, question: str, *names: str, seconds: float = 5.0) -> dict[str, Any]:
        """Return the answers of workers to `ping`, `active`, `reserved` or `stats`, by worker."""
        nodes = [node(name) for name in names or self.workers]
        inspect = self.control.control.inspect(destination=nodes, timeout=seconds, limit=len(nodes))
        return getattr(inspect, question)() or {}

    def active(self, task: str) -> list[dict[str, Any]]:
        """Return the requests of a task that are running."""
        requests = [request for answer in self.ask("active").values() for request in answer]
        return [request for request in requests if request["name"] == task]

    def begun(self) -> dict[str, int]:
        """Return how often the running workers started each task."""
        totals: dict[str, int] = {}
        for answer in self.ask("stats").values():
            for task, times in answer["total"].items():
                totals[task] = totals.get(task, 0) + times
        return totals

    def settle(self) -> None:
        """Return once nothing is waiting or running."""
        eventually(self._idle, "the workers have nothing left to do")

    def begun_when_idle(self) -> dict[str, int]:
        """Return how often each task was started, once nothing is waiting or running."""
        self.settle()
        return self.begun()

    def _idle(self) -> bool:
        """Return whether nothing is waiting or running.

        A message stays unsettled until its task has ended. Those of killed workers may stay: only if there are any are
        workers asked, in the order in which a worker passes a message on, since each answer takes 30 ms.
        """
        before = self.unsettled()
        if before is None or bulk.waiting(self.own_keys)["batches"] or self.own_keys.zcard(touches.SENT):
            return False
        if not before:
            return self.unsettled() == before
        answers = [self.ask(question) for question in ("scheduled", "reserved", "active")]
        known = all(len(answer) == len(self.workers) and not any(answer.values()) for answer in answers)
        return known and self.unsettled() == before

    def unsettled(self) -> set[bytes] | None:
        """Return the messages that were delivered and are not settled; None if others are on their way.

        Redis hands a message to a connection that waits for one. It is then in no queue, and a worker may answer
        several questions before it reads the message and waits again.
        """
        with open_redis(self.redis_url) as queues, queues.pipeline() as pipeline:
            for name in chain.from_iterable(map(lists_of, QUEUES["all"].split(","))):
                pipeline.llen(name)
            pipeline.client_list()
            pipeline.hkeys(UNACKED)
            *lengths, clients, unsettled = pipeline.execute()
        waiting = sum(one["cmd"] == "brpop" and "b" in one["flags"] for one in clients)
        return None if any(lengths) or waiting < len(self.workers) else set(unsettled)

    @contextmanager
    def client(self, namespace: str = "default") -> Iterator[Client]:
        client = Client(self.redis_url, namespace)
        try:
            yield client
        finally:
            client.close()

    def send(self, task: str, arguments: Mapping[str, Any], task_id: str | None = None) -> Any:
        """Send a task by name without waiting for its result."""
        return self.control.send_task(task, kwargs=dict(arguments), task_id=task_id)

    def revoke(self, task_id: str, **options: Any) -> None:
        """Revoke a task; return when all workers know."""
        self.control.control.revoke(task_id, reply=True, timeout=30, limit=len(self.workers), **options)

    def delivered(self, task: str, arguments: Mapping[str, Any], times: int) -> list[Any]:
        """Return a task's answers to repeated deliveries of one message."""
        task_id, answers = str(uuid4()), []
        for _ in range(times):
            result = self.send(task, arguments, task_id)
            answers.append(result.get())
            result.forget()
        return answers

    def ebb(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run the command line in this process: starting a process takes longer than most commands."""
        return command_line.run(arguments, self.environment(), stdin or "")

    def ebb_process(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run the command line in a process of its own."""
        return subprocess.run(
            self.command(*arguments),
            cwd=ROOT,
            env=self.environment(),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )

    def ebb_json(self, *arguments: str) -> Any:
        """Return the output of a command with `--json`; fail if it fails."""
        done = self.ebb(*arguments, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    @staticmethod
    def command(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "api.cli", *arguments]

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query; of several shards, those of all."""
        with psycopg.connect(self.database_url, autocommit=True) as db:
            if SHARDS > 1:
                return together(on_each_shard(db, statement.encode(), parameters))
            cursor = db.execute(statement.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    def state(self) -> dict[str, list[str]]:
        """Return every row of the tables of memory as text, without the run that wrote it and the row order."""
        return state_of(self.database_url)

    def facts(self, namespace: str) -> list[tuple[Any, ...]]:
        """Return (id, text) of the live facts of a namespace."""
        return self.rows(
            """
            select facts.id::text, text from facts join namespaces on namespaces.id = facts.namespace
            where name = %s and forgotten_at is null order by facts.id
            """,
            [namespace],
        )

    def incomplete(self) -> int:
        """Return the number of facts without activity or signature, or without vector but not a fingerprint."""
        ((lacking,),) = self.rows(
            """
            select count(*) from facts
            left join activity on activity.namespace = facts.namespace and activity.fact = facts.id
            left join vectors on vectors.namespace = facts.namespace and vectors.fact = facts.id
            left join signatures on signatures.namespace = facts.namespace and signatures.fact = facts.id
            where forgotten_at is null
                and (activity.fact is null or signatures.fact is null
                    or vectors.fact is null and fidelity <> 32767)
            """
        )
        return int(lacking)


def node(name: str) -> str:
    """Return the Celery node name of a test's worker."""
    return f"{name}@tests"


def state_of(database_url: str) -> dict[str, list[str]]:
    """Return every row of the tables of memory as text, without the run that wrote it and the row order."""
    every = sql.SQL("select row_::text from {} as row_ order by 1")
    own = {
        "events": sql.SQL("select (namespace, fact, at, what, details - 'run')::text from {} order by 1"),
        "facts": sql.SQL(
            "select (to_jsonb(row_) - '{{forgotten_by,tombstone_at}}'::text[])::text from {} as row_ order by 1"
        ),
    }
    statements = {table: own.get(table, every) for table in TABLES}
    with psycopg.connect(database_url) as db:
        return {
            table: sorted(row for rows in on_each_shard(db, statement.format(sql.Identifier(table))) for (row,) in rows)
            for table, statement in statements.items()
        }


def end(process: prepared.Process, seconds: float = 20.0) -> None:
    """Terminate a process; kill it if it does not end."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def kill_child(child: int | psutil.Process) -> None:
    """Send SIGKILL to a worker's child, unless it has just ended."""
    with suppress(psutil.NoSuchProcess):
        (psutil.Process(child) if isinstance(child, int) else child).kill()
