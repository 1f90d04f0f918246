"""Operations on documents: files as chunks, and items under a path and a key."""

import json
from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from ebb.contract.faults import show
from ebb.contract.operation import (
    BATCH_SECONDS,
    STORE_SECONDS,
    Answer,
    Params,
    Scoped,
    Timed,
    administers,
    examples,
    reads,
    writes,
)
from ebb.contract.values import (
    LONGEST_FIELD,
    LONGEST_METADATA,
    MOST_FACTS,
    MOST_QUESTIONS,
    MOST_RESULTS,
    Flag,
    ListLimit,
    Name,
    Text,
    Value,
    Whole,
    few_accents,
    finite,
    shallow,
    storable,
)

LONGEST_DOCUMENT = LONGEST_METADATA // 2
LONGEST_UPLOAD = 1_048_576
"""Characters of a file that is sent as text; larger ones are indexed from their folder."""

OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte")
DIGEST = "^[0-9a-f]{64}$"
PARTS = 2


def _file(path: str) -> str:
    parts = path.split("/")
    if len(parts) < PARTS or any(part in ("", ".", "..") for part in parts):
        raise ValueError("must be a folder's name and a path in it, such as memory/projects/boat.md")
    # In bytes, as paths are indexed, and an index entry must fit a third of a page.
    if len(path.encode()) > LONGEST_FIELD:
        raise ValueError(f"must have at most {LONGEST_FIELD} bytes of UTF-8")
    return path


def _folder(name: str) -> str:
    if "/" in name:
        raise ValueError("must be the name of a folder, such as memory")
    return _file(f"{name}/x").removesuffix("/x")


def _absolute(path: str) -> str:
    """Refuse a path that means another folder to each process."""
    if not path.startswith("/"):
        raise ValueError("must be an absolute path, such as /srv/notes")
    return path


def _label(given: Any) -> Any:
    """Refuse values that are not text; lone surrogates are allowed."""
    if not isinstance(given, str) or not given:
        raise ValueError("must be a text that is not empty")
    return few_accents(given)


def _trimmed(key: str) -> str:
    if key != key.strip():
        raise ValueError("must not begin or end with a blank")
    return key


def _object(document: str) -> str:
    """Return the JSON of an object in ASCII, which preserves the document."""
    constants: list[str] = []
    try:
        given = json.loads(document, parse_constant=constants.append) if document.isascii() else None
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise ValueError("must be the JSON of an object, in ASCII")  # noqa: TRY004 - pydantic collects ValueErrors
    if constants:
        raise ValueError("must be JSON, without NaN or infinity")
    shallow(given)
    return document


def _filter(wanted: Any) -> Any:
    """Return the conditions on fields: values, or objects of operators."""
    if not isinstance(wanted, dict):
        raise ValueError("must be an object of fields")  # noqa: TRY004 - pydantic collects ValueErrors
    named = [name for one in wanted.values() if isinstance(one, dict) for name in one if name.startswith("$")]
    if unknown := [name for name in named if name not in OPERATORS]:
        raise ValueError(f"{show(unknown[0])} is no operator; known are {', '.join(OPERATORS)}")
    return finite(shallow(wanted))


File = Annotated[str, BeforeValidator(storable), AfterValidator(_file)]
Folder = Annotated[str, BeforeValidator(storable), AfterValidator(_folder)]
Label = Annotated[str, PlainValidator(_label), WithJsonSchema({"type": "string", "minLength": 1})]
Labels = list[Label]
Minutes = Annotated[FiniteFloat, Field(gt=0, le=10**9), Whole]
Filter = Annotated[dict[str, Any], PlainValidator(_filter), WithJsonSchema({"type": "object"})]
Json = Annotated[str, Field(max_length=LONGEST_DOCUMENT), AfterValidator(_object)]


