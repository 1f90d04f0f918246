"""Intents: what a new fact does to a known one.

Facts are stored in batches, yet each must have the effect that it would have alone: it may replace a fact stored
earlier in the same batch. So a batch is cut into stretches within which order makes no difference.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Action(StrEnum):
    """Add the fact, replace a known one, retract a known one, or skip what is already known."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NOOP = "NOOP"


@dataclass(frozen=True, slots=True)
class Intent:
    """The action for a new fact, and the known fact that it concerns unless it is only added.

    If the caller `requested` for it and it cannot be done, that is an error; if an LLM proposed it, the fact is added
    instead. With `apart`, a third fact that says the same is an error, too.
    """

    action: Action = Action.ADD
    target: UUID | None = None
    requested: bool = False
    apart: bool = False


ADD = Intent()


def requested(target: UUID | None, *, apart: bool = False) -> Intent:
    """Return the intent of a caller who names the fact to supersede, or none."""
    return ADD if target is None else Intent(Action.UPDATE, target, requested=True, apart=apart)


def independent_stretches(
    ids: Sequence[UUID], texts: Sequence[bytes], intents: Sequence[Intent], known: Mapping[UUID, bytes]
) -> list[list[int]]:
    """Return the indexes of n facts in order, cut where one concerns what an earlier one in the stretch is or states.

    Facts that concern none may repeat each other within a stretch. `texts` are the digests of their texts, `known` has
    those of facts already stored.
    """
    said = dict(zip(ids, texts, strict=True)) | dict(known)
    cut: list[list[int]] = [[]]
    met, concerned = set[UUID | bytes](), set[UUID | bytes]()
    for place, (id_, text, intent) in enumerate(zip(ids, texts, intents, strict=True)):
        own: set[UUID | bytes] = {id_, text}
        if intent.target is not None:
            own |= {intent.target, said.get(intent.target, intent.target)}
        if own & (concerned if intent.target is None else met):
            cut.append([])
            met, concerned = set(), set()
        cut[-1].append(place)
        met |= own
        concerned |= set() if intent.target is None else own
    return cut
