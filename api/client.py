"""The client that all interfaces use: it sends tasks by name and waits, without loading models or the database driver.

>>> memory = Client("redis://localhost:6379/0")
>>> memory.store("Mira moved to Leipzig.")["action"]
'added'
>>> memory.recall("Where does Mira live?")["results"][0]["text"]
'Mira moved to Leipzig.'

Methods return the JSON answer of their task. Instants are ISO 8601 in UTC, scores and shares are numbers, ids are UUIDs
as text. Any method may raise:

- `InvalidInputError`: a parameter is not valid, and nothing was done; the message names the field and what to do.
- `NotFoundError`, a subclass: the namespace has no such fact.
- `UnavailableError`: Redis does not answer.
- `LateError`, a subclass of it: no worker answered in time; a read was dropped, a write may still be done.
- `OlderWorkersError`, a subclass too: the workers are of an older version and do not know the request.
- `TaskFailedError`: a worker failed for another reason; see its log.

Writes take `wait=False`: they return `{"task"}` as soon as the write is in Redis' outbox and append-only file. A crash
of any process does not lose it; a power failure may lose the last second (see `Sender.accept`). `state(task)` returns
its result. A namespace with too many such writes gets a `BusyError`. Redis may deliver a write twice; it is applied
once.

Listings with a `limit` are paged: pass `next` as `cursor` for the next page; it is null on the last one.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar

from celery.result import AsyncResult
from ebb.contract.operation import STORE_SECONDS, operation
from ebb.methods import JsonOperations
from uuid_utils.compat import uuid7

from api.transport import Answer, Sender, sealed


class Client(Sender, JsonOperations):
    """The memory of one namespace, through the workers behind a Redis.

    A client may be shared by threads. It connects on first use, and `close` disconnects it. Each operation of the
    contract is a method; those below do more than send their parameters.
    """

    options: ClassVar[tuple[str, ...]] = ("wait",)
    _perform = Sender.perform

    def store(self, text: str, *, wait: bool = True, **fact: Any) -> Answer:
        """Store one fact with an id of its own, so that sending it again stores nothing twice.

        With `wait=False` the answer is `{"id", "task"}`.
        """
        given = {"text": text, "id": str(uuid7()), **fact}
        done = self.perform(operation("memory.store"), given, wait=wait)
        return done if wait else {"id": given["id"], **done}

    def store_many(self, facts: Sequence[Mapping[str, Any] | str], *, wait: bool = True, **how: bool) -> Answer:
        """Store facts in one task, each with an id of its own."""
        return self.perform(operation("memory.store_many"), {"facts": _named(facts), **how}, wait=wait)

    def send_many(
        self, facts: Sequence[Any], *, namespace: str | None = None, task_id: str | None = None, **how: bool
    ) -> AsyncResult:
        """Send many facts without waiting; pass the result to `wait`. They are not kept in the outbox."""
        arguments = {"facts": _named(facts), "namespace": namespace or self.namespace, "now": None, **how}
        return self.ask("memory.store_many", arguments, task_id)

    def workers(self, seconds: float = 2.0) -> dict[str, list[str]]:
        """Return the workers that answer within `seconds`, each with its queues; those of one name count as one."""
        answers = self._reach(lambda: self._app.control.broadcast("active_queues", reply=True, timeout=seconds))
        workers: dict[str, list[str]] = {}
        for name, queues in chain.from_iterable(answer.items() for answer in answers or ()):
            workers.setdefault(name, []).extend(queue["name"] for queue in queues)
        return workers

    def send_document(
        self, path: str, chunks: Sequence[dict[str, str]], digest: str, folder: str, read_at: str
    ) -> AsyncResult:
        """Send the chunks of a file, `{"section", "text"}`, without waiting; pass the result to `wait`.

        They replace all other chunks of that path, unless these were read later than at `read_at`, an instant of
        `clock`.
        """
        arguments: dict[str, Any] = {"path": path, "chunks": list(chunks), "digest": digest, "folder": folder}
        arguments |= {"namespace": self.namespace, "now": read_at}
        return self.ask("memory.index", arguments)

    def restore(self, ids: Sequence[str] | None = None, *, wait: bool = True, **selection: Any) -> Answer:
        """Restore facts by ids or by a selection; only a selection may take long."""
        seconds = STORE_SECONDS if ids is not None or selection.get("dry_run") else None
        return self.perform(operation("memory.restore"), {"ids": ids, **selection}, wait=wait, seconds=seconds)


def _named(facts: Sequence[Any]) -> Sequence[Any]:
    """Return facts with ids, so that sending them again stores nothing twice."""
    if isinstance(facts, str | Mapping | None):  # no list of letters or names; the worker refuses it
        return facts
    objects = ({"text": fact} if isinstance(fact, str) else fact for fact in facts)
    return [{"id": str(uuid7()), **sealed(fact)} if isinstance(fact, dict) else fact for fact in objects]
