"""One recall from question to answer."""

import logging
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import TypeAlias

import numpy as np
from ebb.contract.faults import show

from workers.context import Context
from workers.coordination.timings import timed
from workers.core import passages, questions, ranking
from workers.core.arrays import Key, Vectors
from workers.core.passages import Passage
from workers.embedding import wordpiece
from workers.errors import EmbeddingError, NotFoundError
from workers.memory.lifetime import NEVER
from workers.memory.recall import answer, arms, explain, floor, rerank, scoring
from workers.memory.recall.answer import Recalled, Result
from workers.memory.recall.arms import Found, TextArm
from workers.memory.recall.explain import ScoredRecall, made_comparable, shared_out
from workers.memory.recall.question import Asked, Question
from workers.memory.recall.scoring import Scored, read_and_score
from workers.memory.recall.steps import together
from workers.storage import candidates, tombstones, words
from workers.storage.candidates import Described, Description, Scope
from workers.storage.connection import Connection, in_pipeline, on_shard_of, reader, second_reader
from workers.storage.namespaces import Namespace
from workers.storage.words import Term

log = logging.getLogger(__name__)

MOST_SPELLINGS = 3
LOOKED_AT = 20
"""Maximum number of other spellings of a name that are considered, and of facts read for each."""

LARGE = 5_000
"""Number of facts from which a parallel vector search on a second connection is worth its cost."""


def recall_many(
    context: Context, namespace: str, questions: Sequence[Question], now: datetime, *, reranks: bool = True
) -> list[Recalled | NotFoundError]:
    """Return for each question the facts that best match it at `now`, with one embedding batch and one connection.

    They are of one namespace, or of those that the question names. Questions that name none are answered together, so
    that they take hardly more trips to the server than one. With `reranks`, the reranker of the settings, if any, is
    asked once for each question. With a tag, or if the embedder fails, vectors are not searched. `as_of` gives
    the facts that were true then, `known_as_of` those that were stored and not superseded by then. The answer is an
    error if the fact of `why`, or a namespace that the question names, does not exist.

    Raises:
        UnavailableError: the database does not answer.
    """
    until = rerank.deadline(len(questions)) if reranks and context.settings.rerank_url else 0.0
    with timed("recall embed"):
        vectors = _embed(context, questions)
    given = list(zip(questions, vectors, strict=True))
    answers: dict[int, Recalled | NotFoundError] = {}
    with reader(context.read_url) as db:
        for places in _batches(questions, alone=bool(until)):
            found = _answered(context, db, namespace, [given[place] for place in places], now, until)
            answers |= zip(places, found, strict=True)
    return [answers[place] for place in range(len(questions))]


def _batches(questions: Sequence[Question], *, alone: bool) -> list[list[int]]:
    """Return the indexes of questions that are answered together: all of one namespace, or each `alone`.

    Those that name namespaces, which may be on several shards, are always alone.
    """
    together = [place for place, one in enumerate(questions) if not (alone or one.namespaces)]
    apart = [[place] for place, one in enumerate(questions) if alone or one.namespaces]
    return [*apart, together] if together else apart


Given: TypeAlias = tuple[Question, Vectors | None]
"""A question and its vector, or None if vectors are not searched."""


def _answered(
    context: Context, db: Connection, namespace: str, batch: Sequence[Given], now: datetime, until: float
) -> list[Recalled | NotFoundError]:
    """Answer a batch of questions in a transaction.

    Statements are pipelined: independent ones, of all questions, are sent together. The reranker, if there is one, is
    asked between two transactions, and not after `until` on the monotonic clock, which is 0 without a reranker.
    """
    try:
        with in_pipeline(db):
            every = _recall(context, db, namespace, batch, now)
            sent = rerank.first_texts(context, every[0]) if until and every[0] else None
            if sent is None:
                answers = [_answer(namespace, *given, own) for given, own in zip(batch, every, strict=True)]
        if sent is not None:
            reranked, done = rerank.reranked(context, batch[0][0].text, sent, until)
            with in_pipeline(db):
                answers = [_answer(namespace, *batch[0], reranked, reranked=done)]
        return [read() for read in answers]  # their results arrived with the commit
    except NotFoundError as error:  # a namespace that the question names; such a question is alone in its batch
        return [error]


