"""Import of a JSONL file of any size, in constant memory, that continues where it was interrupted."""

import hashlib
import json
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID, uuid5

from celery.result import AsyncResult
from ebb.contract.operation import BATCH_SECONDS
from pydantic import NonNegativeInt, TypeAdapter, ValidationError
from uuid_utils.compat import uuid7

from api.client import Client
from api.transport import LostError
from workers.errors import InvalidInputError
from workers.validation import namespace_name
from workers.validation.facts import DERIVED

WINDOW, WINDOW_BYTES = 500, 4 * 1_048_576
"""Lines, and bytes, from which a batch is complete; a batch is stored completely or repeated."""

IN_FLIGHT = 4
SENT_AGAIN = 3
LONGEST_LINE = 8 * 1_048_576
GZIP = b"\x1f\x8b"
ERRORS_KEPT = 1_000
NEW, ARCHIVED = "new", "archived"
BESIDE = ("own", "link", "contradiction", "likeness", "occurrence", "document", "relation", "wish", "event")
"""Kinds of records in an archive other than facts."""

COUNTED = ("added", "updated", "unchanged", "retracted", "forgotten", "restored", "kept")
"""Actions whose facts are counted under the same name."""

STATED = {"valid_from", "valid_until"}
"""Validity fields that a new fact may have."""

BELIEVED = 0.5
"""Confidence from which a new fact is not culled at once, above what settings usually have as `cull_floor`."""

