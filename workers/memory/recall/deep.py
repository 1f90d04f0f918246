"""Deep memory in a recall: promising facts are unpacked to be searched, or only counted where nothing else fits."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from uuid import UUID

import numpy as np
from ebb.contract.recall import Filters

from workers.context import Context
from workers.coordination import signals
from workers.core import ranking, relevance, signature
from workers.core.arrays import Ints, Vectors
from workers.core.passages import CUT
from workers.embedding import word_vectors
from workers.errors import EmbeddingError, NotFoundError, UnavailableError
from workers.memory.recall import arms, floor, pipeline, stems
from workers.memory.recall.answer import Recalled
from workers.memory.recall.question import Question
from workers.memory.unpack import unpack
from workers.storage import deep, namespaces, replicas, subjects, words
from workers.storage.connection import Connection, reading
from workers.storage.namespaces import Namespace
from workers.storage.packing import Columns

CLEARLY_BETTER = 5.0
"""Factor of the best result's odds from which facts in deep memory fit clearly better."""

CONSIDERED = 1_000
"""Maximum number of facts whose texts are read to choose the most promising ones.

They are the best by Bloom filters, which take one in seven words for present, and by signatures.
"""

CONSIDERED_BYTES = 400_000
"""Maximum size of these facts as they are packed; at least `PROMOTED` are read."""

CONSIDERED_FOR_FILTERS = 10_000
"""The same if a question has filters, which few facts may pass: so many by words and by signatures, of any size."""

PROMOTED_OF_PROPERTY = 2_000
"""Maximum number of facts that are unpacked to list what is known of an entity or of a property of it."""

PROMOTED = 200
"""Maximum number of facts that are unpacked for a question.

Where a year sank conversations, the best 300 by Bloom filters and signatures lose 4.7 points of recall@10 with 2,200
facts (Memora) and 1.9 with 550 (LoCoMo 1-5); the best 200 by their texts, signatures and neighbours lose 1.1 and 1.5,
and 0.2 and 0.1 if similarities are then computed from their texts.
Most of the time of a question is spent on unpacking.
"""

COUNTED = 20
"""Maximum number of the most promising facts by words, and by vectors, whose relevance is computed for the hint.

With filters, only facts that pass them count.
"""


def recall(context: Context, namespace: str, question: Question, now: datetime) -> Recalled:
    """Return the facts that best match a question, as `pipeline.recall_many` does, on request including deep memory.

    Questions as of an earlier instant include deep memory too, as its facts may not have ended by then. Facts that are
    unpacked stay tombstones until they are used, and the next purge packs them again. If an ordinary recall finds
    nothing, or only what is likely not to answer, it counts the facts in deep memory that fit clearly better. Questions
    whose best result is there are counted as regrets, without those as of an instant and those that only measure.
    """
    (found,) = recall_many(context, namespace, [question], now)
    if isinstance(found, NotFoundError):
        raise found
    return found


def recall_many(
    context: Context, namespace: str, questions: Sequence[Question], now: datetime
) -> list[Recalled | NotFoundError]:
    """Return the result or error of `recall` for each question."""
    for question in questions:
        for name in question.namespaces or (namespace,):
            if question.why is not None:
                promote(context, name, [question.why], waits=False)
            promote_matching(context, name, question, now)
    found = pipeline.recall_many(context, namespace, questions, now)
    return [
        one if isinstance(one, NotFoundError) else _with_deep_count(context, namespace, question, one, now)
        for question, one in zip(questions, found, strict=True)
    ]


def promote(context: Context, namespace: str, ids: Sequence[UUID], *, waits: bool = True) -> None:
    """Unpack facts, in a transaction that sees what others unpacked while it waited."""
    replicas.use_primary()
    with context.at(namespace), context.namespace(namespace) as (db, tenant):
        unpack(context, db, tenant, ids, waits=waits)


def _with_deep_count(context: Context, namespace: str, question: Question, found: Recalled, now: datetime) -> Recalled:
    """Return an answer with the number of deep facts that fit clearly better, if any; count regrets.

    If nothing was found, it is the number of deep facts that fit, also if it is 0.
    """
    names = question.namespaces or (namespace,)
    best, better = max((one.relevance or 0.0 for one in found.results), default=0.0), Counter[str]()
    if found.ended is not None:
        least = relevance.times_odds(best, CLEARLY_BETTER)
        packed_in = [name for name, (any_packed, _) in found.ended if any_packed]
        better.update({name: _count_relevant(context, name, question, least) for name in packed_in})
        if any(unpacked for _, (_, unpacked) in found.ended):
            better.update(_tombstones(context, names[0], question, least, now))
        deep_ones = min(better.total(), question.limit)
        found = replace(found, deep=None if found.results and not deep_ones else deep_ones)
    first = found.results[0] if found.results else None
    if first and first.deep:
        better[first.namespace or names[0]] += 1
    if better.total() and not (question.looks_back or question.measures):
        _count_regret(context, max(better, key=lambda name: better[name]))
    return found


