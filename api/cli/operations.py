"""What commands share: settings, a client of the running system, and options derived from operations."""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args, get_origin

import typer
from ebb.contract.operation import LONG_SECONDS, SHARED, Operation, parameters, plain_type
from pydantic.fields import FieldInfo

from api.cli import output

if TYPE_CHECKING:
    from api.client import Client
    from workers.context import Context
    from workers.settings import Settings

NamespaceName = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Whose memory; else EBB_NAMESPACE, else `default`.")
]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Erase without asking.")]
Everywhere = Annotated[bool, typer.Option("--all", help="Every namespace.")]


def refuse_both(everywhere: bool, namespace: str | None) -> None:
    """Refuse `--all` together with a namespace, of which one would be ignored."""
    if everywhere and namespace is not None:
        raise typer.BadParameter(
            "give either --all or --namespace: leave out --namespace to reach every namespace, or --all to reach "
            f"{namespace} alone"
        )


def configured(home: Path | None) -> "Settings":
    """Return the settings of the environment, with another home if given."""
    from workers.settings import Settings

    settings = Settings.from_environment()
    return settings.model_copy(update={"home": home}) if home else settings


def located(home: Path | None) -> "Settings":
    """Return the settings with the addresses of the running servers."""
    from api.up.home import locate

    return locate(configured(home))


def on_database(home: Path | None) -> "Context":
    """Return a context for a command that works on PostgreSQL itself; refuse a number of shards that is not its own."""
    from workers.context import Context  # psycopg is slow to load
    from workers.storage import schema

    settings = located(home)
    schema.verify_at(settings.database_url, settings.shards, schema.check)
    schema.verify_direct(settings.database_url, settings.direct_database_url)
    return Context(settings)


def client(home: Path | None, namespace: str | None) -> "Client":
    """Return a client of one namespace, to be closed."""
    from api.client import Client  # Celery is slow to load
    from workers.validation import namespace_name

    settings = located(home)
    name = namespace_name(settings.namespace if namespace is None else namespace)
    return Client(settings.broker_of(name), name)


@dataclass
class Call:
    """A parsed command: the operation's parameters that were given, and the command's own options."""

    operation: Operation
    namespace: str | None
    home: Path | None
    given: dict[str, Any]
    own: dict[str, Any]
    as_json: bool
    stack: contextlib.ExitStack

    @cached_property
    def memory(self) -> "Client":
        """Return the client of the namespace; of a long operation, say first if no worker would begin it."""
        memory = self.stack.enter_context(client(self.home, self.namespace))
        queue = self.operation.queue
        if self.operation.seconds == LONG_SECONDS and not memory.is_served(queue):
            waits = f"No worker serves the queue {queue}: this waits until one starts. `ebb doctor` says more."
            output.console(stderr=True).print(waits, style="yellow", markup=False)
        return memory

    def perform(self, **more: Any) -> dict[str, Any]:
        """Perform the operation with these additional parameters; return its answer."""
        return self.memory.perform(self.operation, self.given | more)

    def say_if_unknown(self) -> None:
        """Print that the namespace does not exist, such as a misspelt one, as a reason why there was nothing to do."""
        if not self.given.get("everywhere"):
            say_if_unknown(self.memory)


def say_if_unknown(memory: "Client") -> None:
    """Print that the namespace of a client does not exist, if so."""
    name = memory.namespace
    if name not in memory.namespaces(name, 1)["namespaces"]:
        output.console(stderr=True).print(
            f"There is no namespace {name!r} yet; -n names another one.", style="yellow", markup=False
        )


Show: TypeAlias = Callable[[dict[str, Any], dict[str, Any], str], None]
"""Prints an answer as text: the answer, the given parameters, and the namespace."""

Own: TypeAlias = Mapping[str, tuple[Any, Any]]
"""Annotations and defaults of options that differ from the operation's parameters or extend them."""

Run: TypeAlias = Callable[[Call], None]
"""The body of a command."""

Act: TypeAlias = Callable[[Call, dict[str, Any]], dict[str, Any]]
"""Performs an operation for a call with these parameters."""

FLAGS = {"everywhere": "--all"}
WORDS = {"everywhere": "Every namespace."}


def flag(*names: str, help: str) -> tuple[Any, bool]:  # noqa: A002 - Typer's name
    """Return a flag of a command's own."""
    return Annotated[bool, typer.Option(*names, help=help)], False


