"""Records of other products' exports, read one after another in bounded memory.

An export is a JSON document with a list of memories, at the top or under one of the names in `LISTS`; or JSONL of
memories or such documents; each optionally gzipped; or the ZIP of mem0's OpenMemory server.
"""

import gzip
import io
import json
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, TextIO, cast

from ebb.contract.values import parsed

from workers.errors import InvalidInputError

GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
IN_ZIP = "memories.json"
LISTS = ("items", "results", "memories", "records", "data", "conversations")
LONGEST = 8 * 1_048_576
"""Characters of the longest memory."""

LONGEST_HEAD = 4 * LONGEST
"""Characters before the first memory of a document."""

PIECE = 262_144
DAMAGED = (
    EOFError, OSError, RuntimeError, ValueError, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""Errors of reading a file whose packing or encoding is damaged, encrypted (RuntimeError) or unknown."""

BLANKS = re.compile(r"[ \t\n\r]*")
OPENINGS = ("[", "{", "[{")
"""First lines of a document over many lines."""

NUMBER = re.compile(r"[-+.0-9eE]+")
DECODER = json.JSONDecoder()


@contextmanager
def undamaged(message: str) -> Iterator[None]:
    """Read a file within the block; `message` has a place for what is wrong with it.

    Raises:
        InvalidInputError: it is damaged, encrypted or of an unknown kind.
        OSError: it cannot be read.
    """
    try:
        yield
    except DAMAGED as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InvalidInputError(message.format(error)) from None


def records(source: BinaryIO) -> Iterator[Any]:
    """Yield the records of an export; a line that is not JSON is yielded as text, which is rejected later.

    Raises:
        InvalidInputError: it is neither JSON nor JSONL, or a truncated document.
    """
    with undamaged("The export is no UTF-8 text, gzipped or not; convert it: {}."):
        for file in _unpacked(source):
            text = io.TextIOWrapper(file, encoding="utf-8-sig")
            try:
                yield from _records(text)
            finally:
                text.detach()  # otherwise it would close the caller's file


def _unpacked(source: BinaryIO) -> Iterator[IO[bytes]]:
    """Yield the decompressed bytes of an export as a stream, or several, one for each document in a ZIP."""
    file = source if isinstance(source, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", source))
    magic = file.peek(len(ZIP))
    if magic.startswith(GZIP):
        yield cast("IO[bytes]", gzip.GzipFile(fileobj=file))
        return
    if not magic.startswith(ZIP):
        yield file
        return
    if not file.seekable():
        raise InvalidInputError("The export is a ZIP, which cannot be read from a pipe; give the file by its name.")
    with undamaged("The export is a ZIP that cannot be read: {}; was it cut off? Export it again."):
        packed = zipfile.ZipFile(file)
    documents = [one for one in packed.infolist() if one.filename.rpartition("/")[2] == IN_ZIP]
    if not documents:
        raise InvalidInputError(f"The export is a ZIP without {IN_ZIP}; unpack it, and give what has the memories.")
    for one in documents:  # by what stands in the directory: two may have the same name
        yield packed.open(one)


def _records(file: TextIO) -> Iterator[Any]:
    """Yield the memories of the document that starts with the first non-blank line, or of all lines."""
    first = next((line for line in _lines(file) if line.strip()), "")
    if first.startswith('"') and len(first) == LONGEST:
        raise InvalidInputError(
            f"The export is one JSON string of more than {LONGEST:,} characters; write what it holds to a file of its "
            "own, and import that one."
        )
    try:
        whole = json.loads(first or "[]")
    except (ValueError, RecursionError):
        yield from _of_document(file, first)
        return
    if isinstance(whole, str):
        whole = _within(whole)
    if not isinstance(whole, dict | list):
        raise InvalidInputError("The export is a single value; give a list of memories, or JSONL.")
    yield from _of_value(whole)
    yield from _of_lines(_lines(file))


def _within(text: str) -> Any:
    """Return the document that was written as one JSON string, as Letta's server did; else the text."""
    found = parsed(text)
    return found if isinstance(found, dict | list) else text


def _lines(file: TextIO) -> Iterator[str]:
    """Yield each line, truncated if it is too long."""
    while line := file.readline(LONGEST):
        yield line
        while len(line) == LONGEST and not line.endswith("\n"):
            line = file.readline(LONGEST)


def _of_lines(lines: Iterable[str]) -> Iterator[Any]:
    for line in lines:
        if line.strip():
            try:
                yield from _of_value(json.loads(line))
            except (ValueError, RecursionError):
                yield line.rstrip("\n")


def _of_value(value: Any) -> Iterable[Any]:
    """Return the memories of a document, or a single memory."""
    if not isinstance(value, dict):
        return value if isinstance(value, list) else [value]
    found = next((value[name] for name in LISTS if isinstance(value.get(name), list)), None)
    return [value] if found is None else (_owned(one, value) for one in found)


def _of_document(file: TextIO, begun: str) -> Iterator[Any]:
    """Yield the memories of a document over many lines, or of its lines if it is not a document."""
    document, read = _Document(file, begun), 0
    try:
        for one in document.memories():
            read += 1
            yield one
    except UnicodeDecodeError:
        raise
    except (ValueError, RecursionError) as error:  # an integer with too many digits is a plain ValueError
        if read or (isinstance(error, _TooLongError) and begun.strip() in OPENINGS):
            advice = "leave it out." if isinstance(error, _TooLongError) else "was it cut off? Export it again."
            place = f"behind its memory {read}" if read else "before its first memory"
            raise InvalidInputError(f"The export is no JSON {place}: {error}; {advice}") from None
        yield from document.lines()


class _TooLongError(ValueError):
    """A value exceeds the length of a memory, or what is before the first one that of a head."""


# ijson 3.6 would take fewer lines, but loses all memories at one NaN. Its C backend replaces lone surrogates, rejects
# integers beyond 64 bits (with use_float) or crashes at 4,300 digits (without). Its `items` keeps a prefix per level:
# gigabytes for 100 KB of brackets.
class _Document:
    """A JSON document of which only the current value is kept in memory."""

    def __init__(self, file: TextIO, begun: str) -> None:
        self._file = file
        self._at, self._found = 0, False
        self.text = begun
        """Text read and still needed: all of it until the first memory is found."""

    def memories(self) -> Iterator[Any]:
        """Yield the elements of the list, or of an object's list under one of its names, or the object itself.

        Raises:
            ValueError: there is none, it is truncated, or an integer has more digits than Python reads.
            RecursionError: it is nested too deeply.
        """
        if self._mark() != "{":
            yield from self._elements({})
            return
        head: dict[str, Any] = {}
        self._at += 1
        while self._mark() not in ("}", ""):
            name = self._value()
            self._skip(":")
            if name in LISTS and self._mark() == "[":
                yield from self._elements(head)
                return
            head[name] = self._value()
            if self._mark() != "}":
                self._skip(",")
        self._skip("}")
        yield head

    def lines(self) -> Iterator[Any]:
        """Yield the memories of each line, if the whole is not a document."""
        *whole, last = self.text.split("\n")
        yield from _of_lines([*whole, last + self._file.readline(LONGEST)])
        yield from _of_lines(_lines(self._file))

    def _elements(self, head: Mapping[str, Any]) -> Iterator[Any]:
        self._skip("[")
        while self._mark() != "]":
            one = self._value()
            self._found = True
            yield _owned(one, head)
            if self._mark() != "]":
                self._skip(",")

    def _mark(self) -> str:
        """Return the next non-blank character, or an empty text at the end."""
        while True:
            self._at = cast("re.Match[str]", BLANKS.match(self.text, self._at)).end()
            if self._at < len(self.text) or not self._more():
                return self.text[self._at : self._at + 1]

    def _skip(self, mark: str) -> None:
        if self._mark() != mark:
            raise json.JSONDecodeError(f"Expecting {mark!r}", self.text, self._at)
        self._at += 1

    def _value(self) -> Any:
        self._mark()
        while True:
            try:
                value, end = DECODER.raw_decode(self.text, self._at)
            except json.JSONDecodeError:
                if len(self.text) - self._at > LONGEST:
                    raise _TooLongError(f"the next has more than {LONGEST:,} characters") from None
                if not self._more():
                    raise
                continue
            if isinstance(value, int | float) and self._number_goes_on() and self._more():
                continue
            self._at = end
            return value

    def _number_goes_on(self) -> bool:
        """Return whether the text read so far ends within a number."""
        number = NUMBER.match(self.text, self._at)
        return number is not None and number.end() == len(self.text)

    def _more(self) -> bool:
        piece = self._file.read(PIECE)
        if len(self.text) > LONGEST_HEAD and not self._found:
            raise _TooLongError(f"what is there has more than {LONGEST_HEAD:,} characters")
        if piece and self._found:
            self.text, self._at = self.text[self._at :], 0
        self.text += piece
        return bool(piece)


def _owned(record: Any, head: Mapping[str, Any]) -> Any:
    """Return a record with the export's common data: the user, and names of categories and apps by id."""
    user = head.get("user")
    if not isinstance(record, dict) or not isinstance(user, dict):
        return record
    names = {
        str(one.get("id")): one.get("name")
        for table in ("apps", "categories")
        for one in _listed(head.get(table))
        if isinstance(one, dict)
    }
    return record | {
        "user_id": user.get("user_id") or record.get("user_id"),
        "app_id": names.get(str(record.get("app_id")), record.get("app_id")),
        "categories": record.get("categories") or [names.get(str(id_)) for id_ in _listed(record.get("category_ids"))],
    }


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