def _count_regret(context: Context, namespace: str) -> None:
    """Count an answer whose best result is in deep memory of a namespace, or may be."""
    with suppress(UnavailableError):  # a full Redis refuses it; the count is lower then
        signals.count(context.redis, signals.REGRETS, namespace)


def _tombstones(context: Context, namespace: str, question: Question, least: float, now: datetime) -> list[str]:
    """Return the namespace of each ended fact of this relevance that is not packed."""
    searched = [replace(question, deep=True, explain=False)]
    (found,) = pipeline.recall_many(context, namespace, searched, now, reranks=False)
    if isinstance(found, NotFoundError):
        return []
    fitting = (one for one in found.results if one.deep is not None and (one.relevance or 0.0) >= least)
    return [one.namespace or namespace for one in fitting]


def promote_matching(
    context: Context, namespace: str, question: Question, now: datetime, most: int | None = None
) -> None:
    """Unpack promising facts that pass the filters, if a question includes deep memory or is as of before `now`.

    At most `most` are unpacked, by default `PROMOTED`.
    """
    if not (question.deep or question.looks_before(now)):
        return
    replicas.use_primary()
    considered = CONSIDERED_FOR_FILTERS if question.is_filtered else CONSIDERED
    with _searched(context, namespace, question, considered) as (db, tenant, found):
        if not found.ids:
            return
        meaning = ranking.by_length(context.embedder.weights, found.mean_words)
        said = deep.said(db, tenant, found.ids if question.is_filtered else found.affordable(meaning))
        fitting = {id_: one for id_, one in said.items() if subjects.passes_filters(one, question.filters)}
    if fitting:
        promote(context, namespace, _best(found, fitting, meaning)[: most or PROMOTED])


def promote_property(context: Context, namespace: str, entity: str, key: str | None, now: datetime) -> None:
    """Unpack what deep memory knows of an entity, or of one property of it."""
    named = Question(f"{entity} {key or ''}", filters=Filters(entity=entity, key=key), deep=True)
    promote_matching(context, namespace, named, now, PROMOTED_OF_PROPERTY)


def _best(found: "Promising", said: Mapping[UUID, Columns], meaning: float) -> list[UUID]:
    """Return the facts, most promising first: by their words, similarity and neighbours in the conversation.

    Recall then ranks those that are unpacked by the same measures, computed exactly.
    """
    ids = list(said)
    texts = [deep.searched_text(one) for one in said.values()]
    times = stems.words_beginning_with(texts, found.stems)
    frequencies = np.maximum(np.array(found.facts_of_stems, np.int64), (times > 0).sum(axis=0))
    weights = ranking.inverse_document_frequency(frequencies, max(found.facts, len(ids)))
    lengths = np.minimum([len(text.split()) for text in texts], CUT.lexemes)
    by_words = ranking.scores(times, lengths, weights, min(found.mean_words, CUT.lexemes))
    similarities = dict(zip(found.ids, found.similarities, strict=True))
    fit = ranking.fuse(by_words, np.array([similarities[id_] for id_ in ids]), meaning)
    sessions = np.unique([str(one["session"]) for one in said.values()], return_inverse=True)[1]
    sessions = np.where([one["session"] is None for one in said.values()], -1, sessions)
    turns = np.array([one["turn"] or 0 for one in said.values()], np.int64)
    promise = fit + ranking.contiguity(fit, sessions, turns)
    return [ids[place] for place in np.argsort(-promise, kind="stable")]


def _passing(found: "Promising", texts: Mapping[UUID, Columns], question: Question) -> list[int]:
    """Return the indexes of the most promising facts that pass a question's filters."""
    passing = {id_ for id_, one in texts.items() if subjects.passes_filters(one, question.filters)}
    return [place for place in found.by_promise(ranking.EVEN).tolist() if found.ids[place] in passing][:COUNTED]


