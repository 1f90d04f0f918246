"""The operation on conversations: store messages as turns."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from ebb.contract.facts import Source, Statement
from ebb.contract.operation import BATCH_SECONDS, EXAMPLE_ID, Answer, examples, writes
from ebb.contract.values import Flag, Session

MOST_MESSAGES = 1_000
"""Maximum number of messages in one call."""

MESSAGES = "as OpenAI, Anthropic and others have them: `role`, and `content` as text or in parts"


class Remember(Statement):
    """Store the messages of a conversation as turns; known ones are not stored again.

    So the whole conversation may be given each time. Tool calls and their results become turns of the role `tool`.
    System instructions and injected contexts are left out.
    """

    model_config = examples({"messages": [{"role": "user", "content": "I moved to Leipzig."}], "session": "2026-11-22"})

    messages: Annotated[list[Any], Field(min_length=1, max_length=MOST_MESSAGES, description=MESSAGES)]
    session: Annotated[Session | None, Field(description="the conversation that they are from")] = None
    source: Source = None
    touch: Annotated[Flag, Field(description="whether turns that are known count as used")] = False


class Turn(Answer):
    """The outcome of a message, or of a tool call in it: a fact with an id, or an error."""

    message: Annotated[int, Field(description="the place of its message, from 0")]
    role: str
    turn: Annotated[int | None, Field(description="its place in the conversation; null: known or not stored")] = None
    id: Annotated[UUID | None, Field(examples=[EXAMPLE_ID])] = None
    action: Annotated[str | None, Field(description="as of a fact that is stored")] = None
    error: str | None = None


class Remembered(Answer):
    """The outcome of each turn in order, the number of new ones, and the messages with nothing to store."""

    turns: list[Turn]
    added: int
    left_out: Annotated[list[int], Field(description="the places of messages without words, or to the system")]


REMEMBER = writes("memory.remember", Remember, Remembered, "POST /memory/remember", BATCH_SECONDS)
