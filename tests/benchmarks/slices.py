"""Random slices of 3 % per cycle, as in the sources: when facts are visited, and the error and cost until then."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tests.benchmarks import data, passes, scans
from tests.benchmarks.figures import Answers, console, quantile, seconds
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.scale import Size
from workers.core import tiers
from workers.core.arrays import Bools, Floats, Ints
from workers.core.fading import Anchors, FadingRules, fade

SHARE = 0.03
SEED = 41
DAYS = 365
SEGMENTS = 64
SEGMENTS_THERE = "select segment, count(*) from peer_activity group by 1 order by 1"
NEVER = DAYS + 1

Pass = Callable[[int], Bools]
"""Which facts a day's cycle looks at."""


@dataclass(frozen=True, slots=True)
class Year:
    """The result of a year of daily cycles.

    Days until each fact was first seen and from each change to its writing; day by day, before the cycle, the share of
    facts whose stored tier or fidelity is not what it should be; and how many changes still wait in the end.
    """

    first_seen: Ints
    delays: list[float]
    wrong: list[float]
    overdue: int


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Simulate daily slices and daily passes over due facts for a year on the same facts; then time both."""
    rng = np.random.default_rng(SEED)
    facts = max(size.facts // SEGMENTS, 100)
    console.print(f"  slices of {SHARE:.0%} of a segment of {facts:,} facts, a cycle a day; seed {SEED}")
    anchors = data.random_anchors(rng, facts, 20.0)
    _tell(answers, "random slices", follow(anchors, lambda _: slice_of(rng, facts)))
    _tell(answers, "the due index", follow(anchors, None))
    _salience(answers, anchors, rng)
    _cost(machine, size, answers)


def slice_of(rng: np.random.Generator, facts: int) -> Bools:
    """Return the facts of a contiguous batch with a random start, as documented."""
    batch = max(int(facts * SHARE), 1)
    start = int(rng.integers(facts - batch + 1))
    places = np.arange(facts)
    seen: Bools = (places >= start) & (places < start + batch)
    return seen


def follow(anchors: Anchors, seen_by: Pass | None) -> Year:
    """Simulate unused facts for a year; without `seen_by`, a cycle visits the due facts."""
    rules, began = FadingRules(), data.AT.timestamp()
    state = fade(anchors, began, rules)
    stored, due_at = (state.tier, state.fidelity), state.due_at
    first_seen, delays, wrong = np.full(len(due_at), NEVER), list[float](), list[float]()
    for day in range(1, DAYS + 1):
        now = began + day * data.DAY
        seen = due_at <= now if seen_by is None else seen_by(day)
        first_seen[seen] = np.minimum(first_seen[seen], day)
        true = fade(replace(anchors, fidelity=stored[1]), now, rules)
        wrong.append(float(_differ(stored, (true.tier, true.fidelity)).mean()))
        written = seen & (due_at <= now)
        delays += ((now - due_at[written]) / data.DAY).tolist()
        stored = (np.where(seen, true.tier, stored[0]), np.where(seen, true.fidelity, stored[1]))
        due_at = np.where(seen, true.due_at, due_at)
    return Year(first_seen, delays, wrong, int((due_at <= now).sum()))


def _differ(stored: tuple[Ints, Ints], true: tuple[Ints, Ints]) -> Bools:
    differ: Bools = (stored[0] != true[0]) | (stored[1] != true[1])
    return differ


def _tell(answers: Answers, name: str, lived: Year) -> None:
    answers.add(f"days from a change to its writing, mean, {name}", "days", [float(np.mean(lived.delays))])
    answers.add(f"days from a change to its writing, p95, {name}", "days", [quantile(lived.delays, 0.95)])
    wrong = float(np.mean(lived.wrong)) * 100
    note = "before the day's cycle; Ebb's readers do not wait for a pass, and passes run every five minutes by default"
    answers.add(f"facts whose stored tier or fidelity is wrong, mean of a year, {name}", "%", [wrong], note=note)
    answers.details[name] = {
        "changes still to be written after a year": lived.overdue,
        "wrong after 30, 90, 365 days, %": [round(lived.wrong[day - 1] * 100, 2) for day in (30, 90, 365)],
    }
    if name == "random slices":
        middle = len(lived.first_seen) // 2
        never = float((lived.first_seen == NEVER).mean())
        answers.add(f"days until a fact is seen, p50, {name}", "days", [quantile(lived.first_seen.tolist(), 0.5)])
        answers.add(f"days until a fact is seen, p99, {name}", "days", [quantile(lived.first_seen.tolist(), 0.99)])
        answers.add(f"facts not seen in a year, {name}", "%", [never * 100], note="those at the ends of a segment")
        answers.details[name]["first seen: the first fact, the middle one"] = lived.first_seen[[0, middle]].tolist()


def _salience(answers: Answers, anchors: Anchors, rng: np.random.Generator) -> None:
    """Multiply salience by the decay of the whole age at each visit, as documented; compare with the closed form."""
    days, fresh = 90, replace(anchors, last_seen_at=np.full(len(anchors.base), data.AT.timestamp()))
    strength = tiers.strength(fresh.base, fresh.coactivations)
    true = strength * tiers.retention(tiers.curve(strength, fresh.coactivations), np.full(len(strength), float(days)))
    ways: dict[str, Pass] = {
        "one look on the last day": lambda day: np.full(len(strength), day == days),
        "a look a week": lambda day: np.full(len(strength), day % 7 == 0),
        "a look a day": lambda _: np.ones(len(strength), np.bool_),
        "random slices": lambda _: slice_of(rng, len(strength)),
    }
    found = {name: _multiplied(strength, fresh.coactivations, way, days) for name, way in ways.items()}
    middle = float(np.median(true))
    answers.add(f"median salience after {days} days, in closed form, however often looked at", "", [middle])
    for name, values in found.items():
        answers.add(
            f"median salience after {days} days, multiplied at {name}",
            "",
            [float(np.median(values))],
            note="each look multiplies what is stored by what the whole age takes, as documented",
        )


def _multiplied(strength: Floats, coactivations: Ints, way: Pass, days: int) -> Floats:
    """Return stored salience, multiplied at each visit by the decay of the whole age since the last access."""
    salience = strength.copy()
    for day in range(1, days + 1):
        recent = day < tiers.RULES.recent_days
        hot, warm = recent & ((coactivations > 5) | (salience > 0.7)), recent | (salience > 0.4)
        rate = np.where(hot, 0.005, np.where(warm, 0.02, 0.05))
        salience = np.where(way(day), salience * np.exp(-rate * day / (salience + 0.1)), salience)
    return salience


def _cost(machine: Machine, size: Size, answers: Answers) -> None:
    """Time a cycle of slices over all segments, each set-based and with its own index, against Ebb's pass."""
    context = scans.prepared(machine, size, size.facts)
    rng = np.random.default_rng(SEED)
    with session(context) as db:
        db.execute("create index peer_segments on peer_activity (segment, namespace, fact)")
        db.execute("vacuum (analyze) peer_activity")
        segments, facts = np.array(db.execute(SEGMENTS_THERE).fetchall()).T
        per_change, shares = [], []
        for _ in range(size.rounds):
            db.execute("checkpoint")
            part, changed = _slices(rng, segments, facts), list[int]()
            with db.transaction(force_rollback=True):
                took = seconds(lambda: changed.append(scans.take_slices(db, data.AT, *part)))
            db.execute("vacuum peer_activity, peer_vectors")
            shares.append(changed[0] / size.due * 100)
            per_change.append(took / max(changed[0], 1) * 1000)
    answers.add(f"of {size.due:,} changes due, a cycle of slices finds", "%", shares)
    answers.add("a cycle of slices, for each change it writes", "ms", per_change)
    ebb = []
    for _ in range(size.rounds):
        passes.restore(context)
        ebb.append(seconds(lambda: passes.run_pass(context, data.AT, size.due)) / size.due * 1000)
    answers.add("a pass over what is due, for each change it writes", "ms", ebb)


def _slices(rng: np.random.Generator, segments: Ints, facts: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the segments with the offset and length of a cycle's slice."""
    batches = np.maximum((facts * SHARE).astype(np.int64), 1)
    return segments, rng.integers(facts - batches + 1), batches