def _count_relevant(context: Context, namespace: str, question: Question, relevant: float) -> int:
    """Return how many of the most promising facts in deep memory reach the floor of relevance, and this one."""
    considered = CONSIDERED if question.is_filtered else COUNTED
    with _searched(context, namespace, question, considered) as (db, tenant, found):
        texts = deep.said(db, tenant, found.ids) if found.ids else {}
        filtered = question.is_filtered and found.ids
        places = _passing(found, texts, question) if filtered else [*range(len(found.ids))]
        # What says the same is one result.
        places = [*{deep.statement(texts[found.ids[place]]): place for place in places}.values()]
        if not places:
            return 0
        holding = np.array(deep.containing(db, [texts[found.ids[place]] for place in places], found.stems))
        holding = holding.reshape(len(places), -1)
    known = np.maximum(np.array(found.facts_of_stems, dtype=np.int64), holding.sum(axis=0))
    strangers = relevance.names_unknown(question.text, dict(zip(found.stems, known.tolist(), strict=True)))
    said = stems.words_of(question.text, found.stems)
    weights = word_vectors.weights(said, word_vectors.of_words(said))
    facts = max(found.facts, len(places))
    asked = relevance.Question(known, facts, found.mean_words, found.stems, strangers, word_weights=weights)
    similar = np.nan_to_num(np.array(found.similarities)[places])
    model = relevance.of_embedder(found.embedder)
    chosen = floor.configured(context, question)
    # A hint needs more than a result in a small namespace.
    least = max(model.certain(asked) if chosen is None else chosen, relevant)
    fitting = relevance.relevance(asked, holding > 0, np.zeros(holding.shape), similar, model) >= least
    return min(int(fitting.sum()), question.limit)


@dataclass(frozen=True, slots=True)
class Promising:
    """Facts in deep memory with their scores by words and by similarity, and the sizes of their bodies in bytes.

    Also the question's stems with their document frequencies, and the namespace's number and mean length of facts, and
    the name of its embedder.
    """

    ids: list[UUID] = field(default_factory=list)
    words: list[float] = field(default_factory=list)
    similarities: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    stems: list[str] = field(default_factory=list)
    facts_of_stems: list[int] = field(default_factory=list)
    facts: int = 0
    mean_words: float = 1.0
    embedder: str = ""

    def by_promise(self, meaning: float) -> Ints:
        """Return the indexes of the facts, the best first at this weight of similarity."""
        return np.argsort(-ranking.fuse(np.array(self.words), np.array(self.similarities), meaning), kind="stable")

    def affordable(self, meaning: float) -> list[UUID]:
        """Return the best facts, at this weight of similarity, whose texts are read."""
        best = self.by_promise(meaning)[:CONSIDERED]
        few = np.searchsorted(np.cumsum(np.array(self.sizes)[best]), CONSIDERED_BYTES, side="right")
        return [self.ids[place] for place in best[: max(int(few), PROMOTED)]]


@contextmanager
def _searched(
    context: Context, namespace: str, question: Question, limit: int
) -> Iterator[tuple[Connection, int, Promising]]:
    """Search deep memory by words and vectors; yield the transaction, the namespace and so many facts of each."""
    query = None
    with suppress(EmbeddingError):
        query = context.queries.embed(question.text)
    with context.at(namespace), reading(context.read_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None or not deep.is_used(db, tenant.id):
            yield db, 0, Promising()
        else:
            # An embedder that does not answer may not know its name either.
            usable = query if query is not None and tenant.embedder == context.embedder.name else None
            yield db, tenant.id, _promising(db, tenant, question.text, usable, limit)


def _promising(db: Connection, tenant: Namespace, text: str, query: Vectors | None, limit: int) -> Promising:
    terms = arms.informative(words.of_query(db, tenant.name, text), arms.MOST_TERMS)
    # Words that no live fact has come first, as those of facts that ended are not counted.
    rarest = sorted((term for term in terms if term.stem), key=attrgetter("facts"))[: deep.MOST_WORDS]
    frequencies = np.array([term.facts for term in rarest], dtype=np.int64)
    weights = ranking.inverse_document_frequency(frequencies, max(tenant.counted_facts, 1))
    own, lexemes = None if query is None else signature.encode(query[None, :])[0], [term.lexeme for term in rarest]
    rows = deep.search(db, tenant.id, own, lexemes, weights.tolist(), limit)
    if not rows:
        return Promising()
    ids, bits, said, sizes = zip(*rows, strict=True)
    cosines = signature.cosines(np.nan_to_num(np.array(bits, dtype=np.float64), nan=signature.BITS))
    return Promising(
        list(ids),
        list(said),
        [0.0] * len(rows) if query is None else cosines.tolist(),
        list(sizes),
        lexemes,
        frequencies.tolist(),
        tenant.counted_facts,
        tenant.mean_words or 1.0,
        tenant.embedder or "",
    )