def _recall(
    context: Context, db: Connection, namespace: str, batch: Sequence[Given], now: datetime
) -> list[Sequence[ScoredRecall]]:
    """Return for each question the recall in each namespace with its scored candidates; nothing if there is none."""
    scopes = [Scope(now, one.filters, one.as_of or one.known_as_of, one.known_as_of, deep=one.deep) for one, _ in batch]

    def asked(query: Vectors | None, scope: Scope, tenant: Namespace, read: Question) -> Asked:
        # An embedder that does not answer may not know its name either.
        usable = query if query is not None and tenant.embedder == context.embedder.name else None
        return Asked(context, db, tenant, read, scope, usable)

    tenants = _tenants(db, namespace, batch, scopes)
    every = [
        [(asked(query, scope, tenant, read), terms) for tenant, read, terms in own]
        for (_, query), scope, own in zip(batch, scopes, tenants, strict=True)
    ]
    if batch[0][0].namespaces:
        return [made_comparable([one for pair in every[0] for one in _scored([pair])])]
    scored = iter(_scored(list(chain.from_iterable(every))))
    return [[next(scored) for _ in own] for own in every]


def _tenants(
    db: Connection, namespace: str, batch: Sequence[Given], scopes: Sequence[Scope]
) -> list[list[tuple[Namespace, Question, Sequence[Term]]]]:
    """Return for each question the namespaces to search, with the question as it is read in each, and its words there.

    Raises:
        NotFoundError: one that a question names is missing.
    """
    asked = [[_asked_for(db, name, one) for name in one.namespaces or (namespace,)] for one, _ in batch]
    found = [[tenant for read in own if (tenant := read())] for own in asked]
    for (question, _), tenants in zip(batch, found, strict=True):
        if question.namespaces and len(tenants) < len(question.namespaces):
            missing = sorted({*question.namespaces} - {tenant.name for tenant, _ in tenants})
            raise NotFoundError(f"namespaces: {show(missing)} do not exist; leave them out, or correct the names.")
    return [
        [(tenant, *_spelt(db, tenant, question, terms, scope)) for tenant, terms in tenants]
        for (question, _), tenants, scope in zip(batch, found, scopes, strict=True)
    ]


def _spelt(
    db: Connection, tenant: Namespace, question: Question, terms: Sequence[Term], scope: Scope
) -> tuple[Question, Sequence[Term]]:
    """Replace misspelt words and other spellings of names by those of facts; return the question and its words."""
    unknown = {term.lexeme for term in terms if not term.facts}
    doubtful = questions.doubtful(question.text, unknown, wordpiece.vocabulary()) if unknown else []
    names = questions.unknown_names(question.text, unknown)
    if not doubtful and not names:
        return question, terms
    with on_shard_of(db, tenant.name) if question.namespaces else nullcontext():
        meant = _meant(db, tenant, doubtful, names, scope)
        if not meant:
            return question, terms
        text = questions.replaced(question.text, meant)
        return replace(question, text=text), words.of_query(db, tenant.name, text)


def _meant(
    db: Connection, tenant: Namespace, doubtful: Sequence[str], names: Sequence[str], scope: Scope
) -> dict[str, str]:
    """Return what facts have instead of misspelt words and of names, if they do not have these themselves.

    The counts lack new facts and, of this scope, ended ones, so each word is looked for in the facts too. Independent
    queries are sent together.
    """
    instead, spellings = _ask_words_meant(db, tenant, doubtful), _ask_spellings(db, tenant, names)
    meant = instead()
    of_names = {name: _ask_name(db, tenant, others, scope) for name, others in spellings().items()}
    held = {word: candidates.ask_texts(db, tenant, word, scope, 1) for word in (*meant, *of_names)}
    meant |= {name: read() for name, read in of_names.items()}
    return {word: other for word, other in meant.items() if other and not held[word]()}


def _ask_words_meant(db: Connection, tenant: Namespace, doubtful: Sequence[str]) -> Callable[[], dict[str, str]]:
    """Send the query for what misspelt words may mean; return its reader."""
    if not doubtful:
        return dict
    held = words.ask_held(db, tenant.id, [one for word in doubtful for one in questions.slips(word)])
    return lambda: questions.meant(doubtful, held())


