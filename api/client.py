"""The client: what every door goes through. It sends tasks by name and waits; it needs neither model nor database.

>>> memory = Client("redis://localhost:6379/0")
>>> memory.store("Mira moved to Leipzig.")["action"]
'added'
>>> memory.recall("Where does Mira live?")["results"][0]["text"]
'Mira moved to Leipzig.'

Every method answers what its task answers, plain JSON. Instants are ISO 8601 in UTC, scores and shares numbers, ids
UUIDs as text. Besides what a method says, each may raise:

- `InvalidInputError`: what was given cannot be used, and nothing was done; its message names the field and the remedy.
- `NotFoundError`, one of those: the namespace has no such fact.
- `LateError`: no worker answered within the deadline; a read was dropped, a write may still be done.
- `UnavailableError`: Redis does not answer; `LateError` is one of those.
- `OlderWorkersError`, one of those: the workers are of an older version and do not know what was asked.
- `TaskFailedError`: a worker failed for another reason; its log says more.

Writes take `wait=False`: they answer `{"task"}` as soon as Redis has the write in its outbox and its append-only file.
No process that dies loses it then; a failure of power may lose the last second (`Sender.accept` says more). What
became of it says `state(task)`. A namespace with too many such writes gets `BusyError`. A write may be sent again: each
may run twice, and is done once.

Listings come in pages where they have a `limit`: `next` is what to give as `cursor` for the one after, or none.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from celery.result import AsyncResult
from ebb.contract.operation import Operation, operation
from ebb.methods import JsonOperations
from uuid_utils.compat import uuid7

from api.older_workers import readable
from api.transport import STORE_SECONDS, Answer, Sender


class Client(Sender, JsonOperations):
    """One namespace's memory, by way of the workers behind a Redis.

    A client may be shared by threads, and opens its connections when they are first needed; `close` closes them.
    Each operation of the contract is a method; those below do more than send what they are given.
    """

    options: ClassVar[tuple[str, ...]] = ("wait",)

    def _perform(self, operation: Operation, given: dict[str, Any], *, wait: bool = True) -> Answer:
        return self.perform(operation, given, wait=wait)

    def store(self, text: str, *, wait: bool = True, **fact: Any) -> Answer:
        """Store one fact; return `{"id", "action", "embedded", "decay_class", "class_reason", "ends_at", "ends_for"}`.

        `action` is `added`; `duplicate` of the fact with that id, which counts as used unless `touch` is false, and
        whose lifetime starts again; `unchanged` where the same was sent again; `updated` where it took the place of
        `supersedes`, or where what was given beside the text changed the known fact in the fields that `changed` names
        (tags are added to those it has); `forgotten` where its owner wished that forgotten and `again` is not given:
        then nothing was stored. `ignored` names what was left out of a known fact, such as `case` or `session`.
        Without `embedded` it is found by its words until its vector is made. Without `decay_class` it gets one by its
        words, or none with `classify=False`, and so no lifetime; `class_reason` says which words decided, or `given`.
        `ends_at` is when the fact ends if it is never used, `ends_for` why: `expired`, `faded` (soft decay), `culled`
        or `aged`; both are null if it never does. `ended_at_once` is true where `last_seen_at` lies so far back that it
        has ended already. With `wait=False` the answer is `{"id", "task"}`.
        """
        given = {"text": text, "id": str(uuid7()), **_sealed(fact)}
        done = self.perform(operation("memory.store"), given, wait=wait)
        return done if wait else {"id": given["id"], **done}

    def store_many(self, facts: Sequence[Mapping[str, Any]], *, wait: bool = True, **how: bool) -> Answer:
        """Store up to 10,000 facts as one task; return `{"results"}`, in order, each as from `store`.

        What cannot be stored is answered by `{"error", "index"}` and does not keep the others out.
        """
        return self.perform(operation("memory.store_many"), {"facts": _named(facts), **how}, wait=wait)

    def send_many(self, facts: Sequence[Any], *, namespace: str | None = None, **how: bool) -> AsyncResult:
        """Send many facts and return at once; `wait` for the result. Unlike `wait=False` that is not kept safe."""
        arguments = {"facts": _named(facts), "namespace": namespace or self.namespace, "now": None, **how}
        return self.send("memory.store_many", arguments)

    def send_archived(self, records: Sequence[Any], *, namespace: str | None = None) -> AsyncResult:
        """Send lines of an archive, to become what they were, and return at once; `wait` for the result."""
        arguments = {
            "records": [readable(one) for one in records],
            "namespace": namespace or self.namespace,
            "now": None,
        }
        return self.send("memory.bring_back", arguments)

    def workers(self, seconds: float = 2.0) -> dict[str, list[str]]:
        """Return which workers answer within so many seconds, and which queues each serves."""
        found = self._reach(lambda: self._app.control.inspect(timeout=seconds).active_queues())
        return {name: [queue["name"] for queue in queues] for name, queues in (found or {}).items()}

    def put_item(
        self,
        path: Sequence[str],
        key: str,
        document: Mapping[str, Any],
        *,
        text: str | None = None,
        ttl: float | None = None,
        wait: bool = True,
    ) -> Answer:
        """Keep a document in place of what is there; return `{"id"}`. It comes back exactly as it was given.

        It is found by its `text`, if there is one. With a `ttl`, in minutes, it ends when it was not used for so long;
        else it stays until it is dropped.
        """
        given = {"path": list(path), "key": key, "document": json.dumps(document), "text": text, "ttl": ttl}
        return self.perform(operation("memory.put_item"), given, wait=wait)

    def send_document(self, path: str, chunks: Sequence[dict[str, str]], digest: str, folder: str = "") -> AsyncResult:
        """Send the chunks of a file, `{"section", "text"}`, and return at once; `wait` for the result.

        They are kept, and no others of that path.
        """
        arguments = {"path": path, "chunks": list(chunks), "digest": digest, "folder": folder}
        return self.send("memory.index", arguments | {"namespace": self.namespace, "now": self.clock()})

    def restore(self, ids: Sequence[str] | None = None, *, wait: bool = True, **selection: Any) -> Answer:
        """Restore facts, forgotten or superseded ones by their ids, or what was forgotten by time, reason or run.

        By ids return `{"results"}` with what became of each, in order, or its `error`: `action` is `restored`, or
        `unchanged` where the fact is live. What was purged cannot be restored. What ended by itself and is restored
        for the second time is `pinned`, so that it does not end again.

        Otherwise return `{"restored", "pinned", "unchanged", "refused", "errors"}`: how many of the matching facts
        became what, and the first errors; with `dry_run` only `{"matching"}`. What was forgotten on request is matched
        only if `reason` says so. Repeating it goes on where it was interrupted.
        """
        seconds = STORE_SECONDS if ids is not None or selection.get("dry_run") else None
        return self.perform(operation("memory.restore"), {"ids": ids, **selection}, wait=wait, seconds=seconds)

    def edit(self, id: str, *, wait: bool = True, **changes: Any) -> Answer:  # noqa: A002 - the contract's name
        """Change what a fact says beside its text, where None removes; history keeps what it was before.

        Return `{"id", "action", "changed", "decay_class", "class_reason", "ends_at", "ends_for"}`; `action` is
        `updated` or `unchanged`, `changed` names the fields.

        Raises:
            NotFoundError: the namespace has no such live fact.
        """
        arguments = {"id": id, "namespace": self.namespace, "now": None, **_sealed(changes)}
        return self.write("memory.edit", arguments, wait=wait)

    def resolve(self, *ids: str, keep: str | None = None, both: bool = False, wait: bool = True) -> Answer:
        """Settle a contradiction: return `{"kept", "superseded"}`, or with `both` of two facts `{"accepted"}`."""
        return self.perform(operation("memory.resolve"), {"ids": list(ids), "keep": keep, "both": both}, wait=wait)


def _named(facts: Sequence[Any]) -> list[Any]:
    """Return facts with ids, so that sending them again stores nothing twice."""
    return [{"id": str(uuid7()), **_sealed(fact)} if isinstance(fact, dict) else fact for fact in facts]


def _sealed(fact: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fact whose metadata goes as text, so that nothing on the way takes an object there for its own."""
    metadata = fact.get("metadata")
    return {**fact, "metadata": json.dumps(metadata)} if isinstance(metadata, Mapping) else dict(fact)
