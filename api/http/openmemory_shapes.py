"""Requests and answers of OpenMemory's API; times are epoch milliseconds."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import fmean
from typing import Any

from ebb.contract.values import cleaned_tags
from pydantic import BaseModel, Field, FiniteFloat

from api.contrib.foreign import user_of
from workers.core.episodes import OF_DOCUMENTS
from workers.core.text import beginning
from workers.core.tiers import RULES, Tier

SECTORS = ("episodic", "semantic", "procedural", "emotional", "reflective")
DEFAULT = "semantic"
SIGNS = {
    "episodic": r"today|tonight|yesterday|tomorrow|(last|next) \w+|ago|went|met|visited|happened|\d\d?:\d\d",
    "procedural": r"how to|steps?|first|then|finally|install|configure|deploy|run|press|click|recipe|instructions?",
    "emotional": r"feels?|felt|happy|sad|angry|afraid|scared|excited|worried|love[sd]?|hate[sd]?|proud|upset|lonely",
    "reflective": r"reali[sz]ed?|learn(ed|t)|lesson|insight|conclusion|pattern|in hindsight|understood|looking back",
}
"""Words by which a text belongs to a sector: the most of them decide, then this order; without any it is semantic."""

_SIGNS = {name: re.compile(rf"\b(?:{signs})\b", re.IGNORECASE) for name, signs in SIGNS.items()}
SHOWN = 3
MOST_CHARACTERS = 80
DEFAULT_K = 8
DEFAULT_LIMIT = 100
BOOST = 0.2
MOST_K = 200
LAMBDAS = {Tier.HOT: RULES.hot_rate, Tier.WARM: RULES.warm_rate, Tier.COLD: RULES.cold_rate}
KEPT = (
    "category", "entity", "key", "value", "importance", "confidence", "source", "session", "turn", "role", "tags",
    "metadata", "kind", "durability", "decay_class", "decay_class_source", "source_date", "valid_until",
)  # fmt: skip
"""Fields that a memory keeps when its content changes; a summary is of the text alone."""


class AddRequest(BaseModel):
    """Something to remember; whatever else a client sends has no meaning here."""

    content: str = Field(min_length=1)
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None
    user_id: str | None = None
    salience: float | None = Field(None, ge=0, le=1)

    def fact(self) -> dict[str, Any]:
        """Return the fields of the fact to store, without its text."""
        fields = {
            "tags": cleaned_tags(self.tags or []),
            "metadata": self.metadata or None,
            "category": named_sector(self.metadata),
            "salience": self.salience,
        }
        return {name: value for name, value in fields.items() if value is not None}


class Filters(BaseModel):
    """Which memories are wanted."""

    sector: str | None = None
    sectors: list[str] | None = None
    tags: list[str] | None = None
    min_score: FiniteFloat | None = None
    min_salience: FiniteFloat | None = None
    user_id: str | None = None
    startTime: FiniteFloat | None = None
    endTime: FiniteFloat | None = None


class QueryRequest(BaseModel):
    """A question."""

    query: str = Field(min_length=1)
    k: int | None = Field(None, ge=1, le=MOST_K)
    filters: Filters | None = None
    user_id: str | None = None
    startTime: FiniteFloat | None = None
    endTime: FiniteFloat | None = None

    def wanted(self) -> Filters:
        """Return the filters, with the request's own fields where the filters have none."""
        given = {} if self.filters is None else self.filters.model_dump(exclude_none=True)
        return Filters(**{"startTime": self.startTime, "endTime": self.endTime, **given})

    def user(self) -> str | None:
        """Return the requested user, before all that of the filters, as in OpenMemory."""
        return self.wanted().user_id or self.user_id

    def narrow(self) -> bool:
        """Return whether there are filters."""
        return bool(self.wanted().model_dump(exclude_none=True, exclude={"user_id"}))

    def takes(self, fact: Mapping[str, Any], score: float) -> bool:
        """Return whether a memory with that score passes the filters."""
        wanted = self.wanted()
        sectors = wanted.sectors or ([wanted.sector] if wanted.sector else None)
        return (
            (sectors is None or sector(fact) in sectors)
            and (not wanted.tags or bool(set(cleaned_tags(wanted.tags)) & set(fact["tags"])))
            and _is_within(score, wanted.min_score)
            and _is_within(fact["salience"], wanted.min_salience)
            and _is_within(milliseconds(fact["created_at"]), wanted.startTime, wanted.endTime)
        )


def _is_within(value: float, least: float | None, most: float | None = None) -> bool:
    return (least is None or value >= least) and (most is None or value <= most)


