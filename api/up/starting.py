"""Start a system: servers, schema, workers, beat, Flower and API, each after the previous one is ready."""

import http.client
import math
import os
import secrets
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from ebb.broker import celery_configuration
from kombu.exceptions import OperationalError
from redis import RedisError

from api.client import Client
from api.up import processes, redis_programs, servers, stopping, supervision
from api.up.home import FLOWER_USER, KNOWN_HOME_MIB, NEW_HOME_MIB, Home, State, explain_full, refuse_full
from api.up.supervision import System
from workers.coordination.transport import App
from workers.errors import SystemStateError, UnavailableError
from workers.settings import FILE, PREFIX, Settings
from workers.storage import schema

DATABASE = "ebb"
READY_SECONDS = 120.0
PAUSE_SECONDS = 0.1
"""Between two looks, each of which asks the supervisor: with half of it, looking took as long as a worker's start."""
LAST_PORT = 65_535
FAILED = ("backoff", "exited", "fatal")

Report = Callable[[str], None]


def start(
    settings: Settings,
    home: Home,
    *,
    children: int,
    port: int,
    api_port: int | None,
    detached: bool,
    reembed: bool,
    reindex: bool,
    report: Report,
) -> System:
    """Start everything at this home, and return when it is ready; after any failure, stop it again.

    With `reembed`, vectors of another embedder than the configured one are dropped and rebuilt by the workers; with
    `reindex`, words are stemmed again in the configured language before they are read.

    Raises:
        SystemStateError: the home is running or cannot be used, or the port is in use.
        UnavailableError: a server or a worker does not start; the message contains its output.
    """
    home.prepare()
    with home.usable(), home.locked():
        _refuse(settings, home, port, api_port)
        if ended := stopping.end_leftovers(home):
            report(f"Ended what an earlier run had left behind: {', '.join(ended)}")
        own_port = api_port or _port_after(port)
        embedded, database_url, redis_url = _servers(settings, home, report)
        state = State(
            database_url, redis_url, f"http://127.0.0.1:{port}", _api_url(settings.host, own_port), _password(home)
        )
        api = supervision.api(settings.host, own_port, settings.flower_url or state.flower_url)
        own = [*supervision.own(home, children=children, port=port), api]
        system = _supervised(home, state, [*embedded, *own], detached=detached)
        try:
            _start_servers(system, [program.name for program in embedded], settings, report)
            located = settings.model_copy(update={"database_url": database_url, "redis_url": redis_url})
            if reindex:
                report(f"The words of all facts are stemmed again as {settings.language}: minutes where facts are many")
                report(f"Facts whose words are stemmed as {settings.language} now: {_reindex(located)}")
            if reembed:
                report("The vectors of all facts are dropped: minutes where facts are many")
                waiting = _drop_vectors(located)
                report(f"Facts that wait for new vectors, found by their words meanwhile: {waiting}")
            _start_workers(system, report, reembed=reembed)
        except BaseException:
            stop(system)
            report("Stopped again what had started")
            raise
        return replace(system, ready=system.supervisor.processes())


def _refuse(settings: Settings, home: Home, port: int, api_port: int | None) -> None:
    """Refuse to start if the home is running, its disk is full, or a port is in use or given twice."""
    if (running := stopping.supervisor_of(home)) is not None:
        if supervision.Supervisor(home.control).is_stopping():
            raise SystemStateError(f"Ebb is stopping at {home.folder} (pid {running.pid}): try again in a few seconds.")
        raise SystemStateError(
            f"Ebb is running already at {home.folder} (pid {running.pid}): "
            "see it with `ebb status`, stop it with `ebb down`."
        )
    new = not settings.database_url and not home.postgres.exists()
    refuse_full(home.folder, NEW_HOME_MIB if new else KNOWN_HOME_MIB)
    if port == api_port:
        raise SystemStateError(f"Flower and the API cannot both listen on port {port}: choose another with --api-port.")
    for used, who, option in ((port, "Flower", "--port"), (api_port, "the API", "--api-port")):
        if used is not None and not processes.port_is_free(used):
            raise SystemStateError(
                f"Port {used}, which {who} would listen on, is in use: choose another with {option}, "
                "or stop the program that listens there."
            )


def _supervised(home: Home, state: State, every: Sequence[supervision.Program], *, detached: bool) -> System:
    """Start the supervisor; its programs are started later."""
    supervision.configure(home, every)
    home.write_state(state)
    sizes = {log.stem: _size_of_writable(log) for log in home.logs.glob("*.log")}
    process = supervision.spawn(home, _environment(home, state), detached=detached)
    return System(home, state, process, supervision.Supervisor(home.control), sizes)


