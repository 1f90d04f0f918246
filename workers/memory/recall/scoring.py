"""Scoring: the score of each candidate, and which candidates are scored."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from workers.context import Context
from workers.core import confidence, ranking, relevance, signature, tiers
from workers.core import updates as outdating
from workers.core.arrays import Bools, Floats, Ints, Key, Vectors
from workers.core.episodes import Branch
from workers.core.fading import softens_until
from workers.core.fidelity import FULL, pool
from workers.core.ranking import CONTIGUITY, Vitality
from workers.memory.namespace_settings import notices_updates
from workers.memory.recall import stems, updates
from workers.memory.recall.arms import Found
from workers.memory.recall.graph import Surroundings, ask_surroundings, near_in_session
from workers.memory.recall.question import Asked, Preferences
from workers.memory.recall.steps import Steps
from workers.storage import candidates, links, signatures
from workers.storage.activity import PERMANENT
from workers.storage.candidates import Candidates
from workers.storage.links import Update


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of n candidates and their parts, one array each.

    total = ((fit + contiguity + graph + named) * role * (1 + salience) + prior) * factor + outstanding + newer
    + reranked, where fit is made of text and similarity. `rerank_score` is NaN for candidates that were not sent to the
    reranker; both are None if it was not asked.
    """

    total: Floats
    fit: Floats
    text: Floats
    similarity: Floats
    contiguity: Floats
    graph: Floats
    named: Floats
    prior: Floats
    role: Floats
    salience: Floats
    factor: Floats
    outstanding: Floats
    newer: Floats
    reranked: Floats | None = None
    rerank_score: Floats | None = None

    def lifted(self, context: Context, relevances: Floats) -> "Scores":
        """Return scores where candidates that are far more relevant than the first ones rank above them.

        The documented ranking has no such rule.
        """
        if context.settings.ranking == "documented":
            return self
        gain = relevance.outstanding(self.total, relevances)
        return replace(self, total=self.total + gain, outstanding=gain) if gain.any() else self

    def reordered(self, places: Ints, totals: Floats, given: Floats) -> "Scores":
        """Return scores with n other totals at n `places`, and there n scores of the reranker.

        What is newer has to be ranked above what it makes outdated again.
        """
        total, score, none = self.total - self.newer, np.full(len(self.total), np.nan), np.zeros(len(self.total))
        total[places], score[places] = totals, given
        gain = total - (self.total - self.newer)
        return replace(self, total=total, newer=none, reranked=gain, rerank_score=score)

    def above(self, stated_at: Floats, pairs: Sequence[updates.Pair]) -> "Scores":
        """Return scores where the newer candidate of each pair ranks above the older one."""
        if not pairs:
            return self
        total = outdating.with_newer_above(self.total, stated_at, pairs)
        return replace(self, total=total, newer=total - self.total)


