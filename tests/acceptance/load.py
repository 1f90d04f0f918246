"""Load for failover tests: a client that stores facts while servers end and return."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Self
from uuid import uuid4

from kombu import pools
from live_system import LiveSystem

from workers.coordination import outbox
from workers.errors import EbbError


class Load:
    """A client that stores facts continuously and records which were answered or accepted.

    `store` is called in place of that client's own method.
    """

    def __init__(self, system: LiveSystem, wait: bool, store: Callable[..., object] | None = None) -> None:
        self.system, self.wait, self.store = system, wait, store
        self.sent: list[str] = []
        self.acknowledged: set[str] = set()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._store)

    def _store(self) -> None:
        with self.system.client() as client:
            store = self.store or partial(client.store, wait=self.wait)
            while not self.done.wait(0.05):
                fact = str(uuid4())
                self.sent.append(fact)
                try:
                    store(f"Fact {fact} stands in the book.", id=fact)
                except EbbError:
                    continue
                self.acknowledged.add(fact)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()


def stored(system: LiveSystem) -> list[str]:
    """Return the ids of the live facts of the default namespace."""
    return [fact for fact, _ in system.facts("default")]


def swept(system: LiveSystem) -> bool:
    """Return whether the outbox is empty; resend what is left, as beat does after some minutes."""
    system.settle()
    left = list(outbox.entries(system.own_keys))
    for entry in left:
        outbox.renew(system.own_keys, replace(entry, sent_at=0.0))
    if left:
        system.send("memory.sweep_outbox", {})
    return not left


def forget_connections(system: LiveSystem) -> None:
    """Have the test ask the workers by connections of its own again: kombu keeps those to the server that is gone."""
    control = system.__dict__.pop("control")
    connection = control.connection_for_write()
    control.close()
    for group in (pools.connections, pools.producers):
        with suppress(KeyError):
            del group[connection]
