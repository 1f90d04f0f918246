"""Access of commands to the running system: settings, servers, and a client for one namespace."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from api.client import Client
    from api.transport import Sender
    from workers.settings import Settings

S = TypeVar("S", bound="Sender")

NamespaceName = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Whose memory; else EBB_NAMESPACE, else `default`.")
]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Erase without asking.")]
Everywhere = Annotated[bool, typer.Option("--all", help="Every namespace.")]


def configured(home: Path | None) -> "Settings":
    """Return the settings of the environment, with another home if given."""
    from workers.settings import Settings  # noqa: PLC0415

    settings = Settings.from_environment()
    return settings.model_copy(update={"home": home}) if home else settings


def located(home: Path | None) -> "Settings":
    """Return the settings with the addresses of the running servers."""
    from api.up.home import locate  # noqa: PLC0415

    return locate(configured(home))


@contextlib.contextmanager
def client(home: Path | None, namespace: str | None) -> "Iterator[Client]":
    """Yield a client of one namespace, closed at the end of the block."""
    from api.client import Client  # noqa: PLC0415 - Celery is slow to load

    with contextlib.closing(_opened(Client, home, namespace)) as opened:
        yield opened


@contextlib.contextmanager
def sender(home: Path | None, namespace: str | None) -> "Iterator[Sender]":
    """Yield a sender of operations for one namespace, closed at the end of the block."""
    from api.transport import Sender  # noqa: PLC0415 - Celery is slow to load

    with contextlib.closing(_opened(Sender, home, namespace)) as opened:
        yield opened


def _opened(kind: "type[S]", home: Path | None, namespace: str | None) -> "S":
    from workers.validation import namespace_name  # noqa: PLC0415

    settings = located(home)
    name = namespace_name(namespace or settings.namespace)
    return kind(settings.broker_of(name), name)