OF_LINES = UUID("3c1f5a0e-8c5b-5b0e-9d6e-6a1f27c0b9d4")
"""Namespace of the ids of lines that have none."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of an import: everything before `offset` is stored or reported."""

    offset: NonNegativeInt = 0
    lines: NonNegativeInt = 0
    added: NonNegativeInt = 0
    updated: NonNegativeInt = 0
    duplicates: NonNegativeInt = 0
    unchanged: NonNegativeInt = 0
    retracted: NonNegativeInt = 0
    forgotten: NonNegativeInt = 0
    restored: NonNegativeInt = 0
    kept: NonNegativeInt = 0
    beside: NonNegativeInt = 0
    rejected: NonNegativeInt = 0
    without_vector: NonNegativeInt = 0
    ended_at_once: NonNegativeInt = 0
    """Facts whose `last_seen_at` is so long ago that they had ended when they were stored."""
    begun: NonNegativeInt = 0
    """Line in which a still unfinished archive started."""
    last: NonNegativeInt = 0
    """Offset of the last batch before `offset` that had facts."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """Number of a line that was not stored, and why."""

    line: int
    error: str


@dataclass(slots=True)
class Sent:
    """Lines of a batch that were sent, and how to send them again with the same ids; it keeps no copy of them."""

    send: Callable[..., AsyncResult]
    result: AsyncResult

    def answer(self, client: Client) -> dict[str, Any]:
        """Wait until the lines are stored; if Redis is emptied meanwhile, send them again, a few times."""
        for _ in range(SENT_AGAIN):
            with suppress(LostError):
                return client.wait(self.result, BATCH_SECONDS)
            self.result = self.send(task_id=self.result.id)
        return client.wait(self.result, BATCH_SECONDS)


@dataclass(slots=True)
class Window:
    """A batch of lines being imported, by task and namespace, with its bad lines and end position."""

    start: int
    lines: int
    begun: int
    end: int
    given: dict[tuple[str, str], list[tuple[int, Any]]] = field(default_factory=dict)
    bad: list[BadLine] = field(default_factory=list)
    sent: dict[tuple[str, str], Sent] = field(default_factory=dict)
    again: bool = False
    has_facts: bool = False
    needs_others: bool = False
    """Whether any line depends on earlier ones, as superseding facts and other records do."""


class Checkpoint:
    """Progress of importing a file in the same way (`how`), stored in a file until it is done."""

    def __init__(self, folder: Path, source: Path, how: Mapping[str, Any]) -> None:
        state = source.stat()
        options = json.dumps(how, sort_keys=True)
        identity = f"{source.resolve()}\0{options}\0{state.st_size}\0{state.st_mtime_ns}"
        self._file = folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.json"

    def load(self) -> Progress:
        """Return the progress of an earlier import of the same file."""
        try:
            return TypeAdapter(Progress).validate_json(self._file.read_bytes())
        except (OSError, ValidationError):
            return Progress()

    def save(self, progress: Progress) -> None:
        """Store the progress atomically, if the folder can be written: without it an import starts at the beginning."""
        draft = self._file.with_suffix(".new")
        with suppress(OSError):  # also where another import of the file stored its own
            self._file.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(asdict(progress)), encoding="utf-8")
            draft.replace(self._file)

    def clear(self) -> None:
        """Remove the checkpoint of a finished import."""
        with suppress(OSError):
            self._file.unlink()


def import_file(
    client: Client,
    file: BinaryIO,
    checkpoint: Checkpoint | None,
    on_bad: Callable[[BadLine], None],
    on_progress: Callable[[Progress], None],
    *,
    into: str | None = None,
    again: bool = False,
    classify: bool = False,
) -> Progress:
    """Store every valid line of a file and report every invalid one; return the totals.

    Each fact goes into the namespace `into`, else into its line's own, else into the client's. Records of `ebb export`
    are imported with their state, including forgotten and superseded facts; facts that have ended since live again.
    With `again`, everything is stored as new, including facts forgotten on request; only superseded facts are imported
    as they were. Facts without decay class get none unless `classify` is true: an import must not set lifetimes
    unasked.

    Raises:
        UnavailableError: Redis or the workers do not answer; a repeated call continues from there.
    """
    progress = checkpoint.load() if checkpoint else Progress()
    if progress.offset:
        if not _is_stored(client, file, progress.last, into, again=again, classify=classify):
            progress = Progress()
        file.seek(progress.offset)
    on_progress(progress)
    windows = _windows(file, progress, client.namespace, into, again=again)
    for window in _sent(client, windows, classify=classify):
        progress, bad = _settled(client, window, progress)
        for one in bad:
            on_bad(one)
        if checkpoint:
            checkpoint.save(progress)
        on_progress(progress)
    if progress.begun:
        on_bad(BadLine(progress.lines + 1, CUT_OFF))
        progress = replace(progress, rejected=progress.rejected + 1)
    if checkpoint:
        checkpoint.clear()
    return progress


def _is_stored(client: Client, file: BinaryIO, place: int, into: str | None, *, again: bool, classify: bool) -> bool:
    """Return whether an earlier import stored the batch at this offset, by storing it again.

    The facts are not there in another database, nor in one that was restored to an older state.
    """
    file.seek(place)
    window = next(_windows(file, Progress(place), client.namespace, into, again=again))
    done, _ = _settled(client, _send(client, window, classify=classify), Progress())
    return not (done.added or done.kept)


def _windows(file: BinaryIO, begin: Progress, namespace: str, into: str | None, *, again: bool) -> Iterator[Window]:
    first = begin.lines
    window = Window(begin.offset, begin.lines, begin.begun, begin.offset, again=again)
    for number, (line, length) in enumerate(_lines(file), start=begin.lines + 1):
        try:
            fact = _unframed(parse(line, again=again), window, number)
            own = namespace_name(fact.pop("namespace", namespace)) if fact else namespace
        except InvalidInputError as error:
            window.bad.append(BadLine(number, str(error)))
        else:
            if fact is not None:
                is_fact, is_archived = "text" in fact, _is_archived(fact)
                # Facts that are stored as new are sent apart from records beside them, which need them.
                if again and window.given and window.has_facts != is_fact:
                    first = number - 1
                    yield window
                    window = Window(window.end, window.lines, window.begun, window.end, again=again)
                window.given.setdefault((ARCHIVED if is_archived else NEW, into or own), []).append((number, fact))
                window.has_facts |= is_fact
                window.needs_others |= fact.get("supersedes") is not None or (is_archived and not is_fact)
        window.end, window.lines = window.end + length, number
        if number - first == WINDOW or window.end - window.start >= WINDOW_BYTES:
            first = number
            yield window
            window = Window(window.end, window.lines, window.begun, window.end, again=again)
    yield window


def _unframed(line: dict[str, Any] | None, window: Window, number: int) -> dict[str, Any] | None:
    """Return a line, or None for the first and last line of an archive; refuse an archive that lacks lines."""
    if line is None or not is_frame(line):
        return line
    begun, window.begun = window.begun, number if line == BEGINS else 0
    if fault := frame_fault(line, begun, number):
        raise InvalidInputError(fault)
    return None


def _lines(file: BinaryIO) -> Iterator[tuple[bytes | None, int]]:
    """Yield each line with its length in bytes; None instead of a line that is too long."""
    while line := file.readline(LONGEST_LINE):
        if line.startswith(GZIP):
            raise InvalidInputError("The file is gzipped; unpack it, such as by `gunzip -c FILE | ebb import -`.")
        length, rest = len(line), line
        while len(rest) == LONGEST_LINE and not rest.endswith(b"\n"):
            rest = file.readline(LONGEST_LINE)
            length += len(rest)
        yield line if length == len(line) else None, length


def parse(line: bytes | None, *, again: bool = False) -> dict[str, Any] | None:
    """Return the record of a line; None for a blank line.

    A fact keeps its state unless `again` is true and it was not superseded; computed fields of other facts are dropped.

    Raises:
        InvalidInputError: the line is not a JSON object, or its fact was superseded or (without `again`) forgotten and
            has no state.
    """
    if line is None:
        raise InvalidInputError(f"longer than {LONGEST_LINE} bytes; split it into several facts.")
    if not line.strip():
        return None
    try:
        given = json.loads(line.decode("utf-8-sig"), parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"no UTF-8 at byte {error.start}; convert the file.") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"no JSON: {error}; give one object a line.") from None
    if not isinstance(given, dict):
        raise InvalidInputError("no JSON object; give one with at least a `text`.")
    as_new = again and "text" in given and given.get("superseded_at") is None
    as_it_is = is_frame(given) or (_is_archived(given) and not as_new)
    return given if as_it_is else _as_new(given, again=again)


def _is_archived(line: dict[str, Any]) -> bool:
    """Return whether only exports contain such a line: a fact with its state, or another record."""
    return "state" in line if "text" in line else any(kind in line for kind in BESIDE)


def _as_new(given: dict[str, Any], *, again: bool) -> dict[str, Any]:
    if given.get("forgotten_at") is not None and not again:
        raise InvalidInputError(f"forgotten at {given['forgotten_at']}; what was forgotten stays so.")
    if given.get("superseded_at") is not None:
        raise InvalidInputError(f"superseded at {given['superseded_at']}; what took its place has a line of its own.")
    left_out = {*DERIVED, "state", "events"} - STATED
    fact = {name: value for name, value in given.items() if name not in left_out}
    return fact | {"again": True} if again else fact


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _sent(client: Client, windows: Iterable[Window], *, classify: bool) -> Iterator[Window]:
    """Send windows, some ahead; yield each one, in order, to be settled before more are sent."""
    waiting: deque[Window] = deque()
    for window in windows:
        # Superseded and linked facts must be stored first, and later lines may repeat a fact.
        most = 0 if window.needs_others or (waiting and waiting[-1].needs_others) else IN_FLIGHT - 1
        while len(waiting) > most:
            yield waiting.popleft()
        waiting.append(_send(client, window, classify=classify))
    yield from waiting


def _send(client: Client, window: Window, *, classify: bool) -> Window:
    for (task, namespace), numbered in window.given.items():
        lines = [line for _, line in numbered]
        if task == NEW:
            for line in lines:
                line.setdefault("id", str(_new_id(line, namespace)))
            send = partial(
                client.send_many, lines, namespace=namespace, touch=False, classify=classify, count_turns=False
            )
        else:
            arguments = {"records": lines, "namespace": namespace, "now": None}
            send = partial(client.ask, "memory.bring_back", arguments)
        window.sent[task, namespace] = Sent(send, send())
    return window


def _new_id(line: Mapping[str, Any], namespace: str) -> UUID:
    """Return an id for a line without one.

    A fact whose last use is long ago, or that is hardly believed, may end at once, and what has ended is not recognised
    by its text. Its id follows from the line, so that a repeated import finds it.
    """
    confidence = line.get("confidence")
    is_believed = not isinstance(confidence, int | float) or confidence >= BELIEVED
    if line.get("last_seen_at") is None and is_believed:
        return uuid7()
    said = {name: value for name, value in line.items() if name != "again"}
    return uuid5(OF_LINES, json.dumps([namespace, said], sort_keys=True))


def _settled(client: Client, window: Window, progress: Progress) -> tuple[Progress, list[BadLine]]:
    """Wait until a window is stored; return the progress with its results, and its bad lines."""
    results = _results(client, window)
    refused = [BadLine(number, answer["error"]) for number, answer in results if "error" in answer]
    bad = sorted([*window.bad, *refused], key=lambda one: one.line)
    counts = _counts([answer for _, answer in results if "error" not in answer]) | {"rejected": len(bad)}
    summed = {name: getattr(progress, name) + count for name, count in counts.items()}
    last = window.start if window.has_facts else progress.last
    return replace(progress, offset=window.end, lines=window.lines, begun=window.begun, last=last, **summed), bad


def _results(client: Client, window: Window) -> list[tuple[int, dict[str, Any]]]:
    """Wait until a window is stored; return the number and the answer of each line."""
    results: list[tuple[int, dict[str, Any]]] = []
    for whose, sent in window.sent.items():
        answers = sent.answer(client)["results"]
        if window.again and whose[0] == NEW:
            answers = _restored(client, whose[1], answers)
        results += zip((number for number, _ in window.given[whose]), answers, strict=True)
    return results


def _counts(stored: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the counts of stored records by the names of `Progress`."""
    actions = Counter(answer["action"] for answer in stored)
    there = [answer for answer in stored if answer["action"] != "forgotten"]
    return {
        "duplicates": actions["duplicate"],
        "beside": sum("id" not in answer for answer in stored),
        "without_vector": sum(answer.get("embedded") is False for answer in there),
        "ended_at_once": sum("ended_at_once" in answer for answer in stored),
        **{action: actions[action] for action in COUNTED},
    }


