"""Decay classes: their lifetimes are constants, and only some are renewed by use."""

import math
from typing import get_args

import pytest
from ebb.contract.values import DecayClass

from workers.core.lifetime import LIFETIMES, expiry, lifetime, renewed_by

DAY = 86_400


@pytest.mark.parametrize(
    ("decay_class", "seconds", "refreshed"),
    [
        ("permanent", None, False),
        ("durable", 7_776_000, True),
        ("normal", 1_209_600, True),
        ("short", 172_800, False),
        ("ephemeral", 14_400, False),
        ("stable", 7_776_000, True),
        ("active", 1_209_600, True),
        ("session", 86_400, False),
        ("checkpoint", 14_400, False),
    ],
)
def test_each_class_has_its_documented_lifetime(decay_class: str, seconds: int | None, refreshed: bool) -> None:
    given = lifetime(decay_class)

    assert given.seconds == seconds
    assert given.refreshed_by_use == refreshed


def test_the_classes_that_may_be_stored_are_these_nine() -> None:
    assert set(LIFETIMES) == set(get_args(DecayClass))
    assert len(LIFETIMES) == 9


def test_a_fact_expires_its_lifetime_after_it_was_confirmed() -> None:
    assert expiry("normal", 1_000.0) == 1_000.0 + 14 * DAY


@pytest.mark.parametrize("decay_class", ["permanent", None])
def test_a_permanent_fact_and_one_without_class_never_expire(decay_class: str | None) -> None:
    assert expiry(decay_class, 1_000.0) == math.inf


def test_an_unknown_class_has_no_lifetime() -> None:
    with pytest.raises(KeyError, match="forever"):
        lifetime("forever")


@pytest.mark.parametrize(
    ("decay_class", "ends_for", "said"),
    [
        ("stable", "faded", "used"),
        (None, "culled", "used"),
        ("short", "faded", "stored again"),
        (None, "aged", "stored again"),
        ("unheard of", "culled", "used"),
    ],
)
def test_what_starts_the_time_of_a_fact_again_follows_from_its_class_and_from_why_it_ends(
    decay_class: str | None, ends_for: str, said: str
) -> None:
    assert renewed_by(decay_class, ends_for) == said
