"""`ebb up`, `down` and `status`: the system of a home; `ebb worker`, `beat`, `flower`, `api`, `mcp`: one process."""

import os
import shlex
import shutil
import signal
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli import output
from api.cli.operations import NamespaceName, client, configured, located
from workers.errors import EbbError, SystemStateError

if TYPE_CHECKING:
    from api.up.home import Home, State
    from api.up.supervision import System
    from workers.settings import Settings

SAMPLE = Path(__file__).parents[1] / "sample" / "year.jsonl"
NEXT = (
    ('store "The spare key hangs behind the kitchen clock"', "remember a fact"),
    ("import {sample}", "a year of a person's life"),
    ('recall "How early does her partner get out of bed to bake?"', "ask in other words"),
    ("branch --older 365d", "a copy that is a year older"),
    ("decay -n {branch}", "what a year does to it"),
    ("stats -n {branch}", "what has faded, and how far"),
    ("down", "stop; everything is kept"),
)


def up(
    detach: Annotated[bool, typer.Option("--detach", help="Return when ready; stop with `ebb down`.")] = False,
    home: output.HomeFolder = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Processes that store and recall; else one a core, at least 2.")
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of Flower.")] = 5555,
    api_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Port of the API; else the one after Flower's, or any free one."),
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Where the API listens; else EBB_HOST. Other than loopback needs `ebb keys`.")
    ] = None,
    reembed: Annotated[
        bool, typer.Option("--reembed", help="After a change of embedder: make all vectors again.")
    ] = False,
    reindex: Annotated[
        bool, typer.Option("--reindex", help="After a change of language: rebuild the text index.")
    ] = False,
    as_json: output.Json = False,
) -> None:
    """Start servers, workers, beat, Flower and the API, and stay until Ctrl-C."""
    from api.up import starting  # Celery and psycopg are slow to load

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # ignored under nohup
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    os.umask(os.umask(0) & 0o077)  # what is made here must be open to its owner
    _set_host(host)
    settings, place = _home(home)
    _read_flower_login()
    system = starting.start(
        settings,
        place,
        children=workers or cores(),
        port=port,
        api_port=api_port,
        detached=detach,
        reembed=reembed,
        reindex=reindex,
        report=output.progress,
    )
    with output.tolerating_closed_stdout():
        if as_json:
            output.print_json(_without_passwords(_status(settings, place)))
        else:
            _print_guide(system, moved=home is not None)
    if not detach:
        _stay(system)


def _set_host(host: str | None) -> None:
    """Make the option the setting, which is checked."""
    if host:
        os.environ["EBB_HOST"] = host


def _read_flower_login() -> None:
    """Set FLOWER_BASIC_AUTH to what the file of FLOWER_BASIC_AUTH_FILE contains, if there is one."""
    from workers.settings import with_files

    os.environ.update(with_files({name: of for name, of in os.environ.items() if name.startswith("FLOWER_BASIC_AUTH")}))


def _stay(system: "System") -> None:
    """Report events until Ctrl-C, or until the system is stopped."""
    from api.up import starting, stopping, supervision

    screen = output.console(stderr=True)

    def report(name: str, text: str) -> None:
        screen.print(f"[cyan]{name:>11}[/cyan]", end=" ")
        screen.print(text, markup=False)

    try:
        supervision.watch(system, report)
    except KeyboardInterrupt:
        screen.print("\nStopping …")
        starting.stop(system)
        output.progress("Everything is stopped")
        return
    if system.process.returncode != 0:
        stopping.end_leftovers(system.home)
        raise EbbError(
            f"The supervisor ended by itself (code {system.process.returncode}); what it ran was stopped. "
            f"See {system.home.logs}, and start again with `ebb up`."
        )
    output.progress("Everything was stopped by `ebb down`")


