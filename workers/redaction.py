"""Redaction for monitors and logs: namespace, ids and counts, never the text of a fact or a question."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard
from uuid import UUID

from celery.exceptions import ChordError

from workers.errors import UnusableAnswerError

if TYPE_CHECKING:
    import psycopg

NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,127}")
ARGUMENT = re.compile(r"[a-z_]{1,40}")
INSTANT = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?")
NUMBERS = ("limit", "days", "shown", "offset", "max_tokens", "depth", "boost", "turn")
"""Arguments whose numbers are shown; other numbers may be part of a fact."""

MOST_SHOWN = 40
HIDDEN = "hidden; see the worker's log"
WORDLESS = ("result", "exception", "traceback")
"""Fields of an event, besides arguments, that may quote a fact."""


def describe(value: Any, name: str = "") -> str:
    """Return the display text of one argument: its value if it cannot quote a fact, else its type and size."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float):
        return str(value) if name in NUMBERS else "a number"
    if isinstance(value, str):
        return value if _is_plain(value, name) else f"<{len(value)} characters>"
    if isinstance(value, Sequence):
        return f"<{len(value)} items>"
    return f"<{len(value)} fields>" if isinstance(value, Mapping) else "<hidden>"


def arguments(positional: Any, named: Any) -> tuple[str, str]:
    """Return the display texts of a task's positional and named arguments."""
    first = positional if isinstance(positional, list | tuple) else ()
    rest = named if isinstance(named, Mapping) else {}
    shown = [
        f"{name}={describe(value, name)}"
        for name, value in rest.items()
        if isinstance(name, str) and ARGUMENT.fullmatch(name)
    ][:MOST_SHOWN]
    more = [] if len(shown) == len(rest) else [f"<{len(rest) - len(shown)} more>"]
    return f"({', '.join(map(describe, first[:MOST_SHOWN]))})", f"({', '.join(shown + more)})"


def headers(positional: Any, named: Any) -> dict[str, str]:
    """Return the message options with the display texts of the arguments."""
    first, rest = arguments(positional, named)
    return {"argsrepr": first, "kwargsrepr": rest}


def event(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a task event without those that may quote a fact; errors keep their class name."""
    shown = {name: value for name, value in fields.items() if name not in WORDLESS}
    if "exception" in fields:
        shown |= {"exception": kind(fields["exception"]), "traceback": HIDDEN}
    return shown | ({"result": "hidden"} if "result" in fields else {})


def kind(error: Any) -> str:
    """Return the class name of an error from its `repr`."""
    name = str(error).partition("(")[0]
    return name if name.isidentifier() else "Error"


DETAILS = re.compile(r"\n(?:LINE \d+|DETAIL|HINT|QUERY|CONTEXT):")
"""Where PostgreSQL's message goes on with values and rows."""

QUOTED = re.compile(r'".*"', re.DOTALL)
DATA_EXCEPTIONS = "22"
"""The class of SQLSTATE whose messages quote values."""

LEFT_OUT = " (details, which may quote facts, are left out)"

QUOTES_MESSAGES = "celery.worker.consumer.consumer"
"""Celery's logger of messages that a worker cannot read, or whose task it does not know."""

CONTENTS = re.compile(r"(?:The full contents of the message body was|headers|(?<!message )body):.*", re.DOTALL)
"""Where a record of this logger goes on with a message."""

MESSAGE_LEFT_OUT = "(the message, which may quote a fact, is left out)"


def without_contents(text: str, logger: str) -> str:
    """Return what a logger says, without the body and headers of a refused message that it quotes."""
    return CONTENTS.sub(MESSAGE_LEFT_OUT, text) if logger == QUOTES_MESSAGES else text


def without_rows(text: str, errors: Iterable[BaseException]) -> str:
    """Return a text that quotes errors, without the rows and values in those that caused them."""
    for error in _chained(errors):
        for whole, short in _quoting(error):
            if whole != short:
                text = text.replace(whole, short + LEFT_OUT).replace(repr(whole)[1:-1], short + LEFT_OUT)
    return text


def _quoting(error: BaseException) -> Iterator[tuple[str, str]]:
    """Yield what an error says, and what of this quotes no fact."""
    if _is_of_database(error):
        yield str(error), _primary(error)
    elif isinstance(error, UnusableAnswerError) and error.quoted:
        yield str(error), str(error).replace(error.quoted, "…")
    elif isinstance(error, ChordError):  # Celery's, which quotes the error of a task
        yield str(error), str(error).partition("(")[0]
        if error.__cause__ and not _is_of_database(error.__cause__):
            yield str(error.__cause__), ""


def _is_of_database(error: BaseException) -> "TypeGuard[psycopg.Error]":
    """Return whether an error is one of psycopg, which a process without a database does not load for this."""
    return hasattr(error, "diag") and hasattr(error, "sqlstate")


def _primary(error: "psycopg.Error") -> str:
    """Return PostgreSQL's message without its details; an error that another process raised has only its words."""
    said = error.diag.message_primary or DETAILS.split(str(error), maxsplit=1)[0]
    return QUOTED.sub('"…"', said) if (error.sqlstate or "").startswith(DATA_EXCEPTIONS) else said


def _chained(errors: Iterable[BaseException]) -> Iterator[BaseException]:
    """Yield errors and their causes, each once."""
    waiting, seen = list(errors), set[int]()
    while waiting:
        error = waiting.pop()
        if id(error) not in seen:
            seen.add(id(error))
            yield error
            waiting += filter(None, (error.__cause__, error.__context__))


def _is_plain(value: str, name: str) -> bool:
    """Return whether a text is an id, the namespace, or an instant in an argument for instants."""
    if name == "namespace":
        return NAMESPACE.fullmatch(value) is not None
    if name in ("now", "at", "until"):
        return INSTANT.fullmatch(value) is not None
    try:
        return str(UUID(value)) == value
    except ValueError:
        return False