def _restored(client: Client, namespace: str, answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Restore known facts that are forgotten or superseded; return the updated answers."""
    known = [answer["id"] for answer in answers if answer.get("action") == "unchanged"]
    if not known:
        return answers
    arguments = {"ids": known, "namespace": namespace, "now": None}
    done = client.wait(client.ask("memory.restore", arguments), BATCH_SECONDS)["results"]
    back = {one["id"] for one in done if one.get("action") == "restored"}
    return [answer | {"action": "restored"} if answer.get("id") in back else answer for answer in answers]


def size_of(file: BinaryIO) -> int | None:
    """Return a file's size in bytes, or None for a pipe."""
    try:
        return os.fstat(file.fileno()).st_size or None
    except OSError:
        return None


NAME = "archive"
BEGINS = {NAME: "begins"}


def with_frame(lines: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of an archive between a first line and a last one with their number.

    The lines begin first, so that an error, such as of a namespace that is not there, leaves no first line behind.
    """
    rest = iter(lines)
    begun = list(islice(rest, 1))
    yield BEGINS
    count = 0
    for count, line in enumerate(chain(begun, rest), start=1):  # noqa: B007 - used below
        yield line
    yield {NAME: "ends", "lines": count}


def is_frame(line: Mapping[str, Any]) -> bool:
    """Return whether a line is the first or last one of an archive."""
    return NAME in line and "text" not in line


def frame_fault(line: Mapping[str, Any], begun: int, number: int) -> str | None:
    """Return what an archive lacks, as its first or last line shows; None if it is complete so far.

    `begun` is the line in which an archive began that has not ended yet, or 0.
    """
    there = number - begun - 1
    if line == BEGINS:
        return CUT_OFF if begun else None
    if line.get("lines") == there:
        return None
    return f"the archive had {line.get('lines')} lines, and {there} of them are here; export it again."


CUT_OFF = "the archive ends before its last line: it was cut off. What was there is imported; export it again."