class Chunk(BaseModel):
    """A part of a file: its text, the headings above it, and the line at which it begins."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: Text
    section: Annotated[str, Field(max_length=LONGEST_FIELD), BeforeValidator(storable)] = ""
    line: Annotated[int, Field(ge=1, lt=2**31)] | None = None


class ListDocuments(Scoped):
    """Return the indexed files of a folder, each with the digest of its last reading."""

    name: Folder = Field(description="the name of the folder, which the paths begin with")


class Index(Timed):
    """Replace the chunks of a file by those read at `now`.

    If a later reading is stored already, nothing is done, and the answer says `outdated`.
    """

    model_config = examples({"path": "notes/boat.md", "chunks": [{"text": "The sail is red."}], "digest": "0" * 64})

    path: File = Field(description="the folder's name and the path in it")
    chunks: list[Chunk] = Field(max_length=MOST_FACTS, description="the parts of the file, in order")
    digest: str = Field(pattern=DIGEST, description="the SHA-256 of what was read, in hexadecimal")
    folder: Value = Field(default="", description="where the folder is")


class Upload(Timed):
    """Keep a Markdown text as a file: it is cut into chunks, which take the place of those of its path."""

    model_config = examples({"path": "notes/boat.md", "text": "# Boat\n\nOak."})

    path: File = Field(description="the name of a folder, which is not there on disk, and the path in it")
    text: Annotated[str, Field(max_length=LONGEST_UPLOAD), BeforeValidator(storable)] = Field(description="Markdown")


class RegisterFolder(Scoped):
    """Register a folder, whose Markdown files workers keep indexed from then on.

    Workers must see the folder under this path, and it must be below one that `EBB_FOLDERS` names.
    """

    model_config = examples({"path": "/srv/notes"})

    path: Annotated[Value, AfterValidator(_absolute)] = Field(description="where the folder is, an absolute path")
    name: Folder | None = Field(default=None, description="what paths begin with; else the folder's own name")


class UnregisterFolder(Scoped):
    """Stop reading a registered folder; what was indexed stays."""

    name: Folder = Field(description="the name of the folder, which the paths begin with")


class ListFolders(Scoped):
    """Return the registered folders, when each was last read, and what went wrong in the latest attempt."""


class Unindex(Scoped):
    """Erase the chunks of removed files."""

    model_config = examples({"paths": ["notes/boat.md"]})

    paths: list[File] = Field(min_length=1, max_length=MOST_FACTS, description="the paths of the files")


DRINK: dict[str, Any] = {"path": ["users", "mira"], "key": "drink", "document": "{}", "text": "likes green tea"}


class NewItem(Params):
    """A document to store under a path and key."""

    path: Labels = Field(min_length=1, description="labels, the first one outermost")
    key: Annotated[Name, AfterValidator(_trimmed)] = Field(description="the name of the item at its path")
    document: Json = Field(description="the JSON of an object, in ASCII")
    text: Annotated[str | None, BeforeValidator(few_accents)] = Field(
        default=None, description="the words by which it is found"
    )
    ttl: Minutes | None = Field(default=None, description="minutes that it lives after each use")


class PutItem(NewItem, Timed):
    """Store a document under a path and key, replacing an existing one.

    It is found by its `text`, if it has one. With a `ttl` it ends after that time without use; else it stays.
    """

    model_config = examples(DRINK)


class PutItems(Timed):
    """Store many documents as one task, each replacing an existing one; no path and key may occur twice."""

    model_config = examples({"items": [DRINK]})

    items: list[NewItem] = Field(min_length=1, max_length=MOST_RESULTS, description="the documents")

    @model_validator(mode="after")
    def _each_place_once(self) -> Self:
        if len({(*one.path, one.key) for one in self.items}) < len(self.items):
            raise ValueError("items: two of them have the same path and key; give each place once")
        return self


class ItemQuery(Params):
    """A query for items."""

    path: Labels = Field(default_factory=list, description="labels that the items' paths begin with")
    key: Name | None = Field(default=None, description="only the item with this key, at just this path")
    query: Text | None = Field(default=None, description="a question or topic; else the newest first")
    filter: Filter | None = Field(
        default=None, description=f"fields of the document with values, or operators: {', '.join(OPERATORS)}"
    )
    limit: ListLimit = Field(default=10, description="how many at most")
    offset: Annotated[int, Field(ge=0, le=MOST_FACTS), Whole] = Field(default=0, description="how many to skip")
    refresh: Flag = Field(default=True, description="whether this counts as use")


class ListItems(ItemQuery, Timed):
    """Return items below a path, newest first, or the best for a query, or the one with a key."""

    model_config = examples({"path": ["users", "mira"], "query": "tea"})


class ListManyItems(Timed):
    """Answer many queries for items as one task, each with its own page, in order."""

    model_config = examples({"queries": [{"path": ["users"], "query": "tea"}, {"path": ["users", "mira"]}]})

    queries: list[ItemQuery] = Field(min_length=1, max_length=MOST_QUESTIONS, description="the questions")


class DropItem(Timed):
    """Forget the item under a path and key."""

    model_config = examples({"path": ["users", "mira"], "key": "drink"})

    path: Labels = Field(min_length=1, description="labels, the first one outermost")
    key: Name = Field(description="the name of the item at its path")


class ListItemPaths(Timed):
    """Return every path that has items."""


class Document(Answer):
    """An indexed file."""

    path: str
    folder: str | None
    digest: str | None


class Documents(Answer):
    """The indexed files of a folder."""

    documents: list[Document]


class Indexed(Answer):
    """The changes of a file's chunks; `outdated` if a later reading is stored and nothing was done."""

    path: str
    added: int = 0
    unchanged: int = 0
    removed: int = 0
    forgotten: int = 0
    without_vector: int = 0
    outdated: bool = False


