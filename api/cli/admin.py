"""`ebb purge`, `branch`, `settings`, `reembed`, `reindex`, `migrate` and `shards`: administration."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ebb.contract.admin import BRANCH, BRANCHES, DROP_BRANCH, SETTINGS
from ebb.contract.decay import PURGE
from ebb.contract.faults import show
from ebb.contract.reports import STATS
from ebb.contract.values import parsed

from api.cli import output
from api.cli.operations import (
    Call,
    Everywhere,
    NamespaceName,
    Yes,
    client,
    command_of,
    configured,
    located,
    on_database,
    refuse_both,
)

if TYPE_CHECKING:
    from api.client import Client
    from workers.context import Context

WAITS_FOR_WORKERS = 20.0
MARK = "set for this namespace"
PURGING = {
    "now": "With --dry-run any instant, such as a year from now.",
    "dry_run": "Only say how much would be erased.",
}

Scrub = Annotated[
    bool, typer.Option("--scrub", help="Also rewrite the servers' files without it; others wait meanwhile.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="PATH=VALUE: hygiene.confidenceDecay.halfLife=60, hygiene.episodicTTL=false …"),
]
Unset = Annotated[list[str] | None, typer.Option("--unset", help="PATH to remove, so that the server's value counts.")]


@command_of(PURGE, also=("now",), own={"scrub": (Scrub, False), "yes": (Yes, False)}, words=PURGING)
def purge(call: Call) -> None:
    """Erase facts forgotten more than EBB_RETENTION_DAYS ago, in one namespace or with --all in every one.

    It shows the number of facts and asks; without a terminal it requires --yes. Workers do this once a day. Within an
    hour they also clean pages and indexes; the bytes are overwritten as space is reused, or at once with --scrub.
    """
    dry_run, scrub = call.given["dry_run"], call.own["scrub"] and not call.given["dry_run"]
    done = call.perform(dry_run=True)
    if not dry_run:
        output.confirm(output.ERASE, done["left"], yes=call.own["yes"], as_json=call.as_json)
        done = _erase(call)
    left = _scrub(call.home) if scrub else []
    done |= {"scrubbed": scrub, "out_of_reach": left}
    if call.as_json:
        output.print_json(done)
        return
    count, would = (done["left"], "would be ") if dry_run else (done["purged"], "")
    before = [
        f"{what} before {at}" for what in ("forgotten", "superseded", "ended") if (at := done.get(f"{what}_before"))
    ]
    output.console().print(f"{output.counted(count, 'fact')} {would}erased that were {', or '.join(before)}")
    if not count and not done["sunk"]:
        call.say_if_unknown()
    if done["sunk"]:
        output.console().print(f"moved to deep memory: {output.counted(done['sunk'], 'fact')} that decay ended")
    for one in left:
        output.console().print(f"not reached: {one}", markup=False)


def _erase(call: Call) -> dict[str, Any]:
    """Purge until nothing is left; return the last answer with the total number of erased facts."""
    with output.spinner("what was forgotten long ago is erased …"):
        done = call.perform()
        while done["left"] and (more := call.perform())["purged"]:
            done = more | {name: (done[name] or 0) + (more[name] or 0) for name in ("purged", "sunk")}
    return done


def _scrub(home: Path | None) -> list[str]:
    """Rewrite the servers' files; return those that were not reached."""
    from workers.admin import purge as scrubbing  # psycopg is slow to load

    context = on_database(home)
    with output.spinner("tables and logs are rewritten …"):
        return scrubbing.scrub(context, context.now())


