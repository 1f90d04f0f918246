"""Fading is a function of time: any number of passes gives the same result as one pass at the end."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from made_up import examples

from workers.core import confidence
from workers.core.arrays import Bools
from workers.core.episodes import MOMENT, Branch
from workers.core.fading import (
    GUARD,
    OF_LIFETIME,
    REASONS,
    Anchors,
    Faded,
    FadingRules,
    as_written,
    ends,
    fade,
    lifetimes,
    pin,
    with_pins,
)
from workers.core.fidelity import FINGERPRINT, FULL, PENDING
from workers.core.tiers import Tier

DAY = 86_400.0
NOW = 1_700_000_000.0
NEVER = math.inf
RULES = FadingRules()
EPISODES = (Branch.PERSISTENT, Branch.PERMANENT)
WITHOUT_FLOOR = FadingRules(cull_floor=0.0)
properties = examples(300)

shares = st.floats(0, 1)
waits = st.floats(0, 900 * DAY)
beliefs = shares | st.sampled_from([0.05, 0.1, 0.2, 0.4, 0.8, 1.0])
lives = st.sampled_from([NEVER, 4 * 3600.0, DAY, 14 * DAY, 90 * DAY]) | st.floats(60, 400 * DAY)
rules_of_a_database = st.builds(
    FadingRules,
    widest_bucket=st.sampled_from([1, 2, 4, 8, 16]),
    cold_threshold=st.sampled_from([0.25, 0.15, 0.35, 0.0]) | shares,
    half_life=st.floats(1, 1_000),
    cull_floor=st.sampled_from([0.0, 0.1]) | st.floats(1e-9, 0.99),
    persistent_days=st.floats(1, 1_000) | st.just(NEVER),
    both_limits=st.booleans(),
    stale_days=st.floats(1, 1_000) | st.just(NEVER),
)


def fact(
    base: float = 0.5,
    coactivations: int = 0,
    *,
    seen_at: float = NOW,
    belief: float = 1.0,
    confirmed_at: float = NOW,
    lifetime: float = NEVER,
    permanent: bool = False,
    fidelity: int = FULL,
    pinned_until: float = -NEVER,
    halvings: int = 0,
    branch: int = Branch.SEMANTIC,
    encoded_at: float = NOW,
    outrun_at: float = NEVER,
    stale: bool = False,
) -> Anchors:
    """Return the anchors of one fact."""
    unpinned = Anchors(
        base=np.array([base]),
        coactivations=np.array([coactivations]),
        last_seen_at=np.array([seen_at]),
        confidence=np.array([belief]),
        confirmed_at=np.array([confirmed_at]),
        expires_at=np.array([confirmed_at + lifetime]),
        permanent=np.array([permanent or branch == Branch.PERMANENT]),
        fidelity=np.array([fidelity]),
        pinned_until=np.array([-NEVER]),
        halvings=np.array([halvings]),
        branch=np.array([branch]),
        encoded_at=np.array([encoded_at if branch in EPISODES else -NEVER]),
        outrun_at=np.array([outrun_at]),
        silent_since=np.array([max(encoded_at, seen_at)]),
        stale=np.array([stale]),
    )
    return pin(unpinned, lifetimes(unpinned), pinned_until)


facts = st.builds(
    fact,
    base=shares,
    coactivations=st.integers(0, 12),
    seen_at=st.floats(NOW - 30 * DAY, NOW + DAY),
    belief=beliefs,
    confirmed_at=st.floats(NOW - 30 * DAY, NOW + DAY),
    lifetime=lives,
    permanent=st.sampled_from([False, False, False, True]),
    fidelity=st.sampled_from([FULL, FULL, FULL, PENDING, FINGERPRINT]),
    pinned_until=st.sampled_from([-NEVER, -NEVER, NEVER]) | st.floats(NOW - 30 * DAY, NOW + 400 * DAY),
    branch=st.sampled_from([Branch.SEMANTIC, Branch.SEMANTIC, *Branch]),
    encoded_at=st.floats(NOW - 30 * DAY, NOW),
    outrun_at=st.just(NEVER) | st.floats(NOW - 30 * DAY, NOW),
)


def state(faded: Faded, now: float = NOW) -> tuple[int, int, int, bool, float, int]:
    """Return tier, fidelity, halvings (if not ended), staleness, end and its reason."""
    halvings = int(faded.halvings[0]) if faded.ends_at[0] > now else -1
    seen = int(faded.tier[0]), int(faded.fidelity[0]), halvings, bool(faded.stale[0])
    return *seen, float(faded.ends_at[0]), int(faded.end_reason[0])


def after_pass(one: Anchors, faded: Faded) -> Anchors:
    """Return a fact as a pass with this result leaves it."""
    return replace(one, fidelity=faded.fidelity, halvings=faded.halvings, stale=faded.stale)


def passes(one: Anchors, instants: Sequence[float], rules: FadingRules) -> Faded:
    """Return the state of a fact after passes at those instants, each only if it is due."""
    known = as_written(one, NOW, rules)
    for now in instants:
        if known.due_at[0] <= now:
            known = fade(after_pass(one, known), now, rules)
    return known


def over(one: Anchors, now: float, rules: FadingRules) -> bool:
    """Return whether a fact is expired, removed by soft decay, or below the floor, by the documented rules."""
    halvings = confidence.soft_decay_halvings(one.confirmed_at, one.expires_at, now)
    left = one.confidence * 0.5 ** confidence.halvings_applied(one.confidence, halvings)
    believed = confidence.effective_confidence(left, (now - one.confirmed_at) / DAY, rules.half_life)
    expired = now >= one.expires_at
    removed = (halvings > 0) & (left < 0.1)
    culled = (one.branch == Branch.SEMANTIC) & (believed < rules.cull_floor)
    return bool((expired | removed | culled | aged(one, now, rules))[0])


def aged(one: Anchors, now: float, rules: FadingRules) -> Bools:
    """Return whether an episode is past its limits, by the documented rules."""
    days, turns = now - one.encoded_at > rules.persistent_days * DAY, one.outrun_at <= now
    return (one.branch == Branch.PERSISTENT) & (days & turns if rules.both_limits else days | turns)


@given(facts, rules_of_a_database, st.lists(waits, min_size=1, max_size=12))
@properties
def test_passes_at_any_moments_leave_what_one_pass_leaves(
    one: Anchors, rules: FadingRules, delays: list[float]
) -> None:
    instants = sorted(NOW + delay for delay in delays)

    known = passes(one, instants, rules)

    assume(abs(known.due_at[0] - instants[-1]) > 2 * GUARD)
    assert state(known, instants[-1]) == state(fade(one, instants[-1], rules), instants[-1])


@given(facts, rules_of_a_database, waits)
@properties
def test_a_pass_that_is_repeated_changes_nothing(one: Anchors, rules: FadingRules, wait: float) -> None:
    once = fade(one, NOW + wait, rules)

    twice = fade(after_pass(one, once), NOW + wait, rules)

    assert state(twice, NOW + wait) == state(once, NOW + wait)
    assert twice.halvings == once.halvings
    assert twice.due_at == once.due_at


@given(st.lists(facts, min_size=2, max_size=4), rules_of_a_database)
@properties
def test_a_fact_ends_among_others_as_it_does_alone(every: list[Anchors], rules: FadingRules) -> None:
    together = Anchors(**{name: np.concatenate([getattr(one, name) for one in every]) for name in Anchors.__slots__})

    ends_at, reasons = ends(together, rules)

    alone = [ends(one, rules) for one in every]
    assert ends_at.tolist() == [at.item() for at, _ in alone]
    assert reasons.tolist() == [reason.item() for _, reason in alone]


@given(facts, rules_of_a_database, waits)
@properties
def test_facts_that_have_not_ended_are_due_later_than_now(one: Anchors, rules: FadingRules, wait: float) -> None:
    faded = fade(one, NOW + wait, rules)

    assert faded.due_at[0] > NOW + wait or faded.ends_at[0] <= NOW + wait


@given(facts, rules_of_a_database, waits, shares)
@properties
def test_nothing_changes_before_a_fact_is_due(one: Anchors, rules: FadingRules, wait: float, share: float) -> None:
    now = NOW + wait
    faded = fade(one, now, rules)
    assume(faded.ends_at[0] > now)

    until = min(float(faded.due_at[0]) - 2 * GUARD, now + 5_000 * DAY)
    between = now + share * max(until - now, 0.0)

    assert state(fade(one, between, rules), between) == state(faded, between)
    assert faded.ends_at[0] > between


@given(facts, rules_of_a_database, waits)
@properties
def test_when_a_fact_is_due_it_changes_or_ends(one: Anchors, rules: FadingRules, wait: float) -> None:
    before = fade(one, NOW + wait, rules)
    due_at = float(before.due_at[0])
    assume(due_at < NEVER)

    after = fade(after_pass(one, before), due_at, rules)

    assert state(after, due_at)[:4] != state(before, NOW + wait)[:4] or after.ends_at[0] <= due_at


@given(facts, rules_of_a_database, st.floats(0, 2_000 * DAY) | st.floats(-10, 10), st.booleans())
@properties
def test_a_fact_ends_when_it_expires_is_removed_or_falls_below_the_floor(
    one: Anchors, rules: FadingRules, offset: float, near_the_end: bool
) -> None:
    mortal = np.where(one.branch == Branch.PERMANENT, Branch.SEMANTIC, one.branch)
    one = replace(one, branch=mortal, permanent=np.array([False]), pinned_until=np.array([-NEVER]))
    ends_at = float(ends(one, rules)[0][0])
    near_the_end = near_the_end and ends_at < NEVER
    now = ends_at + offset if near_the_end else max(float(one.confirmed_at[0]), NOW) + abs(offset)
    assume(now >= one.confirmed_at[0] and abs(now - ends_at) > 2 * GUARD)

    assert over(one, now, rules) == (now > ends_at)


@given(facts, rules_of_a_database, waits)
@properties
def test_facts_written_with_pending_changes_are_due_at_once(one: Anchors, rules: FadingRules, wait: float) -> None:
    now = NOW + wait
    faded, new = fade(one, now, rules), as_written(one, now, rules)

    assert (new.fidelity, new.halvings, new.stale) == (one.fidelity, one.halvings, one.stale)
    if faded.fidelity > one.fidelity or faded.halvings > one.halvings or faded.stale:
        assert new.due_at <= now
    else:
        assert new.due_at == faded.due_at


def test_a_year_old_fact_that_is_imported_is_due_at_once_and_keeps_its_vector_until_then() -> None:
    new = as_written(fact(seen_at=NOW - 365 * DAY, confirmed_at=NOW), NOW, RULES)

    assert new.fidelity == FULL
    assert new.tier == Tier.COLD
    assert new.due_at == NOW


def test_a_fact_that_is_seen_now_keeps_its_vector_and_is_due_when_it_cools() -> None:
    new = as_written(fact(0.5), NOW, RULES)

    assert state(new)[:2] == (Tier.WARM, FULL)
    assert new.due_at == pytest.approx(NOW + 6.69 * DAY, abs=0.01 * DAY)


@given(facts, rules_of_a_database, waits)
@properties
def test_hot_facts_are_never_compressed(one: Anchors, rules: FadingRules, wait: float) -> None:
    faded = fade(replace(one, fidelity=np.array([FULL])), NOW + wait, rules)

    assert faded.tier != Tier.HOT or faded.fidelity == FULL


@given(facts, rules_of_a_database, waits)
@properties
def test_only_cold_facts_are_fingerprinted(one: Anchors, rules: FadingRules, wait: float) -> None:
    faded = fade(replace(one, fidelity=np.array([FULL])), NOW + wait, rules)

    assert faded.fidelity != FINGERPRINT or faded.tier == Tier.COLD


@given(facts, rules_of_a_database, waits)
@properties
def test_permanent_facts_never_fade_and_never_end(one: Anchors, rules: FadingRules, wait: float) -> None:
    faded = fade(replace(one, permanent=np.array([True])), NOW + wait, rules)

    assert faded.fidelity == one.fidelity
    assert faded.ends_at == NEVER


@given(facts, rules_of_a_database, waits)
@properties
def test_without_use_no_vector_grows_back(one: Anchors, rules: FadingRules, wait: float) -> None:
    assert fade(one, NOW + wait, rules).fidelity >= one.fidelity


def test_a_fact_without_vector_yet_has_nothing_to_shrink() -> None:
    faded = fade(fact(fidelity=PENDING), NOW + 300 * DAY, RULES)

    assert state(faded)[:2] == (Tier.COLD, PENDING)


@pytest.mark.parametrize(
    ("days", "expected"),
    [(12, FULL), (13, 2), (20, 4), (26, 4), (29, FINGERPRINT), (90, FINGERPRINT)],
)
def test_the_documented_warm_memory_shrinks_step_by_step(days: int, expected: int) -> None:
    assert fade(fact(0.6), NOW + days * DAY, RULES).fidelity == expected


def test_vectors_are_pooled_no_wider_than_the_rules_allow() -> None:
    unfingerprinted = FadingRules(widest_bucket=2, cold_threshold=0.0)

    assert fade(fact(0.6), NOW + 200 * DAY, unfingerprinted).fidelity == 2


def test_a_higher_cold_threshold_fingerprints_earlier() -> None:
    at = NOW + 24 * DAY

    assert fade(fact(0.6), at, FadingRules(cold_threshold=0.15)).fidelity == 4
    assert fade(fact(0.6), at, FadingRules(cold_threshold=0.35)).fidelity == FINGERPRINT


def test_a_fingerprint_is_not_visited_for_the_rungs_that_it_skipped() -> None:
    # Retention 0.30: fingerprinted at 0.35, before the rung at 0.25 of a wide ladder.
    faded = fade(fact(0.6), NOW + 25.4 * DAY, FadingRules(widest_bucket=16, cold_threshold=0.35, cull_floor=0.0))

    assert faded.fidelity == FINGERPRINT
    assert faded.due_at == NEVER


def ending(one: Anchors, rules: FadingRules = WITHOUT_FLOOR) -> tuple[float, str]:
    """Return the seconds until a fact ends, and the reason."""
    ends_at, reason = ends(one, rules)
    return float(ends_at[0]) - NOW, REASONS[int(reason[0])]


def test_a_fact_of_full_confidence_fades_with_its_fourth_halving() -> None:
    assert ending(fact(lifetime=14 * DAY)) == (10.5 * DAY + 3 * 3600, "faded")


def test_a_doubted_fact_lives_until_it_expires_where_confidence_never_fades() -> None:
    doubted = fact(belief=0.05, lifetime=14 * DAY)
    assert ending(doubted, FadingRules(half_life=math.inf, cull_floor=0.0)) == (14 * DAY, "expired")
    assert ending(doubted)[1] == "faded"


def test_a_fact_whose_halvings_stop_at_a_tenth_lives_until_it_expires() -> None:
    assert ending(fact(belief=0.8, lifetime=14 * DAY)) == (14 * DAY, "expired")


def test_a_fact_that_lives_four_hours_expires_before_soft_decay_removes_it() -> None:
    assert ending(fact(lifetime=4 * 3600.0)) == (4 * 3600, "expired")


def test_a_fact_without_lifetime_is_culled_when_it_is_not_confirmed() -> None:
    seconds, reason = ending(fact(), RULES)

    assert reason == "culled"
    assert seconds / DAY == pytest.approx(598, abs=0.5)


def test_a_fact_that_only_its_halvings_take_below_the_floor_fades_and_is_not_culled() -> None:
    """After 67.5 days, confidence 1.0 has fallen to 0.77, so the third halving takes it below a tenth."""
    assert ending(fact(lifetime=90 * DAY), RULES) == (67.5 * DAY + 2 * 3600, "faded")


def test_an_unconfirmed_fact_is_culled_before_its_lifetime_ends() -> None:
    doubtful = fact(belief=0.11, lifetime=90 * DAY)
    seconds, reason = ending(doubtful, RULES)

    assert (round(seconds / DAY, 1), reason) == (24.8, "culled")
    assert fade(doubtful, NOW, RULES).lifetime_ends_at == NOW + 67.5 * DAY


@given(facts, rules_of_a_database, waits)
@properties
def test_no_fact_ends_later_than_its_lifetime(one: Anchors, rules: FadingRules, wait: float) -> None:
    faded = fade(one, NOW + wait, rules)

    assert faded.ends_at <= faded.lifetime_ends_at <= np.where(one.permanent, NEVER, one.expires_at)
    if faded.end_reason[0] < OF_LIFETIME:
        assert faded.ends_at == faded.lifetime_ends_at


def test_a_fact_is_due_for_each_of_its_halvings() -> None:
    one, made = fact(0.0, lifetime=14 * DAY), []
    known = fade(one, NOW + 10 * DAY, WITHOUT_FLOOR)
    while known.ends_at[0] > known.due_at[0]:
        made.append((round((float(known.due_at[0]) - NOW) / 3600), int(known.halvings[0])))
        known = fade(after_pass(one, known), float(known.due_at[0]), WITHOUT_FLOOR)

    assert made == [(252, 0), (253, 1), (254, 2)]


def test_permanent_facts_are_never_halved() -> None:
    faded = fade(fact(lifetime=14 * DAY, permanent=True), NOW + 10.6 * DAY, RULES)

    assert faded.halvings == 0


def test_a_database_without_floor_keeps_facts_without_lifetime_for_ever() -> None:
    assert ending(fact())[0] == NEVER


def test_whole_arrays_give_what_each_fact_alone_gives() -> None:
    many = [fact(base / 10, base % 9, lifetime=base * DAY + 3600) for base in range(11)]
    columns = {name: np.concatenate([getattr(one, name) for one in many]) for name in Anchors.__slots__}

    together = fade(Anchors(**columns), NOW + 9 * DAY, RULES)

    for i, one in enumerate(many):
        alone = fade(one, NOW + 9 * DAY, RULES)
        assert [getattr(together, name)[i] for name in Faded.__slots__] == [
            getattr(alone, name)[0] for name in Faded.__slots__
        ]


def test_no_facts_give_no_facts() -> None:
    columns = {name: getattr(fact(), name)[:0] for name in Anchors.__slots__}

    assert fade(Anchors(**columns), NOW, RULES).due_at.size == 0


pinned_until = st.floats(NOW, NOW + 400 * DAY)


@given(facts, rules_of_a_database, waits, pinned_until | st.just(NEVER))
@properties
def test_nothing_changes_about_a_pinned_fact(one: Anchors, rules: FadingRules, wait: float, until: float) -> None:
    one = pin(one, lifetimes(one), until)
    now = min(NOW + wait, until)

    assert state(fade(one, now, rules))[:2] == (fade(one, NOW, rules).tier[0], one.fidelity[0])
    assert ends(one, rules)[0] >= until


@given(facts, rules_of_a_database, waits, pinned_until)
@properties
def test_a_fact_whose_pin_ended_fades_as_if_it_had_been_used_at_that_instant(
    one: Anchors, rules: FadingRules, wait: float, until: float
) -> None:
    one = replace(one, pinned_until=np.array([-NEVER]))
    own = lifetimes(one)
    seen, confirmed = np.maximum(one.last_seen_at, until), np.maximum(one.confirmed_at, until)
    heard, encoded = np.maximum(one.silent_since, until), np.maximum(one.encoded_at, until)
    used = replace(one, last_seen_at=seen, confirmed_at=confirmed, expires_at=confirmed + own, silent_since=heard)
    used = replace(used, encoded_at=encoded, outrun_at=np.maximum(one.outrun_at, until))

    now = until + wait

    assert state(fade(pin(one, own, until), now, rules)) == state(fade(used, now, rules))


@given(facts, st.lists(pinned_until, min_size=1, max_size=5))
@properties
def test_pinning_again_and_again_keeps_the_lifetime(one: Anchors, ends_of_pins: list[float]) -> None:
    one = pin(one, lifetimes(one), NOW + DAY)
    own = lifetimes(one)
    for until in ends_of_pins:
        again = pin(one, lifetimes(one), until)
        assert lifetimes(again) == pytest.approx(own, abs=1e-3)
        assert state(fade(with_pins(again), until, RULES)) == state(fade(again, until, RULES))
        one = again


def test_a_pin_without_end_is_permanence_and_nothing_is_ever_due() -> None:
    one = pin(fact(belief=0.01, lifetime=DAY), np.array([DAY]), NEVER)

    faded = fade(one, NOW + 3_650 * DAY, RULES)

    assert (faded.fidelity[0], faded.ends_at[0], faded.due_at[0]) == (FULL, NEVER, NEVER)
    assert one.expires_at[0] == NEVER


def test_a_pinned_fact_is_due_when_it_first_changes_after_its_pin() -> None:
    one = pin(fact(0.5), np.array([NEVER]), NOW + 100 * DAY)

    assert fade(one, NOW + DAY, RULES).due_at == pytest.approx(NOW + 106.69 * DAY, abs=0.01 * DAY)


DAYS_90 = FadingRules(persistent_days=90.0)
BOTH = FadingRules(persistent_days=90.0, both_limits=True)


def episode(durability: Branch = Branch.PERSISTENT, outrun_at: float = NEVER, belief: float = 1.0) -> Anchors:
    return fact(branch=durability, outrun_at=outrun_at, belief=belief)


@pytest.mark.parametrize(
    ("rules", "turns_at", "ends_after"),
    [
        (DAYS_90, NEVER, 90),
        (DAYS_90, 30, 30),
        (DAYS_90, 100, 90),
        (BOTH, NEVER, NEVER),
        (BOTH, 30, 90),
        (BOTH, 100, 100),
    ],
)
def test_an_episode_ages_out_at_the_first_limit_or_at_both(
    rules: FadingRules, turns_at: float, ends_after: float
) -> None:
    ends_at, reason = ending(episode(outrun_at=NOW + turns_at * DAY), rules)

    assert ends_at == pytest.approx(ends_after * DAY, abs=2 * MOMENT)
    assert reason == "aged" or ends_after == NEVER


def test_an_episode_is_over_after_more_than_its_days_and_not_after_just_these() -> None:
    ends_at = fade(episode(), NOW, DAYS_90).ends_at[0]

    assert NOW + 90 * DAY < ends_at <= NOW + 90 * DAY + 2 * MOMENT


def test_no_doubt_culls_an_episode_or_a_chunk_as_it_does_a_fact() -> None:
    lasting = FadingRules(persistent_days=NEVER, both_limits=True)
    doubted = [fact(belief=0.05, branch=branch) for branch in Branch]

    assert [ending(one, lasting)[0] for one in doubted] == [0, NEVER, NEVER, NEVER]


@given(facts, rules_of_a_database, waits)
@properties
def test_a_permanent_episode_never_ends_and_is_stale_when_it_was_silent_for_long(
    one: Anchors, rules: FadingRules, wait: float
) -> None:
    one = replace(one, branch=np.array([Branch.PERMANENT]), permanent=np.array([True]))
    silent = NOW + wait - max(one.silent_since[0], one.pinned_until[0])
    assume(abs(silent - rules.stale_days * DAY) > 2 * GUARD)

    faded = fade(one, NOW + wait, rules)

    assert (faded.ends_at[0], faded.fidelity[0]) == (NEVER, one.fidelity[0])
    assert bool(faded.stale[0]) == (silent > rules.stale_days * DAY)


def test_only_a_pass_marks_an_episode_stale_and_its_next_use_ends_that() -> None:
    one = fact(branch=Branch.PERMANENT)
    assert not as_written(one, NOW + 181 * DAY, RULES).stale
    assert as_written(one, NOW + 181 * DAY, RULES).due_at == NOW + 181 * DAY

    stale = replace(one, stale=np.array([True]))
    assert as_written(stale, NOW + 181 * DAY, RULES).stale
    assert not as_written(replace(stale, silent_since=np.array([NOW + DAY])), NOW + 181 * DAY, RULES).stale


def test_disabled_rules_have_no_effect() -> None:
    off = FadingRules(half_life=NEVER, cull_floor=0.0, persistent_days=NEVER, both_limits=True, stale_days=NEVER)

    for one in (fact(belief=0.001), episode(outrun_at=NOW), fact(branch=Branch.PERMANENT)):
        faded = fade(one, NOW + 36_000 * DAY, off)
        assert (faded.ends_at[0], faded.stale[0]) == (NEVER, False)


@given(st.lists(st.tuples(facts, rules_of_a_database), min_size=1, max_size=6), waits)
@properties
def test_each_fact_fades_by_rules_of_its_own_as_it_would_alone(
    some: list[tuple[Anchors, FadingRules]], wait: float
) -> None:
    shared = some[0][1]
    own = [
        replace(rules, widest_bucket=shared.widest_bucket, cold_threshold=shared.cold_threshold) for _, rules in some
    ]
    names = ("half_life", "cull_floor", "persistent_days", "both_limits", "stale_days")
    columns = {name: np.array([getattr(one, name) for one in own]) for name in names}
    anchors = {name: np.concatenate([getattr(one, name) for one, _ in some]) for name in Anchors.__slots__}

    together = fade(Anchors(**anchors), NOW + wait, replace(shared, **columns))

    for i, ((one, _), rules) in enumerate(zip(some, own, strict=True)):
        alone = fade(one, NOW + wait, rules)
        assert [getattr(together, name)[i] for name in Faded.__slots__] == [
            getattr(alone, name)[0] for name in Faded.__slots__
        ]
