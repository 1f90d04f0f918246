"""A year of random operations leaves the state that a simple model in plain Python predicts."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from made_up import examples
from memory import DAY_0, Memory

from workers.core import tiers
from workers.core.fidelity import FINGERPRINT, FULL
from workers.decay import forget_limit
from workers.errors import InvalidInputError
from workers.memory.add import Stored
from workers.storage.connection import transaction

pytestmark = pytest.mark.long

ANCHORS = """
    select id, base, coactivations, recall_count, confidence,
        ((extract(epoch from expires_at) - %s) / 86400)::float8,
        ((extract(epoch from greatest(last_seen_at, pinned_until)) - %s) / 86400)::float8,
        ((extract(epoch from greatest(last_confirmed_at, pinned_until)) - %s) / 86400)::float8
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    where forgotten_at is null
"""
GUESTS = """
    select facts.id from facts join namespaces on namespaces.id = facts.namespace
    where name = %s and text like 'Guest%%'
"""
EMPTY = "truncate namespaces, decay_runs, tallies, tally_changes cascade"
LOOKED_AT = "update namespaces set settings_changed_at = null"
HOUR = 1 / 24
NEVER = math.inf
NOT_YET = -math.inf
RETENTION = 30
REQUESTED = "asked"
RESTORED_OFTEN = 2
"""Number of restorations after which a fact is pinned without end."""


class Kind(NamedTuple):
    """A kind of life: decay class with its days and whether recalls restart them, and confidence; or a durability."""

    decay_class: str | None
    days: float
    refreshed: bool
    confidence: float
    durability: str | None = None


class Manner(NamedTuple):
    """The decay settings of one namespace: days, turns, and whether episodes must exceed both limits."""

    half_life: float
    days: float
    turns: int
    operator: str
    stale_days: float

    @property
    def settings(self) -> dict[str, Any]:
        episodes = {"persistentTurns": self.turns, "persistentDays": self.days, "operator": self.operator}
        episodes["permanentStaleDays"] = self.stale_days
        return {"hygiene": {"confidenceDecay": {"halfLife": self.half_life}, "episodicTTL": episodes}}


MANNERS = {"default": Manner(180, 90, 3, "OR", 180), "strict": Manner(47, 33, 1, "AND", 19)}

KINDS = [
    Kind("permanent", NEVER, refreshed=False, confidence=0.5),
    Kind(None, NEVER, refreshed=True, confidence=0.2),
    Kind("session", 1, refreshed=False, confidence=1.0),
    Kind("stable", 90, refreshed=True, confidence=1.0),
    Kind(None, NEVER, refreshed=True, confidence=0.3),
    Kind("normal", 14, refreshed=True, confidence=0.8),
    Kind(None, NEVER, refreshed=True, confidence=0.01, durability="persistent"),
    Kind("permanent", NEVER, refreshed=False, confidence=0.01, durability="permanent"),
]
KEPT = (0, 1)
"""The permanent and the pinned fact, which no pass removes."""


@dataclass
class Life:
    """The model of one fact; instants are days."""

    id: UUID
    kind: Kind
    manner: Manner
    seen: float
    confirmed: float
    occurred: int
    encoded: float
    outrun: float = NEVER
    strength: float = 0.5
    coactivations: int = 0
    recalls: int = 0
    pinned: float = NOT_YET
    confidence: float = 0
    forgotten: tuple[str, float] | None = None
    restored: list[tuple[str, float]] = field(default_factory=list)

    @property
    def begins(self) -> float:
        """Return the start of the decay of confidence: the last confirmation, or the end of its pin."""
        return max(self.confirmed, self.pinned)

    @property
    def expires(self) -> float:
        return self.begins + self.kind.days

    def salience(self, now: float) -> float:
        strength, times = np.array([self.strength]), np.array([self.coactivations])
        permanent = "permanent" in (self.kind.decay_class, self.kind.durability)
        age = np.array([0.0 if permanent else now - max(self.seen, self.pinned)])
        return float(self.strength * tiers.retention(tiers.curve(strength, times), age)[0])

    def why_over(self, now: float) -> str | None:
        """Return why it has ended at `now`, or None."""
        if (self.kind.days == NEVER and self.kind.decay_class) or now < self.pinned:
            return None
        if self.kind.durability:
            outlived, outrun = now - max(self.encoded, self.pinned) > self.manner.days, now >= self.outrun
            aged = outlived and outrun if self.manner.operator == "AND" else outlived or outrun
            return "aged" if aged else None
        if now >= self.expires:
            return "expired"
        soft = self.begins + 0.75 * self.kind.days
        left, halvings = self.confidence, 0 if now < soft else int((now - soft) / HOUR) + 1
        for _ in range(min(halvings, 9)):
            left = left / 2 if left > 0.1 else left
        if halvings and left < 0.1:
            return "faded"
        share = 0.5 ** ((now - self.begins) / self.manner.half_life)
        if self.confidence * share < 0.1:
            return "culled"
        return "faded" if left * share < 0.1 else None

    def end_by(self, now: float) -> str | None:
        """Return the reason of its first ending before `now`, if any."""
        if self.why_over(now) is None:
            return None
        early, late = self.begins, now
        while late - early > 1e-7:
            middle = (early + late) / 2
            early, late = (early, middle) if self.why_over(middle) else (middle, late)
        return self.why_over(late)


@dataclass
class Owner:
    """The model of one namespace: the lives of each text, oldest first, deleted texts, and counted uses."""

    namespace: str
    lives: list[list[Life]] = field(default_factory=lambda: [[] for _ in KINDS])
    unwanted: set[int] = field(default_factory=set)
    turns_taken: list[UUID] = field(default_factory=list)
    uses: set[UUID] = field(default_factory=set)

    @property
    def manner(self) -> Manner:
        return MANNERS[self.namespace]

    def all(self) -> Iterator[Life]:
        return (life for lives in self.lives for life in lives)

    def sweep(self, lives: list[Life], now: float) -> None:
        for life in lives:
            if life.forgotten is None and (reason := life.end_by(now)):
                life.forgotten = (reason, now)

    def living(self, number: int, now: float) -> Life | None:
        return next((one for one in self.lives[number] if not one.forgotten and not one.why_over(now)), None)

    def visible(self, now: float) -> set[UUID]:
        return {one.id for number in range(len(KINDS)) if (one := self.living(number, now))}

    def store(self, number: int, id_: UUID, now: float, *, again: bool) -> None:
        if any(one.id == id_ for one in self.lives[number]):
            return
        self.sweep(self.lives[number], now)
        living = self.living(number, now)
        if living:
            self.restate(living, now)
            self.touch(living, id_, now)
            living.confidence = living.kind.confidence
        elif again or number not in self.unwanted:
            self.unwanted.discard(number)
            kind = KINDS[number]
            self.lives[number].append(
                Life(id_, kind, self.manner, now, now, len(self.turns_taken), now, confidence=kind.confidence)
            )

    def take_turn(self, id_: UUID, now: float) -> int:
        """Count a turn, unless it was counted; return its number."""
        if id_ not in self.turns_taken:
            self.turns_taken.append(id_)
            for life in self.all():
                self.outrun(life, now)
        return self.turns_taken.index(id_)

    def outrun(self, life: Life, now: float) -> None:
        if not life.forgotten and len(self.turns_taken) - life.occurred > self.manner.turns:
            if life.pinned > now:
                life.occurred = len(self.turns_taken)
            else:
                life.outrun = min(life.outrun, now)

    def restate(self, life: Life, now: float) -> None:
        """Restart the lifetime of any class; an episode is as if it had been stored now."""
        life.confirmed = life.encoded = now
        life.occurred, life.outrun = len(self.turns_taken), NEVER

    def touch(self, life: Life, use: UUID, now: float) -> None:
        """Count a use, once by its id."""
        if use in self.uses:
            return
        self.uses.add(use)
        life.strength = min(life.salience(now) + 0.5, 1.0)
        life.coactivations, life.recalls = life.coactivations + 1, life.recalls + 1
        life.seen = now
        life.confirmed = now if life.kind.refreshed else life.confirmed

    def forget(self, number: int, life: Life, now: float) -> None:
        if life.forgotten is None or life.forgotten[0] != REQUESTED:
            life.forgotten = (REQUESTED, now)
            self.unwanted.add(number)

    def restore(self, number: int, life: Life, now: float) -> None:
        self.sweep([life], now)
        if life.forgotten is None:
            return
        self.sweep(self.lives[number], now)
        if self.living(number, now) or any(at == now for _, at in life.restored):
            return
        life.restored.append((life.forgotten[0], now))
        life.strength = min(life.salience(now) + 0.5, 1.0)
        life.seen = life.confirmed = life.encoded = now
        life.occurred, life.outrun = len(self.turns_taken), NEVER
        life.forgotten = None
        life.confidence = 1.0 if life.why_over(now) else life.confidence
        ended = [reason for reason, _ in life.restored if reason != REQUESTED]
        if life.restored[-1][0] != REQUESTED and len(ended) >= RESTORED_OFTEN:
            life.pinned = NEVER
        self.unwanted.discard(number)

    def purge(self, now: float) -> None:
        self.lives = [
            [
                one
                for one in lives
                if (one.forgotten or ("", now))[0] != REQUESTED or one.forgotten[1] >= now - RETENTION
            ]
            for lives in self.lives
        ]


class Deed(NamedTuple):
    """What is done after so many days to which text; `flag` is `again`, or the older of two lives, or no end.

    It is done in one namespace, but a pass and a purge go over all.
    """

    wait: float
    what: str
    number: int
    flag: bool
    times: int
    namespace: str = "default"


# Days that no lifetime is a sum of, so that nothing happens at the very instant of an end.
WAITS = [0.0, 0.0, 0.313, 1.071, 5.297, 20.903, 61.709]
DEEDS = ["store", "store", "hit", "pass", "forget", "restore", "pin", "unpin", "purge", "turn", "turn"]


def deeds_about(favourite: int) -> st.SearchStrategy[list[Deed]]:
    """Return operations, most of them on one text, as errors arise from sequences."""
    numbers = st.sampled_from([favourite] * 2 * len(KINDS) + list(range(len(KINDS))))
    deed = st.builds(
        Deed,
        st.sampled_from(WAITS),
        st.sampled_from(DEEDS),
        numbers,
        st.booleans(),
        times=st.integers(1, 2),
        namespace=st.sampled_from(list(MANNERS)),
    )
    return st.lists(deed, min_size=8, max_size=24)


RESTORED_TWICE = [
    *[Deed(20.903, what, 5, flag=False, times=2) for what in ("pass", "restore", "restore")],
    *[Deed(61.709, what, 5, flag=False, times=2) for what in ("pass", "unpin", "restore")],
]
EPISODE_STORED_AT_THE_INSTANT_OF_A_HIT = [
    Deed(1.071, "hit", 6, flag=False, times=1),
    Deed(0.0, "store", 6, flag=False, times=2),
    *[Deed(wait, "pass", 6, flag=False, times=1) for wait in (61.709, 20.903, 5.297, 1.071)],
]
deeds = st.integers(0, len(KINDS) - 1).flatmap(deeds_about)


def text(number: int) -> str:
    return f"Guest number {number} takes tea."


def do(memory: Memory, owner: Owner, deed: Deed, id_: UUID, now: float) -> None:
    """Apply one operation to the memory and to the model."""
    what, number, flag = deed.what, deed.number, deed.flag
    lives = owner.lives[number]
    life, own = lives[0 if flag else -1] if lives else None, owner.namespace
    if what == "turn":
        turn = {
            "text": f"Said {id_}.",
            "session": "chat",
            "turn": owner.take_turn(id_, now),
            "decay_class": "permanent",
        }
        memory.store(turn, at=now, namespace=own, touch=False)
    elif what == "store":
        fact = {"id": str(id_), "text": text(number), "strength": 0.5, "again": flag}
        fact |= {"confidence": KINDS[number].confidence, "decay_class": KINDS[number].decay_class}
        if KINDS[number].durability:
            fact |= {"kind": "episodic", "durability": KINDS[number].durability}
        (stored,) = memory.store(fact, at=now, namespace=own, use=id_)
        assert isinstance(stored, Stored)
        owner.store(number, id_, now, again=flag)
        memory.regenerate(stored.id, at=now, namespace=own)
    elif what == "hit":
        living = owner.living(number, now)
        asked = memory.ask(text(number), at=now, limit=50, namespace=own)
        hits = [one.id for one in asked.results if one.text == text(number)]
        memory.touch(*hits, at=now, namespace=own, use=id_)
        memory.regenerate(*hits, at=now, namespace=own)
        assert hits == ([living.id] if living else [])
        if living:
            owner.touch(living, id_, now)
    elif life and what == "forget" and number not in KEPT:
        memory.forget(life.id, at=now, namespace=own)
        owner.forget(number, life, now)
    elif life and what == "restore":
        memory.restore(life.id, at=now, namespace=own)
        owner.restore(number, life, now)
    elif life and what in ("pin", "unpin") and number not in KEPT:
        pin(
            memory,
            owner,
            owner.living(number, now),
            life,
            now if what == "unpin" else NEVER if flag else now + 33.317,
            now,
        )


def do_to_all(memory: Memory, owners: Sequence[Owner], what: str, now: float) -> None:
    """Apply an operation that concerns all namespaces."""
    if what == "pass":
        memory.decay(now)
        for owner in owners:
            owner.sweep(list(owner.all()), now)
    else:
        memory.purge(at=now)
        for owner in owners:
            owner.purge(now)


def pin(memory: Memory, owner: Owner, living: Life | None, life: Life, until: float, now: float) -> None:
    """Pin until an instant or without end, or end a pin (until now); the count of turns restarts."""
    own = owner.namespace
    if life is not living:
        with pytest.raises(InvalidInputError, match="no live fact"):
            memory.unpin(life.id, at=now, namespace=own)
        return
    if until == now:
        memory.unpin(life.id, at=now, namespace=own)
    else:
        memory.pin(life.id, at=now, until=None if until == NEVER else until, namespace=own)
    if until != max(life.pinned, now):
        life.pinned, life.occurred, life.outrun = until, len(owner.turns_taken), NEVER


def kept_whole(life: Life, now: float) -> int:
    """Return the expected fidelity of a vector that was full at the last use or pin."""
    if life.kind.decay_class == "permanent":
        return FULL
    curve = tiers.curve(np.array([life.strength]), np.array([life.coactivations]))
    age = np.array([now - max(life.seen, life.pinned)])
    left, tier = float(tiers.retention(curve, age)[0]), tiers.Tier(int(tiers.tier(curve, age)[0]))
    if tier == tiers.Tier.COLD and left < 0.25:
        return FINGERPRINT
    return FULL if tier == tiers.Tier.HOT or left >= 0.7 else 2 if left >= 0.5 else 4


def assert_all_seen(memory: Memory, owners: Sequence[Owner], now: float) -> None:
    """Compare what readers of every namespace see with the model."""
    for owner in owners:
        assert_seen(memory, owner, now)


def assert_seen(memory: Memory, owner: Owner, now: float) -> None:
    """Compare what readers see with the model, whether or not a pass has run."""
    asked = memory.ask("Which guest takes tea?", at=now, limit=50, namespace=owner.namespace)
    seen = {one.id for one in asked.results if one.text.startswith("Guest")}
    assert seen == owner.visible(now)
    assert {owner.lives[number][0].id for number in KEPT} <= seen
    assert_anchored(memory, owner)


def assert_anchored(memory: Memory, owner: Owner) -> None:
    """Compare each fact that is not forgotten with the model."""
    stored = {row[0]: row[1:] for row in memory.rows(ANCHORS, *[int(DAY_0.timestamp())] * 3)}
    for life in owner.all():
        if life.forgotten is None:
            base, times, recalls, confidence, expires, seen, begins = stored[life.id]
            strength = tiers.strength(np.array([base]), np.array([times]))[0]
            assert (recalls, confidence) == (life.recalls, life.confidence)
            assert strength == pytest.approx(life.strength, abs=1e-9)
            assert (expires, seen, begins) == pytest.approx(
                (life.expires, max(life.seen, life.pinned), life.begins), abs=1e-8
            )


def assert_as_the_book_says(memory: Memory, owner: Owner, now: float) -> None:
    for life in owner.all():
        memory.history(life.id, at=now, namespace=owner.namespace)  # unpacks it from deep memory
    ids = {id_ for (id_,) in memory.rows(GUESTS, owner.namespace)}
    assert ids == {one.id for one in owner.all()}
    assert memory.stats(now, owner.namespace).turns == len(owner.turns_taken)
    for life in owner.all():
        row = memory.row(life.id)
        assert row["forgotten_reason"] == (life.forgotten[0] if life.forgotten else None)
        if life.forgotten:
            assert (row["live"], row["dims"]) == (False, 0)
        else:
            silent = now - max(life.seen, life.pinned)
            stale = life.kind.durability == "permanent" and silent > life.manner.stale_days
            assert (row["live"], row["fidelity"], row["stale"]) == (True, kept_whole(life, now), stale)


def assert_the_same_elsewhere(memory: Memory, owner: Owner, now: float) -> None:
    """Import the archive of a namespace twice into an empty one, whose archive is the same after each."""
    copy, lines = f"{owner.namespace}-copy", memory.archive(now, owner.namespace)
    for _ in range(2):
        assert not any("error" in str(one) for one in memory.import_records(lines, now, copy))
        memory.decay(now, namespace=copy)
        assert sorted_lines(memory.archive(now, copy)) == sorted_lines(lines)
    assert memory.examine(now) == {}


def sorted_lines(lines: Sequence[dict[str, Any]]) -> list[str]:
    """Return the lines of an archive without their namespace; those from deep memory come last in an export."""
    return sorted(json.dumps({**line, "namespace": None}, sort_keys=True) for line in lines)


@examples(24, few=2)
@given(deeds)
@example(RESTORED_TWICE)
@example(EPISODE_STORED_AT_THE_INSTANT_OF_A_HIT)
def test_any_order_and_repetition_gives_the_state_of_the_model(memory: Memory, todo: list[Deed]) -> None:
    memory = memory.having(forget_limit=1.0)
    memory.rows(EMPTY)
    with transaction(memory.context.database_url) as db:
        forget_limit.publish(memory.context, db)
    owners, now = [Owner(name) for name in MANNERS], 0.0
    for owner in owners:
        memory.choose(owner.manner.settings, namespace=owner.namespace)
        for number in range(len(KINDS)):
            do(memory, owner, Deed(0, "store", number, flag=False, times=1), uuid4(), now)
        pin(memory, owner, owner.lives[1][0], owner.lives[1][0], NEVER, now)
    memory.rows(LOOKED_AT)
    for deed in todo:
        now += deed.wait
        id_ = uuid4()  # also the id of the use: `times` is how often one use is delivered
        if deed.what == "pass":
            assert_all_seen(memory, owners, now)
        for _ in range(deed.times):
            if deed.what in ("pass", "purge"):
                do_to_all(memory, owners, deed.what, now)
            else:
                do(memory, next(one for one in owners if one.namespace == deed.namespace), deed, id_, now)
        assert_all_seen(memory, owners, now)
        assert memory.examine(now) == {}
    now += 7.713
    do_to_all(memory, owners, "pass", now)
    for owner in owners:
        assert_as_the_book_says(memory, owner, now)
        assert_the_same_elsewhere(memory, owner, now)