def _ask_spellings(db: Connection, tenant: Namespace, names: Sequence[str]) -> Callable[[], dict[str, list[str]]]:
    """Send the query for the most frequent other spellings of names; return its reader, for names that have any."""
    first = {name: questions.FIRST_LETTERS.get(name[0], name[0]) for name in names}
    alike = {name: words.ask_alike(db, tenant.id, first[name], len(name)) for name in names}

    def read() -> dict[str, list[str]]:
        others = {name: questions.other_spellings(name, held())[:MOST_SPELLINGS] for name, held in alike.items()}
        return {name: those for name, those in others.items() if those}

    return read


def _ask_name(db: Connection, tenant: Namespace, others: Sequence[str], scope: Scope) -> Callable[[], str]:
    """Send the query for facts with other spellings of a name; return the reader of the first that is a name, or ""."""
    texts = {one.capitalize(): candidates.ask_texts(db, tenant, one, scope, LOOKED_AT) for one in others}
    return lambda: next((name for name, read in texts.items() if _is_name(name, read())), "")


def _is_name(name: str, texts: Sequence[str]) -> bool:
    """Return whether most of some texts contain a word with its capital."""
    written = re.compile(rf"\b{name}\b")
    return 2 * len([text for text in texts if written.search(text)]) > len(texts)


def _asked_for(db: Connection, name: str, question: Question) -> Callable[[], tuple[Namespace, Sequence[Term]] | None]:
    """Send the query for a namespace and for the words of a question in it."""
    with on_shard_of(db, name) if question.namespaces else nullcontext():
        return words.ask(db, name, question.text)


def _scored(every: Sequence[tuple[Asked, Sequence[Term]]]) -> list[ScoredRecall]:
    """Return recalls in one namespace with their scored candidates, in order."""
    if not every:
        return []
    with every[0][0].on_its_shard():
        with timed("recall search"):
            found = _search(every)
        with timed("recall weigh"):
            scored = together([read_and_score(asked, own) for (asked, _), own in zip(every, found, strict=True)])
            for place, (asked, _) in enumerate(every):
                if not asked.scope.past and scoring.is_crowded(found[place], scored[place]):
                    found[place] = replace(found[place], near=_send_near(asked.db, asked, visible=True)())
                    [scored[place]] = together([read_and_score(asked, found[place])])
    return [_ordered(asked, own, one) for (asked, _), own, one in zip(every, found, scored, strict=True)]


def _ordered(asked: Asked, found: Found, scored: Scored) -> ScoredRecall:
    """Return a recall with its scored candidates in order."""
    question = asked.question
    order = answer.order(scored.seen, scored.scores)
    least, least_for_use = floor.minimum(asked, found), floor.minimum_for_use(asked, found)
    fitting = certain = floor.relevant_enough(question, found, scored, order, least)
    if least_for_use != least:
        certain = floor.relevant_enough(question, found, scored, order, least_for_use)
    return ScoredRecall(
        asked.context, asked.db, asked.tenant, question, asked.scope, asked.query,
        found, scored, order, fitting, certain, question.limit,
    )  # fmt: skip


def _search(every: Sequence[tuple[Asked, Sequence[Term]]]) -> list[Found]:
    """Return the results of both arms; in a large namespace they search in parallel on two connections."""
    first = every[0][0]
    large = first.tenant.counted_facts >= LARGE and any(asked.query is not None for asked, _ in every)
    with second_reader(first.context.read_url) if large else nullcontext(first.db) as other:
        near = [_send_near(other, asked) for asked, _ in every]
        text = [
            arms.send_text(
                one.db, one.tenant, one.question.text, terms, one.scope, one.question.limit, alone=one.query is None
            )
            for one, terms in every
        ]
        by_words = [read() for read in text]
    # From a second connection, the results arrived with its commit.
    return [_found(asked, own, read()) for (asked, _), own, read in zip(every, by_words, near, strict=True)]


def _send_near(db: Connection, asked: Asked, *, visible: bool = False) -> Callable[[], dict[Key, float]]:
    """Send the search of the vector arm, if vectors are searched; return its reader."""
    if asked.query is None:
        return dict
    limit, indexed = asked.question.limit, asked.tenant.counted_facts >= asked.context.settings.ann_threshold
    return arms.vector_arm(
        db, asked.tenant, asked.query, asked.scope, limit, indexed=indexed, visible=visible, later=asked.db
    )


