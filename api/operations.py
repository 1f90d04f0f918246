"""What operators ask for: passes, prunes and repairs, of one namespace or of all, which may take their time."""

from typing import Any

from api.transport import BATCH_SECONDS, Answer, Sender

DECAY_SECONDS = 3_600.0
LIST_SECONDS = 15.0


class Operator(Sender):
    """Whoever looks after memory, whosever it is."""

    def decay(
        self, now: str | None = None, *, dry_run: bool = False, force: bool = False, everywhere: bool = False
    ) -> Answer:
        """Run one pass over this namespace, or over all, as of `now`; return its counters when it is done.

        `{"processed", "changed", "hot", "warm", "cold", "compressed", "fingerprinted", "forgotten", "held",
        "duration_ms", "segments"}`. With `force` it forgets past EBB_FORGET_LIMIT. Only with `dry_run` may `now` lie in
        the future.
        """
        arguments = self._of(everywhere) | {"now": now, "dry_run": dry_run, "force": force}
        return self.call("decay.plan", arguments, DECAY_SECONDS)

    def runs(self, limit: int = 20, before: str | None = None, *, everything: bool = False) -> Answer:
        """Return `{"runs", "next"}`: the latest passes over this namespace's facts, or with `everything` any.

        Of one over all namespaces a namespace learns when it was, and only with `everything` what it did. `next` is
        what to give as `before` for earlier ones, null after the last.
        """
        arguments = {"namespace": self.namespace, "limit": limit, "before": before, "everything": everything}
        return self.call("decay.runs", arguments, LIST_SECONDS)

    def prune(
        self,
        now: str | None = None,
        *,
        hard: bool = True,
        soft: bool = True,
        dry_run: bool = False,
        everywhere: bool = False,
    ) -> Answer:
        """Forget what has expired in this namespace or all (hard), and halve or remove what nears its expiry (soft).

        Return `{"expired", "decayed", "deleted", "held", "dry_run", "duration_ms", "segments"}`: of those decayed, soft
        decay deleted so many.
        """
        arguments = self._of(everywhere) | {"now": now, "hard": hard, "soft": soft, "dry_run": dry_run}
        return self.call("decay.prune", arguments, DECAY_SECONDS)

    def backfill(
        self, *, everywhere: bool = False, dry_run: bool = False, prune: bool = False, now: str | None = None
    ) -> Answer:
        """Classify anew what nobody chose a decay class for; return `{"examined", "changes", "overdue"}`.

        `changes` are `{"from", "to", "facts"}`; `overdue` counts the facts that would be over by their new lifetime,
        which keep what they have unless `prune` is true.
        """
        arguments = self._of(everywhere) | {"dry_run": dry_run, "prune": prune, "now": now}
        return self.call("decay.backfill", arguments, DECAY_SECONDS)

    def consolidate(
        self, *, apply: bool = False, force: bool = False, limit: int = 100, everywhere: bool = False
    ) -> Answer:
        """Return facts that say nearly the same of the same; with `apply` they are merged, past the limit with `force`.

        `{"applied", "compared", "merged", "total", "facts", "groups"}`: `groups` are `{"keep", "merge"}`, the first
        `limit` of those merged, or else of those left; `total` groups with `facts` to merge are left.
        With `everywhere` each namespace that has something new gets a run, and `{"namespaces", "total"}` says which.
        """
        arguments = self._of(everywhere) | {"apply": apply, "force": force, "limit": limit}
        return self.call("memory.consolidate", arguments, DECAY_SECONDS)

    def janitor(self, now: str | None = None, *, everywhere: bool = False) -> Answer:
        """Do what is due of the namespace, as of `now`; return what was culled and got stale since the run before.

        `{"lastRunTurn", "lastRunAt", "totalRuns", "lastCulledFactIds", "lastCulledEpisodeIds",
        "lastMarkedStaleEpisodeIds", …}`. With `everywhere` each namespace in which something is due gets a run, and
        `{"namespaces", "total"}` says which.
        """
        arguments = self._of(everywhere) | {"now": now}
        return self.call("memory.janitor", arguments, DECAY_SECONDS)

    def janitor_snapshot(self) -> Answer:
        """Return what the last run of the janitor told; `totalRuns` is 0 before the first."""
        return self.call("memory.janitor_snapshot", {"namespace": self.namespace}, LIST_SECONDS)

    def doctor(self, *, everywhere: bool = False, mend: bool = False) -> Answer:
        """Examine every fact, and mend what is wrong if wanted; return `{"examined", "faults", "mended", "redis"}`.

        `faults` are `{"fault", "facts", "meaning", "first"}` with the ids of the first facts that have it. `redis` has
        `{"server", "memory_used", "memory_limit", "eviction", "append_only_file", "fsync", "last_save",
        "power_failure_loses", "warnings"}`, memory in bytes.
        """
        arguments = self._of(everywhere) | {"mend": mend}
        return self.call("memory.doctor", arguments, DECAY_SECONDS)

    def purge(self, now: str | None = None, *, dry_run: bool = False, everywhere: bool = False) -> Answer:
        """Erase what was forgotten long ago in this namespace or all; call again while something is `left`.

        Return `{"purged", "left", "forgotten_before"}`, counts of facts and an instant.
        """
        return self.call("memory.purge", self._of(everywhere) | {"now": now, "dry_run": dry_run}, BATCH_SECONDS)

    def _of(self, everywhere: bool) -> dict[str, Any]:
        """Return the scope of a task; workers of earlier versions know only one namespace, and refuse the other."""
        return {"namespace": self.namespace} | ({"everywhere": True} if everywhere else {})

    def branch(self, older: str | int) -> Answer:
        """Copy the namespace with every instant so many days older, to see what time does; the original stays as it is.

        Return `{"branch", "action", "facts"}`, the name of the copy, such as `mira-older-365d`, and how many live facts
        it holds; `action` is `made`, or `unchanged` where it was there.

        Raises:
            InvalidInputError: the name is taken by a namespace that is no such branch, or too long.
        """
        return self.call("memory.branch", {"namespace": self.namespace, "older": older}, DECAY_SECONDS)

    def branches(self, *, everywhere: bool = False) -> Answer:
        """Return `{"branches", "total"}`: the branches of the namespace, or of all.

        Each is `{"branch", "of", "days", "facts", "complete"}`; one that is incomplete is completed by `branch`.
        """
        return self.call("memory.branches", self._of(everywhere), LIST_SECONDS)

    def drop_branch(self, older: str | int | None = None) -> Answer:
        """Erase the namespace's branches for good, or the one that is so many days older; or itself, if it is a branch.

        Return `{"dropped"}`, their names.
        """
        return self.call("memory.drop_branch", {"namespace": self.namespace, "older": older}, DECAY_SECONDS)

    def workers(self, seconds: float = 2.0) -> dict[str, list[str]]:
        """Return which workers answer within so many seconds, and which queues each serves."""
        found = self._reach(lambda: self._app.control.inspect(timeout=seconds).active_queues())
        return {name: [queue["name"] for queue in queues] for name, queues in (found or {}).items()}
