"""Stats: what a namespace holds, and what it is about to lose."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from workers.context import Context
from workers.core import fidelity
from workers.core.tiers import Tier
from workers.storage import contradictions, exports, namespaces
from workers.storage.connection import transaction

UNCLASSED = "none"
FIDELITIES = ("full", "pooled", "fingerprint")
SOURCES = ("auto", "explicit", UNCLASSED)


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of a namespace's live facts by tier, fidelity and decay class, and of what is over, due or forgotten.

    `decay_class_sources` says how many were classified by their own words, and how many by whoever stored them;
    `expired_pending` how many are over, hidden from every reader, and wait for the next pass to forget them.
    """

    facts: int
    tiers: dict[str, int]
    fidelity: dict[str, int]
    decay_classes: dict[str, int]
    decay_class_sources: dict[str, int]
    expired_pending: int
    forgotten: int
    forgotten_by_reason: dict[str, int]
    pending_embeddings: int
    due: int
    held: int
    contradictions: int
    pinned: int


def stats(context: Context, namespace: str, now: datetime) -> Stats:
    """Return a namespace's counts as of its last pass; what is over or due is as of `now`."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        rows = [] if tenant is None else exports.tally(db, tenant.id, now)
        contradicting = 0 if tenant is None else contradictions.count(db, tenant.id, now)
    tiers, kept, classes, sources = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    forgotten = Counter[str]()
    ended = due = held = pinned = 0
    for decay_class, source, tier, code, reason, is_held, over, is_due, is_pinned, facts in rows:
        if reason is not None:
            forgotten[reason] += facts
            continue
        tiers[Tier(tier).name.lower()] += facts
        kept[fidelity.name(code)] += facts
        classes[decay_class or UNCLASSED] += facts
        sources[source or UNCLASSED] += facts
        ended, due, held = ended + facts * over, due + facts * is_due, held + facts * is_held
        pinned += facts * is_pinned
    return Stats(
        facts=sum(tiers.values()),
        tiers={tier.name.lower(): tiers[tier.name.lower()] for tier in Tier},
        fidelity={name: kept[name] for name in FIDELITIES},
        decay_classes=dict(sorted(classes.items())),
        decay_class_sources={source: sources[source] for source in SOURCES},
        expired_pending=ended,
        forgotten=forgotten.total(),
        forgotten_by_reason=dict(sorted(forgotten.items())),
        pending_embeddings=kept["pending"],
        due=due,
        held=held,
        contradictions=contradicting,
        pinned=pinned,
    )