def _size_of_writable(log: Path) -> int:
    with log.open("ab") as file:
        return file.tell()


def stop(system: System) -> None:
    """Stop everything and wait until it has ended, which takes a limited time; further signals are ignored."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        system.process.terminate()
        system.process.wait()
        stopping.end_leftovers(system.home)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _port_after(port: int) -> int:
    """Return the next port if it is free, else any free one; `ebb status` shows it."""
    return port + 1 if port < LAST_PORT and processes.port_is_free(port + 1) else servers.free_port()


def _api_url(host: str, port: int) -> str:
    """Return the URL of the API for programs on this machine."""
    here = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104  compared, not bound to
    return f"http://[{here}]:{port}" if ":" in here else f"http://{here}:{port}"


def _servers(settings: Settings, home: Home, report: Report) -> tuple[list[supervision.Program], str, str]:
    """Prepare the servers without a configured URL; return their programs, and the URLs of PostgreSQL and Redis."""
    embedded = []
    database_url, redis_url = settings.database_url, settings.redis_url
    if not database_url:
        postgres = servers.Postgres(data=home.postgres, sockets=home.run / "postgres")
        servers.prepare_postgres(postgres, report)
        fast_shutdown = signal.SIGINT
        embedded.append(supervision.Program("postgres", postgres.command(), fast_shutdown, stop_seconds=60))
        database_url = postgres.url(DATABASE)
    if not redis_url:
        redis = servers.Redis(data=home.redis, port=_redis_port(home), fsync=settings.redis_fsync)
        servers.prepare_redis(redis)
        embedded.append(supervision.Program("redis", redis.command(), stop_seconds=30))
        redis_url = redis.url()
    return embedded, database_url, redis_url


def _redis_port(home: Home) -> int:
    """Return the port of the last run if it is free, so that known URLs stay valid; else any free one.

    The last run may have used another Redis than Ebb's own, such as one of Sentinels.
    """
    last = home.last_state()
    own = None if last is None else servers.OWN_REDIS.fullmatch(last.redis_url)
    return int(own[1]) if own and processes.port_is_free(int(own[1])) else servers.free_port()


def _password(home: Home) -> str:
    """Return Flower's password of the last run, so that browsers stay signed in; else a new one."""
    last = home.last_state()
    return (last.flower_password if last is not None else "") or secrets.token_urlsafe(24)


def _environment(home: Home, state: State) -> dict[str, str]:
    logins = [f"{FLOWER_USER}:{state.flower_password}", os.environ.get("FLOWER_BASIC_AUTH")]
    files = {
        name: path for name, path in os.environ.items() if name.startswith(PREFIX) and name.endswith(FILE) and path
    }
    return os.environ | {
        **{name: os.path.abspath(path) for name, path in files.items()},  # noqa: PTH100  processes run in the home
        **processes.WARNS_ONLY,
        "EBB_HOME": str(home.folder),
        "EBB_DATABASE_URL": state.database_url,
        "EBB_REDIS_URL": state.redis_url,
        # In the environment, since other users can read arguments; the operator's own logins stay valid.
        "FLOWER_BASIC_AUTH": ",".join(filter(None, logins)),
    }


def _start_servers(system: System, embedded: Sequence[str], settings: Settings, report: Report) -> None:
    _wait(system, (), lambda: system.home.running() is not None)
    for name in embedded:
        system.supervisor.start(name)
    _wait_for_database(system, report, own="postgres" in embedded)
    report("PostgreSQL is ready")
    _wait_for_redis(system, own="redis" in embedded)
    own_redis = f": {redis_programs.choose(system.home.redis)}" if "redis" in embedded else ""
    report(f"Redis is ready{own_redis}")
    database_url = settings.direct_database_url or system.state.database_url
    schema.verify_direct(system.state.database_url, database_url)
    schema.apply(database_url, report, settings.shards)
    report(f"The schema has {schema.described(schema.version_of(database_url))}")


def _start_workers(system: System, report: Report, *, reembed: bool) -> None:
    for name in supervision.OWN:
        if name != "api":
            system.supervisor.start(name)
    _wait(system, supervision.OWN, lambda: workers_answer(system.state.redis_url))
    report("The workers answer")
    report(_embedder(system.state))
    system.supervisor.start("api")  # which loads the keys through the workers
    if reembed:
        with closing(Client(system.state.redis_url)) as client:
            client.send("memory.embed_pending", {})
    _wait_for_answer(system, system.state.flower_url, "/healthcheck")
    report("Flower answers")
    _wait_for_answer(system, system.state.api_url, "/health/live")
    report("The API answers")
    _wait(system, supervision.OWN, lambda: all(one.state == "running" for one in system.supervisor.processes()))


