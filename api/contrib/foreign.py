"""Conversion of other products' exports to import lines: one fact per memory."""

import contextlib
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO, cast, get_args
from uuid import NAMESPACE_OID, UUID, uuid5

from ebb.contract.values import Role, cleaned_tags, parsed

from api.contrib.agent_files import cogx, letta
from api.contrib.records import records
from workers.core.conversation import first_given
from workers.errors import InvalidInputError
from workers.validation import namespace_name

ROLES = get_args(Role)
NO_USER = ("anonymous", "default")
"""OpenMemory's user names of memories without a user."""

SAYS = ("memory", "text", "content")
ABOUT = ("agent_id", "app_id", "app", "actor_id", "role", "attributed_to", "expiration_date", "immutable")
"""Fields of a mem0 memory that a fact does not have; they are kept in the metadata."""

HIDDEN = ("archived", "paused")
LATEST = 1e18
"""Milliseconds beyond any calendar, which are passed on and rejected later."""

Record = Mapping[str, Any]


@contextlib.contextmanager
def lines(source: BinaryIO, product: str, now: datetime) -> Iterator[BinaryIO]:
    """Yield an export as a JSONL file of facts, one line per memory, in order; invalid ones are reported by line.

    The export is read completely into a temporary file first.

    Raises:
        InvalidInputError: it is neither JSON nor JSONL.
    """
    with tempfile.TemporaryFile() as written:
        for fact in _facts(source, product, now):
            written.write(json.dumps(fact).encode() + b"\n")
        written.seek(0)
        yield cast("BinaryIO", written)


def _facts(source: BinaryIO, product: str, now: datetime) -> Iterator[Any]:
    """Yield the facts of an export; other values are passed on unchanged."""
    if product in AGENT_FILES:
        yield from (_of_agent(product, fact) for fact in AGENT_FILES[product](source))
        return
    convert = PRODUCTS[product]
    yield from (convert(record, now) if isinstance(record, dict) else record for record in records(source))


def _of_agent(product: str, fact: Record) -> dict[str, Any]:
    cleaned = {
        "id": _id(product, fact.get("id")),
        "namespace": _namespace(fact.get("namespace")),
        "created_at": _instant(fact.get("created_at")),
        "source_date": _instant(fact.get("source_date")),
        "source": product,
    }
    return _given(dict(fact) | cleaned | ({"tags": _tags(fact["tags"])} if "tags" in fact else {}))


def _from_openmemory(record: Record, now: datetime) -> dict[str, Any]:
    """Return the fact of an OpenMemory record: of `/memory/all`, its tables or its migration tool (milliseconds).

    Records with a `state` are of mem0's product of the same name.
    """
    if "state" in record:
        return _from_mem0(record, now)
    user = record.get("user_id") or record.get("uid")
    fact = {
        "id": _id("openmemory", record.get("id")),
        "text": record.get("content"),
        "namespace": None if user in NO_USER else _namespace(user),
        "category": record.get("primary_sector"),
        "tags": _tags(record.get("tags")),
        "role": _role(_object(record.get("metadata", record.get("meta")))),
        "metadata": _object(record.get("metadata", record.get("meta"))),
        "created_at": _seconds(record.get("created_at")),
        "last_seen_at": _seconds(record.get("last_seen_at", record.get("last_seen"))),
        "strength": _share(record.get("salience")),
        "coactivations": record.get("coactivations"),
        "source": "openmemory",
    }
    return _given(fact)


def _from_mem0(record: Record, now: datetime) -> dict[str, Any]:
    """Return the fact of a mem0 record: of `get_all` or its platform's exports.

    Deleted and expired memories become forgotten facts, which an import reports and skips. Archived and paused ones are
    imported, with their state in the metadata.
    """
    content = record.get("data")
    inner = content.get("text", content.get("memory")) if isinstance(content, dict) else content
    metadata = _metadata(record)
    created, updated = _instant(record.get("created_at")), _instant(record.get("updated_at"))
    fact = {
        "id": _id("mem0", record.get("id") or record.get("memory_id")),
        "text": first_given({**record, "data": inner}, *SAYS, "data"),
        "namespace": _namespace(record.get("user_id") or record.get("agent_id")),
        "session": _unless_blank(record.get("run_id")),
        "role": _role(record, metadata),
        "category": record.get("category"),
        "tags": _tags(record.get("categories")) + _tags(record.get("tags")),
        "metadata": metadata or None,
        "created_at": created,
        "source_date": updated,
        "source": "mem0",
        "forgotten_at": _forgotten_at(record, updated or created or now.isoformat(), now),
    }
    return _given(fact)


