"""Explain a recall: what was left out and by which rule, and why one fact was recalled or not."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from ebb.contract.values import REQUESTED

from workers.core import ranking, signature
from workers.core.arrays import Bools, Floats, Ints, Key
from workers.errors import NotFoundError
from workers.memory.recall import answer, arms, scoring
from workers.memory.recall.arms import Found
from workers.memory.recall.floor import TOO_IRRELEVANT
from workers.memory.recall.question import Asked
from workers.memory.recall.scoring import Scored, Scores
from workers.storage import candidates, signatures, words
from workers.storage.candidates import NO_FILTERS, Candidate, Candidates, Description

LEFT_OUT_SHOWN = 50
"""Maximum number shown in each of three groups: hidden by a rule, below the limit, not among the most promising."""

CHECKED = 100
"""Number of the most promising facts, live or not, that are checked for hiding rules."""

BELOW_LIMIT = "below the limit"
UNPROMISING = "not among the most promising"
NOT_FOUND = "found by no arm"

ASKED_FOR = tuple(f"forgotten: {reason}" for reason in REQUESTED)
"""The rules that hide facts forgotten on request, whose text is never shown."""


@dataclass(frozen=True, slots=True)
class ScoredRecall(Asked):
    """A recall in one namespace: the question and its scored candidates.

    `order` is best first; the first `taken` of those that are `fitting` are the results. Those that are `certain` count
    as used.
    """

    found: Found
    scored: Scored
    order: Ints
    fitting: Bools
    certain: Bools
    taken: int

    @property
    def chosen(self) -> Ints:
        """Return the indexes of the results among the scored candidates, best first."""
        return self.order[self.fitting[self.order]][: self.taken]

    @property
    def hidden(self) -> dict[Key, str]:
        """Return the rules that leave out candidates, by id."""
        return dict(zip(self.scored.hidden["id"].tolist(), self.scored.hidden["left_out"].tolist(), strict=True))

    @property
    def result_ids(self) -> list[Key]:
        """Return the ids of the results, best first."""
        return self.scored.seen["id"][self.chosen].tolist()

    @property
    def unused_ids(self) -> list[UUID]:
        """Return the ids of the results that do not count as used."""
        return [UUID(bytes=id_) for id_ in self.scored.seen["id"][self.chosen[~self.certain[self.chosen]]]]

    @property
    def silent_since(self) -> datetime | None:
        """Return the instant since which an unused permanent episode is stale; None if none ever is."""
        return answer.silent_since(self.context, self.tenant, self.scope.now)

    def search_ever(self) -> Found:
        """Return the results of both arms over all facts, live or not, without filters."""
        scope = replace(self.scope, filters=NO_FILTERS, ever=True)
        text = arms.search_text(self.db, self.tenant, self.question.text, scope)
        near = arms.vector_arm(self.db, self.tenant, self.query, scope)() if self.query is not None else {}
        return Found(text, near, self.found.meaning)

    def read(self, ids: Sequence[Key]) -> Candidates:
        """Return candidates in the order of `ids`, each with the rule that hides it."""
        queries = scoring.pooled_queries(self.context, self.query)
        rows = candidates.read(self.db, self.tenant.id, ids, queries, self.scope)
        places = {id_: place for place, id_ in enumerate(ids)}
        return rows[np.argsort([places[id_] for id_ in rows["id"]], kind="stable")]

    def scaled(self, fit: Floats) -> "ScoredRecall":
        """Return the recall with scores by another fit."""
        scored, seen = self.scored, self.scored.seen
        scores = scoring.score(self, seen, self.found, scored.scores.similarity, scored.around, fit)
        scores = scores.lifted(self.context, scored.relevances).above(seen["stated_at"], scored.updates)
        return replace(self, scored=replace(scored, scores=scores), order=answer.order(seen, scores))

    def updated_by(self, place: int) -> list[UUID]:
        """Return the facts that the candidate at an index makes outdated."""
        return [UUID(bytes=self.scored.seen["id"][older]) for newer, older in self.scored.updates if newer == place]

    def outdated_by(self, place: int) -> list[UUID]:
        """Return the facts that make the candidate at an index outdated."""
        return [UUID(bytes=self.scored.seen["id"][newer]) for newer, older in self.scored.updates if older == place]

    def scores_with(self, others: Candidates, found: Found) -> Scores:
        """Return the scores of the scored candidates followed by `others`, scored together."""
        rows = np.concatenate([self.scored.seen, others])
        cosines = np.concatenate([self.scored.scores.similarity, scoring.similarities_in(self, others)])
        return scoring.score(self, rows, found, cosines, self.scored.around)

    def reranked(self, totals: Floats, given: Floats) -> "ScoredRecall":
        """Return the recall with other totals of the n chosen candidates, and their scores by the reranker."""
        scored, seen = self.scored, self.scored.seen
        scores = scored.scores.reordered(self.chosen, totals, given).above(seen["stated_at"], scored.updates)
        return replace(self, scored=replace(scored, scores=scores), order=answer.order(seen, scores))


def shared_out(every: Sequence[ScoredRecall], limit: int) -> list[ScoredRecall]:
    """Return the recalls, where each takes as many results as it has among the best `limit` of all namespaces."""
    every = [replace(one, taken=limit) for one in every]
    found = [(place, float(one.scored.scores.total[at])) for place, one in enumerate(every) for at in one.chosen]
    best = sorted(found, key=lambda pair: -round(pair[1], 6))[:limit]
    taken = Counter(place for place, _ in best)
    return [replace(one, taken=taken[place]) for place, one in enumerate(every)]


def made_comparable(every: Sequence[ScoredRecall]) -> Sequence[ScoredRecall]:
    """Return recalls in several namespaces with comparable scores: their fit is scaled over all."""
    if len(every) <= 1:
        return every
    scores = [one.scored.scores for one in every]
    text, similarity = (np.concatenate([getattr(one, arm) for one in scores]) for arm in ("text", "similarity"))
    best = max(every, key=lambda one: one.scored.scores.text.max(initial=0.0)).found
    fit = ranking.fuse(text, similarity, best.meaning, best.text.enough)
    parts = np.split(fit, np.cumsum([len(one.total) for one in scores])[:-1])
    return [one.scaled(part) for one, part in zip(every, parts, strict=True)]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A fact that is not among the results, the rule, and the score and rank that it has or would have."""

    id: Key
    rule: str
    score: float | None = None
    rank: int | None = None


