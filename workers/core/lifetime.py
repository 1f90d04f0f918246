"""How long a fact may live without use: nine decay classes, whose lifetimes are constants (D5-D15)."""

from dataclasses import dataclass

DAY = 86_400.0
HOUR = 3_600.0


@dataclass(frozen=True, slots=True)
class Lifetime:
    """One decay class: seconds to live, and whether each use starts them anew."""

    seconds: float | None
    refreshed_by_use: bool


LIFETIMES: dict[str, Lifetime] = {
    "permanent": Lifetime(None, refreshed_by_use=False),
    "durable": Lifetime(90 * DAY, refreshed_by_use=True),
    "normal": Lifetime(14 * DAY, refreshed_by_use=True),
    "short": Lifetime(2 * DAY, refreshed_by_use=False),
    "ephemeral": Lifetime(4 * HOUR, refreshed_by_use=False),
    "stable": Lifetime(90 * DAY, refreshed_by_use=True),
    "active": Lifetime(14 * DAY, refreshed_by_use=True),
    "session": Lifetime(DAY, refreshed_by_use=False),
    "checkpoint": Lifetime(4 * HOUR, refreshed_by_use=False),
}

UNCLASSED = Lifetime(None, refreshed_by_use=True)
"""A fact that was given no class has no expiry: it fades by strength and confidence alone."""


def lifetime(decay_class: str | None) -> Lifetime:
    """Return the lifetime of a decay class, or that of a fact without one."""
    return UNCLASSED if decay_class is None else LIFETIMES[decay_class]


def expiry(decay_class: str | None, confirmed_at: float) -> float:
    """Return when a fact of that class expires, in epoch seconds; infinite where it does not."""
    seconds = lifetime(decay_class).seconds
    return float("inf") if seconds is None else confirmed_at + seconds