def down(home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """Stop everything that runs at this home; all data stays."""
    from api.up import stopping

    _, place = _home(home)
    stopped = stopping.stop_home(place)
    if as_json:
        output.print_json({"home": str(place.folder), "stopped": stopped})
    elif stopped:
        output.progress(f"Stopped {', '.join(stopped)}")
    else:
        output.console().print(f"Nothing was running at {place.folder}.", markup=False)


def status(home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """Show what runs at this home and where to reach it; the exit code is 1 if nothing does, or a server is away.

    With --json, addresses include their passwords, for programs that connect to the servers.
    """
    settings, place = _home(home)
    found = _status(settings, place)
    if as_json:
        output.print_json(found)
    elif not found["processes"]:
        output.console().print(f"Ebb is not running at {place.folder}. Start it with `{_ebb()} up`.", markup=False)
    else:
        _show_status(found)
    if not found["processes"] or found["faults"]:
        raise typer.Exit(1)


def _show_status(found: dict[str, Any]) -> None:
    output.print_table(("process", "pid", "state"), [tuple(each.values()) for each in found["processes"]])
    output.console().print()
    shown = _without_passwords(found)
    for name in ("home", "database_url", "redis_url", "flower_url", "api_url"):
        output.console().print(f"{name:<13} {shown[name]}", markup=False)
    if found["flower_password"]:
        output.console().print(f"{'flower_login':<13} {_with_login(found)}", markup=False)
    for fault in found["faults"]:
        output.console(stderr=True).print(f"[red]✗[/red] {output.escape_markup(fault)}")


def _status(settings: "Settings", home: "Home") -> dict[str, Any]:
    """Return the output of `status --json`; unknown URLs are null."""
    from dataclasses import asdict

    from api.up.home import FLOWER_USER
    from api.up.supervision import Supervisor

    state = home.running()
    processes = Supervisor(home.control).processes() if state else []
    known = {"database_url": settings.database_url, "redis_url": settings.redis_url}
    if state:
        known = asdict(state) | {"flower_user": FLOWER_USER}
    names = ("database_url", "redis_url", "flower_url", "flower_user", "flower_password", "api_url")
    return {
        "home": str(home.folder),
        **{name: known.get(name) or None for name in names},
        "processes": [asdict(process) for process in processes],
        "faults": _faults(home, state, {process.name for process in processes}) if state else [],
    }


def _faults(home: "Home", state: "State", programs: Collection[str]) -> list[str]:
    """Return a message for each server that does not answer: why, and what to do."""
    from api.up import servers

    asked = (
        ("PostgreSQL", "postgres", servers.postgres_fault(state.database_url), "EBB_DATABASE_URL"),
        ("Redis", "redis", servers.redis_fault(state.redis_url), "EBB_REDIS_URL"),
    )
    return [
        f"{server} does not answer: {' '.join(fault.split()).rstrip('.')}. "
        + (
            f"If it does not come back by itself, see {home.logs}/{name}.log, then `ebb down` and `ebb up`."
            if name in programs
            else f"Start it, or give another one by {setting}, then `ebb down` and `ebb up`."
        )
        for server, name, fault, setting in asked
        if fault is not None
    ]


def _without_passwords(found: dict[str, Any]) -> dict[str, Any]:
    """Return a status for the terminal and for logs, to which a supervisor may send what `ebb up` prints."""
    masked = {name: output.without_password(found[name]) for name in ("database_url", "redis_url") if found[name]}
    return found | masked | ({"flower_password": output.MASK} if found["flower_password"] else {})


def _with_login(found: dict[str, Any]) -> str:
    """Return Flower's URL with user and password, which a browser opens without asking."""
    scheme, _, rest = found["flower_url"].partition("://")
    return f"{scheme}://{found['flower_user']}:{found['flower_password']}@{rest}"


def _home(folder: Path | None) -> tuple["Settings", "Home"]:
    from api.up.home import Home

    settings = configured(folder)
    return settings, Home(settings.home)


def _print_guide(system: "System", *, moved: bool) -> None:
    """Print the addresses, and the next commands as they can be typed here."""
    screen = output.console()
    places = {
        "PostgreSQL": output.without_password(system.state.database_url),
        "Redis": output.without_password(system.state.redis_url),
        "Flower": f"{system.state.flower_url}  (user and password: `{_ebb()} status`)",
        "API": system.state.api_url,
        "Logs": system.home.logs,
    }
    screen.print(f"\n[bold]Ebb is up[/bold] at {output.escape_markup(str(system.home.folder))}\n")
    for name, place in places.items():
        screen.print(f"  [dim]{name:<11}[/dim] {output.escape_markup(str(place))}")
    screen.print("\n[bold]Next[/bold]\n")
    if moved:
        screen.print(f"  export EBB_HOME={shlex.quote(str(system.home.folder))}", markup=False)
    values = {"sample": _from_here(SAMPLE), "branch": f"{_home(None)[0].namespace}-older-365d"}
    commands = [(f"{_ebb()} {line.format(**values)}", meaning) for line, meaning in NEXT]
    width = max(len(line) for line, _ in commands)
    for line, meaning in commands:
        screen.print(f"  [cyan]{line:<{width}}[/cyan]  [dim]{meaning}[/dim]")
    screen.print()


def _ebb() -> str:
    """Return this command as the user can type it: `ebb` if it is on the PATH, else its path."""
    this = Path(sys.argv[0]).absolute()
    found = shutil.which("ebb")
    if this.name != "ebb" or (found is not None and Path(found).absolute() == this):
        return "ebb"
    return _from_here(this)


def _from_here(path: Path) -> str:
    """Return a path relative to the current folder if it is below, else in full."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it was removed
        return str(path)
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def worker(
    queues: Annotated[
        str, typer.Option(help="Which queues, with commas: `recall`, `store`, `maintenance`.")
    ] = "recall,store",
    concurrency: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Child processes; else one a core, at least 2.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The worker's name on this machine; else one of its own.")] = None,
    home: output.HomeFolder = None,
) -> None:
    """Start another worker, for the servers of EBB_DATABASE_URL and EBB_REDIS_URL or of the running home."""
    from api.up import processes

    worker = processes.worker(_queues(queues), concurrency or cores(), name or f"worker-{os.getpid()}")
    worker.replace_this(located(home))


def _queues(given: str) -> str:
    """Return the queues of a worker; Celery answers an unknown name with a traceback."""
    from ebb.contract.faults import show  # Pydantic and kombu are slow to load

    from workers.queues import QUEUES

    names = [name.strip() for name in given.split(",")]
    for name in names:
        if name not in QUEUES:
            said = f"{show(name)} is no queue; give some of {', '.join(QUEUES)}, with commas between."
            raise typer.BadParameter(said, param_hint="--queues")
    return ",".join(names)


def beat(
    schedule: Annotated[
        Path | None, typer.Option(help="File that records when tasks were sent; else `beat/schedule` at the home.")
    ] = None,
    home: output.HomeFolder = None,
) -> None:
    """Start beat, which sends scheduled tasks; run exactly one per system."""
    from api.up import processes
    from api.up.home import Home
    from workers.storage import schema

    settings = located(home)
    schema.verify_at(settings.database_url, settings.shards)
    file = schedule or Home(settings.home).beat / "schedule"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SystemStateError(
            f"The folder {file.parent} cannot be made: {error.strerror}. Give another file with --schedule."
        ) from None
    processes.beat(file).replace_this(settings)


def flower(
    address: Annotated[str, typer.Option(help="Where it listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="At which port.")] = 5555,
    home: output.HomeFolder = None,
) -> None:
    """Start Flower, which shows workers and tasks; FLOWER_BASIC_AUTH=user:password protects it.

    FLOWER_BASIC_AUTH_FILE may name a file that contains this.
    """
    from api.up import processes

    settings = configured(home)  # Flower only needs Redis
    _read_flower_login()
    _refuse_taken(address, port)
    processes.flower(address, port).replace_this(settings if settings.redis_url else located(home))


def _refuse_taken(host: str, port: int) -> None:
    """Refuse an address where another program listens."""
    from api.up.processes import port_is_free

    if not port_is_free(port, host):
        raise SystemStateError(f"Port {port} at {host} is in use: choose another with --port.")


def api(
    host: Annotated[str | None, typer.Option(help="Where it listens; else EBB_HOST.")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="At which port; else EBB_PORT.")] = None,
    home: output.HomeFolder = None,
) -> None:
    """Start the HTTP API, with the dashboard and MCP."""
    from api.up import processes

    _set_host(host)
    settings = located(home)
    address = (settings.host, port or settings.port)
    _refuse_taken(*address)
    processes.api(*address).replace_this(settings)


def mcp(namespace: NamespaceName = None, home: output.HomeFolder = None) -> None:
    """Serve memory to an agent over MCP on stdin and stdout; the system must be up."""
    from api.mcp.server import serve_stdio  # the SDK is slow to load
    from api.mcp.tools import Opened

    with client(home, namespace) as memory:
        serve_stdio(lambda _request, _scope: Opened(memory))


def cores() -> int:
    """Return the number of child processes for this machine; at least two, so that a long task blocks no other."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(2, usable)