class StrengthenRequest(BaseModel):
    """Which memory to strengthen, and by how much."""

    id: str = Field(min_length=1)
    boost: float | None = Field(None, gt=0, le=1)


class UpdateRequest(BaseModel):
    """The new values of a memory; omitted fields stay."""

    content: str | None = Field(None, min_length=1)
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None
    user_id: str | None = None

    def is_empty(self) -> bool:
        """Return whether nothing is to be changed."""
        return not self.model_dump(exclude_none=True, exclude={"user_id"})

    def keeps(self, fact: Mapping[str, Any]) -> bool:
        """Return whether a fact can be edited so, as its text stays."""
        return self.content in (None, fact["text"]) and fact["kind"] not in OF_DOCUMENTS

    def fields(self) -> dict[str, Any]:
        """Return the new values of fields other than the text."""
        fields: dict[str, Any] = {} if self.tags is None else {"tags": cleaned_tags(self.tags)}
        if self.metadata is not None:
            named = named_sector(self.metadata)
            fields |= {"metadata": self.metadata} | ({"category": named} if named else {})
        return fields

    def changed(self, fact: Mapping[str, Any], now: str) -> dict[str, Any]:
        """Return the fact that replaces this one.

        What it says holds from now on, whenever the first one was said, unless that one has ended.
        """
        own = {"salience": fact["strength"], "text": self.content or fact["text"]}
        fields = {name: fact[name] for name in KEPT if fact[name] is not None} | own | self.fields()
        until = fact["valid_until"]
        has_ended = until is not None and datetime.fromisoformat(until) <= datetime.fromisoformat(now)
        return fields if fact["source_date"] is None or has_ended else fields | {"valid_from": now}


def named_sector(metadata: Mapping[str, Any] | None) -> str | None:
    """Return the sector in metadata, if any."""
    wanted = (metadata or {}).get("sector")
    return wanted if wanted in SECTORS else None


def sector(fact: Mapping[str, Any]) -> str:
    """Return the sector of a fact: its category, or by the words of its text."""
    return fact["category"] if fact["category"] in SECTORS else classified(fact["text"])


def classified(text: str) -> str:
    """Return the sector to which a text belongs by its words."""
    found = {name: len(signs.findall(text)) for name, signs in _SIGNS.items()}
    best = max(found, key=lambda name: found[name])
    return best if found[best] else DEFAULT


def brief(fact: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `stats` and `summary` need of a fact; metadata may be a million characters."""
    return {
        "sector": sector(fact),
        "salience": fact["salience"],
        "last_seen_at": fact["last_seen_at"],
        "text": beginning(fact["text"], MOST_CHARACTERS),
    }


def stats(facts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return for each sector that has memories how many they are, and their average salience, by their briefs."""
    found: dict[str, list[float]] = {name: [] for name in SECTORS}
    for fact in facts:
        found[fact["sector"]].append(fact["salience"])
    return [{"sector": name, "count": len(own), "avg_salience": fmean(own)} for name, own in found.items() if own]


def summary(facts: Sequence[Mapping[str, Any]]) -> str:
    """Return in a sentence how many memories a user has in which sectors, and the most salient, by their briefs."""
    if not facts:
        return "No memories yet."
    parts = ", ".join(f"{one['count']} {one['sector']}" for one in stats(facts))
    best = sorted(facts, key=lambda fact: -fact["salience"])[:SHOWN]
    texts = "; ".join(fact["text"] for fact in best)
    return f"{len(facts)} {'memory' if len(facts) == 1 else 'memories'} ({parts}). Most salient: {texts}"


def milliseconds(instant: str) -> int:
    """Return an instant in epoch milliseconds."""
    return round(datetime.fromisoformat(instant).timestamp() * 1000)


def item(fact: Mapping[str, Any], id_: str) -> dict[str, Any]:
    """Return a fact as a memory."""
    stored_at = milliseconds(fact["created_at"])
    return {
        "id": id_,
        "content": fact["text"],
        "tags": fact["tags"],
        "metadata": fact["metadata"] or {},
        "created_at": stored_at,
        "updated_at": stored_at,
        "last_seen_at": milliseconds(fact["last_seen_at"]),
        "salience": fact["salience"],
        "decay_lambda": LAMBDAS[Tier[fact["tier"].upper()]],
        "primary_sector": sector(fact),
        "user_id": user_of(fact["namespace"]),
    }


def match(fact: Mapping[str, Any], score: float, id_: str) -> dict[str, Any]:
    """Return a fact as a search result; `path` has only the fact itself."""
    shown = item(fact, id_)
    named = {name: shown[name] for name in ("id", "content", "primary_sector", "salience", "last_seen_at")}
    return named | {"score": score, "sectors": [shown["primary_sector"]], "path": [id_]}
