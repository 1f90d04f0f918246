"""`ebb up`, `ebb down` and `ebb status`: start, stop and show the system of a home."""

import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import api
from api.cli import output
from api.cli.processes import cores
from workers.errors import EbbError

if TYPE_CHECKING:
    from api.up.home import Home
    from api.up.starting import System
    from workers.settings import Settings

SAMPLE = Path(api.__file__).parent / "sample" / "year.jsonl"
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
        int | None,
        typer.Option(min=1, max=1024, help="Processes that store and recall; else one a core, at least 2."),
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of Flower.")] = 5555,
    api_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port of the API; else that behind Flower's, or any free one.")
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
    from api.up import starting  # noqa: PLC0415  Celery and psycopg are slow to load

    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    settings, place = _home(home)
    if host is not None:
        settings = settings.model_copy(update={"host": host})
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
            output.print_json(_status(settings, place))
        else:
            _print_guide(system, moved=home is not None)
    if not detach:
        _stay(system)


def _stay(system: "System") -> None:
    """Report events until Ctrl-C, or until the system is stopped."""
    from api.up import (  # noqa: PLC0415
        starting,
        stopping,
        watching,
    )

    screen = output.console(stderr=True)

    def report(name: str, text: str) -> None:
        screen.print(f"[cyan]{name:>11}[/cyan]", end=" ")
        screen.print(text, markup=False)

    try:
        watching.watch(system, report)
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
    from api.up import stopping  # noqa: PLC0415

    _, place = _home(home)
    stopped = stopping.stop_home(place)
    if as_json:
        output.print_json({"home": str(place.folder), "stopped": stopped})
    elif stopped:
        output.progress(f"Stopped {', '.join(stopped)}")
    else:
        output.console().print(f"Nothing was running at {place.folder}.", markup=False)


def status(home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """Show what runs at this home and where to reach it."""
    settings, place = _home(home)
    found = _status(settings, place)
    if as_json:
        output.print_json(found)
        return
    if not found["processes"]:
        output.console().print(f"Ebb is not running at {place.folder}. Start it with `{_ebb()} up`.", markup=False)
        return
    output.print_table(("process", "pid", "state"), [tuple(each.values()) for each in found["processes"]])
    output.console().print()
    for name in ("home", "database_url", "redis_url", "flower_url", "api_url"):
        output.console().print(f"{name:<13} {output.without_password(found[name])}", markup=False)
    if found["flower_password"]:
        output.console().print(f"{'flower_login':<13} {_with_login(found)}", markup=False)


def _status(settings: "Settings", home: "Home") -> dict[str, Any]:
    """Return the output of `status --json`; unknown URLs are null."""
    from dataclasses import asdict  # noqa: PLC0415

    from api.up.home import FLOWER_USER  # noqa: PLC0415
    from api.up.supervision import Supervisor  # noqa: PLC0415

    state = home.running()
    processes = Supervisor(home.control).processes() if state else []
    return {
        "home": str(home.folder),
        "database_url": state.database_url if state else settings.database_url or None,
        "redis_url": state.redis_url if state else settings.redis_url or None,
        "flower_url": state.flower_url if state else None,
        "flower_user": FLOWER_USER if state else None,
        "flower_password": state.flower_password if state else None,
        "api_url": (state.api_url if state else None) or None,
        "processes": [asdict(process) for process in processes],
    }


def _with_login(found: dict[str, Any]) -> str:
    """Return Flower's URL with user and password, which a browser opens without asking."""
    scheme, _, rest = found["flower_url"].partition("://")
    return f"{scheme}://{found['flower_user']}:{found['flower_password']}@{rest}"


def _home(folder: Path | None) -> tuple["Settings", "Home"]:
    from api.up.home import Home  # noqa: PLC0415
    from workers.settings import Settings  # noqa: PLC0415

    settings = Settings.from_environment()
    if folder is not None:
        settings = settings.model_copy(update={"home": folder})
    return settings, Home.at(settings.home)


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
        screen.print(f"  export EBB_HOME={system.home.folder}", markup=False)
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
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


COMMANDS: dict[str, Callable[..., None]] = {"up": up, "down": down, "status": status}
