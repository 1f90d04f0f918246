"""What operators ask for: passes, prunes and repairs, which mostly concern all namespaces and may take their time."""

from api.sender import BATCH_SECONDS, Answer, Sender, now_text

DECAY_SECONDS = 3_600.0
LIST_SECONDS = 15.0


class Operator(Sender):
    """Whoever looks after memory, whosever it is."""

    def decay(
        self, now: str | None = None, *, dry_run: bool = False, force: bool = False, everywhere: bool = True
    ) -> Answer:
        """Run one pass over all namespaces, or this one alone, as of `now`; return its counters when it is done.

        `{"processed", "changed", "hot", "warm", "cold", "compressed", "fingerprinted", "forgotten", "held",
        "duration_ms", "segments"}`. With `force` it forgets past EBB_FORGET_LIMIT.
        """
        namespace = None if everywhere else self.namespace
        arguments = {"now": now or now_text(), "dry_run": dry_run, "force": force, "namespace": namespace}
        return self.call("decay.plan", arguments, DECAY_SECONDS)

    def runs(self, limit: int = 20, before: str | None = None, *, everything: bool = False) -> Answer:
        """Return `{"runs", "next"}`: the latest passes over this namespace's facts, or with `everything` any.

        Of one over all namespaces a namespace learns when it was, and only with `everything` what it did. `next` is
        what to give as `before` for earlier ones, null after the last.
        """
        arguments = {"namespace": self.namespace, "limit": limit, "before": before, "everything": everything}
        return self.call("decay.runs", arguments, LIST_SECONDS)

    def prune(self, now: str | None = None, *, hard: bool = True, soft: bool = True, dry_run: bool = False) -> Answer:
        """Forget what has expired in any namespace (hard), and halve or remove what nears its expiry (soft).

        Return `{"expired", "decayed", "deleted", "held", "dry_run", "duration_ms", "segments"}`: of those decayed, soft
        decay deleted so many.
        """
        arguments = {"now": now or now_text(), "hard": hard, "soft": soft, "dry_run": dry_run}
        return self.call("decay.prune", arguments, DECAY_SECONDS)

    def backfill(
        self, *, everywhere: bool = False, dry_run: bool = False, prune: bool = False, now: str | None = None
    ) -> Answer:
        """Classify anew what nobody chose a decay class for; return `{"examined", "changes", "overdue"}`.

        `changes` are `{"from", "to", "facts"}`; `overdue` counts the facts that would be over by their new lifetime,
        which keep what they have unless `prune` is true.
        """
        namespace = None if everywhere else self.namespace
        arguments = {"namespace": namespace, "dry_run": dry_run, "prune": prune, "now": now or now_text()}
        return self.call("decay.backfill", arguments, DECAY_SECONDS)

    def consolidate(self, *, apply: bool = False, force: bool = False, limit: int = 100) -> Answer:
        """Return facts that say nearly the same of the same; with `apply` they are merged, past the limit with `force`.

        `{"applied", "compared", "merged", "total", "facts", "groups"}`: `groups` are `{"keep", "merge"}`, the first
        `limit` of those merged, or else of those left; `total` groups with `facts` to merge are left.
        """
        arguments = {"namespace": self.namespace, "apply": apply, "force": force, "limit": limit, "now": now_text()}
        return self.call("memory.consolidate", arguments, DECAY_SECONDS)

    def janitor(self, now: str | None = None, *, everywhere: bool = False) -> Answer:
        """Do what is due of the namespace, as of `now`; return what was culled and got stale since the run before.

        `{"lastRunTurn", "lastRunAt", "totalRuns", "lastCulledFactIds", "lastCulledEpisodeIds",
        "lastMarkedStaleEpisodeIds", …}`. With `everywhere` each namespace in which something is due gets a run, and
        `{"namespaces", "total"}` says which.
        """
        arguments = {"namespace": None if everywhere else self.namespace, "now": now or now_text()}
        return self.call("memory.janitor", arguments, DECAY_SECONDS)

    def janitor_snapshot(self) -> Answer:
        """Return what the last run of the janitor told; `totalRuns` is 0 before the first."""
        return self.call("memory.janitor_snapshot", {"namespace": self.namespace}, LIST_SECONDS)

    def decay_relations(self, now: str | None = None, *, dry_run: bool = False) -> Answer:
        """Bring the stored weights of the namespace's relations up to date.

        Return `{"processed", "decayed", "belowMinimum", "pinned"}`, and with `dry_run` the `edges` that would change.
        """
        arguments = {"namespace": self.namespace, "now": now or now_text(), "dry_run": dry_run}
        return self.call("relations.decay", arguments, DECAY_SECONDS)

    def doctor(self, *, everywhere: bool = False, mend: bool = False) -> Answer:
        """Examine every fact, and mend what is wrong if wanted; return `{"examined", "faults", "mended", "redis"}`.

        `faults` are `{"fault", "facts", "meaning", "first"}` with the ids of the first facts that have it. `redis` has
        `{"server", "memory_used", "memory_limit", "eviction", "append_only_file", "fsync", "last_save",
        "power_failure_loses", "warnings"}`, memory in bytes.
        """
        arguments = {"namespace": None if everywhere else self.namespace, "mend": mend, "now": now_text()}
        return self.call("memory.doctor", arguments, DECAY_SECONDS)

    def purge(self, now: str | None = None, *, dry_run: bool = False) -> Answer:
        """Erase what was forgotten long ago in all namespaces, as of `now`; call again while something is `left`.

        Return `{"purged", "left", "forgotten_before"}`, counts of facts and an instant.
        """
        return self.call("memory.purge", {"now": now or now_text(), "dry_run": dry_run}, BATCH_SECONDS)

    def workers(self, seconds: float = 2.0) -> dict[str, list[str]]:
        """Return which workers answer within so many seconds, and which queues each serves."""
        found = self._reach(lambda: self._app.control.inspect(timeout=seconds).active_queues())
        return {name: [queue["name"] for queue in queues] for name, queues in (found or {}).items()}
