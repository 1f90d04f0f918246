"""How long a fact may live without use: nine decay classes, each a constant, and how a fact gets its class.

Everything about a class stands here. To change one or to add another:

1. name it in `DecayClass`, and give it its lifetime in `LIFETIMES`: how long, and whether each use renews it;
2. give it a `Rule` if facts get it by their text, at the place where it is to be tried;
3. restart the workers, and run `ebb backfill-decay` to classify what is stored already.

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
"""A fact that was given no class has no expiry: it fades by strength and confidence alone."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What makes a fact one of a class: an identifier in its key, or a phrase in its text.

    Of some classes the entity may hold the identifier instead, or be one of `entities` as a whole.
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
"""The first rule that a fact fulfils gives its class."""

OTHERWISE: DecayClass = "stable"

LONG_RULES = tuple(rule for rule in RULES if LIFETIMES[rule.decay_class].seconds in (None, 90 * DAY))
"""The rules that give no shorter lifetime than that class."""

LONGEST = max(identifier.count("_") + 1 for rule in RULES for identifier in rule.identifiers)
"""Words of the longest identifier."""

SEPARATORS = re.compile(r"[\s_.-]+")
HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

NO_RULE = "no rule matched"
"""Why a fact has the class that is left when no rule gives one."""


def classify_decay(
    entity: str | None, key: str | None, value: str | None, text: str, *, careful: bool = False
) -> DecayClass:
    """Return the decay class of a fact that was given none, by what it is about and what it says.

    The value is an argument as documented, though no rule looks at it.
    """
    return classified(entity, key, value, text, careful=careful)[0]


def classified(
    entity: str | None,
    key: str | None,
    value: str | None,  # noqa: ARG001
    text: str,
    *,
    careful: bool = False,
) -> tuple[DecayClass, str]:
    """Return the decay class of a fact that was given none, and which of its words decided.

    Key and entity are compared word by word, so that `apiKey` and `openai_api_key` hold an `api_key`, but `hostname`
    no `name`; texts by whole words. Of a fact without either, `careful` lets words give no lifetime that is shorter
    than that of `OTHERWISE`: "I need to take insulin" is no task.
    """
    about, named, said = _words(entity), _words(key), " ".join(text.lower().split())
    of_entity, of_key = _sequences(about), _sequences(named)
    for rule in LONG_RULES if careful and not (about or named) else RULES:
        if reason := _reason(rule, of_key, of_entity, "_".join(about), said):
            return rule.decay_class, reason
    return OTHERWISE, NO_RULE


def _reason(rule: Rule, of_key: set[str], of_entity: set[str], about: str, said: str) -> str | None:
    """Return which words of a fact fulfil a rule, or nothing."""
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
    """Return every run of words as an identifier, as far as one may be that long."""
    starts = range(len(words))
    return {"_".join(words[start : start + length]) for start in starts for length in range(1, LONGEST + 1)}


def _said(text: str, phrases: tuple[str, ...]) -> str | None:
    # Few texts hold any of the phrases, and a plain string is found several times as fast as an expression.
    return next((phrase for phrase in phrases if phrase in text and re.search(rf"\b{phrase}\b", text)), None)


def lifetime(decay_class: str | None) -> Lifetime:
    """Return the lifetime of a decay class, or that of a fact without one."""
    return UNCLASSED if decay_class is None else LIFETIMES[decay_class]


def expiry(decay_class: str | None, confirmed_at: float) -> float:
    """Return when a fact of that class expires, in epoch seconds; infinite where it does not."""
    seconds = lifetime(decay_class).seconds
    return float("inf") if seconds is None else confirmed_at + seconds
