"""Held facts: listed, let go and kept through the client."""

from collections.abc import Sequence

from api.transport import RECALL_SECONDS, Answer, Sender


class Holder(Sender):
    """One namespace's facts that are over but stay visible, because the forget limit holds them back."""

    def held(self, limit: int = 100, cursor: str | None = None) -> Answer:
        """Return `{"held", "total", "next"}`: held facts, those that were over first in front.

        Each is `{"id", "text", "decay_class", "reason", "ended_at", "created_at"}`.
        """
        arguments = {"namespace": self.namespace, "limit": limit, "cursor": cursor}
        return self.call("memory.held", arguments, RECALL_SECONDS)

    def let_go(self, ids: Sequence[str] | None = None, *, everything: bool = False, wait: bool = True) -> Answer:
        """Forget held facts, or with `everything` all that are held; return `{"decided", "ids", "left"}`.

        They can be restored as other forgotten facts. Very many take several calls: `left` says how many are held.
        """
        return self._decide("memory.let_go", ids, everything=everything, wait=wait)

    def keep(self, ids: Sequence[str] | None = None, *, everything: bool = False, wait: bool = True) -> Answer:
        """Keep held facts, or with `everything` all that are held, as if they had been stored now.

        Return `{"decided", "ids", "left"}`, as `let_go` does.
        """
        return self._decide("memory.keep", ids, everything=everything, wait=wait)

    def _decide(self, task: str, ids: Sequence[str] | None, *, everything: bool, wait: bool) -> Answer:
        given = {"ids": None if ids is None else list(ids), "everything": everything, "namespace": self.namespace}
        return self.write(task, given, wait=wait)
