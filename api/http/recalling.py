"""Routes that ask: recall, and the context for a prompt."""

from typing import Any

from fastapi import APIRouter

from api import schemas
from api.http.sending import Reader

routes = APIRouter(prefix="/memory", tags=["recall"])


@routes.post("/recall", response_model=schemas.Recalled)
def recall(question: schemas.RecallRequest, memory: Reader) -> dict[str, Any]:
    """Return the facts that fit best. That is use, and strengthens them, unless the key may only read."""
    return memory.recall(**question.arguments() | {"touch": touches(memory, question.touch)})


@routes.post("/context", response_model=schemas.Injected)
def context(question: schemas.ContextRequest, memory: Reader) -> dict[str, Any]:
    """Return what fits a prompt, as a block of text to put before it; only what is in it counts as used."""
    return memory.context(**question.arguments() | {"touch": touches(memory, question.touch)})


def touches(memory: Reader, wished: bool | None) -> bool:
    """Return whether what is recalled counts as used: as wished, else if the caller may write.

    Raises:
        RefusedError: it was wished with a key that may not write.
    """
    if wished:
        memory.caller.check("write")
    return "write" in memory.caller.scopes if wished is None else wished