def pooled_queries(context: Context, query: Vectors | None) -> dict[int, Vectors]:
    """Return the (dims,) query by dims: in full, and pooled to each size of a stored vector."""
    if query is None:
        return {}
    buckets = [2**step for step in range(context.rules.widest_bucket.bit_length())]
    return {len(query) // bucket: pool(query[None, :], bucket)[0] for bucket in buckets}


def similarities(found: Candidates, query: Vectors | None) -> Floats:
    """Return n cosines with the (dims,) query: by the full vector, else estimated by the signature.

    A pooled vector's cosine is averaged with that estimate, weighted by dimensions and bits: a vector pooled to 64
    dimensions was measured to be less precise than the 1,024 bits of a signature. A fact without either gets 0, or the
    lowest cosine of the others if that is negative; without a query all are 0.
    """
    if query is None or not len(found):
        return np.zeros(len(found))
    cosines = found["cosine"].copy()
    signed = np.flatnonzero(found["fidelity"] != FULL)
    signed = signed[[one is not None for one in found["signature"][signed]]]
    if len(signed):
        estimated = signature.estimate(query, signatures.unpack(found["signature"][signed].tolist()))
        exact = cosines[signed]
        dims = len(query) / np.maximum(found["fidelity"][signed], 1)
        share = dims / (dims + signature.BITS)
        cosines[signed] = np.where(np.isnan(exact), estimated, share * exact + (1 - share) * estimated)
    known = ~np.isnan(cosines)
    return np.where(known, cosines, cosines[known].min(initial=0.0))


def score(
    asked: Asked, rows: Candidates, found: Found, cosines: Floats, around: Surroundings, fit: Floats | None = None
) -> Scores:
    """Return the scores of candidates; see `Scores` for the formula. A given `fit` replaces the computed one."""
    question, now = asked.question, asked.scope.now
    text_scores = np.array([found.text.scores.get(id_, 0.0) for id_ in rows["id"]])
    factor = _factor(rows, question.preferences, now)
    if asked.context.settings.ranking == "documented":
        return _documented(rows, text_scores, cosines, around, factor, now)
    fit = ranking.fuse(text_scores, cosines, found.meaning, found.text.enough) if fit is None else fit
    near = ranking.contiguity(fit, *_sessions_and_turns(rows))
    linked = around.gain(rows, fit)
    named = around.gain_by_name(rows, found.text.names)
    alive = ranking.prior(_vitality(rows, asked.half_life, now))
    role, salience = ranking.roles(rows["role"], question.text), rows["content_salience"]
    total = ((fit + near + linked + named) * role * (1 + salience) + alive) * factor
    none = np.zeros(len(rows))
    return Scores(total, fit, text_scores, cosines, near, linked, named, alive, role, salience, factor, none, none)


def _factor(found: Candidates, preferences: Preferences, now: datetime) -> Floats:
    """Return the factor of each score by the preferences."""
    factor = np.ones(len(found))
    if preferences.long_term:
        factor *= ranking.long_term(found["decay_class"])
    if preferences.importance_recency:
        confirmed_days = (now.timestamp() - _confirmed_at(found)) / confidence.DAY
        factor *= ranking.importance_recency(found["importance"], confirmed_days)
    return factor


def least_similarity(context: Context, requested: float) -> float:
    """Return the minimum cosine of facts that share no word with the question."""
    return max(requested, ranking.DOCUMENTED_MIN_COSINE) if context.settings.ranking == "documented" else requested


def _documented(
    found: Candidates, text_scores: Floats, cosines: Floats, around: Surroundings, factor: Floats, now: datetime
) -> Scores:
    """Return the scores of the documented formula: the composite where words match, else the vector score."""
    instant = now.timestamp()
    composite = ranking.documented_score(
        text_scores,
        confidence.softened(
            found["confidence"], _confirmed_at(found), softens_until(found["branch"], found["expires_at"]), instant
        ),
        found["expires_at"] - instant,
        found["recall_count"],
        (instant - _last_seen_at(found)) / confidence.DAY,
    )
    nothing, one = np.zeros(len(found)), np.ones(len(found))
    total = np.where(text_scores > 0, composite, ranking.vector_score(cosines))
    linked = around.gain(found, total)
    return Scores(
        (total + linked) * factor, total, text_scores, cosines, nothing, linked, nothing, nothing, one, nothing, factor,
        nothing, nothing,
    )  # fmt: skip


def _sessions_and_turns(found: Candidates) -> tuple[Ints, Ints]:
    """Return a code for each candidate's session, -1 for none, and its turn."""
    codes = np.unique(found["session"], return_inverse=True)[1]
    return np.where(found["turn"] < 0, -1, codes), np.maximum(found["turn"], 0)


def _vitality(found: Candidates, half_life: float, now: datetime) -> Vitality:
    instant = now.timestamp()
    strength = tiers.strength(found["base"], found["coactivations"])
    idle_days = (instant - _last_seen_at(found)) / confidence.DAY
    confirmed_days = (instant - _confirmed_at(found)) / confidence.DAY
    return Vitality(
        salience=strength * tiers.retention(tiers.curve(strength, found["coactivations"]), _age_days(found, now)),
        confidence=confidence.effective_confidence(
            found["confidence"], confirmed_days, np.where(found["branch"] == Branch.SEMANTIC, half_life, np.inf)
        ),
        importance=found["importance"],
        idle_days=idle_days,
    )


def current_tiers(found: Candidates, now: datetime) -> Ints:
    """Return the tiers of facts at `now`, or those of the last pass if they are colder."""
    strength = tiers.strength(found["base"], found["coactivations"])
    bends = tiers.curve(strength, found["coactivations"])
    return np.maximum(found["tier"], tiers.tier(bends, _age_days(found, now)))


def _age_days(found: Candidates, now: datetime) -> Floats:
    """Return the days since the last use; 0 for permanent facts."""
    permanent = (found["decay_class"] == PERMANENT) | (found["branch"] == Branch.PERMANENT)
    return np.where(permanent, 0.0, (now.timestamp() - _last_seen_at(found)) / confidence.DAY)


def _last_seen_at(found: Candidates) -> Floats:
    """Return when facts were last used; a pin counts as use until it ends."""
    return np.maximum(found["last_seen_at"], found["pinned_until"])


def _confirmed_at(found: Candidates) -> Floats:
    """Return when facts were last confirmed; a pin counts as a confirmation until it ends."""
    return np.maximum(found["confirmed_at"], found["pinned_until"])


SCORED = (60, 100)
"""Bounds of the number of scored candidates, which is three times the limit.

Measured on conversations of 600 turns, 100 candidates, 30 of them with neighbours, take a tenth longer; for ten results
they find 0.1 points more of the evidence with the hashing embedder, 0.3 with MiniLM, and 0.3 fewer for twenty.
"""

NEIGHBOURS_OF = (20, 30)
"""Bounds of the number of best candidates whose neighbours in the conversation are added."""

OVER = ("no longer valid", "superseded", "forgotten: asked", "forgotten: retracted", "forgotten: merged")
"""Rules that hide facts which the vector arm finds, unless it is asked for visible facts only."""

COMPARED = 2
"""Number of candidates that are compared with the question word by word, as a multiple of the limit."""

TOO_UNLIKE = "not similar enough"
SAID_AGAIN = "says the same as another fact"


@dataclass(frozen=True, slots=True)
class Scored:
    """The visible candidates with their scores, and those that a rule hides; the graph alone found those `added`."""

    seen: Candidates
    hidden: Candidates
    scores: Scores
    added: dict[Key, str]
    around: Surroundings
    relevances: Floats
    updates: Sequence[updates.Pair]


def similarities_in(asked: Asked, rows: Candidates) -> Floats:
    """Return n cosines with the question; in deep recalls those without full vectors are computed from their texts.

    Nearly all facts from deep memory have only a signature. A year without use then loses 4.5 points of recall@10 on
    Memora's other five personas, and 2.4 with their texts.
    """
    query, cosines = asked.query, similarities(rows, asked.query)
    if not asked.question.deep or query is None or not asked.context.embedder.quick:
        return cosines
    faded = rows["id"][rows["fidelity"] != FULL].tolist()
    if texts := candidates.texts_of(asked.db, asked.tenant.id, faded):
        exact = dict(zip(texts, asked.context.embedder.embed(list(texts.values())) @ query, strict=True))
        cosines = np.array([exact.get(id_, cosine) for id_, cosine in zip(rows["id"], cosines, strict=True)])
    return cosines


def read_and_score(asked: Asked, found: Found) -> Steps[Scored]:
    """Return the most promising candidates of both arms with their scores.

    Adds neighbours in the conversation, linked facts, and facts about named entities.
    """
    context, db, tenant, question, query = asked.context, asked.db, asked.tenant, asked.question, asked.query
    best = found.fused(max(_clamped(SCORED, 3 * question.limit), question.limit))
    neighbours_of = list(best)[: _clamped(NEIGHBOURS_OF, question.limit)]
    surroundings = ask_surroundings(asked, best)
    yield
    around = surroundings()
    from_graph = around.found
    ids = list(dict.fromkeys([*best, *from_graph]))
    queries, sought = pooled_queries(context, query), found.text.stems.unsearched
    rows = candidates.ask(
        db, tenant.id, ids, queries, asked.scope, stems=sought, neighbours_of=neighbours_of, reach=len(CONTIGUITY)
    )
    yield
    read, outdated = yield from _with_newer(asked, rows(), queries, sought)
    from_graph = dict.fromkeys((one.newer for one in outdated), "link") | from_graph
    seen, hidden = _split(read, visible(read))
    if asked.scope.deep:
        again = candidates.repeats(db, tenant.id, seen["id"].tolist())
        seen, out = _left_out(seen, np.array([id_ in again for id_ in seen["id"]], np.bool_), SAID_AGAIN)
        hidden = np.concatenate([hidden, out])
    cosines = similarities_in(asked, seen)
    added = {id_: what for id_, what in from_graph.items() if id_ not in best}
    unlike = _unlike(asked, seen, found, added, from_graph, cosines)
    if unlike.any():
        cosines = cosines[~unlike]
        seen, out = _left_out(seen, unlike, TOO_UNLIKE)
        hidden = np.concatenate([hidden, out])
    scores = score(asked, seen, found, cosines, around)
    held = stems.contained(db, tenant.id, found.text.stems, seen)
    first = np.argsort(-scores.total, kind="stable")[: COMPARED * question.limit]
    alike = stems.alike(found.text.stems.vectors, seen["text"].tolist(), first)
    relevances = found.relevances(tenant.embedder, held, alike, cosines)
    scores = scores.lifted(context, relevances)
    newer: list[updates.Pair] = []
    if notices_updates(context, tenant.settings):
        newer = yield from updates.outdated_pairs(asked, found.question, seen, held, scores.total, outdated)
    scores = scores.above(seen["stated_at"], newer)
    return Scored(seen, hidden, scores, added, around, relevances, newer)


def is_crowded(found: Found, scored: Scored) -> bool:
    """Return whether the vector arm found mostly facts that are no longer valid, and so perhaps not the valid ones."""
    if len(found.near) <= SCORED[0] or not len(scored.hidden):
        return False
    over = [one["id"] for one in scored.hidden if one["left_out"] in OVER]
    return sum(id_ in found.near for id_ in over) > sum(id_ in found.near for id_ in scored.seen["id"])


def _with_newer(
    asked: Asked, read: Candidates, queries: Mapping[int, Vectors], sought: Sequence[str]
) -> Steps[tuple[Candidates, list[Update]]]:
    """Return the candidates with the facts that are linked as their updates, and these links."""
    db, tenant, scope = asked.db, asked.tenant, asked.scope
    if not tenant.links or not notices_updates(asked.context, tenant.settings):
        return read, []
    updating = links.ask_updates(db, tenant.id, read["id"].tolist(), scope)
    yield
    pairs = updating()
    unread = {one.newer for one in pairs}.difference(read["id"])
    if not unread:
        return read, pairs
    newer = candidates.ask(db, tenant.id, sorted(unread), queries, scope, stems=sought)
    yield
    return np.concatenate([read, newer()]), pairs


def _left_out(rows: Candidates, those: Bools, rule: str) -> tuple[Candidates, Candidates]:
    """Return the candidates that a rule does not leave out, and `those` that it does."""
    rows["left_out"][those] = rule
    return _split(rows, ~those)


def _split(rows: Candidates, those: Bools) -> tuple[Candidates, Candidates]:
    return (rows, rows[:0]) if those.all() else (rows[those], rows[~those])


def _unlike(
    asked: Asked, seen: Candidates, found: Found, added: dict[Key, str], from_graph: Collection[Key], cosines: Floats
) -> Bools:
    """Return which candidates are not similar enough, and neighbours of such alone.

    Facts found by a link or entity need no similarity.
    """
    unlike = cosines < least_similarity(asked.context, asked.question.min_similarity)
    if not unlike.any():
        return unlike
    found_by = [found.how_found(id_, added) for id_ in seen["id"]]
    by_meaning = [how == "meaning" and id_ not in from_graph for how, id_ in zip(found_by, seen["id"], strict=True)]
    unlike &= np.array(by_meaning, np.bool_)
    if unlike.any():
        nearby = np.array([how == "nearby" for how in found_by], np.bool_)
        unlike |= nearby & ~near_in_session(seen, ~unlike & ~nearby)
    return unlike


def visible(read: Candidates) -> Bools:
    """Return which candidates no rule leaves out."""
    return np.array([rule is None for rule in read["left_out"]], dtype=np.bool_)


def _clamped(bounds: tuple[int, int], requested: int) -> int:
    least, most = bounds
    return min(max(requested, least), most)
