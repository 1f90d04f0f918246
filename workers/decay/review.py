"""Review: an LLM looks through what is remembered for facts that others make needless, after decay took its share.

Facts are shown to it together with those nearest to them by signature, and those about the same property of the same
entity. It forgets only what was shown to it, for the sake of something else that stays, and never what is pinned,
permanent, or was restored by its owner. In 24 hours it forgets no more than EBB_PRUNE_LIMIT of a namespace, and in one
run no more than a pass of decay may. Whatever fails forgets nothing.
"""

import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import combinations
from uuid import UUID

from workers.context import Context
from workers.coordination import idempotency
from workers.decay.forget_limit import allowed
from workers.decay.runs import check_own
from workers.errors import JudgementError, UnusableJudgementError
from workers.llm import Statement
from workers.llm.review import Because, Reviewed, needless
from workers.memory.forget import forget_within
from workers.storage import activity, events, limits, namespaces, runs, signatures, visible
from workers.storage.activity import PERMANENT
from workers.storage.connection import Connection, transaction
from workers.storage.visible import VisibleFact

log = logging.getLogger(__name__)

KIND = "semantic"
"""Episodes are about what was, and chunks mirror files: neither is needless for being outdated."""

AT_ONCE = 40
"""Facts in one question."""

NEAREST = 5
"""Facts by whose signatures one is shown together with them."""

MOST_BITS = 1_024
"""In however many bits these differ: with the default embedder the same in other words is like nothing."""

ABOUT_THE_SAME = 10
"""Facts about the same property of the same entity that one is shown with, the newest of them."""

LONGEST = 2_000
"""Characters of a text; a longer one is not reviewed, for its part would pass for the whole."""

QUESTION_SECONDS = 20.0
REASON = "pruned"
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Progress:
    """How many facts were reviewed and forgotten, and behind which fact to go on, if there is more."""

    reviewed: int = 0
    forgotten: int = 0
    rest: UUID | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """The facts of one question by id, and those of them that must stay; with how many of the next facts it deals."""

    facts: dict[UUID, VisibleFact] = field(default_factory=dict)
    kept: frozenset[UUID] = frozenset()
    dealt_with: int = 0


def review(context: Context, namespace: str, run: UUID, now: datetime, after: UUID | None, until: float) -> Progress:
    """Forget what an LLM finds needless among facts behind `after`, question by question; `run` has one forget limit.

    After one question no other is begun at `until`, on the monotonic clock. Nothing happens unless it is wanted, and
    the namespace has as many facts as EBB_PRUNE_THRESHOLD.
    """
    tenant = _begin(context, namespace, run, now)
    done, met = Progress(), set[frozenset[UUID]]()
    while tenant is not None:
        following, question = _next_question(context, tenant, after, now, met)
        found = _ask(context, question)
        met |= {frozenset(pair) for pair in combinations(question.facts, 2)}
        gone, met_limit = _forget(context, tenant, run, found, now)
        ended = question.dealt_with == len(following) < AT_ONCE
        after = None if ended else following[question.dealt_with - 1].id
        done = Progress(done.reviewed + question.dealt_with, done.forgotten + gone, after)
        if met_limit or idempotency.is_llm_paused(context.redis):
            return replace(done, rest=None)
        if after is None or time.monotonic() >= until:
            break
    return done


def _begin(context: Context, namespace: str, run: UUID, now: datetime) -> int | None:
    """Return the namespace's number if it is to be reviewed; the run is entered among those that may forget."""
    threshold = context.settings.prune_threshold
    if not context.settings.prune_by_llm or threshold == 0 or idempotency.is_llm_paused(context.redis):
        return None
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None or visible.count(db, tenant.id, KIND, now) < threshold:
            return None
        if not _left_today(context, db, tenant.id, now):
            return None
        runs.begin(db, run, now, None, "", work="review", dry_run=False, force=False, namespace=tenant.id)
        check_own(db, run, "review", tenant.id)
        runs.finish(db, run)
        return tenant.id


def _left_today(context: Context, db: Connection, tenant: int, now: datetime) -> int:
    """Return how many facts of a namespace reviews may still forget; one at least in 24 hours, unless none may be."""
    share, before = context.settings.prune_limit, events.pruned_since(db, tenant, now - DAY)
    there = visible.count(db, tenant, KIND, now) + before
    return max(max(int(share * there), 1) - before, 0) if share else 0


