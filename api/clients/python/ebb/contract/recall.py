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
    text_as,
)

BY_MEANING = (
    "false: words alone decided, for example because the embedder does not answer; null: older workers do not say"
)
RERANKED = (
    "whether the reranker ordered the first results; false: it did not answer; null: there is none, or nothing to order"
)
DEEP = "how many facts in deep memory fit, where nothing else does, or clearly better; ask with `deep` to get them"
OVER_BUDGET = "if the block is empty: how many facts fit the prompt, of which even the best exceeds the budget"
LEFT_OUT = "with `explain`, the facts that are not among the results, each with the rule"
NAMESPACE = "where it is, if several namespaces were asked"
OUTDATED_BY = "newer facts that make it outdated, as far as rules can tell"
MIN_RELEVANCE = (
    "leave out what is less relevant, 0 to 1; 0 leaves out nothing; else nothing is returned unless the best result "
    "reaches EBB_MIN_RELEVANCE"
)
AS_OF = "what was true at this instant, ISO 8601 with zone or a date, superseded facts included"
KNOWN_AS_OF = "what had been stored, and held to be true, by this instant"


class Question(Timed):
    """Common parameters of questions; one about the past does not count as use."""

    as_of: Instant | None = Field(default=None, description=AS_OF)
    known_as_of: Instant | None = Field(default=None, description=KNOWN_AS_OF)
    touch: Flag = Field(default=True, description="whether this counts as use")

    @property
    def is_past(self) -> bool:
        """Return whether it is as of an instant."""
        return self.as_of is not None or self.known_as_of is not None


class Filters(Params):
    """Filters on facts, which must pass all that are given."""

    tag: Tag | None = Field(default=None, description="only facts with this tag; a recall then matches words alone")
    category: Name | None = Field(default=None, description="only facts of this category")
    kind: Kind | None = Field(default=None, description="only facts of this kind")
    role: Role | None = Field(default=None, description="only what the user, assistant, system or tool said")
    pinned: Flag | None = Field(default=None, description="only facts that are pinned, or with false only others")
    entity: Named | None = Field(default=None, description="only facts about this person or thing, in any case")
    key: Named | None = Field(default=None, description="only facts about this property, in any case")
    session: Session | None = Field(default=None, description="only facts of this conversation")
    source: Name | None = Field(default=None, description="only facts from this source, such as the path of a file")
    tier: Tier | None = Field(
        default=None, description="only facts of this tier, as their last use or the last pass found it"
    )
    documents: Flag = Field(default=True, description="also parts of indexed files")

    def filters(self) -> dict[str, Any]:
        """Return the filters by name; a filter for chunks includes documents."""
        given = {name: getattr(self, name) for name in Filters.model_fields}
        return given | {"documents": self.documents or self.kind == "chunk"}


class Explained(Question):
    """A question whose answer can include explanations."""

    explain: Flag = Field(default=False, description="take each score apart, and say what was left out by which rule")
    why: FactId | None = Field(
        default=None, description="a fact's id: say why it was recalled or was not; strengthens nothing"
    )


class Several(Scoped):
    """A question to several namespaces at once."""

    namespaces: Annotated[Namespaces, Field(min_length=1, max_length=MOST_NAMESPACES)] | None = Field(
        default=None,
        description="these namespaces instead of one, with commas between or as a list; the results stand in one "
        "order, each with its namespace; over HTTP others than the key's own need the scope `system`",
    )


class Recall(Filters, Several, Explained):
    """Find the facts that best match a question, by words and by meaning.

    This counts as use and strengthens the facts, unless `touch` is false or the question is about the past.
    """

    model_config = examples({"query": "Where is the other key?", "limit": 3, "explain": True})

    query: Query = Field(description="a question or topic in your own words")
    deep: Flag = Field(default=False, description="also what ended by itself long ago; what is used of it lives again")
    limit: Limit = Field(default=10, description="how many facts at most")
    min_relevance: Share | None = Field(default=None, description=MIN_RELEVANCE)


class RecallMany(Timed):
    """Answer many questions as one task, each with its own answer in order; an invalid one does not affect others."""

    model_config = examples({"queries": [{"query": "Where is the key?", "limit": 3}, "Mira"]})

    queries: list[Annotated[Any, text_as("query")]] = Field(
        min_length=1,
        max_length=MOST_QUESTIONS,
        description="questions as `POST /memory/recall` takes them, or their texts alone",
    )


