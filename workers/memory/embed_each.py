"""Embed each: the vectors of many texts, where one that the embedder cannot take holds up no other."""

import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from workers.context import PROBE, Context
from workers.coordination import embedder_pause
from workers.core.arrays import Vectors
from workers.errors import EmbedderAwayError, EmbedderPausedError, EmbeddingError

log = logging.getLogger(__name__)

LEFT_OUT_SECONDS = 600.0
"""Time for which a text is left out at which the embedder did not answer any more."""

AWAY = (EmbedderAwayError, EmbedderPausedError)
"""Failures that other texts would meet, too."""

Key: TypeAlias = tuple[int, UUID]
"""A fact: namespace and id."""


@dataclass(frozen=True, slots=True)
class Tried:
    """The (dims,) vectors of facts, and the facts whose texts were tried or left out, in order."""

    vectors: dict[Key, Vectors] = field(default_factory=dict)
    keys: list[Key] = field(default_factory=list)

    @property
    def refused(self) -> list[Key]:
        """Return the facts without vector."""
        return [key for key in self.keys if key not in self.vectors]


def embed_each(context: Context, texts: Mapping[Key, str], until: float, *, retry: bool) -> Tried:
    """Embed texts together or, if the embedder fails at them, one by one until `until` on the monotonic clock.

    Texts that it refuses get no vector. Those at which it stops to answer are tried one by one after the pause, and one
    that is the reason is left out for `LEFT_OUT_SECONDS`, so that it causes no pause again and again.

    Raises:
        EmbeddingError: the embedder fails for any text.
    """
    noted = _suspects(context, texts)
    wanted = {key: text for key, text in texts.items() if noted.get(key, 0.0) <= 0}
    if wanted and noted.keys().isdisjoint(wanted):
        try:
            found = context.embedder.embed(list(wanted.values()), retry=retry)
            return Tried(dict(zip(wanted, found, strict=True)), list(texts))
        except AWAY as error:
            _suspect(context, wanted, error)
            raise
        except EmbeddingError:
            if len(wanted) == 1:
                return Tried({}, list(texts))
            context.embedder.embed([PROBE])
    return _one_by_one(context, texts, wanted, until)


def _one_by_one(context: Context, texts: Mapping[Key, str], wanted: Collection[Key], until: float) -> Tried:
    done = Tried()
    for key, text in texts.items():
        try:
            if key in wanted:
                done.vectors[key] = context.embedder.embed([text], retry=False)[0]
        except AWAY as error:
            _suspect(context, [key], error)
            log.warning("the other texts wait: %s", error)
            break
        except EmbeddingError as error:
            log.debug("fact %s of namespace %d: %s", key[1], key[0], error)
        done.keys.append(key)
        if time.monotonic() >= until:
            break
    return done


def _suspect(context: Context, keys: Collection[Key], error: EmbeddingError) -> None:
    """Note the texts at which the embedder stopped to answer, if they may be the reason."""
    if isinstance(error, EmbedderAwayError) and error.doubtful and context.settings.redis_url:
        until = context.seconds() + LEFT_OUT_SECONDS if len(keys) == 1 else 0.0
        embedder_pause.suspect(context.redis, [_member(key) for key in keys], until)


def _suspects(context: Context, keys: Collection[Key]) -> dict[Key, float]:
    """Return the suspects among texts, and for how many seconds each is still left out, if at all."""
    if context.embedder.quick or not context.settings.redis_url:
        return {}
    found = embedder_pause.suspects(context.redis, [_member(key) for key in keys])
    now = context.seconds() if any(found) else 0.0
    return {key: until - now for key, until in zip(keys, found, strict=True) if until is not None}


def _member(key: Key) -> str:
    return f"{key[0]} {key[1]}"
