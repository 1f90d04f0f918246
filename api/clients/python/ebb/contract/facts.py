"""Operations that write facts: store one or many, the messages of a conversation, and edit."""

from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import AfterValidator, Field, StrictBool, ValidationInfo, model_validator

from ebb.contract.operation import BATCH_SECONDS, EXAMPLE_ID, Answer, Params, Rejected, Timed, examples, writes
from ebb.contract.values import (
    MOST_FACTS,
    ClassSource,
    Count,
    DecayClass,
    Durability,
    FactId,
    Flag,
    Instant,
    Kind,
    Metadata,
    Name,
    Role,
    Session,
    Share,
    Tags,
    Text,
    Times,
    Value,
    is_visible,
    none_if_blank,
    single_blanks,
    text_as,
)

IDENTIFYING = ("chunk", "key"), ("item", "entity"), ("item", "key")
"""Kinds, and their names of which the identity includes the blanks within."""


def _named(name: str, fields: ValidationInfo) -> str:
    """Return a name with single blanks, unless the identity of its kind includes others."""
    return name.strip() if (fields.data.get("kind"), fields.field_name) in IDENTIFYING else single_blanks(name)


Named = Annotated[Name, AfterValidator(_named)]
Category = Annotated[Name | None, Field(description="such as preference, decision or fact")]
Entity = Annotated[Named | None, Field(description="the person or thing that it is about")]
Key = Annotated[Named | None, Field(description="which of the entity's properties, such as phone")]
PropertyValue = Annotated[Value | None, Field(description="that property's value"), AfterValidator(none_if_blank)]
Summary = Annotated[
    Value | None, Field(description="what is shown in place of a long text"), AfterValidator(none_if_blank)
]
Source = Annotated[Name | None, Field(description="where it comes from")]
Speaker = Annotated[Role | None, Field(description="who said it: user, assistant, system or tool")]
ValidUntil = Annotated[
    Instant | None, Field(description="when it stops being true; from then on only questions about earlier find it")
]
Extra = Annotated[Metadata | None, Field(description="an object that comes back as it is, or its JSON")]

MOST_MESSAGES = 1_000
"""Maximum number of messages in one call."""

MESSAGES = "as OpenAI, Anthropic and others have them: `role`, and `content` as text or in parts"


class NewFact(Params):
    """A fact to store."""

    text: Text = Field(description="one statement that is clear without its context")
    id: FactId | None = Field(default=None, description="a UUID of your own, which makes repeating safe")
    kind: Kind = Field(
        default="semantic",
        description="`semantic`, `episodic` or `chunk`; an item is put by `PUT /memory/items`, in Python by `put_item`",
    )
    durability: Durability | None = Field(default=None, description="of an episode: persistent or permanent")
    session: Session | None = Field(default=None, description="the conversation it is from")
    turn: Count | None = Field(default=None, description="its place in the conversation")
    role: Speaker = None
    source_date: Instant | None = Field(default=None, description="when it was said, ISO 8601 with zone or a date")
    valid_from: Instant | None = Field(default=None, description="since when it is true; else since it was said")
    valid_until: ValidUntil = None
    created_at: Instant | None = Field(default=None, description="when it was first stored, if that was before")
    last_seen_at: Instant | None = Field(default=None, description="when it was last used, if that was before")
    category: Category = None
    entity: Entity = None
    key: Key = None
    value: PropertyValue = None
    summary: Summary = None
    source: Source = None
    metadata: Extra = None
    tags: Tags | None = Field(default=None, description="topics, with commas between or as a list; else by its words")
    importance: Share = Field(default=0.5, description="how important it is, 0 to 1")
    salience: Share = Field(
        default=0.5, description="how strongly to remember it, 0 to 1; if not given, estimated from what it says"
    )
    strength: Share | None = Field(default=None, description="its strength at the last use; else its salience")
    coactivations: Times = Field(default=0, description="how often it was used before")
    confidence: Share = Field(default=1.0, description="how sure it is, 0 to 1")
    decay_class: DecayClass | None = Field(
        default=None, description="how long it matters, such as permanent or session; else by its words"
    )
    decay_class_source: ClassSource | None = Field(default=None, description="who chose its class")
    supersedes: FactId | None = Field(default=None, description="the id of the fact whose place it takes")
    again: StrictBool = Field(default=False, description="even if it was forgotten on request")
    apart: StrictBool = Field(
        default=False, description="with `supersedes`: refuse what another fact says; else that one takes its place"
    )


class Statement(Timed):
    """Options for all facts of a call."""

    touch: Flag = Field(default=True, description="whether facts that are known count as used")
    classify: Flag = Field(default=True, description="whether facts get a decay class and tags by their words")
    count_turns: Flag = Field(default=True, description="whether their turns age episodes")


def _says_something(text: str) -> str:
    """Refuse what is never stored before it is accepted without waiting."""
    if not is_visible(text):
        raise ValueError("cannot store empty fact text; give at least one visible character")
    return text


class Store(NewFact, Statement):
    """Store one fact; a known fact counts as used, and its lifetime starts again."""

    model_config = examples(
        {"text": "The spare key hangs behind the kitchen clock", "tags": ["home"]},
        {"text": "Mira's phone is 0341 555 0172", "entity": "Mira", "key": "phone", "value": "0341 555 0172"},
    )

    text: Annotated[Text, AfterValidator(_says_something)] = Field(
        description="one statement that is clear without its context"
    )