class Lookup(Question):
    """Return the facts about an entity, or one key of it, most confident first, then newest.

    This needs no embedding. It counts as use and strengthens the facts, unless `touch` is false.
    """

    entity: Named = Field(description="the person or thing that facts are about, in any case")
    key: Named | None = Field(default=None, description="which of its properties; else all")
    tag: Tag | None = Field(default=None, description="only facts with this tag")
    limit: ListLimit | None = Field(default=None, description="how many facts at most; else all")
    cursor: Cursor | None = Field(default=None, description="the `next` of the page before")


class Context(Filters, Several, Timed):
    """Return a block of matching facts as text for a prompt; it counts as use of the facts in it."""

    model_config = examples({"query": "Where does Mira live now?", "max_tokens": 400, "format": "short"})

    query: Query = Field(description="what the next prompt is about, such as the user's message")
    deep: Flag = Field(default=False, description="also what ended by itself long ago; what is used of it lives again")
    limit: Limit = Field(default=10, description="how many facts at most")
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000), Whole] | None = Field(
        default=None, description="the budget, which counts all of the text; else EBB_CONTEXT_TOKENS"
    )
    format: Literal["full", "short", "minimal"] | None = Field(
        default=None, description="`full`, `short` or `minimal` lines; else EBB_CONTEXT_FORMAT"
    )
    dates: Flag | None = Field(
        default=None, description="show the day on which each fact was said; else EBB_CONTEXT_DATES"
    )
    order: Literal["rank", "stable"] | None = Field(
        default=None,
        description="`rank`: the best first; `stable`: as stored, for a prompt cache; else EBB_CONTEXT_ORDER",
    )
    summary_threshold: Annotated[int, Field(ge=1), Whole] | None = Field(
        default=None, description="facts above so many characters appear by their summary"
    )
    prefer_long_term: Flag | None = Field(default=None, description="favour facts that are meant to last")
    use_importance_recency: Flag | None = Field(default=None, description="favour important and recent facts")
    min_similarity: Annotated[float, Field(gt=0, le=1), Whole] | None = Field(
        default=None,
        description="leave out what shares no word with the prompt and is less similar; above 0 and up to 1",
    )
    min_relevance: Share | None = Field(default=None, description=MIN_RELEVANCE)
    entity_lookup: Flag | None = Field(default=None, description="facts of entities that the prompt names")
    entities: Annotated[Names, Field(max_length=2_000)] | None = Field(
        default=None, description="only of these entities, with commas between or as a list; else of all"
    )
    documents: Flag = Field(default=False, description="also parts of indexed files")
    explain: Flag = Field(default=False, description="take scores apart, and say what was left out")
    touch: Flag = Field(default=True, description="whether this counts as use")


class Passage(Answer):
    """The passage of a long text that best matches a question: its characters from `start` to before `end`."""

    start: int
    end: int
    text: str


class ScoreParts(Answer):
    """The parts of a score, and the ranks of the fact, of which 1 is the best.

    score = ((fit + contiguity + graph + named) * role * (1 + salience) + prior) * factor + outstanding + newer
    + reranked
    """

    fit: float | None = Field(default=None, description="by words and meaning together; older workers do not say")
    text: float
    similarity: float
    contiguity: float = Field(description="for turns beside a matching turn")
    graph: float = Field(description="for links with matching facts")
    named: float = Field(description="for entities that the question names")
    role: float = 1.0
    salience: float = 0.0
    prior: float
    factor: float
    outstanding: float = Field(default=0.0, description="for being far more relevant than the others")
    newer: float = Field(default=0.0, description="for being newer than the facts that it updates")
    reranked: float = Field(default=0.0, description="for its place in the order of the reranker; may be negative")
    rerank_score: float | None = Field(default=None, description="by the reranker, on the scale of its model")
    updates: list[UUID] = Field(default_factory=list, description="facts that it makes outdated")
    text_rank: int
    similarity_rank: int
    rank_without_decay: int


class LeftOut(Answer):
    """A fact that is not among the results, and the rule; score and rank are those it would have in its namespace."""

    id: UUID
    text: str = Field(description="empty if it was forgotten on request")
    rule: str
    score: float | None
    rank: int | None
    namespace: str | None = Field(default=None, description=NAMESPACE)


class ByWords(Answer):
    """How well a fact fits a question by words; score and rank are null if the search by words has not found it."""

    asked: list[str] = Field(description="the stems of the question")
    shared: list[str] = Field(description="those of them that the fact has")
    score: float | None
    rank: int | None
    of: int = Field(description="how many facts the search by words has found")


class ByMeaning(Answer):
    """How well a fact fits a question by meaning, according to the signature of its vector."""

    similarity: float
    rank: int
    of: int = Field(description="how many live facts have a signature")
    brought: bool = Field(description="whether the search by meaning has found it")


