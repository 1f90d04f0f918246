"""Review: an LLM looks through what is remembered for facts that others make needless, after decay took its share.

It forgets only what was shown to it, for the sake of something else that stays, and no more than one pass of decay may
(H39 to H41). Whatever fails forgets nothing.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from workers.context import Context
from workers.errors import JudgementError, UnusableJudgementError
from workers.forgetting.decay import allowed
from workers.forgetting.forget import forget_within
from workers.forgetting.passes import check_own
from workers.judging.review import Reviewed, needless
from workers.judging.statement import Statement
from workers.storage import activity, namespaces, remembered, runs, verdicts
from workers.storage.activity import PERMANENT
from workers.storage.connection import transaction
from workers.storage.remembered import Remembered
from workers.storage.runs import Part

log = logging.getLogger(__name__)

KIND = "semantic"
"""Episodes are about what was, and chunks mirror files: neither is needless for being outdated."""

AT_ONCE = 40
"""Facts in one question."""

LONGEST = 2_000
"""Characters of a text; a longer one is not reviewed, for its part would pass for the whole."""

QUESTION_SECONDS = 20.0
REASON = "pruned"


@dataclass(frozen=True, slots=True)
class Progress:
    """How many facts were reviewed and forgotten, and behind which fact to go on, if there is more."""

    reviewed: int = 0
    forgotten: int = 0
    rest: UUID | None = None


def review(context: Context, namespace: str, run: UUID, now: datetime, after: UUID | None, until: float) -> Progress:
    """Forget what an LLM finds needless among facts behind `after`, question by question; `run` has one forget limit.

    After one question no other is begun at `until`, on the monotonic clock. Nothing happens unless it is wanted, and
    the namespace has as many facts as EBB_PRUNE_THRESHOLD.
    """
    tenant = _begin(context, namespace, run, now)
    done = Progress()
    while tenant is not None:
        batch = _following(context, tenant, after, now)
        found = _ask(context, batch)
        gone, met_limit = _forget(context, tenant, run, found, now)
        after = batch[-1].id if len(batch) == AT_ONCE else None
        done = Progress(done.reviewed + len(batch), done.forgotten + gone, after)
        if met_limit or verdicts.paused(context.redis):
            return replace(done, rest=None)
        if after is None or time.monotonic() >= until:
            break
    return done


def _begin(context: Context, namespace: str, run: UUID, now: datetime) -> int | None:
    """Return the namespace's number if it is to be reviewed; the run is entered among those that may forget."""
    threshold = context.settings.prune_threshold
    if not context.settings.prune_by_llm or threshold == 0 or verdicts.paused(context.redis):
        return None
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None or remembered.count(db, tenant.id, KIND, now) < threshold:
            return None
        runs.begin(db, run, now, None, "", work="review", dry_run=False, force=False, namespace=tenant.id)
        check_own(db, run, "review", tenant.id)
        runs.finish(db, run)
        return tenant.id


def _following(context: Context, tenant: int, after: UUID | None, now: datetime) -> list[Remembered]:
    with transaction(context.database_url) as db:
        return remembered.following(db, tenant, KIND, after, now, AT_ONCE)


def _ask(context: Context, facts: Sequence[Remembered]) -> dict[UUID, UUID]:
    """Return which of these facts are needless, each with the one that makes it so; none if the LLM fails."""
    shown = [_reviewed(fact) for fact in facts if len(fact.text) <= LONGEST]
    if all(fact.keep for fact in shown):
        return {}
    try:
        return needless(context.chat, shown, QUESTION_SECONDS)
    except JudgementError as error:
        log.warning("%d facts are kept without being reviewed: %s", len(facts), error)
        if not isinstance(error, UnusableJudgementError):
            verdicts.pause(context.redis)
        return {}


def _reviewed(fact: Remembered) -> Reviewed:
    statement = Statement(fact.id, fact.text, fact.entity, fact.key, fact.value, fact.created_at)
    return Reviewed(statement, keep=_must_stay(fact))


def _must_stay(fact: Remembered) -> bool:
    return fact.pinned or fact.decay_class == PERMANENT


def _forget(context: Context, tenant: int, run: UUID, found: Mapping[UUID, UUID], now: datetime) -> tuple[int, bool]:
    """Forget needless facts as far as they and what makes them so are still remembered, and the limit allows it.

    Returns:
        how many were forgotten, and whether the limit was met.
    """
    if not found:
        return 0, False
    with transaction(context.database_url) as db:
        concerned = sorted({*found.keys(), *found.values()})
        activity.lock(db, tenant, concerned)
        there = remembered.among(db, tenant, concerned, now)
        wanted = [id_ for id_, other in found.items() if id_ in there and other in there and not _must_stay(there[id_])]
        part = Part("review", now, dry_run=False, force=False, quota=0, place=0)
        granted = allowed(context, db, run, tenant, len(wanted), part)
        gone = wanted[:granted]
        forget_within(db, [tenant] * granted, gone, [REASON] * granted, now, run)
    if granted < len(wanted):
        log.warning("FORGET LIMIT MET: %d facts that an LLM finds needless are kept", len(wanted) - granted)
    return granted, granted < len(wanted)
