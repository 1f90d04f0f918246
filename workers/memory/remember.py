"""Remember: store the messages of a conversation as facts with session, turn and role."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid5

from ebb.contract.facts import Remember, Remembered, Turn

from workers.context import Context
from workers.core import conversation
from workers.core.conversation import Utterance
from workers.errors import InvalidInputError
from workers.memory.add import Stored
from workers.memory.unpack import known_by_id
from workers.storage import facts, namespaces
from workers.storage.connection import transaction

OF_MESSAGES = UUID("0c5c2a54-7f0c-5d6e-9d0b-3a0f6f2f7b11")

MOST_TURNS = 2**31


def turns(context: Context, asked: Remember) -> tuple[list[Utterance], list[dict[str, Any]], list[UUID]]:
    """Return the statements of the messages, the fact of each, and the ids of the new ones.

    New facts and new occurrences of known ones continue the session's turns. An id is derived from namespace, session
    and statement, so that a repeated message gives the same fact or occurrence.

    Raises:
        InvalidInputError: the session has fewer turns left than there are new ones.
    """
    said = conversation.utterances(asked.messages, context.settings.max_text)
    ids = [_id(asked, one) for one in said]
    with transaction(context.database_url) as db:
        owner = namespaces.find_or_add(db, asked.namespace)
        known = set(known_by_id(context, db, owner.id, ids))
        following, repeated = facts.next_turn(db, owner.id, asked.session, ids)
    known |= repeated
    new = {id_: following + place for place, id_ in enumerate(dict.fromkeys(one for one in ids if one not in known))}
    if new and (left := MOST_TURNS - following) < len(new):
        raise InvalidInputError(
            f"session: has {left} {'turn' if left == 1 else 'turns'} left, which {len(new)} new ones exceed; "
            "begin another session."
        )
    return said, [_fact(asked, one, id_, new.get(id_)) for one, id_ in zip(said, ids, strict=True)], list(new)


def outcomes(
    asked: Remember,
    said: Sequence[Utterance],
    given: Sequence[dict[str, Any]],
    done: Sequence[Stored | InvalidInputError],
) -> Remembered:
    """Return the outcome of each turn."""
    found = [_turn(*one) for one in zip(said, given, done, strict=True)]
    added = sum(one.action == "added" for one in found)
    return Remembered(turns=found, added=added, left_out=conversation.skipped(asked.messages, said))


def _id(asked: Remember, one: Utterance) -> UUID:
    identity = "\n".join([asked.namespace, repr(asked.session), one.name, one.role, one.text])
    return uuid5(OF_MESSAGES, identity.encode(errors="backslashreplace").decode())


def _fact(asked: Remember, one: Utterance, id_: UUID, turn: int | None) -> dict[str, Any]:
    own = {"id": id_, "text": one.text, "role": one.role, "session": asked.session, "source": asked.source}
    return own | {"turn": turn if asked.session is not None else None, "source_date": one.at}


def _turn(one: Utterance, given: dict[str, Any], done: Stored | InvalidInputError) -> Turn:
    if isinstance(done, InvalidInputError):
        return Turn(message=one.message, role=one.role, error=str(done))
    turn = given["turn"] if done.id == given["id"] else None
    return Turn(message=one.message, role=one.role, turn=turn, id=done.id, action=done.action)
