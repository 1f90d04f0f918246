"""A simulated year of an agent: facts are stored when they were stated, recalls touch them, a pass runs every night."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, groupby
from typing import Literal, TypeAlias

from ebb.contract.retention import Use

from tests.benchmarks.conversations import BEGIN, Conversation, Turn
from tests.benchmarks.data import AT
from tests.benchmarks.forgetting import hits
from tests.benchmarks.forgetting.hits import DAY
from tests.benchmarks.passes import whole_pass
from workers.admin import purge, search_indexes
from workers.context import Context
from workers.memory import embed, estimate, recall, store, touch

SEED = 2026

Keeping: TypeAlias = Literal["off", "fading", "lifetimes"]
"""How facts are kept: for ever and whole; without a lifetime, but fading; with the lifetime that their words give."""

Asking: TypeAlias = Literal["none", "words of facts", "other questions"]
"""What is recalled in that year."""


@dataclass(frozen=True, slots=True)
class Life:
    """The settings of a year: how facts are kept, and the topics and number of recalls per day of each namespace."""

    keeping: Keeping
    asking: Asking = "none"
    a_day: float = 0.0
    fold: int | None = None


Event: TypeAlias = tuple[datetime, int, str, "Sequence[Turn] | str"]
"""When, which comes first of one instant, in which namespace, and what: turns, or a question."""


def live(context: Context, conversations: Sequence[Conversation], life: Life) -> None:
    """Simulate the year until the present on an empty database, for all conversations at once."""
    events = sorted(chain.from_iterable(_events(one, i, life) for i, one in enumerate(conversations)), key=_when)
    evening = BEGIN
    for at, _, name, what in [*events, (AT, 2, "", "")]:
        while evening + DAY <= at:
            evening += DAY
            _night(context, life, evening)
        if not isinstance(what, str):
            _store(context, name, what, life, at)
        elif what:
            _ask(context, name, what, at)
    for one in conversations:
        search_indexes.count_lexemes(context, one.name, AT)
        estimate.estimate_again(context, one.name, AT)


def _when(event: Event) -> tuple[datetime, int]:
    return event[:2]


def _events(conversation: Conversation, number: int, life: Life) -> list[Event]:
    turns = groupby(conversation.turns, lambda turn: turn.at)
    stored: list[Event] = [(at, 0, conversation.name, list(said)) for at, said in turns if at < AT]
    topics = _topics(conversation, life)
    seed = [SEED, number, life.fold or 0]
    asked = hits.recalls(topics, life.a_day, BEGIN, (AT - BEGIN).days, seed) if topics else []
    return [*stored, *((at, 1, conversation.name, text) for at, text in asked)]


def _topics(conversation: Conversation, life: Life) -> list[hits.Topic]:
    match life.asking:
        case "words of facts":
            return hits.of_facts(conversation)
        case "other questions":
            return hits.of_questions(conversation, life.fold)
    return []


def _store(context: Context, name: str, turns: Sequence[Turn], life: Life, at: datetime) -> None:
    given = [turn.fact for turn in turns]
    if life.keeping == "off":
        given = [fact.model_copy(update={"decay_class": "permanent"}) for fact in given]
    store.store_many(context, name, given, at, classify=life.keeping == "lifetimes")


def _ask(context: Context, name: str, text: str, at: datetime) -> None:
    """Recall, then as tasks do: touch the results, restore faded vectors; the first result is used."""
    found = recall.recall(context, name, recall.Question(text), at).results
    touched = touch.touch(context, name, [touch.Shown([result.id for result in found], at)])
    if found:
        touch.used(context, Use.model_construct(namespace=name, ids=[found[0].id]), at)
    if touched.faded:
        embed.regenerate(context, name, touched.faded, at)


def _night(context: Context, life: Life, at: datetime) -> None:
    if life.keeping == "off":
        return
    whole_pass(context, at)
    while purge.demote_batch(context, at, None) or purge.purge_batch(context, at, None).facts:
        pass


def halves(life: Life) -> list[Life]:
    """Return the years that answer all questions: two with half of them asked each, if the asked ones are others."""
    return [replace(life, fold=fold) for fold in (0, 1)] if life.asking == "other questions" else [life]