class Why(Answer):
    """Why one fact was recalled or not; the score and rank are those that it would have in its namespace."""

    id: UUID
    text: str = Field(description="empty if it was forgotten on request")
    recalled: bool
    rule: str | None = Field(description="the rule that left it out")
    score: float
    rank: int
    seen: int = Field(description="how many facts were scored")
    limit: int
    words: ByWords
    meaning: ByMeaning | None = Field(description="null without a vector")
    parts: ScoreParts


class Found(Answer):
    """What every answer shows of a fact that it found."""

    id: UUID
    text: str
    tier: str
    fidelity: str
    summary: str | None = Field(default=None, description="what is shown in place of a long text")
    found_by: str | None = Field(default=None, description="words, meaning, link, entity, nearby, or of a lookup name")
    kind: str | None = Field(default=None, description="semantic, episodic, chunk or item")
    source: str | None = Field(default=None, description="where it comes from")
    session: str | int | None = Field(default=None, description="the conversation that it is from")
    turn: int | None = Field(default=None, description="its turn there, or of a chunk its first line")
    role: Role | None = Field(default=None, description="who said it")
    entity: str | None = Field(default=None, description="the person or thing that it is about")
    key: str | None = Field(default=None, description="which of the entity's properties")
    value: str | None = Field(default=None, description="that property's value")
    category: str | None = None
    tags: list[str] = Field(default_factory=list)
    importance: float | None = Field(default=None, description="from 0 to 1")
    decay_class: str | None = None
    deep: str | None = Field(default=None, description="why it had ended, where it is from deep memory")
    durability: str | None = Field(default=None, description="of an episode, persistent or permanent")
    stale: bool = Field(default=False, description="a permanent episode that was not used for long")
    source_date: datetime | None = Field(default=None, description="the date of its source")
    created_at: datetime | None = None
    valid_from: datetime | None = Field(default=None, description="since when it is true; null: since it was said")
    valid_until: datetime | None = Field(default=None, description="when it stops being true")
    ends_at: datetime | None = None
    ends_for: str | None = None
    path: str | None = Field(default=None, description="of a chunk, the path of its file")
    section: str | None = Field(default=None, description="of a chunk, the headings above it")
    outdated_by: list[UUID] = Field(default_factory=list, description=OUTDATED_BY)


class Result(Found):
    """One recalled fact."""

    score: float
    relevance: float | None = Field(
        default=None, description="how well it fits, 0 to 1, comparable between questions; older workers do not say"
    )
    passage: Passage | None = Field(default=None, description="what fits best of a text of more than 120 words")
    explain: ScoreParts | None = Field(default=None, description="the parts of its score, if requested")
    namespace: str | None = Field(default=None, description=NAMESPACE)


class Recalled(Answer):
    """Matching facts, best first."""

    results: list[Result]
    by_meaning: bool | None = Field(default=None, description=BY_MEANING)
    reranked: bool | None = Field(default=None, description=RERANKED)
    deep: int | None = Field(default=None, description=DEEP)
    left_out: list[LeftOut] | None = Field(default=None, description=LEFT_OUT)
    why: Why | None = Field(default=None, description="why the fact of `why` was recalled or not")


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
    relevance: float | None = Field(default=None, description="how well it fits, 0 to 1")
    found_by: str
    summarised: bool = Field(description="whether its summary stands in place of its text")
    ends_at: datetime | None = None
    ends_for: str | None = None
    passage: Passage | None = Field(default=None, description="what stands in place of its text")
    explain: ScoreParts | None = Field(default=None, description="the parts of its score, if requested")
    namespace: str | None = Field(default=None, description=NAMESPACE)
    outdated_by: list[UUID] = Field(default_factory=list, description=OUTDATED_BY)


class Injected(Answer):
    """A block of matching facts as text for a prompt."""

    context: str
    tokens: int
    facts: list[InjectedFact] = Field(default_factory=list, description="the facts in the block, with the line of each")
    by_meaning: bool | None = Field(default=None, description=BY_MEANING)
    reranked: bool | None = Field(default=None, description=RERANKED)
    deep: int | None = Field(default=None, description=DEEP)
    over_budget: int | None = Field(default=None, description=OVER_BUDGET)
    left_out: list[LeftOut] | None = Field(default=None, description=LEFT_OUT)


RECALL = reads("memory.recall", Recall, Recalled, "POST /memory/recall")
RECALL_MANY = reads("memory.recall_many", RecallMany, RecalledMany, "POST /memory/recall/batch", STORE_SECONDS)
LOOKUP = reads("memory.lookup", Lookup, LookedUp, "GET /memory/lookup")
CONTEXT = reads("memory.context", Context, Injected, "POST /memory/context")
