"""`ebb doctor`: checks of servers, workers and facts, with what to do about problems."""

import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer
from ebb.contract.admin import DOCTOR

from api.cli import output
from api.cli.operations import Everywhere, NamespaceName, client, located, refuse_both
from workers.errors import EbbError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis import Redis

    from api.client import Client
    from workers.context import Context
    from workers.settings import Settings
    from workers.storage.connection import Connection

SILENT_SECONDS = 300.0
"""A running beat sends several tasks a minute."""

LATE_SECONDS = 300.0
"""Older writes in the outbox are late, and older tasks in a queue."""


def doctor(
    mend: Annotated[bool, typer.Option("--mend", help="Put right what is wrong with facts.")] = False,
    everywhere: Everywhere = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Check that servers and workers run and fit together, and that no data of facts is missing.

    Exits with 1 if a problem was found and not repaired.
    """
    refuse_both(everywhere, namespace)
    settings = located(home)
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # its warnings say again what a check says
    with client(home, namespace) as memory:
        checks = _checks(settings, memory)
        facts = None
        if all(check["ok"] for check in checks if check["name"] in NEEDED):
            with output.console(stderr=True).status("facts are examined …"):
                facts = _examined(memory, checks, everywhere=everywhere, mend=mend)
    if as_json:
        output.print_json({"checks": checks, "facts": facts})
    else:
        _print(checks, facts, None if everywhere else memory.namespace)
    if facts is None or (facts["faults"] and not mend) or not all(check["ok"] for check in checks):
        raise typer.Exit(1)


def _checks(settings: "Settings", memory: "Client") -> list[dict[str, Any]]:
    unused = {
        "replicas": not settings.read_database_url, "reranker": not settings.rerank_url, "LLM": not settings.asks_llm,
    }  # fmt: skip
    return [_checked(name, settings, memory) for name in CHECKS if not unused.get(name)]


def _examined(memory: "Client", checks: list[dict[str, Any]], *, everywhere: bool, mend: bool) -> dict[str, Any] | None:
    """Return the faults of facts; if they cannot be examined, add a failed check."""
    try:
        found = memory.perform(DOCTOR, {"everywhere": everywhere, "mend": mend})
    except EbbError as error:
        checks.append({"name": "facts", "ok": False, "says": str(error)})
        return None
    found.pop("redis", None)  # reported by a check
    return found


def _checked(name: str, settings: "Settings", memory: "Client") -> dict[str, Any]:
    try:
        if name in OF_DATABASE:
            _require(_silence_of_database(settings.database_url))
        for url in settings.broker_urls if name in OF_REDIS else ():
            _require(_silence_of_redis(url))
        return {"name": name, "ok": True, "says": CHECKS[name](settings, memory)}
    except EbbError as error:
        return {"name": name, "ok": False, "says": str(error)}
    except Exception as error:  # noqa: BLE001 - a failing check must not hide the results of others
        return {"name": name, "ok": False, "says": _unforeseen(error)}


def _unforeseen(error: Exception) -> str:
    """Return what went wrong; tables that are missing are reported by the check of the schema."""
    from psycopg import OperationalError, errors  # psycopg is slow to load

    from workers.storage.refusals import broken_off

    if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn | errors.UndefinedFunction):
        return "cannot be checked without the schema of this version; see above"
    if isinstance(error, OperationalError | errors.InsufficientPrivilege):
        return str(broken_off(error))
    return f"{type(error).__name__}: {error}"


def _require(silence: str) -> None:
    if silence:
        raise UnavailableError(silence)


@cache
def _silence_of_database(url: str) -> str:
    """Return why PostgreSQL does not answer, or nothing; asked once, as each check would wait for seconds."""
    from workers.storage.connection import connect  # psycopg is slow to load

    try:
        connect(url).close()
    except UnavailableError as error:
        return str(error)
    return ""


@cache
def _silence_of_redis(url: str) -> str:
    """Return why Redis does not answer, or nothing; asked once, like PostgreSQL."""
    from workers.coordination.redis import own_keys

    try:
        with _answering(), own_keys(url) as keys:
            keys.ping()
    except UnavailableError as error:
        return str(error)
    return ""


def _database(settings: "Settings", _: "Client") -> str:
    from workers.storage import schema, server, shards  # psycopg is slow to load
    from workers.storage.connection import outside_pool

    with outside_pool(settings.database_url) as db:
        schema.check(db)
        schema.verify_direct(settings.database_url, settings.direct_database_url)
        schema.check_writable(db)
        server.try_write(db)
        shards.check(db, settings.shards)
        return schema.servers(db)


def _schema(settings: "Settings", _: "Client") -> str:
    from workers.errors import SchemaError
    from workers.storage import schema

    found = schema.all_differences(settings.database_url, settings.shards)
    if found:
        raise SchemaError(f"differs from what this version of Ebb works with: {'; '.join(found)}.")
    return f"{schema.described(schema.version_of(settings.database_url))}; all is there that this version of Ebb needs"


def _replicas(settings: "Settings", _: "Client") -> str:
    with _context(settings) as context:
        found = context.replicas.look() if context.replicas else []
    said = "; ".join(map(str, found))
    if any(one.fault for one in found):
        raise UnavailableError(f"{said}. The primary answers instead.")
    return said


def _embedder(settings: "Settings", _: "Client") -> str:
    from workers.embedding import ability
    from workers.memory.embed import check_embedder

    with _context(settings) as context:
        _check_pause(context, "recall decides by words alone, and facts are stored without vector")
        check_embedder(context)
        _check_embedders_of_workers(context)
        return f"{context.embedder.name}, as in the database: {ability(context.embedder.name)}"


def _indexes(settings: "Settings", _: "Client") -> str:
    """Return whether large namespaces have their vector index; one that lacks is a warning, as recall works without."""
    from workers.storage import signatures

    lacking = large = 0
    for db in _connections(settings):
        valid = signatures.indexes(db)
        tenants = signatures.large_namespaces(db, settings.ann_threshold)
        large += len(tenants)
        lacking += sum(not valid.get(signatures.index_name(one)) for one in tenants)
    where = output.counted(large, "namespace")
    if not lacking:
        return f"{where} with {settings.ann_threshold:,} facts or more; no vector index is missing"
    return (
        f"warning: {lacking} of {where} with {settings.ann_threshold:,} facts or more have no vector index, so recalls "
        "there are slow. It is built within ten minutes; if not, the logs of maintenance workers say why."
    )


RANKED = ("Where is the spare key?", ["The spare key hangs behind the kitchen clock.", "Rain is expected on Sunday."])
"""A question with two texts, of which a reranker prefers the first."""


def _reranker(settings: "Settings", _: "Client") -> str:
    """Have the reranker order two texts; a model that is no reranker may prefer the wrong one: then it warns."""
    from workers.memory.recall import rerank

    with _context(settings) as context:
        _check_pause(context, "results stand in their own order", "reranker")
        right, wrong = rerank.ask(context, *RANKED)
        said = f"{context.reranker} orders the first {settings.rerank_candidates} results of a question"
    if right > wrong:
        return said
    return f"{said}\nwarning: for {RANKED[0]!r} it does not prefer {RANKED[1][0]!r}: is its model a reranker?"


def _llm(settings: "Settings", _: "Client") -> str:
    """Have the LLM compare two facts; a model that does not see that one has changed is a warning."""
    from workers.llm import Statement
    from workers.memory import classify

    with _context(settings) as context:
        _check_pause(context, "facts are stored without being judged, and none are drawn or reviewed", "LLM")
        old, new = (
            Statement(id_, f"Ana lives in {home}.", "Ana", "home", home, datetime(2026, month, 1, tzinfo=UTC))
            for id_, home, month in ((uuid4(), "Porto", 1), (None, "Lisbon", 2))
        )
        (intent,) = classify.ask(context, [classify.Case(new, [old])], settings.llm_timeout)
        said = f"{context.chat} compares facts"
    if intent.target is not None and intent.action == "UPDATE":
        return said
    return f"{said}\nwarning: it does not see that {new.text!r} changes {old.text!r}: choose another EBB_LLM_MODEL."


@contextlib.contextmanager
def _context(settings: "Settings") -> "Iterator[Context]":
    from workers.context import Context  # psycopg is slow to load

    with contextlib.closing(Context(settings)) as context:
        yield context


def _connections(settings: "Settings") -> "Iterator[Connection]":
    from workers.context import Context
    from workers.storage.connection import outside_pool

    for _ in Context(settings).each_shard():
        with outside_pool(settings.database_url) as db:
            yield db


def _check_embedders_of_workers(context: "Context") -> None:
    """Raise `UnavailableError` if workers started before another embedder was chosen."""
    with _answering():
        given = _settings_of_workers(context.settings)
    own = context.embedder.name
    names = {node: one.get("the embedder", own) for node, one in given.items()}
    if former := [f"{node} has {name}" for node, name in names.items() if name != own]:
        raise UnavailableError(
            f"the database has {own}, but {', '.join(former)}. Such workers store facts without vectors and recall by "
            "words alone: restart them."
        )


def _settings_of_workers(settings: "Settings") -> dict[str, dict[str, Any]]:
    from workers.coordination import signals
    from workers.coordination.redis import own_keys

    given: dict[str, dict[str, Any]] = {}
    for url in settings.broker_urls:
        with own_keys(url) as keys:
            given |= signals.settings_of_workers(keys, _seconds(keys))
    return given


def _seconds(redis: "Redis") -> float:
    """Return epoch seconds by the clock of a Redis, which dates what is in it."""
    from workers.coordination.redis import clock

    return clock(redis).timestamp()


def _check_pause(context: "Context", meanwhile: str, model: str = "embedder") -> None:
    """Raise `UnavailableError` if a model failed at its last request."""
    from workers.coordination import pause

    with _answering():
        found = pause.state(context.redis, pause.MODELS[model])
    if found.seconds:
        raise UnavailableError(f"{pause.describe(found)} Until then {meanwhile}. Its last error: {found.error}")


DEFAULT_QUEUE = "celery"
"""Queue of messages that a Celery program sends without a route."""

ROUTE = "let the program that sends them call `ebb.celery.configure(app)`, or name the queue"


def _each_redis(check: "Callable[[str, Client], str]") -> "Callable[[Settings, Client], str]":
    """Return a check of the Redis of each group of shards, which names the group if there are several."""

    def of_all(settings: "Settings", memory: "Client") -> str:
        urls, said, failed = settings.broker_urls, list[str](), False
        for group, url in enumerate(urls):
            try:
                _require(_silence_of_redis(url))
                found = check(url, memory)
            except UnavailableError as error:
                found, failed = str(error), True
            said.append(found if len(urls) == 1 else f"group {group}: {found}")
        if failed:
            raise UnavailableError("\n".join(said))
        return "\n".join(said)

    return of_all


@_each_redis
def _redis(url: str, _: "Client") -> str:
    from workers.coordination import signals
    from workers.coordination.redis import condition as condition_of
    from workers.coordination.redis import open_redis, own_keys
    from workers.queues import QUEUES, age_of, length_of

    with _answering(), open_redis(url) as server, own_keys(url) as keys:
        condition = condition_of(server)
        waiting = ", ".join(f"{output.counted(length_of(server, queue), 'task')} in {queue}" for queue in QUEUES)
        said = f"{condition}; waiting are {waiting}"
        unserved = server.llen(DEFAULT_QUEUE)
        stray = f"{output.counted(unserved, 'task')} in {DEFAULT_QUEUE}, which no worker of Ebb serves: {ROUTE}"
        warned = [*condition.warnings(), *([stray] if unserved else [])]
        ages = {queue: age_of(server, queue, _seconds(server)) for queue in QUEUES}
        warned += [
            f"the first task in {queue} has waited for {age / 60:.0f} minutes, and those that expire are not done: "
            f"start more workers with `ebb worker --queues {queue}`, or wait for the end of long tasks"
            for queue, age in ages.items()
            if age > LATE_SECONDS
        ]
        try:
            signals.try_write(keys)
        except UnavailableError as error:
            raise UnavailableError(f"{error} {said}") from None
    text = "\n".join([said, *(f"warning: {warning}" for warning in warned)])
    if condition.is_nearly_full():
        raise UnavailableError(text)
    return text


@contextlib.contextmanager
def _answering() -> "Iterator[None]":
    """Raise `UnavailableError` with advice if Redis fails."""
    import redis

    from workers.coordination.redis import explain

    try:
        yield
    except redis.RedisError as error:
        raise UnavailableError(explain(error)) from None


@_each_redis
def _outbox(url: str, _: "Client") -> str:
    from workers.coordination import outbox
    from workers.coordination.redis import own_keys

    with _answering(), own_keys(url) as keys:
        now, waiting = _seconds(keys), outbox.size(keys)
        late = sum(abs(now - entry.accepted_at) > LATE_SECONDS for entry in outbox.entries(keys))
    if late:
        raise UnavailableError(
            f"Accepted and not stored for {LATE_SECONDS / 60:g} minutes and more: {output.counted(late, 'write')}. "
            "Nothing is lost; see whether workers run, and what their log says."
        )
    return f"{output.counted(waiting, 'accepted write')} under way"


def _workers(settings: "Settings", memory: "Client") -> str:
    if others := _other_databases(settings):
        raise UnavailableError(
            f"some use {' and '.join(others)}, and EBB_DATABASE_URL leads to another database: each stores in its own "
            "what it takes from Redis. Stop the workers that do not belong here, or correct the addresses."
        )
    return _lanes(settings, memory)


@_each_redis
def _lanes(url: str, memory: "Client") -> str:
    from api.client import Client

    with Client(url, memory.namespace) as group:
        return lanes(group.workers())


def lanes(workers: Mapping[str, list[str]]) -> str:
    """Return which workers (names with their queues) serve Ebb; raise `UnavailableError` if a queue has none."""
    own = {"recall", "store", "maintenance"}  # workers of other programs may share this Redis
    answering = {name: served for name, queues in workers.items() if (served := own & {*queues})}
    if missing := own.difference(*answering.values()):
        raise UnavailableError(f"no worker serves {', '.join(sorted(missing))}; run `ebb up`, or start one.")
    return f"{len(answering)} answer: {', '.join(sorted(answering))}"


def _settings(settings: "Settings", _: "Client") -> str:
    """Compare what running workers say of their settings; raise `UnavailableError` if they differ."""
    from workers.settings import differences

    with _answering():
        given = _settings_of_workers(settings)
    if found := differences(given):
        raise UnavailableError(
            "\n".join(["workers differ, so what is stored, found and forgotten depends on chance:", *found])
            + "\nStart all workers with the same settings."
        )
    return f"the same in {output.counted(len(given), 'worker')}"


@_each_redis
def _beat(url: str, _: "Client") -> str:
    from workers.coordination import signals
    from workers.coordination.redis import own_keys

    with _answering(), own_keys(url) as keys:
        now, sent_at = _seconds(keys), signals.beat_sent(keys)
    if sent_at is None:
        return "warning: no beat has sent a task to this Redis; one does within a minute after it has started"
    quiet = now - sent_at
    if quiet > SILENT_SECONDS:
        raise UnavailableError(
            f"it sent its last task {quiet / 60:.0f} minutes ago, so nothing fades, and nothing is cleaned: start "
            "`ebb beat`, or see its log."
        )
    return f"it sent its last task {max(quiet, 0.0):.0f} s ago"


def _other_databases(settings: "Settings") -> list[str]:
    """Return the databases that workers use other than this one, as far as the servers answer."""
    from workers.coordination import signals  # psycopg is slow to load
    from workers.coordination.redis import own_keys
    from workers.storage import schema
    from workers.storage.connection import outside_pool

    found = set[str]()
    for url in settings.broker_urls:
        if not _silence_of_redis(url):
            with _answering(), own_keys(url) as keys:
                found |= signals.databases_of_workers(keys, _seconds(keys)).keys()
    try:
        _require(_silence_of_database(settings.database_url))
        with outside_pool(settings.database_url) as db:
            schema.check(db)
            return sorted(found - {schema.identity(db)})
    except EbbError:  # another check reports it
        return []


def _clock(settings: "Settings", _: "Client") -> str:
    """Compare the database's clock with those of each Redis and of this machine.

    Raise `UnavailableError` if a gap waits for confirmation.
    """
    from workers.coordination.redis import own_keys
    from workers.storage import limits, server

    waiting: list[str] = []
    for db in _connections(settings):
        shown = server.now(db)
        waiting += limits.gaps_waiting(db)
    if waiting:
        where = f"{output.counted(len(waiting), 'namespace')} ({', '.join(waiting[:3])})"
        whose = output.of(waiting[0]) if len(waiting) == 1 else " --all"
        raise UnavailableError(
            f"no pass came for long, or it jumped: what ended meanwhile is kept in {where}. It shows "
            f"{shown:%Y-%m-%d %H:%M} UTC. If that is right, let it go with "
            f"`ebb decay{whose} --force`; if not, set the clock of the database's machine right."
        )
    others = {}
    for group, url in enumerate(settings.broker_urls):
        with _answering(), own_keys(url) as keys:
            others["Redis'" if len(settings.broker_urls) == 1 else f"Redis' of group {group}"] = _seconds(keys)
    return clocks(shown, others | {"this machine's": time.time()})


def clocks(shown: datetime, others: Mapping[str, float]) -> str:
    """Return what the database's clock shows and how far others (epoch seconds) differ; a warning if by a minute."""
    from workers.clock import MOST_AHEAD

    ahead = {whose: seconds - shown.timestamp() for whose, seconds in others.items()}
    differ = [f"{whose} is {abs(by):.1f} s {'ahead' if by > 0 else 'behind'}" for whose, by in ahead.items()]
    said = f"{shown:%Y-%m-%d %H:%M:%S} UTC; {', '.join(differ)}"
    if max(map(abs, ahead.values())) <= MOST_AHEAD:
        return said
    return (
        f"warning: THE CLOCKS DIFFER: {said}. Facts are dated, and end, by the clock of the database; keys, and what "
        "waits in Redis, end by that of Redis. Correct the clock that is wrong before the next pass."
    )


def _held(settings: "Settings", __: "Client") -> str:
    """Return how many facts wait for a decision, which is a warning and not a fault."""
    from workers.storage import limits

    waiting: dict[str, int] = {}
    for db in _connections(settings):
        waiting |= limits.held_by_namespace(db)
    if not waiting:
        return "no fact is held by the forget limit"
    named = ", ".join(list(waiting)[:3])
    ended, where = output.counted(sum(waiting.values()), "fact"), output.counted(len(waiting), "namespace")
    return (
        f"warning: FACTS ARE HELD: {ended} in {where} ({named}) ended but stay visible until their owners decide. "
        "`ebb held -n NAME` lists them and says how to let them go or keep them."
    )


CHECKS: dict[str, Callable[["Settings", "Client"], str]] = {
    "database": _database, "schema": _schema, "replicas": _replicas, "Redis": _redis, "workers": _workers,
    "settings": _settings, "beat": _beat, "embedder": _embedder, "reranker": _reranker,
    "LLM": _llm, "indexes": _indexes, "outbox": _outbox, "clock": _clock, "held": _held,
}  # fmt: skip
OF_DATABASE = frozenset({"database", "schema", "embedder", "indexes", "clock", "held"})
"""Checks that need PostgreSQL."""

OF_REDIS = frozenset({"settings", "embedder", "reranker", "LLM", "clock"})
"""Checks that need the Redis of every group of shards."""

NEEDED = ("database", "schema", "Redis", "workers")
"""Checks that must pass for facts to be examined."""


def _print(checks: list[dict[str, Any]], facts: dict[str, Any] | None, namespace: str | None) -> None:
    screen = output.console()
    for check in checks:
        screen.print("[green]✓[/green]" if check["ok"] else "[red]✗[/red]", f"{check['name']}:", end=" ")
        screen.print(check["says"], markup=False)
    if facts is None:
        screen.print("Facts were not examined.")
        return
    whose = "all namespaces" if namespace is None else repr(namespace)
    if not facts["faults"]:
        screen.print("[green]✓[/green]", f"facts: {facts['examined']} examined in {whose}, nothing is wrong")
        return
    mending = f"run `ebb doctor{' --all' if namespace is None else output.of(namespace)} --mend`"
    mark, done = ("[green]✓[/green]", "put right") if facts["mended"] else ("[red]✗[/red]", mending)
    for fault in facts["faults"]:
        named = f" ({fault['first'][0]} …)" if fault["first"] else ""
        screen.print(mark, f"{output.counted(fault['facts'], 'fact')}, {fault['fault']}: {fault['meaning']}{named}")
    screen.print(f"{output.counted(facts['examined'], 'fact')} examined in {whose}; {done}")