def _found(asked: Asked, by_words: TextArm, near: dict[Key, float]) -> Found:
    if asked.query is None:
        return Found(by_words, near)
    weights = asked.context.embedder.weights
    return Found(by_words, near, ranking.by_length(weights, by_words.stems.question.mean_words))


def _answer(
    namespace: str,
    question: Question,
    query: Vectors | None,
    every: Sequence[ScoredRecall],
    *,
    reranked: bool | None = None,
) -> Callable[[], Recalled | NotFoundError]:
    """Send the queries for the answer to a question; return its reader, which gives an error if `why` has no fact."""
    try:
        if every:
            return _shown(every, reranked=reranked)
        nothing = _nothing(namespace, question, by_meaning=query is not None)
    except NotFoundError as error:
        missing = error
        return lambda: missing
    return lambda: nothing


def _shown(every: Sequence[ScoredRecall], *, reranked: bool | None) -> Callable[[], Recalled]:
    """Send the queries for the results of all namespaces, and on request explain them; return the answer's reader."""
    question, every = every[0].question, shared_out(every, every[0].question.limit)
    doubtful = floor.is_doubtful(question, np.concatenate([one.scored.relevances[one.chosen] for one in every]))
    shown, ended = [], []
    for one in every:
        with one.on_its_shard():
            shown.append((one, candidates.describe(one.db, one.tenant.id, one.result_ids, one.silent_since)))
            ended += [(one.tenant.name, tombstones.ask_ended(one.db, one.tenant.id))] if doubtful else []
    left_out = [out for one in every for out in explain.left_out(one)] if question.explain else None
    why = None if question.why is None else explain.why_among(every, question.why)
    return lambda: Recalled(
        sorted((result for one, read in shown for result in _results(one, read())), key=lambda one: -one.score),
        by_meaning=all(one.query is not None for one in every),
        reranked=reranked,
        left_out=left_out,
        why=why,
        uncertain=frozenset((one.tenant.name, id_) for one in every for id_ in one.unused_ids),
        ended=[(name, read()) for name, read in ended] if doubtful else None,
    )


def _nothing(namespace: str, question: Question, *, by_meaning: bool) -> Recalled:
    if question.why is not None:
        raise NotFoundError(f"why: no fact {question.why} is in namespace {namespace!r}, for there is none.")
    doubtful = floor.is_doubtful(question, np.zeros(0))
    return Recalled([], by_meaning, left_out=[] if question.explain else None, ended=[] if doubtful else None)


def _embed(context: Context, questions: Sequence[Question]) -> list[Vectors | None]:
    """Return the vector of each question; None if it has a tag or the embedder fails."""
    texts = [one.text for one in questions if not one.filters.tag]
    try:
        vectors = iter(context.queries.embed_all(texts) if texts else [])
    except EmbeddingError as error:
        log.warning("recalled by words alone: %s", error)
        return [None] * len(questions)
    return [None if one.filters.tag else next(vectors) for one in questions]


def _results(asked: ScoredRecall, shown: Described) -> list[Result]:
    scored, scores = asked.scored, asked.scored.scores
    # With a reranker, the facts are read later than they were found.
    places = np.array([at for at in asked.chosen if scored.seen["id"][at] in shown.facts], np.int64)
    chosen = scored.seen[places]
    described = [shown.facts[id_] for id_ in chosen["id"]]
    ends = answer.endings_of(asked.context, asked.tenant, shown)
    ranks = answer.ranks(scores) if asked.question.explain else None
    return [
        answer.result(
            one,
            fact,
            ends.get(fact.id, NEVER),
            tier,
            float(scores.total[place]),
            asked.found.how_found(one["id"], scored.added),
            float(scored.relevances[place]),
            _passage(asked.found.text, fact),
            answer.score_parts(place, scores, ranks, asked.updated_by(place)) if ranks else None,
            asked.tenant.name if asked.question.namespaces else None,
            asked.outdated_by(place),
        )
        for one, fact, tier, place in zip(
            chosen, described, scoring.current_tiers(chosen, asked.scope.now).tolist(), places.tolist(), strict=True
        )
    ]


def _passage(text: TextArm, fact: Description) -> Passage | None:
    """Return the passage of a long fact with most of the question's words, if any."""
    begin = text.passages.get(fact.id.bytes) if text.passages else None
    return None if begin is None else passages.passage_at(fact.text, begin)