class Unindexed(Answer):
    """The number of erased chunks."""

    removed: int


class RegisteredFolder(Answer):
    """A registered folder: when all of it was last read, and the error of the latest attempt, if any."""

    name: str
    path: str
    read_at: datetime | None = None
    error: str | None = None


class RegisteredFolders(Answer):
    """The registered folders, by name."""

    folders: list[RegisteredFolder]


class UnregisteredFolder(Answer):
    """Whether the folder was registered."""

    removed: bool


class Put(Answer):
    """The id of an item."""

    id: UUID


class PutMany(Answer):
    """The ids of items, in order."""

    ids: list[UUID]


class Item(Answer):
    """An item, and the id of the fact that keeps it; its `score` in [0, 1] is null without a query."""

    id: UUID
    path: Labels
    key: str
    document: str
    created_at: str
    updated_at: datetime
    score: float | None


class Items(Answer):
    """Items below a path."""

    items: list[Item]


class ItemPages(Answer):
    """The items for each of many queries, in order."""

    answers: list[Items]


class Dropped(Answer):
    """Whether there was an item."""

    dropped: bool


class ItemPaths(Answer):
    """The paths of items."""

    paths: list[Labels]


DOCUMENTS = reads("memory.documents", ListDocuments, Documents, "GET /memory/documents", STORE_SECONDS)
INDEX = writes("memory.index", Index, Indexed, "PUT /memory/documents", accepted=False)
UPLOAD = writes("memory.upload", Upload, Indexed, "POST /memory/documents", accepted=False)
UNINDEX = writes("memory.unindex", Unindex, Unindexed, "POST /memory/documents/unindex", accepted=False)
REGISTER_FOLDER = administers(
    "memory.register_folder", RegisterFolder, RegisteredFolder, "POST /memory/folders", STORE_SECONDS, scope="system"
)
UNREGISTER_FOLDER = administers(
    "memory.unregister_folder", UnregisterFolder, UnregisteredFolder, "DELETE /memory/folders", STORE_SECONDS,
    scope="system",
)  # fmt: skip
FOLDERS = reads("memory.folders", ListFolders, RegisteredFolders, "GET /memory/folders")
PUT_ITEM = writes("memory.put_item", PutItem, Put, "PUT /memory/items")
PUT_ITEMS = writes("memory.put_items", PutItems, PutMany, "PUT /memory/items/batch", BATCH_SECONDS)
ITEMS = reads("memory.items", ListItems, Items, "POST /memory/items/search")
MANY_ITEMS = reads("memory.many_items", ListManyItems, ItemPages, "POST /memory/items/search/batch", STORE_SECONDS)
DROP_ITEM = writes("memory.drop_item", DropItem, Dropped, "POST /memory/items/drop")
ITEM_PATHS = reads("memory.item_paths", ListItemPaths, ItemPaths, "GET /memory/items/paths")
