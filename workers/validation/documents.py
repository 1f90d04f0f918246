"""What a document may be that somebody wants indexed: its path, its digest, and its chunks."""

import re
from typing import Annotated, Any

from ebb.contract.faults import faults, show
from ebb.contract.values import LONGEST_FIELD, Text, Value, storable
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from workers.core.chunks import Chunk
from workers.errors import InvalidInputError
from workers.validation.words import own_words

MOST_CHUNKS = 10_000
DIGEST = re.compile(r"[0-9a-f]{64}")


def _path(path: str) -> str:
    parts = path.split("/")
    if len(parts) < 2 or any(part in ("", ".", "..") for part in parts):  # noqa: PLR2004 - a folder's name and a file's
        raise ValueError("must be a folder's name and a path in it, such as memory/projects/boat.md")
    # In bytes, for paths stand in an index, whose entries must fit a third of a page.
    if len(path.encode()) > LONGEST_FIELD:
        raise ValueError(f"must have at most {LONGEST_FIELD} bytes of UTF-8")
    return path


Path = Annotated[str, BeforeValidator(storable), AfterValidator(_path)]
Section = Annotated[str, Field(max_length=LONGEST_FIELD), BeforeValidator(storable)]


class GivenChunk(BaseModel):
    """A chunk as somebody gives it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: Text
    section: Section = ""


class GivenDocument(BaseModel):
    """A document as somebody gives it; its digest is the SHA-256 of what was read, in hexadecimal."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path
    folder: Value = ""
    digest: Annotated[str, Field(pattern=DIGEST)]
    chunks: Annotated[list[GivenChunk], Field(max_length=MOST_CHUNKS)]

    def words(self, max_text: int) -> list[Chunk]:
        """Return the chunks in their own words, without recalled context, as far as any are left.

        Raises:
            InvalidInputError: one is too long.
        """
        own = [Chunk(one.section, own_words(one.text, "chunks.text", max_text)) for one in self.chunks]
        return [one for one in own if one.text]


def document(**given: Any) -> GivenDocument:
    """Return the document that arguments describe.

    Raises:
        InvalidInputError: they describe none; all faults are named.
    """
    try:
        return GivenDocument.model_validate(given)
    except ValidationError as error:
        raise InvalidInputError(faults(error)) from None


def folder_name(given: Any) -> str:
    """Return the name of a folder, which its documents' paths begin with.

    Raises:
        InvalidInputError: it is none.
    """
    try:
        return _path(f"{storable(given)}/x").removesuffix("/x")
    except (ValueError, TypeError):
        raise InvalidInputError(f"name: {show(given)} is no name of a folder; give one such as memory.") from None


def paths(given: Any) -> list[str]:
    """Return the paths of documents.

    Raises:
        InvalidInputError: it is no list of paths, is empty or too long.
    """
    if not isinstance(given, list) or not 0 < len(given) <= MOST_CHUNKS:
        raise InvalidInputError(f"paths: {show(given)} is not allowed; give a list of 1 to {MOST_CHUNKS} paths.")
    try:
        return [_path(storable(str(path))) for path in given]
    except ValueError as error:
        raise InvalidInputError(f"paths: {error}.") from None
