"""Verdicts: what an LLM said of a new fact, kept in Redis so that a task delivered again does not ask again."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from redis import Redis

from workers.core.intent import Action, Intent

KEY = "ebb:verdict"
PAUSED = "ebb:llm-paused"
KEPT_SECONDS = 3_600
"""As long as signals keep when a task was first delivered."""

PAUSE_SECONDS = 30


def read(redis: Redis, namespace: str, ids: Sequence[UUID]) -> dict[UUID, Intent]:
    """Return what was said of these facts lately."""
    found = redis.mget([_key(namespace, id_) for id_ in ids]) if ids else []
    return {id_: _parsed(said) for id_, said in zip(ids, found, strict=True) if isinstance(said, bytes)}


def keep(redis: Redis, namespace: str, verdicts: Mapping[UUID, Intent]) -> dict[UUID, Intent]:
    """Keep what was said of facts, unless something was kept before; return what is kept now."""
    with redis.pipeline() as pipeline:
        for id_, intent in verdicts.items():
            said = f"{intent.action} {intent.target or ''}"
            pipeline.set(_key(namespace, id_), said, nx=True, ex=KEPT_SECONDS)
        pipeline.execute()
    return {**verdicts, **read(redis, namespace, list(verdicts))}


def pause(redis: Redis) -> None:
    """Note that the LLM does not answer, so that not everybody waits for it until it does."""
    redis.set(PAUSED, 1, ex=PAUSE_SECONDS)


def paused(redis: Redis) -> bool:
    """Return whether the LLM did not answer lately."""
    return bool(redis.exists(PAUSED))


def _key(namespace: str, id_: UUID) -> str:
    return f"{KEY}:{namespace}:{id_}"


def _parsed(said: bytes) -> Intent:
    action, _, target = said.decode().partition(" ")
    return Intent(Action(action), UUID(target) if target else None)