def _metadata(record: Record) -> Any:
    """Return the metadata of a mem0 record, with the fields that a fact does not have."""
    given = _object(record.get("metadata")) or {}
    if not isinstance(given, dict):
        return given
    own = {name: record[name] for name in ABOUT if record.get(name)}
    return given | own | ({"state": record["state"]} if record.get("state") in HIDDEN else {})


def _forgotten_at(record: Record, at_last: str, now: datetime) -> str | None:
    """Return when mem0 deleted a memory or it expired, else None."""
    if record.get("deleted_at") or record.get("state") == "deleted":
        return str(record.get("deleted_at") or at_last)
    ends = record.get("expiration_date")
    return ends if isinstance(ends, str) and ends[:10] < now.date().isoformat() else None


AGENT_FILES = {"letta": letta, "cogx": cogx}
PRODUCTS: dict[str, Callable[[Record, datetime], dict[str, Any]]] = {"openmemory": _from_openmemory, "mem0": _from_mem0}


def _given(fact: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fact without empty fields; a missing text stays, so that the import reports it."""
    return {name: value for name, value in fact.items() if value is not None or name == "text"}


def _unless_blank(given: Any) -> Any:
    return None if isinstance(given, str) and not given.strip() else given


def _namespace(user: Any) -> Any:
    """Return a user's namespace; other values are passed on and rejected later."""
    return namespace_of(user) if isinstance(user, str) and user else user


def _id(product: str, given: Any) -> str | None:
    """Return a memory's id as a UUID: its own, or one derived from it, so that a repeated import adds nothing."""
    if given in (None, ""):
        return None
    try:
        return str(UUID(given))
    except (ValueError, AttributeError, TypeError):
        encodable = f"{product}:{given}".encode(errors="backslashreplace").decode()  # JSON may have half a character
        return str(uuid5(NAMESPACE_OID, encodable))


def _object(given: Any) -> Any:
    """Return an object from itself or from JSON; None if it is empty."""
    if isinstance(given, str):
        given = parsed(given) if given.strip() else None
    return given or None


def _role(*places: Any) -> str | None:
    """Return the speaker: the first valid role in these objects."""
    named = [place.get("role") for place in places if isinstance(place, dict)]
    return next((role for role in named if role in ROLES), None)


def _tags(given: Any) -> list[str]:
    if isinstance(given, str):
        listed = parsed(given)
        given = listed if isinstance(listed, list) else given.split(",")
    return cleaned_tags([tag for tag in given if isinstance(tag, str)]) if isinstance(given, list) else []


def _seconds(milliseconds: Any) -> Any:
    """Return epoch seconds; other values are passed on and rejected later."""
    known = isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool)
    return (milliseconds / 1000 or None) if known and abs(milliseconds) < LATEST else milliseconds


def _share(given: Any) -> Any:
    known = isinstance(given, int | float) and not isinstance(given, bool)
    return min(max(given, 0.0), 1.0) if known else given


def _instant(given: Any) -> Any:
    """Return an instant as ISO 8601 with time zone, UTC by default."""
    try:
        instant = datetime.fromisoformat(given)
    except (TypeError, ValueError):
        return given
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).isoformat()


PREFIX = "u::"
WRITTEN = re.compile(r"(?:[A-Za-z0-9._@-]|\+[0-9A-F]{2})*")
ESCAPE = re.compile(rb"\+([0-9A-F]{2})")
OTHERS = re.compile(rb"[^A-Za-z0-9._@-]")


def namespace_of(user: str) -> str:
    """Return the namespace of a user.

    Raises:
        InvalidInputError: the encoded name is too long.
    """
    try:
        return namespace_name(user if not user.startswith(PREFIX) else None)
    except InvalidInputError:
        return _written(user)


def user_of(namespace: str) -> str:
    """Return the user of a namespace: its name, decoded if it was encoded."""
    written = namespace.removeprefix(PREFIX)
    if written == namespace or not WRITTEN.fullmatch(written):
        return namespace
    try:
        user = ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), written.encode()).decode()
        return user if namespace_of(user) == namespace else namespace
    except (UnicodeDecodeError, InvalidInputError):
        return namespace


def _written(user: str) -> str:
    # Lone surrogates are rejected when written, so they never become a user's name.
    escaped = OTHERS.sub(lambda found: b"+%02X" % found[0][0], user.encode(errors="surrogatepass")).decode()
    try:
        return namespace_name(PREFIX + escaped)
    except InvalidInputError:
        raise InvalidInputError(
            f"user_id: {ascii(user)[:80]} is too long for the name of a namespace, as which it is "
            f"{len(PREFIX + escaped)} characters long, more than 128; give a shorter one."
        ) from None