class StoreMany(Statement):
    """Store many facts as one task, each with its own answer in order; an invalid one does not affect others."""

    model_config = examples({"facts": [{"text": "Mira moved to Leipzig", "entity": "Mira"}, "Anselm bakes"]})

    facts: list[Annotated[Any, text_as("text")]] = Field(
        min_length=1,
        max_length=MOST_FACTS,
        description="facts as `POST /memory/facts` takes them, or their texts alone",
    )


class Remember(Statement):
    """Store the messages of a conversation as turns; known ones are not stored again.

    So the whole conversation may be given each time. Tool calls and their results become turns of the role `tool`.
    System instructions and injected contexts are left out.
    """

    model_config = examples({"messages": [{"role": "user", "content": "I moved to Leipzig."}], "session": "2026-11-22"})

    messages: list[Any] = Field(min_length=1, max_length=MOST_MESSAGES, description=MESSAGES)
    session: Session | None = Field(default=None, description="the conversation that they are from")
    source: Source = None
    touch: Flag = Field(default=False, description="whether turns that are known count as used")


class Edit(Timed):
    """Change the fields of a fact except its text; its history keeps the earlier values.

    Omitted fields stay, null removes. A new decay class or confidence restarts its lifetime.
    """

    model_config = examples({"decay_class": "permanent", "tags": ["home"], "importance": 0.9})

    id: FactId = Field(description="the fact's id, as storing it answered", examples=[EXAMPLE_ID])
    category: Category = None
    entity: Entity = None
    key: Key = None
    value: PropertyValue = None
    summary: Summary = None
    source: Source = None
    metadata: Extra = None
    tags: Tags | None = Field(default=None, description="all its tags from now on")
    importance: Share | None = Field(default=None, description="how important it is, 0 to 1")
    confidence: Share | None = Field(default=None, description="how sure it is, 0 to 1")
    decay_class: DecayClass | None = Field(default=None, description="how long it matters; null: by its words again")
    role: Speaker = None
    valid_from: Instant | None = Field(default=None, description="since when it is true")
    valid_until: ValidUntil = None

    @property
    def changes(self) -> dict[str, Any]:
        """Return the new values by field."""
        return {name: getattr(self, name) for name in EDITABLE if name in self.model_fields_set}

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.changes:
            raise ValueError(f"nothing is to be changed; give any of {', '.join(EDITABLE)}")
        if lacking := [name for name in NEEDED if self.changes.get(name, 0) is None]:
            raise ValueError(f"{lacking[0]}: cannot be removed; give another value, or leave it out")
        return self


EDITABLE = tuple(Edit.__annotations__)[1:]
"""The fields of a fact that can be changed."""

NEEDED = ("importance", "confidence", "valid_from")
"""Fields that can be changed but not removed."""


class Lives(Answer):
    """The decay class of a fact and its reason, and when and why it ends without use; null if it never does."""

    decay_class: str | None = None
    class_reason: str | None = Field(default=None, description="`given`, or which words gave it its class")
    ends_at: datetime | None = Field(default=None, description="when it ends if it is never used; null: never")
    ends_for: str | None = Field(default=None, description="why it ends then: expired, faded, culled or aged")


class Stored(Lives):
    """The outcome of a fact; for a known one, `changed` and `ignored` name the changed and the ignored fields."""

    id: UUID = Field(examples=[EXAMPLE_ID])
    action: str = Field(examples=["added"], description="added, duplicate, updated, retracted, unchanged or forgotten")
    embedded: bool = Field(description="whether it has its vector; without, it is found by its words until it has")
    changed: list[str] = Field(default_factory=list, description="fields of a known fact that were changed")
    ignored: list[str] = Field(default_factory=list, description="fields of a known fact that were not changed")
    contradicts: list[UUID] = Field(default_factory=list, description="known facts with another value for its key")
    ended_at_once: bool = Field(default=False, description="whether it has ended already, as it was dated")


class StoredMany(Answer):
    """The outcome or error of each fact, in order."""

    results: list[Stored | Rejected]


class Turn(Answer):
    """The outcome of a message, or of a tool call in it: a fact with an id, or an error."""

    message: int = Field(description="the place of its message, from 0")
    role: str
    turn: int | None = Field(default=None, description="its place in the conversation; null: known or not stored")
    id: UUID | None = Field(default=None, examples=[EXAMPLE_ID])
    action: str | None = Field(default=None, description="as of a fact that is stored")
    error: str | None = None


class Remembered(Answer):
    """The outcome of each turn in order, the number of new ones, and the messages with nothing to store."""

    turns: list[Turn]
    added: int
    left_out: list[int] = Field(
        description="places of messages with nothing to store: without words, to the system, or of another role"
    )


class Edited(Lives):
    """The changed fields of a fact, and its new lifetime."""

    id: UUID
    action: str = Field(description="updated or unchanged")
    changed: list[str]


STORE = writes("memory.store", Store, Stored, "POST /memory/facts")
STORE_MANY = writes("memory.store_many", StoreMany, StoredMany, "POST /memory/facts/batch", BATCH_SECONDS)
REMEMBER = writes("memory.remember", Remember, Remembered, "POST /memory/remember", BATCH_SECONDS)
EDIT = writes("memory.edit", Edit, Edited, "PATCH /memory/facts/{id}", clears=True)