def left_out(asked: ScoredRecall) -> list[dict[str, Any]]:
    """Return the candidates that are not among the results, each with its rule.

    Hidden ones have the score and rank that they would have otherwise.
    """
    with asked.on_its_shard():
        every = [*_hidden(asked), *_below(asked), *_unpromising(asked)]
        shown = candidates.describe(asked.db, asked.tenant.id, [one.id for one in every], asked.silent_since)().facts
    origin = {"namespace": asked.tenant.name} if asked.question.namespaces else {}
    return [
        {"id": str(shown[one.id].id), "text": _text(shown[one.id], one.rule)}
        | {"rule": one.rule, "score": one.score, "rank": one.rank}
        | origin
        for one in every
        if one.id in shown  # the vector search may run on a later snapshot
    ]


def _text(shown: Description, rule: str | None) -> str:
    """Return the text of a fact, or an empty one if it was forgotten on request."""
    return "" if rule in ASKED_FOR else shown.text


def _hidden(asked: ScoredRecall) -> list[LeftOut]:
    """Return the best facts that a rule hides, best first."""
    ever = asked.search_ever()
    rows = _ruled_out(asked, ever)
    totals = asked.scores_with(rows, ever).total
    seen, own = np.split(totals, [len(asked.scored.seen)])
    hidden = asked.hidden
    ruled = [
        LeftOut(one["id"], one["left_out"] or hidden[one["id"]], round(float(total), 6), int((seen > total).sum()) + 1)
        for one, total in zip(rows, own, strict=True)
    ]
    return sorted(ruled, key=lambda one: -(one.score or 0))[:LEFT_OUT_SHOWN]


def _ruled_out(asked: ScoredRecall, ever: Found, *others: Key) -> Candidates:
    """Return the best facts that a rule hides, of the results over all facts, and of `others`."""
    hidden = asked.hidden
    rows = asked.read(list(dict.fromkeys([*ever.fused(CHECKED), *hidden, *others])))
    scored = np.array([id_ in hidden for id_ in rows["id"].tolist()], np.bool_)
    return rows[scored | ~scoring.visible(rows)]


def _below(asked: ScoredRecall) -> list[LeftOut]:
    """Return the scored candidates that are below the limit or not relevant enough, best first."""
    chosen = set(asked.chosen.tolist())
    beyond = [(rank, place) for rank, place in enumerate(asked.order.tolist(), start=1) if place not in chosen]
    return [
        LeftOut(
            asked.scored.seen[place]["id"],
            BELOW_LIMIT if asked.fitting[place] else TOO_IRRELEVANT,
            round(float(asked.scored.scores.total[place]), 6),
            rank,
        )
        for rank, place in beyond[:LEFT_OUT_SHOWN]
    ]


def _unpromising(asked: ScoredRecall) -> list[LeftOut]:
    """Return the candidates that were not scored and that no rule hides, best first."""
    read = {*asked.scored.seen["id"], *asked.scored.hidden["id"]}
    unread = asked.read([id_ for id_ in asked.found.fused() if id_ not in read])
    return [LeftOut(id_, UNPROMISING) for id_ in unread["id"][scoring.visible(unread)][:LEFT_OUT_SHOWN]]


