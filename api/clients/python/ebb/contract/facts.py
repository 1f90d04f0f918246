"""Operations that write facts: store one or many, the messages of a conversation, and edit."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, StrictBool, field_validator

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
    Named,
    Role,
    Session,
    Share,
    Tags,
    Text,
    Times,
    Value,
)

Category = Annotated[Name | None, Field(description="such as preference, decision or fact")]
Entity = Annotated[Named | None, Field(description="the person or thing that it is about")]
Key = Annotated[Named | None, Field(description="which of the entity's properties, such as phone")]
PropertyValue = Annotated[Value | None, Field(description="that property's value")]
Summary = Annotated[Value | None, Field(description="what is shown in place of a long text")]
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

    text: Annotated[Text, Field(description="one statement that is clear without its context")]
    id: Annotated[FactId | None, Field(description="a UUID of your own, which makes repeating safe")] = None
    kind: Annotated[Kind, Field(description="semantic, episodic, chunk or item")] = "semantic"
    durability: Annotated[Durability | None, Field(description="of an episode: persistent or permanent")] = None
    session: Annotated[Session | None, Field(description="the conversation it is from")] = None
    turn: Annotated[Count | None, Field(description="its place in the conversation")] = None
    role: Speaker = None
    source_date: Annotated[Instant | None, Field(description="when it was said, ISO 8601 with zone or a date")] = None
    valid_from: Annotated[Instant | None, Field(description="since when it is true; else since it was said")] = None
    valid_until: ValidUntil = None
    created_at: Annotated[Instant | None, Field(description="when it was first stored, if that was before")] = None
    last_seen_at: Annotated[Instant | None, Field(description="when it was last used, if that was before")] = None
    category: Category = None
    entity: Entity = None
    key: Key = None
    value: PropertyValue = None
    summary: Summary = None
    source: Source = None
    metadata: Extra = None
    tags: Annotated[Tags | None, Field(description="topics, with commas between or as a list; else by its words")] = (
        None
    )
    importance: Annotated[Share, Field(description="how important it is, 0 to 1")] = 0.5
    salience: Annotated[
        Share, Field(description="how strongly to remember it, 0 to 1; if not given, estimated from what it says")
    ] = 0.5
    strength: Annotated[Share | None, Field(description="its strength at the last use; else its salience")] = None
    coactivations: Annotated[Times, Field(description="how often it was used before")] = 0
    confidence: Annotated[Share, Field(description="how sure it is, 0 to 1")] = 1.0
    decay_class: Annotated[
        DecayClass | None, Field(description="how long it matters, such as permanent or session; else by its words")
    ] = None
    decay_class_source: Annotated[ClassSource | None, Field(description="who chose its class")] = None
    supersedes: Annotated[FactId | None, Field(description="the id of the fact whose place it takes")] = None
    again: Annotated[StrictBool, Field(description="even if it was forgotten on request")] = False


class Statement(Timed):
    """Options for all facts of a call."""

    touch: Annotated[Flag, Field(description="whether facts that are known count as used")] = True
    classify: Annotated[Flag, Field(description="whether facts get a decay class and tags by their words")] = True
    count_turns: Annotated[Flag, Field(description="whether their turns age episodes")] = True


class Store(NewFact, Statement):
    """Store one fact; a known fact counts as used, and its lifetime starts again."""

    model_config = examples(
        {"text": "The spare key hangs behind the kitchen clock", "tags": ["home"]},
        {"text": "Mira's phone is 0341 555 0172", "entity": "Mira", "key": "phone", "value": "0341 555 0172"},
    )

    @field_validator("text")
    @classmethod
    def _says_something(cls, text: str) -> str:
        """Refuse what is never stored before it is accepted without waiting."""
        if not text.strip():
            raise ValueError("cannot store empty fact text; give at least one visible character")
        return text


class StoreMany(Statement):
    """Store many facts as one task, each with its own answer in order; an invalid one does not affect others."""

    model_config = examples({"facts": [{"text": "Mira moved to Leipzig"}, {"text": "Anselm bakes"}]})

    facts: Annotated[
        list[Any], Field(min_length=1, max_length=MOST_FACTS, description="facts as `POST /memory/facts` takes them")
    ]


class Remember(Statement):
    """Store the messages of a conversation as turns; known ones are not stored again.

    So the whole conversation may be given each time. Tool calls and their results become turns of the role `tool`.
    System instructions and injected contexts are left out.
    """

    model_config = examples({"messages": [{"role": "user", "content": "I moved to Leipzig."}], "session": "2026-11-22"})

    messages: Annotated[list[Any], Field(min_length=1, max_length=MOST_MESSAGES, description=MESSAGES)]
    session: Annotated[Session | None, Field(description="the conversation that they are from")] = None
    source: Source = None
    touch: Annotated[Flag, Field(description="whether turns that are known count as used")] = False


class Edit(Timed):
    """Change the fields of a fact except its text; its history keeps the earlier values.

    Omitted fields stay, null removes. A new decay class or confidence restarts its lifetime.
    """

    model_config = examples({"decay_class": "permanent", "tags": ["home"], "importance": 0.9})

    id: Annotated[FactId, Field(description="the fact's id, as storing it answered", examples=[EXAMPLE_ID])]
    category: Category = None
    entity: Entity = None
    key: Key = None
    value: PropertyValue = None
    summary: Summary = None
    source: Source = None
    metadata: Extra = None
    tags: Annotated[Tags | None, Field(description="all its tags from now on")] = None
    importance: Annotated[Share | None, Field(description="how important it is, 0 to 1")] = None
    confidence: Annotated[Share | None, Field(description="how sure it is, 0 to 1")] = None
    decay_class: Annotated[DecayClass | None, Field(description="how long it matters; null: by its words again")] = None
    role: Speaker = None
    valid_from: Annotated[Instant | None, Field(description="since when it is true")] = None
    valid_until: ValidUntil = None


EDITABLE = tuple(Edit.__annotations__)[1:]
"""The fields of a fact that can be changed."""


class Lives(Answer):
    """The decay class of a fact and its reason, and when and why it ends without use; null if it never does."""

    decay_class: str | None = None
    class_reason: Annotated[str | None, Field(description="`given`, or which words gave it its class")] = None
    ends_at: Annotated[datetime | None, Field(description="when it ends if it is never used; null: never")] = None
    ends_for: Annotated[str | None, Field(description="why it ends then: expired, faded, culled or aged")] = None


class Stored(Lives):
    """The outcome of a fact; for a known one, `changed` and `ignored` name the changed and the ignored fields."""

    id: Annotated[UUID, Field(examples=[EXAMPLE_ID])]
    action: Annotated[
        str, Field(examples=["added"], description="added, duplicate, updated, retracted, unchanged or forgotten")
    ]
    embedded: Annotated[
        bool, Field(description="whether it has its vector; without, it is found by its words until it has")
    ]
    changed: list[str] = Field(default_factory=list, description="fields of a known fact that were changed")
    ignored: list[str] = Field(default_factory=list, description="fields of a known fact that were not changed")
    ended_at_once: Annotated[bool, Field(description="whether it has ended already, as it was dated")] = False


class StoredMany(Answer):
    """The outcome or error of each fact, in order."""

    results: list[Stored | Rejected]


class Turn(Answer):
    """The outcome of a message, or of a tool call in it: a fact with an id, or an error."""

    message: Annotated[int, Field(description="the place of its message, from 0")]
    role: str
    turn: Annotated[int | None, Field(description="its place in the conversation; null: known or not stored")] = None
    id: Annotated[UUID | None, Field(examples=[EXAMPLE_ID])] = None
    action: Annotated[str | None, Field(description="as of a fact that is stored")] = None
    error: str | None = None


class Remembered(Answer):
    """The outcome of each turn in order, the number of new ones, and the messages with nothing to store."""

    turns: list[Turn]
    added: int
    left_out: Annotated[
        list[int],
        Field(description="places of messages with nothing to store: without words, to the system, or of another role"),
    ]


class Edited(Lives):
    """The changed fields of a fact, and its new lifetime."""

    id: UUID
    action: Annotated[str, Field(description="updated or unchanged")]
    changed: list[str]


STORE = writes("memory.store", Store, Stored, "POST /memory/facts")
STORE_MANY = writes("memory.store_many", StoreMany, StoredMany, "POST /memory/facts/batch", BATCH_SECONDS)
REMEMBER = writes("memory.remember", Remember, Remembered, "POST /memory/remember", BATCH_SECONDS)
EDIT = writes("memory.edit", Edit, Edited, "PATCH /memory/facts/{id}", clears=True)
