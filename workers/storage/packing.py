"""Packing: the compact form of facts in deep memory.

Values that differ from the defaults are written as JSON and compressed (RFC 1951) with a dictionary of frequent words,
which makes a short text a third smaller; a binary header has the numbers that every fact has.
"""

import json
import struct
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any, TypeAlias
from uuid import UUID

from workers.core import lifetime
from workers.storage.lenient import FIRST, LAST
from workers.validation.facts import ttl

Columns: TypeAlias = dict[str, Any]
"""A row as by PostgreSQL's `row_to_json`."""

Rows: TypeAlias = dict[str, list[Columns]]
"""Rows of other tables by table name."""

Unpacked: TypeAlias = tuple[Columns, Columns, Rows]
"""A fact, its activity and its rows of other tables."""

HEAD = struct.Struct(">qBHIH16s")
"""Creation time in microseconds since the epoch, reason, segment, base, content salience, and run."""

REASONS = ("expired", "faded", "culled", "aged", "merged", "pruned", "crowded")
"""Reasons of forgetting, by number."""

WHOLE, WHOLE_BASE, UNKNOWN = 65_534, 2**32 - 1, 65_535
"""Encodings of salience 1, base 1, and an unknown salience."""
EXACT_SECONDS = 1e9
"""Largest number of seconds that a float holds exactly to the microsecond."""

NO_RUN = bytes(16)
EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")

USUAL: Columns = {
    "kind": "semantic", "summary": None, "category": None, "entity": None, "key": None, "value": None, "source": None,
    "tags": [], "importance": 0.5, "salience_given": False, "metadata": None, "session": None, "turn": None,
    "role": None, "source_date": None, "valid_from": 0, "valid_until": None, "hash": None, "superseded_at": None,
    "superseded_by": None, "supersedes_id": None,
}  # fmt: skip
"""Defaults of the columns of `facts`; times are seconds since the fact's creation."""

ABOUT = ("category", "entity", "key", "value", "source", "tags", "session")
"""Columns that say what a fact is about."""

USUAL_STATE: Columns = {
    "branch": 0, "coactivations": 0, "last_seen_at": 0, "confidence": 1, "last_confirmed_at": 0,
    "decay_class": "stable", "decay_class_source": "auto", "expires_at": None, "recall_count": 0,
    "last_accessed_at": None, "spells": None, "confirmations": 0, "tier": None, "stale": False, "pinned_until": None,
    "kept_lifetime": None, "encoded_at": None, "occurred": None, "outrun_at": None,
}  # fmt: skip
"""Defaults of the columns of `activity`; no tier means that of the curve when the fact was forgotten."""

INSTANTS = {
    "source_date", "valid_from", "valid_until", "expires_at", "superseded_at", "last_seen_at", "last_confirmed_at",
    "last_accessed_at", "pinned_until", "encoded_at", "outrun_at", "at", "created_at", "found_at", "accepted_at",
    "apart_at", "said_at",
}  # fmt: skip

SKELETON = (
    '","decay_class":"session","decay_class":"volatile","decay_class":"stable","decay_class_source":"explicit",'
    '"role":"assistant","category":"","entity":"","key":"","tags":["","recall_count":1,"last_accessed_at":,'
    '"importance":0.["",{"session":"session_","turn":1,"role":"user","decay_class_source":"auto"}]'
)
"""Frequent JSON fragments, at the end of the dictionary, where references are shortest."""

BITS_A_WORD = 6
"""Size of the Bloom filter of a fact's words: one in seven absent words is a false positive."""

MOST_BITS = 16_384

DRAWN = ("drawn from a turn", "drawn from any turn", "drawn from some turn")
"""Marks of facts that were extracted from turns, as words that no text has; few other facts have all of them."""

STATING = ("states a fact", "states any fact", "states some fact")
"""Marks of facts that have parts, such as turns from which facts were extracted."""


def pack(fact: Columns, state: Columns, beside: Mapping[str, Sequence[Columns]]) -> bytes:
    """Return the packed form of a fact, its activity, and its rows of other tables by table name."""
    created = instant(fact["created_at"])
    head = HEAD.pack(
        (created - EPOCH) // timedelta(microseconds=1),
        REASONS.index(fact["forgotten_reason"]),
        state["segment"],
        round(state["base"] * WHOLE_BASE),
        UNKNOWN if fact["content_salience"] is None else round(fact["content_salience"] * WHOLE),
        UUID(fact["forgotten_by"]).bytes if fact["forgotten_by"] else NO_RUN,
    )
    if state["expires_at"] == _expires_at(fact, state):
        state = state | {"expires_at": None}
    more = _unusual(fact, USUAL, created) | _unusual(state, USUAL_STATE, created)
    more |= {name: [_rows(one, created, _written) for one in rows] for name, rows in beside.items() if rows}
    said = json.dumps([fact["text"], *([more] if more else [])], ensure_ascii=False, separators=(",", ":"))
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, _dictionary())
    return head + packer.compress(said.encode()) + packer.flush()


