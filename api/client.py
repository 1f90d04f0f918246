"""The client: what every door goes through. It sends tasks by name and waits; it needs neither model nor database.

>>> memory = Client("redis://localhost:6379/0")
>>> memory.store("Mira moved to Leipzig.")["action"]
'added'
>>> memory.recall("Where does Mira live?")["results"][0]["text"]
'Mira moved to Leipzig.'
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import redis.exceptions
from celery import Celery
from celery.exceptions import TaskRevokedError
from celery.exceptions import TimeoutError as NoResultError
from celery.result import AsyncResult
from kombu.exceptions import OperationalError
from uuid_utils.compat import uuid7

from workers.errors import EbbError, LateError, TaskFailedError, UnavailableError
from workers.queues import configuration
from workers.storage import outbox, receipts
from workers.storage.redis import own_keys

RECALL_SECONDS = 15.0
STORE_SECONDS = 45.0
BATCH_SECONDS = 180.0
DECAY_SECONDS = 3_600.0

GIVE_UP_SOON = {"max_retries": 2, "interval_start": 0.1, "interval_step": 0.2, "interval_max": 0.5}
AWAY = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, OperationalError)


class Client:
    """One namespace's memory, by way of the workers behind a Redis."""

    def __init__(self, redis_url: str, namespace: str = "default") -> None:
        self.namespace = namespace
        self._redis_url = redis_url

    def store(self, text: str, *, wait: bool = True, touch: bool = True, **fact: Any) -> dict[str, Any]:
        """Store one fact; return `{"id", "action", "embedded"}`.

        Without `decay_class` it gets one by its words.

        With `wait=False` it returns `{"id", "task"}` as soon as the fact is in the outbox, from which it cannot be
        lost: what does not reach a worker is sent again until it is committed.

        Raises:
            InvalidInputError: the fact cannot be stored; nothing was.
            UnavailableError: Redis or the workers do not answer.
        """
        fact.setdefault("id", str(uuid7()))
        arguments = {"text": text, "namespace": self.namespace, "touch": touch, "now": _now(), **fact}
        if wait:
            return self.call("memory.store", arguments, STORE_SECONDS)
        return {"id": fact["id"], "task": self.accept("memory.store", arguments)}

    def store_many(self, facts: Sequence[Any], *, touch: bool = True, classify: bool = True) -> dict[str, Any]:
        """Store many facts; return `{"results"}` with what each became, in order, or its error.

        Those without `decay_class` get one by their words, or with `classify=False` none, and so no expiry.

        Raises:
            UnavailableError: Redis or the workers do not answer.
        """
        arguments = self._many(facts, touch=touch, classify=classify)
        return self.call("memory.store_many", arguments, BATCH_SECONDS)

    def send_many(
        self, facts: Sequence[Any], *, touch: bool = True, classify: bool = True, namespace: str | None = None
    ) -> AsyncResult:
        """Send many facts and return at once; `wait` for the result."""
        arguments = self._many(facts, touch=touch, classify=classify)
        return self.send("memory.store_many", arguments | {"namespace": namespace or self.namespace})

    def recall(self, query: str, **options: Any) -> dict[str, Any]:
        """Return `{"results"}`, the facts that fit best; options are those of the task `memory.recall`.

        Raises:
            InvalidInputError: the query or an option cannot be.
            UnavailableError: Redis or the workers do not answer in time.
        """
        return self.call("memory.recall", {"query": query, "namespace": self.namespace, **options}, RECALL_SECONDS)

    def context(self, query: str, **options: Any) -> dict[str, Any]:
        """Return `{"context", "tokens", "facts"}`: what fits a prompt, as a block of text to put before it.

        Options are those of the task `memory.context`.

        Raises:
            InvalidInputError: the query or an option cannot be.
            UnavailableError: Redis or the workers do not answer in time.
        """
        return self.call("memory.context", {"query": query, "namespace": self.namespace, **options}, RECALL_SECONDS)

    def reinforce(self, id: str, boost: float = 0.2) -> dict[str, Any]:  # noqa: A002 - the contract's name
        """Strengthen a fact; return `{"id", "salience"}`.

        Raises:
            InvalidInputError: there is no such live fact, or the boost is not in (0, 1].
        """
        arguments = {"id": id, "namespace": self.namespace, "boost": boost, "now": _now()}
        return self.call("memory.reinforce", arguments, STORE_SECONDS)

    def forget(self, ids: Sequence[str], *, purge: bool = False) -> dict[str, Any]:
        """Forget facts, or with `purge` erase them at once; return `{"results"}` with what became of each, in order.

        Raises:
            InvalidInputError: an id is none; nothing was forgotten.
        """
        arguments = {"ids": list(ids), "namespace": self.namespace, "purge": purge, "now": _now()}
        return self.call("memory.forget", arguments, STORE_SECONDS)

    def restore(self, ids: Sequence[str]) -> dict[str, Any]:
        """Bring forgotten facts back; return `{"results"}` with what became of each, in order, or its error.

        Raises:
            InvalidInputError: an id is none; nothing was restored.
        """
        arguments = {"ids": list(ids), "namespace": self.namespace, "now": _now()}
        return self.call("memory.restore", arguments, STORE_SECONDS)

    def fact(self, id: str) -> dict[str, Any]:  # noqa: A002 - the contract's name
        """Return a fact as it is now; that does not touch it.

        Raises:
            NotFoundError: there is no such live fact.
        """
        return self.call("memory.fact", {"id": id, "namespace": self.namespace}, RECALL_SECONDS)

    def history(self, id: str) -> dict[str, Any]:  # noqa: A002 - the contract's name
        """Return a fact and everything that happened to it, oldest first.

        Raises:
            InvalidInputError: there is no such fact, or none any more.
        """
        return self.call("memory.history", {"id": id, "namespace": self.namespace}, RECALL_SECONDS)

    def pin(self, id: str, *, until: str | None = None, off: bool = False) -> dict[str, Any]:  # noqa: A002
        """Keep a fact as it is, for good or until an instant, or end that; return `{"id", "action", "pinned", …}`.

        Raises:
            InvalidInputError: there is no such live fact, or the instant is past.
        """
        arguments = {"id": id, "namespace": self.namespace, "until": until, "off": off, "now": _now()}
        return self.call("memory.pin", arguments, STORE_SECONDS)

    def purge(self, now: str | None = None, *, dry_run: bool = False) -> dict[str, Any]:
        """Erase what was forgotten long ago in all namespaces, as of `now`; call again while something is `left`."""
        return self.call("memory.purge", {"now": now or _now(), "dry_run": dry_run}, BATCH_SECONDS)

    def forecast(self, days: int = 7, shown: int = 3) -> dict[str, Any]:
        """Return `{"days": […]}`: what passes will do on each coming day, with the first of the facts concerned."""
        arguments = {"namespace": self.namespace, "days": days, "shown": shown}
        return self.call("memory.forecast", arguments, STORE_SECONDS)

    def contradictions(self, limit: int = 100) -> dict[str, Any]:
        """Return `{"contradictions", "total"}`: pairs of facts that say different values of the same."""
        return self.call("memory.contradictions", {"namespace": self.namespace, "limit": limit}, STORE_SECONDS)

    def resolve(self, *ids: str, keep: str | None = None, both: bool = False) -> dict[str, Any]:
        """Settle a contradiction: the fact `keep` supersedes the others, or `both` of two facts hold.

        Raises:
            InvalidInputError: a fact is not there any more, or the two do not contradict each other.
        """
        arguments = {"ids": list(ids), "namespace": self.namespace, "keep": keep, "both": both, "now": _now()}
        return self.call("memory.resolve", arguments, STORE_SECONDS)

    def link(self, source: str, target: str, type: str, strength: float = 1.0) -> dict[str, Any]:  # noqa: A002
        """Link two facts, or change the strength of their link; return the link.

        Raises:
            InvalidInputError: a fact is not there, or there is no such type.
        """
        arguments = {"source": source, "target": target, "type": type, "strength": strength}
        return self.call("memory.link", arguments | {"namespace": self.namespace, "now": _now()}, STORE_SECONDS)

    def unlink(self, source: str, target: str, type: str | None = None) -> dict[str, Any]:  # noqa: A002
        """Remove the link of a type between two facts, or all of them; return `{"removed"}`."""
        arguments = {"source": source, "target": target, "type": type, "namespace": self.namespace}
        return self.call("memory.unlink", arguments, STORE_SECONDS)

    def relate(
        self,
        source: str,
        target: str,
        type: str,  # noqa: A002 - the contract's name
        *,
        weight: float | None = None,
        pinned: bool | None = None,
    ) -> dict[str, Any]:
        """Observe that an entity has to do with another; return the relation, `{"from", "to", "type", "weight", …}`.

        Raises:
            InvalidInputError: a name or the type is none, or the weight is not in [0, 1].
        """
        arguments = {"source": source, "target": target, "type": type, "weight": weight, "pinned": pinned}
        return self.call("memory.relate", arguments | {"namespace": self.namespace, "now": _now()}, STORE_SECONDS)

    def unrelate(self, source: str, target: str, type: str) -> dict[str, Any]:  # noqa: A002
        """Remove a relation for good; return `{"removed"}`."""
        arguments = {"source": source, "target": target, "type": type, "namespace": self.namespace}
        return self.call("memory.unrelate", arguments, STORE_SECONDS)

    def relations(self, *, decayed: bool = False, entity: str | None = None, limit: int = 1_000) -> dict[str, Any]:
        """Return `{"edges", "total"}`: those in use, strongest first, or those below the minimum weight."""
        arguments = {"namespace": self.namespace, "decayed": decayed, "entity": entity, "limit": limit}
        return self.call("memory.relations", arguments, STORE_SECONDS)

    def decay_relations(self, now: str | None = None, *, dry_run: bool = False) -> dict[str, Any]:
        """Bring the stored weights of the namespace's relations up to date; return the documented counters."""
        arguments = {"namespace": self.namespace, "now": now or _now(), "dry_run": dry_run}
        return self.wait(self.send("relations.decay", arguments), DECAY_SECONDS)

    def stats(self) -> dict[str, Any]:
        """Return what the namespace holds."""
        return self.call("memory.stats", {"namespace": self.namespace}, STORE_SECONDS)

    def decay(self, now: str | None = None, *, dry_run: bool = False, force: bool = False) -> dict[str, Any]:
        """Run one pass over all namespaces, as of `now`; return its counters when it is done."""
        arguments = {"now": now or _now(), "dry_run": dry_run, "force": force}
        return self.call("decay.plan", arguments, DECAY_SECONDS)

    def prune(
        self, now: str | None = None, *, hard: bool = True, soft: bool = True, dry_run: bool = False
    ) -> dict[str, Any]:
        """Forget what has expired in any namespace (hard), and halve or remove what nears its expiry (soft).

        Return `{"expired", "decayed", "deleted", …}`: of those decayed, soft decay deleted so many.
        """
        arguments = {"now": now or _now(), "hard": hard, "soft": soft, "dry_run": dry_run}
        return self.call("decay.prune", arguments, DECAY_SECONDS)

    def backfill(
        self, *, everywhere: bool = False, dry_run: bool = False, prune: bool = False, now: str | None = None
    ) -> dict[str, Any]:
        """Classify anew what nobody chose a decay class for; return `{"examined", "changes", "overdue"}`.

        `changes` are `{"from", "to", "facts"}`; `overdue` counts the facts that would be over by their new lifetime,
        which keep what they have unless `prune` is true.
        """
        namespace = None if everywhere else self.namespace
        arguments = {"namespace": namespace, "dry_run": dry_run, "prune": prune, "now": now or _now()}
        return self.call("decay.backfill", arguments, DECAY_SECONDS)

    def doctor(self, *, everywhere: bool = False, mend: bool = False) -> dict[str, Any]:
        """Examine every fact, and mend what is wrong if wanted; return `{"examined", "faults", "mended"}`.

        `faults` are `{"fault", "facts", "meaning", "first"}` with the ids of the first facts that have it.
        """
        arguments = {"namespace": None if everywhere else self.namespace, "mend": mend, "now": _now()}
        return self.wait(self.send("memory.doctor", arguments), DECAY_SECONDS)

    def workers(self, seconds: float = 2.0) -> dict[str, list[str]]:
        """Return which workers answer within so many seconds, and which queues each serves.

        Raises:
            UnavailableError: Redis does not answer.
        """
        found = self._reach(lambda: self._app.control.inspect(timeout=seconds).active_queues())
        return {name: [queue["name"] for queue in queues] for name, queues in (found or {}).items()}

    def call(
        self, task: str, arguments: dict[str, Any], seconds: float, *, task_id: str | None = None
    ) -> dict[str, Any]:
        """Send a task that is of no use after `seconds`, and return its result."""
        return self.wait(self.send(task, arguments, expires=seconds, task_id=task_id or str(uuid7())), seconds)

    def accept(self, task: str, arguments: dict[str, Any], task_id: str | None = None) -> str:
        """Put a write into the outbox, where it stays until it is committed, and send it; return its task's id.

        Raises:
            UnavailableError: Redis does not answer; whether the write was accepted is not known.
        """
        own_id = task_id or str(uuid7())
        self._reach(lambda: outbox.put(self._own_keys, outbox.Entry(own_id, task, arguments, time.time())))
        self.send(task, arguments, task_id=own_id, headers=outbox.ACCEPTED)
        return own_id

    def send(self, task: str, arguments: dict[str, Any], **options: Any) -> AsyncResult:
        """Send a task and return at once.

        Raises:
            UnavailableError: Redis does not answer.
        """
        return self._reach(lambda: self._app.send_task(task, kwargs=arguments, **options))

    def wait(self, result: AsyncResult, seconds: float) -> dict[str, Any]:
        """Return a task's result, and forget it.

        Raises:
            LateError: none came in time.
            UnavailableError: Redis does not answer.
            EbbError: the one that the worker raised.
        """
        try:
            answer: dict[str, Any] = self._reach(lambda: result.get(timeout=seconds))
        except (NoResultError, TaskRevokedError):
            raise LateError(
                f"No worker answered within {seconds:g} s. See `ebb status` for whether they run, "
                "and Flower for how much is waiting.",
                task=result.id,
            ) from None
        except EbbError:
            raise
        except Exception as error:
            raise TaskFailedError(
                f"The worker failed: {type(error).__name__}: {error}. Its log says more; try again."
            ) from error
        finally:
            _let_go(result)
        return answer

    def state(self, task_id: str) -> dict[str, Any] | None:
        """Return `{"state", "result" or "error"}` of a task of this namespace; nothing of one that is not known."""
        return self._reach(lambda: self._state(task_id))  # type: ignore[no-any-return]

    def _state(self, task_id: str) -> dict[str, Any] | None:
        if receipts.owner(self._own_keys, task_id) != self.namespace:
            return None
        done = self._app.AsyncResult(task_id)
        if not done.ready():
            return {"state": "waiting" if outbox.holds(self._own_keys, task_id) else "ended"}
        if done.successful():
            return {"state": "done", "result": done.result}
        return {"state": "failed", "error": str(done.result)}

    def revoke(self, task_id: str) -> None:
        """Have workers drop a task that they have not begun."""
        self._reach(lambda: self._app.control.revoke(task_id))

    def close(self) -> None:
        """Close the connections to Redis."""
        self._app.close()
        self._own_keys.close()

    def _many(self, facts: Sequence[Any], *, touch: bool, classify: bool) -> dict[str, Any]:
        with_ids = [{"id": str(uuid7()), **fact} if isinstance(fact, dict) else fact for fact in facts]
        return {
            "facts": with_ids,
            "namespace": self.namespace,
            "touch": touch,
            "classify": classify,
            "now": _now(),
        }

    def _reach(self, act: Any) -> Any:
        try:
            return act()
        except AWAY as error:
            raise UnavailableError(_redis_is_away(error)) from None
        except RuntimeError as error:  # so says Celery when it gave up reconnecting to the results
            if not isinstance(error.__cause__, AWAY):
                raise
            raise UnavailableError(_redis_is_away(error.__cause__)) from None

    @cached_property
    def _own_keys(self) -> Any:
        return own_keys(self._redis_url)

    @cached_property
    def _app(self) -> Celery:
        app = Celery("ebb-client", set_as_current=False)
        app.conf.update(configuration(self._redis_url))
        app.conf.update(
            broker_connection_max_retries=2,
            task_publish_retry_policy=GIVE_UP_SOON,
            result_backend_transport_options={"retry_policy": GIVE_UP_SOON, "socket_timeout": 5},
            redis_socket_timeout=5.0,
            redis_socket_connect_timeout=2.0,
        )
        app.conf.broker_transport_options |= {"socket_timeout": 5, "socket_connect_timeout": 2}
        return app


def _let_go(result: AsyncResult) -> None:
    """Forget a result and no longer listen for it, or else the garbage collector does, whose errors nobody catches."""
    for let_go in (result.forget, lambda: result.backend.remove_pending_result(result)):
        with suppress(*AWAY, RuntimeError):  # where Redis is away, the result expires
            let_go()


def _redis_is_away(cause: BaseException) -> str:
    return f"Redis does not answer: {str(cause).rstrip('.')}. See `ebb status`, or check EBB_REDIS_URL."


def _now() -> str:
    return datetime.now(UTC).isoformat()
