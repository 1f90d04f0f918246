"""The context of all verbs: settings, embedder with its pauses and remembered queries, and servers; one per process."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from workers.clock import MOST_AHEAD, Clock
from workers.coordination.pause import EMBEDDER, Pause
from workers.coordination.redis import clock as redis_clock
from workers.coordination.redis import own_keys
from workers.core.arrays import Vectors
from workers.core.fading import FadingRules
from workers.core.fidelity import largest_bucket
from workers.core.hygiene import Hygiene, effective, fading, for_passes, parameters
from workers.errors import EmbedderAwayError, EmbeddingError, UnavailableError
from workers.settings import Settings, split_addresses
from workers.storage import namespaces, replicas, routing, server, vectors
from workers.storage.connection import Connection, close_pools, transaction
from workers.storage.relations import Fading
from workers.storage.replicas import Replicas
from workers.threads import within

if TYPE_CHECKING:
    from redis import Redis

    from workers.embedding import Embedder
    from workers.llm.chat import Chat
    from workers.llm.rerank import Reranker


@dataclass
class Context:
    """Settings and what is created from them on first use: a process that needs no embedder loads none."""

    settings: Settings

    @property
    def database_url(self) -> str:
        """Return the URL of PostgreSQL, or of PgBouncer in front of it."""
        return self.settings.database_url

    @property
    def direct_database_url(self) -> str:
        """Return the URL of PostgreSQL itself, for work that needs a session of its own."""
        return self.settings.direct_database_url or self.settings.database_url

    @property
    def replicas(self) -> Replicas | None:
        """Return the replicas to read from, if any."""
        urls = split_addresses(self.settings.read_database_url)
        return replicas.of(self.database_url, urls, self.settings.max_read_lag) if urls else None

    @property
    def read_url(self) -> str:
        """Return the URL from which the current task reads: of a replica, or of the primary."""
        return replicas.current_url() or self.database_url

    def at(self, place: routing.Place) -> AbstractContextManager[None]:
        """Work on a shard, by its number or by a namespace on it, until the end of the block."""
        return routing.at(place, self.settings.shards)

    @contextmanager
    def namespace(self, name: str) -> Iterator[tuple[Connection, int]]:
        """Yield a connection in a transaction, and the id of a namespace, 0 if there is none of this name."""
        with transaction(self.database_url) as db:
            yield db, namespaces.id_of(db, name)

    def each_shard(self, *, own: bool = False) -> Iterator[int]:
        """Yield the number of each shard, or of those of the `own` group, and work on that shard meanwhile."""
        first, step = (self.settings.group, len(self.settings.broker_urls)) if own else (0, 1)
        for shard in range(first, self.settings.shards, step):
            with self.at(shard):
                yield shard

    @cached_property
    def _clock(self) -> Clock:
        return Clock(self._read_clock)

    def _read_clock(self) -> datetime:
        """Return the primary's time; if it is away, a read on a replica uses the replica's time."""
        try:
            return server.read_clock(self.database_url)
        except UnavailableError:
            if self.read_url == self.database_url:
                raise
        return server.read_clock(self.read_url)

    def now(self) -> datetime:
        """Return the current time by the database's clock; called at the start of a task or command.

        Raises:
            UnavailableError: the database does not answer.
        """
        return self._clock.now()

    def may_be_later(self, db: Connection, at: datetime) -> bool:
        """Return whether what is dated later than a request may have been done after it.

        What is ahead of the database's clock was done before it was set back, unless instants are simulated.
        """
        return self.settings.time_travel or at <= server.now(db) + timedelta(seconds=MOST_AHEAD)

    @cached_property
    def _redis_clock(self) -> Clock:
        return Clock(lambda: redis_clock(self.redis))

    def seconds(self) -> float:
        """Return epoch seconds by Redis' clock, used for what processes share."""
        return self._redis_clock.now().timestamp()

    @cached_property
    def embedder(self) -> "Embedder":
        """Return the embedder of the settings, or the database's own if they name none.

        One that calls a server is paused when the server does not answer.
        """
        from workers.embedding import make_embedder  # noqa: PLC0415 - loaded only when vectors are needed

        stored = None if self.settings.embedder else self._stored_embedder()
        embedder = make_embedder(self.settings, stored.name if stored else None)
        if self.settings.embedder != "openai" or not self.settings.redis_url:
            return embedder
        return PausingEmbedder(embedder, Pause(self.redis, EMBEDDER))

    def _stored_embedder(self) -> vectors.StoredEmbedder | None:
        with transaction(self.read_url) as db:
            return vectors.embedder(db)

    @cached_property
    def queries(self) -> "QueryCache":
        """Return the cache of query vectors."""
        return QueryCache(self.embedder)

    @cached_property
    def chat(self) -> "Chat":
        """Return the LLM of the settings."""
        from workers.llm import make_chat  # noqa: PLC0415 - loaded only when an LLM is used

        return make_chat(self.settings)

    @cached_property
    def reranker(self) -> "Reranker":
        """Return the reranker of the settings."""
        from workers.llm import make_reranker  # noqa: PLC0415 - loaded only when a reranker is used

        return make_reranker(self.settings)

    @cached_property
    def redis(self) -> "Redis":
        """Return the connections to Ebb's own keys in Redis."""
        return own_keys(self.settings.redis_url)

    @cached_property
    def hygiene(self) -> Hygiene:
        """Return the hygiene parameters of namespaces without settings of their own."""
        return parameters(effective(self.settings.hygiene_defaults, {}))

    @property
    def rules(self) -> FadingRules:
        """Return the decay rules of namespaces without settings of their own.

        The dimensions come from the database, so a process that only decays loads no embedder. While the database has
        no embedder, as it has not answered yet, there are no vectors either, and any dimensions do.
        """
        known: FadingRules | None = self.__dict__.get("known_rules")
        if known is not None:
            return known
        stored = self._stored_embedder()
        dims = self.settings.max_vector_dim if stored is None else stored.dims
        widest = largest_bucket(dims, self.settings.min_vector_dim)
        rules = FadingRules(widest, self.settings.cold_threshold, **fading(for_passes(self.hygiene)))
        if stored is not None:
            self.__dict__["known_rules"] = rules
        return rules

    @property
    def fading_of_relations(self) -> Fading:
        """Return the decay rules of relations."""
        return Fading(self.settings.relation_half_life, self.settings.relation_minimum)

    def close(self) -> None:
        """Close what a fork must not inherit: connections to the database and to model endpoints.

        The embedder keeps the dimensions that its server has answered, so that no child takes a wrong answer for them.
        """
        replicas.stop()
        close_pools()
        for name in ("embedder", "chat", "reranker"):
            close = getattr(self.__dict__.get(name), "close", None)
            if close is not None:
                close()