def branch(
    name: Annotated[str | None, typer.Argument(help="Which namespace; -n names it as well.", metavar="NAME")] = None,
    older: Annotated[str | None, typer.Option(help="By how many days its instants are older, such as 365d.")] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Erase its branches, or the one of that age.")] = False,
    show: Annotated[bool, typer.Option("--list", help="Show its branches.")] = False,
    yes: Yes = False,
    everywhere: Everywhere = False,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Copy a namespace as NAME-older-365d with every instant that much earlier; decay it to see a year's effect."""
    if show == (drop or older is not None) or (everywhere and not show):
        raise typer.BadParameter("give --older, or --drop, or --list; --all goes with --list alone")
    if None not in (name, namespace):
        raise typer.BadParameter("give the namespace once: as NAME, or with -n")
    namespace = name if namespace is None else namespace
    refuse_both(everywhere, namespace)
    with client(home, namespace) as memory:
        if show:
            answer = memory.perform(BRANCHES, {"everywhere": everywhere})
        elif drop:
            output.confirm(output.ERASE, _facts_to_drop(memory, older), yes=yes, as_json=as_json)
            answer = memory.perform(DROP_BRANCH, {"older": older})
        else:
            with output.spinner("every fact is copied …"):
                answer = memory.perform(BRANCH, {"older": older})
    if as_json:
        output.print_json(answer)
    elif show:
        _list(answer)
    elif drop:
        output.console().print(f"[yellow]dropped[/yellow] {', '.join(answer['dropped'])}")
    else:
        facts = output.counted(answer["facts"], "fact")
        output.console().print(f"[green]{answer['action']}[/green] {answer['branch']} with {facts}")
        if answer["action"] == "unchanged":
            again = f"ebb branch --drop --older {older}{output.of(memory.namespace)}"
            output.progress(f"It was there already; for a copy of the facts as they are now, drop it first: {again}")
        output.progress(f"Next: ebb decay -n {answer['branch']}, then: ebb stats -n {answer['branch']}")


def _facts_to_drop(memory: "Client", older: str | None) -> int:
    """Return the number of facts, also forgotten ones, of a branch, or of the branches of one age or all."""
    own = memory.perform(STATS, {})
    if own["branch_of"] is not None and older is None:
        return int(own["facts"] + own["forgotten"])
    days = older and older.removesuffix("d").lstrip("0")
    listed = memory.perform(BRANCHES, {"everywhere": False})["branches"]
    return sum(one["facts"] + one.get("forgotten", 0) for one in listed if days in (None, str(one["days"])))


def _list(found: dict[str, Any]) -> None:
    if not found["branches"]:
        output.console().print("There is no branch.")
        return
    columns = ("branch", "of", "days", "facts", "forgotten")
    rows = [
        [*(one.get(name, "") for name in columns), "" if one["complete"] else "incomplete"] for one in found["branches"]
    ]
    output.print_table([*columns, ""], rows)


@command_of(SETTINGS, own={"set": (Set, None), "unset": (Unset, None)})
def settings(call: Call) -> None:
    """Show or set how a namespace's facts fade and its episodes age; applied to all facts from the next pass on."""
    given = dict(_assignment(one) for one in call.own["set"] or [])
    answer = call.perform(set=given, unset=call.own["unset"] or [])
    if call.as_json:
        output.print_json(answer)
        return
    own = dict(_leaves(answer["own"]))
    rows = [[path, _plain(value), MARK if path in own else ""] for path, value in _leaves(answer["settings"])]
    rows += [[name, _plain(value), ""] for name, value in (answer.get("limits") or {}).items()]
    output.print_table(["setting", "value", ""], rows)


def _assignment(given: str) -> tuple[str, Any]:
    """Return path and value of `path=value`; a value that is not JSON is a string."""
    path, sign, value = given.partition("=")
    if not sign or not path.strip():
        raise typer.BadParameter(f"{show(given)} is no PATH=VALUE.", param_hint="--set")
    return path.strip(), parsed(value)


def _leaves(settings: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{above}{name}.")
        else:
            yield above + name, value


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def reembed(home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """Recompute all vectors of all namespaces with the configured embedder; meanwhile facts are found by words.

    A database has one embedder, so this is not possible for a single namespace.
    """
    from api.client import Client  # Celery is slow to load
    from workers.memory import embed

    context = on_database(home)
    with output.bar("facts") as show:
        total = embed.reset(context)
        for url in context.settings.broker_urls:  # workers embed the shards of their own group
            with Client(url) as group:
                group.send("memory.embed_pending", {})
        waiting, fewest, changed = total, total, time.monotonic()
        while waiting and time.monotonic() - changed < WAITS_FOR_WORKERS:
            time.sleep(0.2)
            waiting = embed.waiting(context)
            if waiting < fewest:  # workers with another embedder add facts that wait too
                fewest, changed = waiting, time.monotonic()
            show(total - fewest, total - fewest, total)
    embedder, embedded = context.embedder.name, total - fewest
    if as_json:
        output.print_json({"facts": total, "embedded": embedded, "waiting": waiting, "embedder": embedder})
        return
    output.console().print(f"{embedded} of {output.counted(total, 'fact')} embedded with {embedder}")
    if waiting:
        output.console().print(
            "The rest is embedded by workers that run with this embedder, within two minutes also where one has just "
            "ended: restart those that do not, and see the log of the others. `ebb stats` counts how many facts wait."
        )


def reindex(home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """Rebuild the text index of all namespaces in the language EBB_LANGUAGE; workers wait meanwhile."""
    from workers.admin.search_indexes import reindex as reindexing

    context = on_database(home)
    language = context.settings.language
    with output.bar("namespaces") as show:
        facts = reindexing(context, context.now(), lambda done, total: show(done, done, total))
    if as_json:
        output.print_json({"facts": facts, "language": language})
    else:
        output.console().print(f"the words of {output.counted(facts, 'fact')} are stemmed as {language}")
        output.console().print(f"Workers go on; they start again only with EBB_LANGUAGE={language}.")


def migrate(home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """Migrate the database to this version's schema, keeping every fact; `ebb up` does this automatically.

    Workers of the previous version may continue meanwhile. An interrupted migration continues when it is run again.
    """
    from workers.storage import schema  # psycopg is slow to load

    given = configured(home)
    url = given.direct_database_url or given.database_url or located(home).database_url
    if given.database_url:
        schema.verify_direct(given.database_url, url)
    done = schema.apply(url, output.progress, given.shards)
    had = schema.version_of(url)
    if as_json:
        output.print_json({"schema_version": had, "migrations": done})
    else:
        ran = f"{output.counted(len(done), 'migration')} ran" if done else "no migration was left to run"
        output.progress(f"The schema has {schema.described(had)}; {ran}")


moves = typer.Typer(name="shards", no_args_is_help=True)


@moves.callback()
def shards() -> None:
    """List shards, add one, and move namespaces between them."""


@moves.command(name="list")
def list_(home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """List the shards with their schemas, numbers of namespaces and facts, and sizes."""
    from workers.admin import shard_moves  # psycopg is slow to load

    found = [one.model_dump(by_alias=True) for one in shard_moves.listed(on_database(home))]
    if as_json:
        output.print_json({"shards": found})
    else:
        output.print_table(list(found[0]), [list(one.values()) for one in found])


@moves.command()
def add(home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """Create the next shard. Then raise EBB_SHARDS in every process, and new namespaces use it too."""
    from workers.admin import shard_moves

    context = _context(home)
    number = shard_moves.add(context, output.progress)
    groups = len(context.settings.broker_urls)
    if as_json:
        output.print_json({"shard": number})
    elif missing := -(number + 1) % groups:
        more = f"run this for {output.counted(missing, 'more group')}, then raise EBB_SHARDS"
        output.console().print(f"Shard {number} is there: {more}, which is a multiple of the {groups} in EBB_BROKERS.")
    else:
        output.console().print(f"Shard {number} is there: restart every process with EBB_SHARDS={number + 1}.")


@moves.command()
def move(
    namespace: Annotated[str, typer.Argument(help="Which namespace.", metavar="NAMESPACE")],
    shard: Annotated[int, typer.Argument(help="Where to, as `ebb shards list` numbers them.", metavar="SHARD")],
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Move a namespace to another shard while it is in use; an interrupted move has moved everything or nothing."""
    from workers.admin import shard_moves
    from workers.validation import namespace_name

    with output.spinner("rows are copied …"):
        done = shard_moves.move(_context(home), namespace_name(namespace), shard)
    if as_json:
        output.print_json(done.model_dump(mode="json"))
    elif done.old == done.new:
        output.console().print(f"{done.namespace} is on shard {done.new} already", markup=False)
    else:
        said = f"{done.namespace}: {output.counted(done.rows, 'row')} moved from shard {done.old} to {done.new}"
        output.console().print(f"{said}; writes waited {done.held_ms:.0f} ms", markup=False)


def _context(home: Path | None) -> "Context":
    from workers.context import Context  # psycopg is slow to load
    from workers.storage import schema

    settings = located(home)
    schema.verify_direct(settings.database_url, settings.direct_database_url)
    return Context(settings)