def why_among(every: Sequence[ScoredRecall], id_: UUID) -> dict[str, Any]:
    """Return why one fact was recalled or not, in the first namespace that has it.

    Raises:
        NotFoundError: none has it.
    """
    for asked in every[:-1]:
        with suppress(NotFoundError), asked.on_its_shard():
            return why(asked, id_)
    with every[-1].on_its_shard():
        return why(every[-1], id_)


def why(asked: ScoredRecall, id_: UUID) -> dict[str, Any]:
    """Return why one fact was recalled or not: the rule, its rank in each arm, and the parts of its score.

    If it was not scored, score and rank are what it would have. Words of facts forgotten on request are not shown.

    Raises:
        NotFoundError: the namespace has no such fact.
    """
    key = id_.bytes
    rows = asked.read([key])
    if not len(rows):
        raise NotFoundError(f"why: no fact {id_} is in namespace {asked.tenant.name!r}: it never was, or is purged.")
    # A hidden fact is looked for in the results over all facts, and scored with the others that `left_out` lists.
    is_hidden = rows[0]["left_out"] is not None or key in asked.hidden
    found = asked.search_ever() if is_hidden else asked.found
    place, scores, rank = _placed(asked, key, _ruled_out(asked, found, key) if is_hidden else rows, found)
    shown = candidates.describe(asked.db, asked.tenant.id, [key], asked.silent_since)().facts[key]
    rule = _rule(asked, rows[0])
    return {
        "id": str(id_),
        "text": _text(shown, rule),
        "recalled": rule is None,
        "rule": rule,
        "score": round(float(scores.total[place]), 6),
        "rank": rank,
        "seen": len(asked.scored.seen),
        "limit": asked.question.limit,
        "words": _by_words(asked, found, id_) | ({"shared": []} if rule in ASKED_FOR else {}),
        "meaning": _by_meaning(asked, found, id_),
        "parts": answer.score_parts(place, scores, answer.ranks(scores), asked.updated_by(place)),
    }


def _placed(asked: ScoredRecall, key: Key, rows: Candidates, found: Found) -> tuple[int, Scores, int]:
    """Return a fact's index in the scores, the scores, which may be extended by `rows`, and its rank (1 is best)."""
    there = asked.scored.seen["id"].tolist()
    if key in there:
        place = there.index(key)
        return place, asked.scored.scores, int(np.flatnonzero(asked.order == place)[0]) + 1
    scores, place = asked.scores_with(rows, found), len(there) + rows["id"].tolist().index(key)
    return place, scores, int((scores.total[: len(there)] > scores.total[place]).sum()) + 1


def _rule(asked: ScoredRecall, one: Candidate) -> str | None:
    if one["left_out"] is not None:
        return str(one["left_out"])
    # numpy drops null bytes at the end of a value that it compares
    id_, seen = one["id"], asked.scored.seen["id"]
    if id_ in asked.hidden:
        return asked.hidden[id_]
    if id_ in seen[~asked.fitting].tolist():
        return TOO_IRRELEVANT
    if id_ in seen.tolist():
        return None if id_ in seen[asked.chosen].tolist() else BELOW_LIMIT
    return UNPROMISING if id_ in asked.found.fused() else NOT_FOUND


def _by_words(asked: ScoredRecall, found: Found, id_: UUID) -> dict[str, Any]:
    """Return the words of the question, those that a fact contains, its BM25 score, and its rank in the text arm."""
    terms = sorted(term.lexeme for term in words.of_query(asked.db, asked.tenant.name, asked.question.text))
    key = id_.bytes
    score = found.text.scores.get(key)
    best = found.text.best
    return {
        "asked": terms,
        "shared": sorted(candidates.lexemes_of(asked.db, asked.tenant.id, id_, terms)),
        "score": None if score is None else round(score, 6),
        "rank": best.index(key) + 1 if key in best else None,
        "of": len(found.text.scores),
    }


def _by_meaning(asked: ScoredRecall, found: Found, id_: UUID) -> dict[str, Any] | None:
    """Return a fact's similarity by signature, and its rank among all live facts; None without a signature."""
    if asked.query is None:
        return None
    own = signature.encode(asked.query[None, :])[0]
    standing = signatures.standing(asked.db, asked.tenant.id, own, id_)
    if standing is None:
        return None
    differing, rank, of = standing
    similarity = float(signature.cosines(np.array([differing]))[0])
    return {"similarity": round(similarity, 6), "rank": rank, "of": of, "brought": id_.bytes in found.near}
