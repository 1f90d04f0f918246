"""What a new fact means for a known one.

Facts are stored in batches, yet each is to mean what it would mean alone: what a fact replaces may have been stored by
one before it in the same batch. So a batch is cut into stretches within which the order makes no difference.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Action(StrEnum):
    """Add the fact, replace a known one, retract a known one, or do nothing because a known one says the same."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NOOP = "NOOP"


@dataclass(frozen=True, slots=True)
class Intent:
    """What to do about a new fact, and the known one that it concerns unless it is only added.

    If it was `asked` for and cannot be done, that is an error; if an LLM proposed it, the fact is added instead.
    """

    action: Action = Action.ADD
    target: UUID | None = None
    asked: bool = False


ADD = Intent()


def asked(target: UUID | None) -> Intent:
    """Return the intent of a caller who states that a fact supersedes `target`, or states nothing."""
    return ADD if target is None else Intent(Action.UPDATE, target, asked=True)


def stretches(
    ids: Sequence[UUID], hashes: Sequence[bytes], intents: Sequence[Intent], known: Mapping[UUID, bytes]
) -> list[list[int]]:
    """Return the places of n facts in order, cut where one concerns what another before it is, or says.

    Within a stretch the order makes no difference, so it can be stored at once; facts that concern none may repeat each
    other there. `hashes` are those of what the facts say, `known` has those of facts that are stored already.
    """
    said = dict(zip(ids, hashes, strict=True)) | dict(known)
    cut: list[list[int]] = [[]]
    met, concerned = set[UUID | bytes](), set[UUID | bytes]()
    for place, (id_, hash_, intent) in enumerate(zip(ids, hashes, intents, strict=True)):
        own: set[UUID | bytes] = {id_, hash_}
        if intent.target is not None:
            own |= {intent.target, said.get(intent.target, intent.target)}
        if own & (concerned if intent.target is None else met):
            cut.append([])
            met, concerned = set(), set()
        cut[-1].append(place)
        met |= own
        concerned |= set() if intent.target is None else own
    return cut