def command(
    operation: Operation,
    act: Act | None = None,
    *,
    fails: Callable[[dict[str, Any]], bool] | None = None,
    work: str = "",
    listed: str = "",
    is_empty: Callable[[dict[str, Any]], bool] | None = None,
    **how: Any,
) -> Callable[[Show], Callable[..., None]]:
    """Return the decorator that makes a function, which prints an answer, the command of an operation.

    `act` performs the operation if the command needs more than that, while the text `work` is shown; `how` is as for
    `command_of`. If `fails` is true of an answer, the command exits with 1. If the answer's list or number `listed` is
    empty, or the answer `is_empty`, because there is no such namespace, the command says so. Defaults are not sent:
    they change nothing of a known fact. The command's own options, without a default, are sent as given.
    """
    defaults = {name: field.default for name, field in operation.params.model_fields.items()}

    def decorate(show: Show) -> Callable[..., None]:
        def run(call: Call) -> None:
            own = {name: value for name, value in call.own.items() if value is not None}
            given = call.given | own
            said = {name: value for name, value in call.given.items() if value != defaults.get(name)} | own
            with output.spinner(work) if work else contextlib.nullcontext():
                answer = call.memory.perform(operation, said) if act is None else act(call, said)
            if call.as_json:
                output.print_json(answer)
            else:
                show(answer, given, call.memory.namespace)
                empty = is_empty(answer) if is_empty else listed and not answer.get(listed)
                if empty and "namespaces" not in given:
                    call.say_if_unknown()
            if fails is not None and fails(answer):
                raise typer.Exit(1)

        run.__doc__, run.__name__ = show.__doc__, show.__name__
        return command_of(operation, **how)(run)

    return decorate


def command_of(
    operation: Operation,
    *,
    arguments: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    reads: str = "",
    left_out: tuple[str, ...] = (),
    own: Own | None = None,
    flags: Mapping[str, str] | None = None,
    words: Mapping[str, str] | None = None,
) -> Callable[[Run], Callable[..., None]]:
    """Return the decorator that makes a function, which gets the call, a command with the options of an operation.

    `arguments` are positional parameters; the one named by `reads` may be `-` for standard input. Parameters in
    `left_out` are not offered, and of the shared ones only those in `also`. `flags` overrides option names, `words`
    descriptions. An option with a list may be repeated, and its values have commas between.
    """
    others = {name: _keyword(name, kind, default) for name, (kind, default) in (own or {}).items()}
    hidden = {*SHARED, *left_out, *others} - {*also}
    in_order = dict.fromkeys((*arguments, *parameters(operation.params)))
    fields = {name: operation.params.model_fields[name] for name in in_order if name not in hidden}
    said = {name: _sentence(name, field, reads) for name, field in fields.items()} | WORDS | dict(words or {})
    named = FLAGS | dict(flags or {})
    offered = [_parameter(name, field, name in arguments, named, said[name]) for name, field in fields.items()]
    offers = {one.name for one in offered}
    ordered = sorted([*offered, *others.values()], key=lambda one: one.default is not inspect.Parameter.empty)

    def decorate(run: Run) -> Callable[..., None]:
        def typed(namespace: str | None, home: Path | None, as_json: bool, **given: Any) -> None:
            refuse_both("everywhere" in offers and given["everywhere"], namespace)
            if given.get(reads) == "-":
                given[reads] = output.text_of_standard_input()
            alone = {name: given.pop(name) for name in others}
            known = {name: value for name, value in given.items() if value not in (None, [])}
            repeated = {name for name, value in known.items() if isinstance(value, list)} - {*arguments}
            known |= {name: ",".join(known[name]) for name in repeated}
            with contextlib.ExitStack() as stack:
                run(Call(operation, namespace, home, known, alone, as_json, stack))

        typed.__doc__, typed.__name__ = run.__doc__, run.__name__
        typed.__signature__ = inspect.Signature([*ordered, *COMMON])  # type: ignore[attr-defined]  # read by Typer
        return typed

    return decorate


def _sentence(name: str, field: FieldInfo, reads: str) -> str:
    described = field.description or name
    return f"{described[0].upper()}{described[1:]}{'; `-` reads it from standard input' if name == reads else ''}."


def _parameter(
    name: str, field: FieldInfo, is_argument: bool, flags: Mapping[str, str], sentence: str
) -> inspect.Parameter:
    kind: Any = list[str] if _is_list(field.annotation) else plain_type(field.annotation)
    if is_argument:
        info: Any = typer.Argument(help=sentence)
    elif kind is bool and field.default is False and name not in flags:
        info = typer.Option(f"--{name.replace('_', '-')}", help=sentence)
    else:
        info = typer.Option(*flags.get(name, "").split(), help=sentence, **(_bounds(field) if kind is int else {}))
    default = inspect.Parameter.empty if field.is_required() else field.default
    optional = kind if default is inspect.Parameter.empty or default is not None else kind | None
    return _keyword(name, Annotated[optional, info], default)


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is list or any(map(_is_list, get_args(annotation)))


def _bounds(field: FieldInfo) -> dict[str, Any]:
    bounds = {"min": "ge", "max": "le"}
    found = [*field.metadata, *_metadata(field.annotation)]
    return {name: getattr(one, bound) for one in found for name, bound in bounds.items() if hasattr(one, bound)}


def _metadata(annotation: Any) -> Iterator[Any]:
    """Yield what pydantic knows of a type that may be missing, such as `Limit | None`."""
    for one in get_args(annotation):
        if get_origin(one) is Annotated:
            yield from FieldInfo.from_annotation(one).metadata


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


COMMON = [
    _keyword("namespace", NamespaceName, None),
    _keyword("home", output.HomeFolder, None),
    _keyword("as_json", output.Json, default=False),
]
"""Options of every command on one namespace."""
