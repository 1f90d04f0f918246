"""Operations of recall: recall, lookup by name, and context for a prompt."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from ebb.contract.operation import STORE_SECONDS, Answer, Page, Params, Rejected, Scoped, Timed, examples, reads
from ebb.contract.values import (
    MOST_NAMESPACES,
    MOST_QUESTIONS,
    Cursor,
    FactId,
    Flag,
    Instant,
    Kind,
    Limit,
    ListLimit,
    Name,
    Named,
    Names,
    Namespaces,
    Query,
    Role,
    Session,
    Share,
    Tag,
    Tier,
    Whole,
)

BY_MEANING = (
    "false: words alone decided, for example because the embedder does not answer; null: older workers do not say"
)
DEEP = "how many facts in deep memory fit, where nothing else does, or clearly better; ask with `deep` to get them"
LEFT_OUT = "with `explain`, the facts that are not among the results, each with the rule"
NAMESPACE = "where it is, if several namespaces were asked"
MIN_RELEVANCE = (
    "leave out what is less relevant, 0 to 1; 0 leaves out nothing; else nothing is returned unless the best result "
    "reaches EBB_MIN_RELEVANCE"
)
AS_OF = "what was true at this instant, ISO 8601 with zone or a date, superseded facts included"
KNOWN_AS_OF = "what had been stored, and held to be true, by this instant"


class Question(Timed):
    """Common parameters of questions; one about the past does not count as use."""

    as_of: Annotated[Instant | None, Field(description=AS_OF)] = None
    known_as_of: Annotated[Instant | None, Field(description=KNOWN_AS_OF)] = None
    touch: Annotated[Flag, Field(description="whether this counts as use")] = True

    @property
    def is_past(self) -> bool:
        """Return whether it is as of an instant."""
        return self.as_of is not None or self.known_as_of is not None


class Filters(Params):
    """Filters on facts, which must pass all that are given."""

    tag: Annotated[Tag | None, Field(description="only facts with this tag; a recall then matches words alone")] = None
    category: Annotated[Name | None, Field(description="only facts of this category")] = None
    kind: Annotated[Kind | None, Field(description="only facts of this kind")] = None
    role: Annotated[Role | None, Field(description="only what the user, assistant, system or tool said")] = None
    pinned: Annotated[Flag | None, Field(description="only facts that are pinned, or with false only others")] = None
    entity: Annotated[Named | None, Field(description="only facts about this person or thing, in any case")] = None
    key: Annotated[Named | None, Field(description="only facts about this property, in any case")] = None
    session: Annotated[Session | None, Field(description="only facts of this conversation")] = None
    source: Annotated[Name | None, Field(description="only facts from this source, such as the path of a file")] = None
    tier: Annotated[
        Tier | None, Field(description="only facts of this tier, as their last use or the last pass found it")
    ] = None
    documents: Annotated[Flag, Field(description="also parts of indexed files")] = True

    def filters(self) -> dict[str, Any]:
        """Return the filters by name; a filter for chunks includes documents."""
        given = {name: getattr(self, name) for name in Filters.model_fields}
        return given | {"documents": self.documents or self.kind == "chunk"}


class Explained(Question):
    """A question whose answer can include explanations."""

    explain: Annotated[Flag, Field(description="take each score apart, and say what was left out by which rule")] = (
        False
    )
    why: Annotated[
        FactId | None, Field(description="a fact's id: say why it was recalled or was not; strengthens nothing")
    ] = None


class Several(Scoped):
    """A question to several namespaces at once."""

    namespaces: Annotated[
        Annotated[Namespaces, Field(min_length=1, max_length=MOST_NAMESPACES)] | None,
        Field(
            description="these namespaces instead of one, with commas between or as a list; the results stand in one "
            "order, each with its namespace; over HTTP others than the key's own need the scope `system`"
        ),
    ] = None


class Recall(Filters, Several, Explained):
    """Find the facts that best match a question, by words and by meaning.

    This counts as use and strengthens the facts, unless `touch` is false or the question is about the past.
    """

    model_config = examples({"query": "Where is the other key?", "limit": 3, "explain": True})

    query: Annotated[Query, Field(description="a question or topic in your own words")]
    deep: Annotated[Flag, Field(description="also what ended by itself long ago; what is used of it lives again")] = (
        False
    )
    limit: Annotated[Limit, Field(description="how many facts at most")] = 10
    min_relevance: Annotated[Share | None, Field(description=MIN_RELEVANCE)] = None


class RecallMany(Timed):
    """Answer many questions as one task, each with its own answer in order; an invalid one does not affect others."""

    model_config = examples({"queries": [{"query": "Where is the key?", "limit": 3}, {"query": "Mira"}]})

    queries: Annotated[
        list[Any],
        Field(min_length=1, max_length=MOST_QUESTIONS, description="questions as `POST /memory/recall` takes them"),
    ]


class Lookup(Question):
    """Return the facts about an entity, or one key of it, most confident first, then newest.

    This needs no embedding. It counts as use and strengthens the facts, unless `touch` is false.
    """

    entity: Annotated[Named, Field(description="the person or thing that facts are about, in any case")]
    key: Annotated[Named | None, Field(description="which of its properties; else all")] = None
    tag: Annotated[Tag | None, Field(description="only facts with this tag")] = None
    limit: Annotated[ListLimit | None, Field(description="how many facts at most; else all")] = None
    cursor: Annotated[Cursor | None, Field(description="the `next` of the page before")] = None


class Context(Filters, Several, Timed):
    """Return a block of matching facts as text for a prompt; it counts as use of the facts in it."""

    model_config = examples({"query": "Where does Mira live now?", "max_tokens": 400, "format": "short"})

    query: Annotated[Query, Field(description="what the next prompt is about, such as the user's message")]
    deep: Annotated[Flag, Field(description="also what ended by itself long ago; what is used of it lives again")] = (
        False
    )
    limit: Annotated[Limit, Field(description="how many facts at most")] = 10
    max_tokens: Annotated[
        Annotated[int, Field(ge=1, le=1_000_000), Whole] | None,
        Field(description="the budget, which counts all of the text; else EBB_CONTEXT_TOKENS"),
    ] = None
    format: Annotated[
        Literal["full", "short", "minimal"] | None,
        Field(description="full, short or minimal lines; else EBB_CONTEXT_FORMAT"),
    ] = None
    order: Annotated[
        Literal["rank", "stable"] | None,
        Field(description="`rank`: the best first; `stable`: as stored, for a prompt cache; else EBB_CONTEXT_ORDER"),
    ] = None
    summary_threshold: Annotated[
        Annotated[int, Field(ge=1), Whole] | None,
        Field(description="facts above so many characters appear by their summary"),
    ] = None
    prefer_long_term: Annotated[Flag | None, Field(description="favour facts that are meant to last")] = None
    use_importance_recency: Annotated[Flag | None, Field(description="favour important and recent facts")] = None
    min_similarity: Annotated[
        Annotated[float, Field(gt=0, le=1), Whole] | None,
        Field(description="leave out what shares no word with the prompt and is less similar; above 0 and up to 1"),
    ] = None
    min_relevance: Annotated[Share | None, Field(description=MIN_RELEVANCE)] = None
    entity_lookup: Annotated[Flag | None, Field(description="facts of entities that the prompt names")] = None
    entities: Annotated[
        Annotated[Names, Field(max_length=2_000)] | None,
        Field(description="only of these entities, with commas between or as a list; else of all"),
    ] = None
    documents: Annotated[Flag, Field(description="also parts of indexed files")] = False
    explain: Annotated[Flag, Field(description="take scores apart, and say what was left out")] = False
    touch: Annotated[Flag, Field(description="whether this counts as use")] = True


class Passage(Answer):
    """The passage of a long text that best matches a question: its characters from `start` to before `end`."""

    start: int
    end: int
    text: str


class ScoreParts(Answer):
    """The parts of a score, and the ranks of the fact, of which 1 is the best.

    score = ((fit + contiguity + graph + named) * role * (1 + salience) + prior) * factor + outstanding + newer
    """

    fit: Annotated[float | None, Field(description="by words and meaning together; older workers do not say")] = None
    text: float
    similarity: float
    contiguity: Annotated[float, Field(description="for turns beside a matching turn")]
    graph: Annotated[float, Field(description="for links with matching facts")]
    named: Annotated[float, Field(description="for entities that the question names")]
    role: float = 1.0
    salience: float = 0.0
    prior: float
    factor: float
    outstanding: Annotated[float, Field(description="for being far more relevant than the others")] = 0.0
    newer: Annotated[float, Field(description="for being newer than the facts that it updates")] = 0.0
    updates: list[UUID] = Field(default_factory=list, description="facts that it makes outdated")
    text_rank: int
    similarity_rank: int
    rank_without_decay: int


class LeftOut(Answer):
    """A fact that is not among the results, and the rule; the score and rank are those that it would have."""

    id: UUID
    text: Annotated[str, Field(description="empty if it was forgotten on request")]
    rule: str
    score: float | None
    rank: int | None
    namespace: Annotated[str | None, Field(description=NAMESPACE)] = None


class ByWords(Answer):
    """How well a fact fits a question by words; score and rank are null if the search by words has not found it."""

    asked: Annotated[list[str], Field(description="the stems of the question")]
    shared: Annotated[list[str], Field(description="those of them that the fact has")]
    score: float | None
    rank: int | None
    of: Annotated[int, Field(description="how many facts the search by words has found")]


class ByMeaning(Answer):
    """How well a fact fits a question by meaning, according to the signature of its vector."""

    similarity: float
    rank: int
    of: Annotated[int, Field(description="how many live facts have a signature")]
    brought: Annotated[bool, Field(description="whether the search by meaning has found it")]


class Why(Answer):
    """Why one fact was recalled or not; the score and rank are those that it would have."""

    id: UUID
    text: Annotated[str, Field(description="empty if it was forgotten on request")]
    recalled: bool
    rule: Annotated[str | None, Field(description="the rule that left it out")]
    score: float
    rank: int
    seen: Annotated[int, Field(description="how many facts were scored")]
    limit: int
    words: ByWords
    meaning: Annotated[ByMeaning | None, Field(description="null without a vector")]
    parts: ScoreParts


class Found(Answer):
    """What every answer shows of a fact that it found."""

    id: UUID
    text: str
    tier: str
    fidelity: str
    summary: Annotated[str | None, Field(description="what is shown in place of a long text")] = None
    found_by: Annotated[str | None, Field(description="words, meaning, link, entity, nearby, or of a lookup name")] = (
        None
    )
    kind: Annotated[str | None, Field(description="semantic, episodic, chunk or item")] = None
    source: Annotated[str | None, Field(description="where it comes from")] = None
    session: Annotated[str | int | None, Field(description="the conversation that it is from")] = None
    turn: Annotated[int | None, Field(description="its turn there, or of a chunk its first line")] = None
    role: Annotated[Role | None, Field(description="who said it")] = None
    entity: Annotated[str | None, Field(description="the person or thing that it is about")] = None
    key: Annotated[str | None, Field(description="which of the entity's properties")] = None
    value: Annotated[str | None, Field(description="that property's value")] = None
    category: str | None = None
    tags: list[str] = Field(default_factory=list)
    importance: Annotated[float | None, Field(description="from 0 to 1")] = None
    decay_class: str | None = None
    deep: Annotated[str | None, Field(description="why it had ended, where it is from deep memory")] = None
    durability: Annotated[str | None, Field(description="of an episode, persistent or permanent")] = None
    stale: Annotated[bool, Field(description="a permanent episode that was not used for long")] = False
    source_date: Annotated[datetime | None, Field(description="the date of its source")] = None
    created_at: datetime | None = None
    valid_from: Annotated[datetime | None, Field(description="since when it is true; null: since it was said")] = None
    valid_until: Annotated[datetime | None, Field(description="when it stops being true")] = None
    ends_at: datetime | None = None
    ends_for: str | None = None
    path: Annotated[str | None, Field(description="of a chunk, the path of its file")] = None
    section: Annotated[str | None, Field(description="of a chunk, the headings above it")] = None


class Result(Found):
    """One recalled fact."""

    score: float
    relevance: Annotated[
        float | None,
        Field(description="how well it fits, 0 to 1, comparable between questions; older workers do not say"),
    ] = None
    passage: Annotated[Passage | None, Field(description="what fits best of a text of more than 120 words")] = None
    explain: Annotated[ScoreParts | None, Field(description="the parts of its score, if requested")] = None
    namespace: Annotated[str | None, Field(description=NAMESPACE)] = None


class Recalled(Answer):
    """Matching facts, best first."""

    results: list[Result]
    by_meaning: bool | None = Field(None, description=BY_MEANING)
    deep: int | None = Field(None, description=DEEP)
    left_out: list[LeftOut] | None = Field(None, description=LEFT_OUT)
    why: Annotated[Why | None, Field(description="why the fact of `why` was recalled or not")] = None


class RecalledMany(Answer):
    """The results or the `error` of each question, in order."""

    answers: list[Recalled | Rejected]


class Known(Found):
    """One fact about an entity."""

    confidence: float


class LookedUp(Page):
    """Facts about an entity, or one key of it, most confident first."""

    results: list[Known]


class InjectedFact(Answer):
    """A fact in a block for a prompt, with its line."""

    id: UUID
    line: str
    score: float
    relevance: Annotated[float | None, Field(description="how well it fits, 0 to 1")] = None
    found_by: str
    summarised: Annotated[bool, Field(description="whether its summary stands in place of its text")]
    ends_at: datetime | None = None
    ends_for: str | None = None
    passage: Annotated[Passage | None, Field(description="what stands in place of its text")] = None
    explain: Annotated[ScoreParts | None, Field(description="the parts of its score, if requested")] = None
    namespace: Annotated[str | None, Field(description=NAMESPACE)] = None


class Injected(Answer):
    """A block of matching facts as text for a prompt."""

    context: str
    tokens: int
    facts: list[InjectedFact] = Field(default_factory=list, description="the facts in the block, with the line of each")
    by_meaning: bool | None = Field(None, description=BY_MEANING)
    deep: int | None = Field(None, description=DEEP)
    left_out: list[LeftOut] | None = Field(None, description=LEFT_OUT)


RECALL = reads("memory.recall", Recall, Recalled, "POST /memory/recall")
RECALL_MANY = reads("memory.recall_many", RecallMany, RecalledMany, "POST /memory/recall/batch", STORE_SECONDS)
LOOKUP = reads("memory.lookup", Lookup, LookedUp, "GET /memory/lookup")
CONTEXT = reads("memory.context", Context, Injected, "POST /memory/context")