def _embedder(state: State) -> str:
    """Return a message with the database's embedder and what it can compare."""
    from workers.embedding import ability
    from workers.storage import vectors
    from workers.storage.connection import connect

    with connect(state.database_url) as db:
        stored = vectors.embedder(db)
    return f"The embedder {stored.name} {ability(stored.name)}" if stored else "The embedder does not answer yet"


def _drop_vectors(settings: Settings) -> int:
    """Make the configured embedder the database's; return how many facts wait for its vectors."""
    from workers.context import Context
    from workers.memory import embed  # numpy is slow to load

    return embed.reset(Context(settings))


def _reindex(settings: Settings) -> int:
    """Rebuild the words of all facts in the configured language; return the number of facts."""
    from workers.admin.search_indexes import reindex
    from workers.context import Context

    context = Context(settings)
    return reindex(context, context.now())


def _wait_for_database(system: System, report: Report, *, own: bool) -> None:
    url = system.state.database_url
    if own:
        server = servers.Postgres(data=system.home.postgres, sockets=system.home.run / "postgres")
        seconds = READY_SECONDS
        if (server.data / "recovery.signal").exists():
            report("PostgreSQL recovers from its archive, which may take hours")
            seconds = math.inf
        fault = partial(servers.postgres_fault, server.url("postgres"))
        _wait(system, ("postgres",), lambda: _has_recovered(server), seconds, fault)
        servers.ensure_database(server, DATABASE)
    elif (cause := servers.postgres_fault(url)) is not None:
        raise UnavailableError(f"The PostgreSQL of EBB_DATABASE_URL cannot be used: {cause}")


def _has_recovered(server: servers.Postgres) -> bool:
    return servers.postgres_fault(server.url("postgres")) is None and not servers.is_recovering(server)


def _wait_for_redis(system: System, *, own: bool) -> None:
    url = system.state.redis_url
    if own:
        fault = partial(servers.redis_fault, url)
        _wait(system, ("redis",), lambda: fault() is None, fault=fault)
    elif (cause := servers.redis_fault(url)) is not None:
        raise UnavailableError(f"The Redis of EBB_REDIS_URL cannot be used: {cause}")


def _wait_for_answer(system: System, url: str, path: str, seconds: float = READY_SECONDS) -> None:
    fault = f"{url}{path} does not answer"
    _wait(system, supervision.OWN, lambda: answers(url, path), seconds, lambda: fault)


def _wait(
    system: System,
    names: Sequence[str],
    ready: Callable[[], bool],
    seconds: float = READY_SECONDS,
    fault: Callable[[], str | None] = lambda: None,
) -> None:
    """Wait until `ready`; raise if a program fails meanwhile, or after `seconds`, with the reason from `fault`."""
    deadline = time.monotonic() + seconds
    while not ready():
        check_running(system, names)
        if time.monotonic() > deadline:
            said = f" ({cause})" if (cause := fault()) else ""  # no log knows of a PGSERVICE
            raise UnavailableError(
                f"{', '.join(names)}: no answer in {seconds:.0f} s{said}. See the logs in {system.home.logs}."
            )
        time.sleep(PAUSE_SECONDS)


def check_running(system: System, names: Sequence[str]) -> None:
    """Raise if the supervisor has ended, or one of the programs has failed."""
    if system.process.poll() is not None:
        said = (system.home.logs / "supervisord.out").read_text(errors="replace").strip()
        raise UnavailableError(f"The supervisor ended. {said or f'See {system.home.logs}/supervisord.log.'}")
    for process in system.supervisor.processes() if names else ():
        if process.name in names and (process.state in FAILED or system.restarted(process)):
            said = system.said(process.name)
            advice = redis_programs.explain(said) or explain_full(said, system.home.folder)
            raise UnavailableError(f"{process.name} does not start. {advice or f'It said: {said}'}")


def workers_answer(redis_url: str) -> bool:
    """Return whether both workers of this machine answer a ping; they do not while Redis is away."""
    nodes = [processes.node(name) for name in supervision.WORKERS]
    with closing(App(set_as_current=False)) as app:
        app.conf.update(celery_configuration(redis_url))
        app.conf.broker_transport_options |= {"max_retries": 1, "interval_start": 0}  # the caller asks again
        try:
            return len(app.control.ping(destination=nodes, timeout=1.0)) == len(nodes)
        except (RedisError, OperationalError):
            return False


def answers(url: str, path: str) -> bool:
    """Return whether a server answers over HTTP."""
    address = urlsplit(url)
    with closing(http.client.HTTPConnection(address.hostname or "", address.port, timeout=2)) as connection:
        try:
            connection.request("GET", path)
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
