"""The graph in a recall: facts along links from the best candidates, and facts about named entities."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np

from workers.core import ranking
from workers.core.arrays import Bools, Floats, Key
from workers.core.names import mentioned_names, with_any_apostrophe, word_phrases
from workers.memory.recall.question import Asked
from workers.storage import entities, links
from workers.storage.candidates import Candidates
from workers.storage.entities import NO_FACTS, About
from workers.storage.links import Walk

SEEDS = 10
"""Number of the best candidates from which links are followed."""

BREADTH = 20
FAN = 20
MOST_LINKED = 20
"""Maximum number of facts that are added by links alone."""

MOST_NAMED = 20
MOST_RELATED = 5
MOST_ABOUT = 40
"""Maximum number of facts of a named entity, of a related entity, and of all of them."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The graph's contribution to a recall: walks along links, and facts about entities."""

    walks: list[Walk] = field(default_factory=list)
    about: About = NO_FACTS

    @property
    def found(self) -> dict[Key, str]:
        """Return the facts found by the graph, and how each was found."""
        return dict.fromkeys(self.about.ids, "entity") | {walk.fact: "link" for walk in self.walks}

    def linked(self, found: Candidates, those: Bools) -> Bools:
        """Return which of n candidates are linked from one of `those` or about a named entity."""
        if not self.walks and not self.about.ids:
            return np.zeros(len(found), np.bool_)
        seeds = set(found["id"][those])
        reached = {walk.fact for walk in self.walks if walk.seed in seeds} | set(self.about.ids)
        return np.array([id_ in reached for id_ in found["id"]], np.bool_)

    def gain(self, found: Candidates, relevance: Floats) -> Floats:
        """Return the gain of n candidates from the graph, given their relevance."""
        gained = self._named(found)
        return gained + self._lift(found, relevance) if self.walks else gained

    def gain_by_name(self, found: Candidates, names: Collection[str]) -> Floats:
        """Return the gain of n candidates that begin with one of the names, beyond their gain from entities."""
        beginning = ranking.begins_with_name(found["beginning"].tolist(), names)
        return np.maximum(ranking.NAMED * beginning - self._named(found), 0.0)

    def _named(self, found: Candidates) -> Floats:
        if not self.about.weights:
            return np.zeros(len(found))
        return ranking.NAMED * np.array([self.about.weights.get(name, 0.0) for name in found["entity"]])

    def _lift(self, found: Candidates, relevance: Floats) -> Floats:
        places = {id_: place for place, id_ in enumerate(found["id"])}
        seen = [walk for walk in self.walks if walk.fact in places and walk.seed in places]
        shares = ranking.hop_factors(
            np.array([walk.hops for walk in seen], dtype=np.int64), np.array([walk.strength for walk in seen])
        )
        reached = np.array([places[walk.fact] for walk in seen], dtype=np.int64)
        seeds = np.array([places[walk.seed] for walk in seen], dtype=np.int64)
        return ranking.link_gains(relevance, reached, seeds, shares)


def ask_surroundings(asked: Asked, best: dict[Key, float]) -> Callable[[], Surroundings]:
    """Send the queries for the walks from the best candidates, given with their scores, and for named entities' facts.

    Return their reader. Named entities are looked up even if the graph is disabled. No query is sent if a namespace has
    no links or no entities.
    """
    whole = asked.context.settings.graph_in_recall
    walks = _ask_walks(asked, best) if whole and asked.tenant.links and best else list[Walk]
    about = _ask_about(asked, MOST_RELATED if whole else 0) if asked.tenant.entities else lambda: NO_FACTS
    return lambda: Surroundings(walks(), about())


def _ask_walks(asked: Asked, best: dict[Key, float]) -> Callable[[], list[Walk]]:
    """Send the query for walks from the best seeds; return its reader.

    It gives those to other candidates, and to the best `MOST_LINKED` further facts.
    """
    seeds = {key: round(score, 9) for key, score in list(best.items())[:SEEDS]}
    depth = asked.context.settings.graph_depth
    sent = links.ask_walks(asked.db, asked.tenant.id, seeds, asked.scope, depth=depth, breadth=BREADTH, fan=FAN)
    return lambda: _worth_following(sent(), seeds, best)


def _worth_following(walks: list[Walk], seeds: dict[Key, float], best: dict[Key, float]) -> list[Walk]:
    worth = {id(walk): ranking.HOPS[walk.hops] * walk.strength * seeds[walk.seed] for walk in walks}
    walks.sort(key=lambda walk: -worth[id(walk)])
    others = list(dict.fromkeys(walk.fact for walk in walks if walk.fact not in best))[:MOST_LINKED]
    kept = {*others, *best}
    return [walk for walk in walks if walk.fact in kept]


def _ask_about(asked: Asked, related: int) -> Callable[[], About]:
    """Send the query for facts about entities that the question names, among those given or all; return its reader.

    `related` limits related ones.
    """
    question, by = asked.question, asked.context.fading_of_relations
    said = (
        word_phrases(question.text) if question.entities is None else mentioned_names(question.text, question.entities)
    )
    if not said:
        return lambda: NO_FACTS
    names = with_any_apostrophe(said)
    sent = entities.ask_about(asked.db, asked.tenant.id, names, asked.scope, by, named=MOST_NAMED, related=related)
    return lambda: _first(sent())


def _first(found: About) -> About:
    return About(found.ids[:MOST_ABOUT], found.weights)


def near_in_session(rows: Candidates, those: Bools) -> Bools:
    """Return which of n candidates are close to one of `those` in the same session."""
    turns, sessions, reach = rows["turn"], rows["session"], len(ranking.CONTIGUITY)
    in_session = (sessions[:, None] == sessions[those]) & (turns[:, None] >= 0) & (turns[those] >= 0)
    return (in_session & (np.abs(turns[:, None] - turns[those]) <= reach)).any(axis=1)