def _next_question(
    context: Context, tenant: int, after: UUID | None, now: datetime, met: Collection[frozenset[UUID]]
) -> tuple[list[VisibleFact], Question]:
    """Return the next facts behind one, and a question about as many of them as fit in it with those near them.

    Facts that met in an earlier question are not shown together again, and a fact that meets no other is not shown.
    """
    with transaction(context.database_url) as db:
        following = visible.following(db, tenant, KIND, after, now, AT_ONCE)
        near = _near(db, tenant, following, now)
        dealt_with, together = 0, dict[UUID, VisibleFact]()
        for fact in following:
            others = {id_: other for id_, other in near[fact.id].items() if frozenset((fact.id, id_)) not in met}
            wanted = together | ({fact.id: fact} | others if others and _fits(fact) else {})
            if together and len(wanted) > AT_ONCE:
                break
            together, dealt_with = wanted, dealt_with + 1
        return following, Question(together, _kept(db, tenant, list(together.values())), dealt_with)


def _near(
    db: Connection, tenant: int, facts: Sequence[VisibleFact], now: datetime
) -> dict[UUID, dict[UUID, VisibleFact]]:
    """Return for each fact those that are near it and can be shown with it, but no more than fit in one question."""
    pairs = set(signatures.nearest_of_each(db, tenant, [fact.id for fact in facts], NEAREST, MOST_BITS))
    pairs |= {(fact.id, other) for fact in facts for other in _about_the_same(db, tenant, fact)}
    there = visible.among(db, tenant, sorted({other for _, other in pairs}), now)
    near: dict[UUID, dict[UUID, VisibleFact]] = {fact.id: {} for fact in facts}
    for one, two in sorted(pairs):
        if two in there and there[two].kind == KIND and _fits(there[two]) and len(near[one]) < AT_ONCE - 1:
            near[one][two] = there[two]
    return near


def _about_the_same(db: Connection, tenant: int, fact: VisibleFact) -> Iterator[UUID]:
    """Yield the newest facts about the same property of the same entity."""
    if fact.entity is not None and fact.key is not None:
        about = visible.about(db, tenant, fact.entity, fact.key, ABOUT_THE_SAME + 1)
        yield from (id_ for id_ in about if id_ != fact.id)


def _fits(fact: VisibleFact) -> bool:
    return len(fact.text) <= LONGEST


def _kept(db: Connection, tenant: int, facts: Sequence[VisibleFact]) -> frozenset[UUID]:
    """Return which facts must stay whatever is said of them: pinned, permanent, and restored by their owner."""
    lasting = {fact.id for fact in facts if fact.pinned or fact.decay_class == PERMANENT}
    return frozenset(lasting | events.restorations(db, tenant, [fact.id for fact in facts]).keys())


def _ask(context: Context, question: Question) -> dict[UUID, Because]:
    """Return which facts are needless, each with the one that makes it so; none if the LLM fails."""
    shown = [_reviewed(fact, keep=id_ in question.kept) for id_, fact in question.facts.items()]
    if all(fact.keep for fact in shown):
        return {}
    try:
        return needless(context.chat, shown, QUESTION_SECONDS)
    except JudgementError as error:
        log.warning("%d facts are kept without being reviewed: %s", len(shown), error)
        if not isinstance(error, UnusableJudgementError):
            idempotency.pause_llm(context.redis)
        return {}


def _reviewed(fact: VisibleFact, *, keep: bool) -> Reviewed:
    return Reviewed(Statement(fact.id, fact.text, fact.entity, fact.key, fact.value, fact.created_at), keep)


def _forget(context: Context, tenant: int, run: UUID, found: Mapping[UUID, Because], now: datetime) -> tuple[int, bool]:
    """Forget needless facts as far as they and what makes them so are still remembered, and the limits allow it.

    Returns:
        how many were forgotten, and whether a limit was met.
    """
    if not found:
        return 0, False
    with transaction(context.database_url) as db:
        wanted = _still_needless(db, tenant, found, now)
        limits.lock(db, tenant)  # reviews of one namespace share what is left of a day
        left = min(len(wanted), _left_today(context, db, tenant, now))
        granted = allowed(context, db, tenant, left, now)
        gone = wanted[:granted]
        why = [{"because_of": str(found[id_].of), "why": found[id_].why} for id_ in gone]
        forget_within(db, [tenant] * granted, gone, [REASON] * granted, now, run, why)
    if granted < len(wanted):
        log.warning("PRUNE LIMIT MET: %d facts that an LLM finds needless are kept", len(wanted) - granted)
    return granted, granted < len(wanted)


def _still_needless(db: Connection, tenant: int, found: Mapping[UUID, Because], now: datetime) -> list[UUID]:
    """Return which facts are still remembered, with the one that makes each needless, and may be forgotten."""
    concerned = sorted({*found, *(because.of for because in found.values())})
    activity.lock(db, tenant, concerned)
    there = visible.among(db, tenant, concerned, now)
    kept = _kept(db, tenant, list(there.values()))
    return [id_ for id_, because in found.items() if id_ in there and because.of in there and id_ not in kept]
