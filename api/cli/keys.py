"""`ebb keys`: access to the HTTP API. Only a digest of a key is stored; the key itself is shown once."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli import output
from api.cli.operations import NamespaceName, on_database
from workers.errors import InvalidInputError

if TYPE_CHECKING:
    from workers.context import Context

commands = typer.Typer(name="keys", no_args_is_help=True)

Scopes = Annotated[
    list[str] | None,
    typer.Option(
        "--scope",
        help="read, write, admin (erase, decay) or system (metrics; its other scopes hold in every namespace), "
        "once or more; else read and write.",
    ),
]


@commands.callback()
def keys() -> None:
    """Manage keys for the HTTP API, each for one namespace."""


@commands.command()
def create(
    scope: Scopes = None,
    label: Annotated[str | None, typer.Option(help="Whose it is, for the list.")] = None,
    expires: Annotated[
        str | None, typer.Option(help="When it ends: in so many days, such as 90d, or an instant; else never.")
    ] = None,
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Create a key, and show it, this once. As soon as one exists, every request needs a key."""
    from workers import validation  # psycopg is slow to load
    from workers.admin import keys

    context, name = _context(home, namespace)
    keys.check_label(label)
    owner = None if label is None else validation.optional_name(label, "label")
    now = context.now()
    made = keys.create(context, name, scope or ["read", "write"], owner, now, _end(expires, now))
    if as_json:
        output.print_json({"id": str(made.id), "namespace": name, "key": made.key, "unpublished": made.unpublished})
        return
    output.console().print(made.key, markup=False)
    output.progress(f"Key {made.id} to the namespace {name!r}; it is shown only now")
    if made.unpublished:
        output.progress(f"Not everywhere yet: {made.unpublished}")


@commands.command(name="list")
def list_(namespace: NamespaceName = None, home: output.HomeFolder = None, as_json: output.Json = False) -> None:
    """List the keys of a namespace, without the keys themselves."""
    from workers.admin import keys

    context, name = _context(home, namespace)
    rows: list[dict[str, Any]] = [
        {
            "id": str(key.id),
            "namespace": key.namespace,
            "label": key.label,
            "scopes": key.scopes,
            "created_at": key.created_at.isoformat(),
            "revoked_at": key.revoked_at and key.revoked_at.isoformat(),
            "expires_at": key.expires_at and key.expires_at.isoformat(),
        }
        for key in keys.of_namespace(context, name)
    ]
    if as_json:
        output.print_json({"keys": rows})
        return
    if not rows:
        output.console().print(f"No key opens {name!r}.", markup=False)
    for row in rows:
        since = f"revoked {row['revoked_at'][:10]}" if row["revoked_at"] else f"since {row['created_at'][:10]}"
        until = f"until {row['expires_at'][:16]}Z" if row["expires_at"] and not row["revoked_at"] else ""
        label = " ".join((row["label"] or "-").split())
        output.console().print(row["id"], label, ",".join(row["scopes"]), since, until, markup=False)


@commands.command()
def revoke(
    id: Annotated[str, typer.Argument(help="The key's id, as `ebb keys list` shows it.")],
    namespace: NamespaceName = None,
    home: output.HomeFolder = None,
    as_json: output.Json = False,
) -> None:
    """Revoke a key at once."""
    from workers import validation
    from workers.admin import keys

    context, name = _context(home, namespace)
    revoked = keys.revoke(context, name, validation.fact_id(id), context.now())
    if as_json:
        output.print_json({"id": id, "action": "revoked" if revoked else "unchanged"})
    else:
        output.console().print(f"{'revoked' if revoked else 'was revoked before'}: {id}", markup=False)


def _end(given: str | None, now: datetime) -> datetime | None:
    """Return when a key expires, from a number of days or an instant."""
    from ebb.contract.values import DAYS, whole_days

    from workers import validation

    if given is None:
        return None
    if not DAYS.fullmatch(given):
        try:
            return validation.instant(given, "expires")
        except InvalidInputError as error:
            raise InvalidInputError(f"{error} Or give a number of days, such as 90d.") from None
    try:
        return now + timedelta(days=whole_days(given))
    except ValueError as error:
        raise InvalidInputError(f"expires: {given} {error}.") from None


def _context(home: Path | None, namespace: str | None) -> tuple["Context", str]:
    from workers.validation import namespace_name

    context = on_database(home)
    return context, namespace_name(context.settings.namespace if namespace is None else namespace)
