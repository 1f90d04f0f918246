"""Course: how what a namespace holds has changed, told from its tallies as they were noted when they changed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from workers.admin.stats import FIDELITIES, UNCLASSED
from workers.context import Context
from workers.core import fidelity
from workers.core.tiers import Tier
from workers.storage import namespaces, system_history, tallies, tally_history
from workers.storage.connection import transaction

PENDING = "pending"
DUE = "due"


def course(context: Context, namespace: str, days: int, now: datetime) -> dict[str, Any]:
    """Return how many facts there were by tier, fidelity and class, how many forgotten and due, over so many days.

    `at` are instants at which that changed, in epoch seconds, and at last `now`; beside it stands a list as long for
    each tier, fidelity, class and reason, and one of what was due.
    """
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        noted = [] if tenant is None else tally_history.since(db, tenant.id, now - timedelta(days=days), now)
        counted = [] if tenant is None else tallies.read(db, tenant.id)
        due, _ = (0, 0) if tenant is None else tallies.due(db, tenant.id, now)
    if tenant is not None:
        noted = [*noted, (now, _named(counted) | {DUE: due})]
    told = [(at.timestamp(), _sums(counts)) for at, counts in noted]
    return {
        "at": [at for at, _ in told],
        "tiers": _lists(told, "tier", [tier.name.lower() for tier in Tier]),
        "fidelity": _lists(told, "fidelity", [*FIDELITIES, PENDING]),
        "classes": _lists(told, "class", []),
        "forgotten": _lists(told, "forgotten", []),
        "due": [sums[DUE, ""] for _, sums in told],
    }


def thin(context: Context, now: datetime) -> int:
    """Let most of the older course go, of namespaces and of the system; return how many rows."""
    with transaction(context.database_url) as db:
        return tally_history.thin(db, now) + system_history.thin(db, now)


def _named(counted: Sequence[tallies.Tally]) -> dict[str, int]:
    """Return tallies by the names by which they are noted."""
    sums = Counter[str]()
    for one in counted:
        if one.forgotten_reason is not None:
            sums[f"forgotten {one.forgotten_reason}"] += one.facts
        else:
            for what, code in (
                ("tier", one.tier),
                ("fidelity", one.fidelity),
                ("class", one.decay_class or UNCLASSED),
            ):
                sums[f"{what} {code}"] += one.facts
    return sums


def _sums(counts: Mapping[str, int]) -> Counter[tuple[str, str]]:
    """Return the sum of what has one word, such as all poolings of vectors."""
    sums = Counter[tuple[str, str]]()
    for name, facts in counts.items():
        what, _, code = name.partition(" ")
        if what == "tier":
            code = Tier(int(code)).name.lower()
        elif what == "fidelity":
            code = fidelity.name(int(code))
        sums[what, code] += facts
    return sums


def _lists(
    told: Sequence[tuple[float, Counter[tuple[str, str]]]], what: str, names: Sequence[str]
) -> dict[str, list[int]]:
    """Return a list for each name, those given first, then whatever else there was."""
    more = sorted({name for _, sums in told for kind, name in sums if kind == what} - set(names))
    return {name: [sums[what, name] for _, sums in told] for name in [*names, *more]}
