"""Decay classes: how long facts live without use, and how a fact gets its class.

Everything about a class is in this module. To change or add one:

1. name it in `DecayClass`, and define its lifetime in `LIFETIMES`: how long, and whether each use renews it;
2. if texts determine it, add a `Rule` where it is to be tried;
3. restart the workers, and run `ebb backfill-decay` to classify stored facts.

No setting changes a lifetime.
"""

import re
from dataclasses import dataclass

from ebb.contract.values import DecayClass

DAY = 86_400.0
HOUR = 3_600.0


@dataclass(frozen=True, slots=True)
class Lifetime:
    """One decay class: seconds to live, and whether each use renews them."""

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
"""A fact without class has no expiry: it fades by strength and confidence alone."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Conditions for a decay class: an identifier in the key, or a phrase in the text.

    Some classes also accept the identifier in the entity, or an entity equal to one of `entities`.
    """

    decay_class: DecayClass
    identifiers: frozenset[str]
    phrases: tuple[str, ...]
    entity_too: bool = False
    entities: frozenset[str] = frozenset()


RULES = (
    Rule(
        "permanent",
        frozenset({
            "name", "email", "api_key", "api_endpoint", "architecture", "decision", "birthday", "born", "phone",
            "language", "location",
        }),
        ("decided", "architecture", "always use", "never use"),
        entity_too=True,
        entities=frozenset({"decision", "convention"}),
    ),
    Rule(
        "session",
        frozenset({"current_file", "temp", "debug", "working_on_right_now"}),
        ("currently debugging", "right now", "this session"),
    ),
    Rule(
        "active",
        frozenset({"task", "todo", "wip", "branch", "sprint", "blocker"}),
        ("working on", "need to", "todo", "blocker", "sprint"),
    ),
    Rule("checkpoint", frozenset({"checkpoint", "preflight"}), ("checkpoint", "preflight")),
)  # fmt: skip
"""The first rule that matches determines the class."""

OTHERWISE: DecayClass = "stable"

LONG_RULES = tuple(rule for rule in RULES if LIFETIMES[rule.decay_class].seconds in (None, 90 * DAY))
"""The rules whose lifetime is at least that of `OTHERWISE`."""

LONGEST = max(identifier.count("_") + 1 for rule in RULES for identifier in rule.identifiers)
"""Words of the longest identifier."""

SEPARATORS = re.compile(r"[\s_.-]+")
HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

NO_RULE = "no rule matched"
"""Reason for the default class."""


def classify_decay(
    entity: str | None, key: str | None, value: str | None, text: str, *, careful: bool = False
) -> DecayClass:
    """Return the decay class of a fact stored without one, from what it is about and its text.

    `value` is part of the documented signature; no rule uses it.
    """
    return classified(entity, key, value, text, careful=careful)[0]


def classified(
    entity: str | None,
    key: str | None,
    value: str | None,  # noqa: ARG001 - see `classify_decay`
    text: str,
    *,
    careful: bool = False,
) -> tuple[DecayClass, str]:
    """Return the decay class of a fact stored without one, and the words that decided.

    Key and entity are compared word by word: `apiKey` and `openai_api_key` contain `api_key`, but `hostname` does not
    contain `name`. Texts are compared by whole words. With `careful`, a fact without entity and key never gets a
    lifetime shorter than that of `OTHERWISE`: "I need to take insulin" is not a task.
    """
    about, named, said = _words(entity), _words(key), " ".join(text.lower().split())
    of_entity, of_key = _sequences(about), _sequences(named)
    for rule in LONG_RULES if careful and not (about or named) else RULES:
        if reason := _reason(rule, of_key, of_entity, "_".join(about), said):
            return rule.decay_class, reason
    return OTHERWISE, NO_RULE


def _reason(rule: Rule, of_key: set[str], of_entity: set[str], about: str, said: str) -> str | None:
    """Return the words of a fact that match a rule, or None."""
    if named := rule.identifiers & of_key:
        return f"key: {min(named)}"
    if rule.entity_too and (named := rule.identifiers & of_entity):
        return f"entity: {min(named)}"
    if about in rule.entities:
        return f"entity: {about}"
    phrase = _said(said, rule.phrases)
    return f"words: {phrase}" if phrase else None


def _words(identifier: str | None) -> list[str]:
    if not identifier:
        return []
    return [word.lower() for word in SEPARATORS.split(HUMPS.sub("_", identifier)) if word]


def _sequences(words: list[str]) -> set[str]:
    """Return every run of up to `LONGEST` words, joined as an identifier."""
    starts = range(len(words))
    return {"_".join(words[start : start + length]) for start in starts for length in range(1, LONGEST + 1)}


def _said(text: str, phrases: tuple[str, ...]) -> str | None:
    # Searching a plain string is several times faster than a regular expression, and few texts hold a phrase.
    return next((phrase for phrase in phrases if phrase in text and re.search(rf"\b{phrase}\b", text)), None)


def lifetime(decay_class: str | None) -> Lifetime:
    """Return the lifetime of a decay class; None is a fact without one."""
    return UNCLASSED if decay_class is None else LIFETIMES[decay_class]


def expiry(decay_class: str | None, confirmed_at: float) -> float:
    """Return when a fact of that class expires, in epoch seconds; infinite if it never does."""
    seconds = lifetime(decay_class).seconds
    return float("inf") if seconds is None else confirmed_at + seconds


def renewed_by(decay_class: str | None, ends_for: str | None) -> str:
    """Return what restarts the lifetime of a fact that ends for this reason: being "used", or only "stored again"."""
    by_use = LIFETIMES.get(decay_class or "", UNCLASSED).refreshed_by_use and ends_for != "aged"
    return "used" if by_use else "stored again"