def unpack(packed: bytes) -> Unpacked:
    """Return a fact from its packed form; the salience is exact to four digits."""
    micros, reason, segment, base, salience, run = HEAD.unpack_from(packed)
    created = EPOCH + max(timedelta(microseconds=micros), FIRST - EPOCH)
    text, more = _contents(packed)
    fact = {name: _column(name, more.pop(name, usual), created) for name, usual in USUAL.items()}
    state = {name: _column(name, more.pop(name, usual), created) for name, usual in USUAL_STATE.items()}
    fact |= {
        "text": text,
        "created_at": created.isoformat(),
        "forgotten_reason": REASONS[reason],
        "content_salience": None if salience == UNKNOWN else salience / WHOLE,
        "forgotten_by": None if run == NO_RUN else str(UUID(bytes=run)),
    }
    beside = {name: [_rows(one, created, _column) for one in rows] for name, rows in more.items()}
    expires_at = state["expires_at"] or _expires_at(fact, state)
    return (
        fact,
        state | {"segment": segment, "base": base / WHOLE_BASE, "expires_at": expires_at, "halvings": 0},
        beside,
    )


def said(packed: bytes) -> Columns:
    """Return what a packed fact says, what it is about, its kind, role and turn, and all its `sessions`.

    It takes a third of the time of `unpack`.
    """
    text, more = _contents(packed)
    fact = {name: more.get(name, USUAL[name]) for name in (*ABOUT, "kind", "role", "turn")}
    again = (one["session"] for one in more.get("occurrences", ()))
    return fact | {"text": text, "sessions": [fact["session"], *again]}


def is_dated(packed: bytes, whats: Collection[str]) -> bool:
    """Return whether a packed fact has decay intervals, or events of these kinds; six times as fast as `unpack`."""
    _, more = _contents(packed)
    return "spells" in more or any(one["what"] in whats for one in more.get("events", ()))


def _contents(packed: bytes) -> tuple[str, Columns]:
    """Return the text of a packed fact, and all else that differs from the defaults."""
    unpacker = zlib.decompressobj(-15, _dictionary())
    text, *rest = json.loads(unpacker.decompress(packed[HEAD.size :]) + unpacker.flush())
    return text, rest[0] if rest else {}


def drawn_from(fact: Columns, links: Sequence[Columns]) -> set[str]:
    """Return the turns from which a fact was extracted; none if it was not."""
    extracted = (fact["metadata"] or {}).get("extracted")
    if not isinstance(extracted, dict):
        return set()
    return {one["target"] for one in links if one["type"] == "PART_OF"} | {str(extracted.get("turn"))}


def marks(words: Sequence[str], length: int | None = None) -> str:
    """Return the Bloom filter of words as text of 0 and 1, of one hash and, without a `length`, six bits a word."""
    length = length or min(BITS_A_WORD * max(len(words), 1), MOST_BITS)
    marked = {place % length for place in places(words)}
    return "".join("1" if place in marked else "0" for place in range(length))


def places(words: Iterable[str]) -> list[int]:
    """Return the hash of each word, whose bit is the hash modulo the number of bits."""
    return [zlib.crc32(word.encode()) & 0x7FFFFFFF for word in words]


@cache
def frequent_words() -> dict[str, None]:
    """Return the most frequent words of English, in this order."""
    return dict.fromkeys(resources.files(__package__).joinpath("frequent_words.txt").read_text("ascii").split())


@cache
def _dictionary() -> bytes:
    """Return the compression dictionary, most frequent words last; stored data depend on it, so it never changes."""
    return (" ".join(reversed(frequent_words())) + SKELETON).encode()


def _unusual(row: Columns, usual: Columns, created: datetime) -> Columns:
    written = {name: _written(name, row[name], created) for name in usual}
    return {name: value for name, value in written.items() if value != usual[name]}


def _rows(row: Columns, created: datetime, convert: Callable[[str, Any, datetime], Any]) -> Columns:
    return {name: convert(name, value, created) for name, value in row.items()}


def _written(name: str, value: Any, created: datetime) -> Any:
    """Return a column's value as it is written, times as seconds since the creation."""
    if name not in INSTANTS or value in {None, "infinity", "-infinity"}:
        return value
    try:
        seconds = (instant(value) - created).total_seconds()
    except ValueError:  # beyond the year 9999, by a lifetime of a fact that is dated at its end
        return value
    if seconds == int(seconds):
        return int(seconds)
    return seconds if abs(seconds) < EXACT_SECONDS else value


def _column(name: str, value: Any, created: datetime) -> Any:
    if name not in INSTANTS or not isinstance(value, int | float):
        return list(value) if isinstance(value, list) else value
    return (created + min(max(timedelta(seconds=value), FIRST - created), LAST - created)).isoformat()


def instant(text: str) -> datetime:
    """Return an instant as PostgreSQL writes it; one before the year 1, which a branch may have, is clamped."""
    return FIRST if text.endswith(" BC") else datetime.fromisoformat(text)


def _expires_at(fact: Columns, state: Columns) -> str:
    """Return the expiry of a fact whose lifetime began at its last confirmation, the usual case.

    One that would be beyond the year 9999 is given as infinite.
    """
    confirmed_at = instant(state["last_confirmed_at"]).timestamp()
    own = ttl(fact["kind"], fact["entity"], fact["key"], fact["metadata"])
    expires = lifetime.expiry(state["decay_class"], confirmed_at) if own is None else confirmed_at + own
    try:
        return (EPOCH + timedelta(seconds=round(expires, 6))).isoformat()
    except OverflowError:
        return "infinity"