PROBE = "Can this embedder embed?"
"""A text that no embedder refuses."""

PROBE_SECONDS = 3.0
"""Time for the probe after a failure, for which the text may be the reason."""

AT_ONCE_SECONDS = 1.0
"""Time within which a query must have failed for a probe: its caller waits."""

QUERY_SECONDS = 5.0
"""Time for a query that tries the embedder again after a pause."""

BATCH_SECONDS = 60.0
"""The same for facts, which are retried."""


class PausingEmbedder:
    """Wraps an embedder that is paused when it does not answer; requests then fail at once.

    If the failure may be the text's, a probe decides: an embedder that takes that one is not paused, so that one text
    delays no other.
    """

    def __init__(self, embedder: "Embedder", pause: Pause) -> None:
        self._embedder = embedder
        self._pause = pause
        self.batch = embedder.batch
        self.weights = embedder.weights
        self.quick = embedder.quick

    @property
    def name(self) -> str:
        """Name of the wrapped embedder."""
        return self._embedder.name

    @property
    def dims(self) -> int:
        """Length of every vector."""
        return self._embedder.dims

    def embed(self, texts: Sequence[str], *, retry: bool = True) -> Vectors:
        """Return (n, dims) vectors of length 1, or raise `EmbedderPausedError`."""
        return self._asked(
            BATCH_SECONDS, lambda: self._embedder.embed(texts, retry=retry), probes=list(texts) != [PROBE]
        )

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the (n, dims) vectors of queries, or raise `EmbedderPausedError`."""
        return self._asked(
            QUERY_SECONDS, lambda: self._embedder.embed_queries(texts), probes=True, within_seconds=AT_ONCE_SECONDS
        )

    def close(self) -> None:
        """Close the connections of the wrapped embedder."""
        getattr(self._embedder, "close", lambda: None)()

    def _asked(
        self, seconds: float, ask: Callable[[], Vectors], *, probes: bool, within_seconds: float = math.inf
    ) -> Vectors:
        with self._pause.unless_paused(seconds):
            started = time.monotonic()
            try:
                return ask()
            except EmbedderAwayError as error:
                probes &= error.doubtful and time.monotonic() - started < within_seconds
                if not probes or not self._takes_probe():
                    raise
                raise EmbeddingError(f"{error} It takes other texts.") from None

    def _takes_probe(self) -> bool:
        try:
            within(PROBE_SECONDS, lambda: self._embedder.embed([PROBE], retry=False))
        except (EmbeddingError, TimeoutError):
            return False
        return True


REMEMBERED = 256


class QueryCache:
    """A cache of the vectors of this process's recent queries."""

    def __init__(self, embedder: "Embedder") -> None:
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}

    def embed(self, text: str) -> Vectors:
        """Return the (dims,) vector of a query.

        Raises:
            EmbeddingError: the embedder fails.
        """
        return self.embed_all([text])[0]

    def embed_all(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the (dims,) vectors of queries; unknown ones are embedded together.

        Raises:
            EmbeddingError: the embedder fails.
        """
        known = {text: self._known.pop(text) for text in dict.fromkeys(texts) if text in self._known}
        unknown = [text for text in dict.fromkeys(texts) if text not in known]
        size = self._embedder.batch
        try:
            for batch in (unknown[start : start + size] for start in range(0, len(unknown), size)):
                known |= zip(batch, self._embedder.embed_queries(batch), strict=True)
        finally:
            self._known |= known  # the latest are last
            for oldest in list(self._known)[:-REMEMBERED]:
                del self._known[oldest]
        return [known[text] for text in texts]
