"""Every operation of the contract as a method; `python -m tests.write_methods` writes this file."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Literal
from uuid import UUID

from ebb.contract.operation import Operation
from ebb.contract.admin import (
    Branched,
    Branches,
    BranchesDropped,
    Examined,
    Imported,
    NamespaceMoved,
    NamespaceSettings,
    Shards,
    SystemTimeSeries,
)
from ebb.contract.decay import Backfilled, Consolidated, Decayed, Decided, HeldFacts, Janitor, Pruned, Purged, Runs
from ebb.contract.documents import (
    Documents,
    Dropped,
    Indexed,
    ItemPages,
    ItemPaths,
    ItemQuery,
    Items,
    NewItem,
    Put,
    PutMany,
    RegisteredFolder,
    RegisteredFolders,
    Unindexed,
    UnregisteredFolder,
)
from ebb.contract.facts import Edited, NewFact, Remembered, Stored, StoredMany
from ebb.contract.graph import Edge, Linked, Relations, RelationsDecayed, Removed
from ebb.contract.recall import Injected, LookedUp, Recall, Recalled, RecalledMany
from ebb.contract.reports import (
    Contradictions,
    Curve,
    Fact,
    Facts,
    Forecast,
    Namespaces,
    Neighbours,
    Resolved,
    Stats,
    TimeSeries,
    Timeline,
)
from ebb.contract.retention import Forgot, Forgotten, History, Pinned, Reinforced, Restored, Used
from ebb.contract.values import ClassSource, DecayClass, Durability, Kind, Reason, Role, Tier

class Operations:
    """Every operation as a method."""

    options: ClassVar[tuple[str, ...]]

    def _perform(self, operation: Operation, given: dict[str, Any], idempotency_key: str | None = None) -> Any: ...
    def store(
        self,
        text: str,
        *,
        id: UUID | str | None = None,
        kind: Kind = "semantic",
        durability: Durability | None = None,
        session: str | int | None = None,
        turn: int | None = None,
        role: Role | None = None,
        source_date: datetime | str | None = None,
        valid_from: datetime | str | None = None,
        valid_until: datetime | str | None = None,
        created_at: datetime | str | None = None,
        last_seen_at: datetime | str | None = None,
        category: str | None = None,
        entity: str | None = None,
        key: str | None = None,
        value: str | None = None,
        summary: str | None = None,
        source: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        importance: float = 0.5,
        salience: float = 0.5,
        strength: float | None = None,
        coactivations: int = 0,
        confidence: float = 1.0,
        decay_class: DecayClass | None = None,
        decay_class_source: ClassSource | None = None,
        supersedes: UUID | str | None = None,
        again: bool = False,
        apart: bool = False,
        touch: bool = True,
        classify: bool = True,
        count_turns: bool = True,
        idempotency_key: str | None = None,
    ) -> Stored:
        """Store one fact; a known fact counts as used, and its lifetime starts again."""

    def store_many(
        self,
        facts: Sequence[NewFact | str | Mapping[str, Any]],
        *,
        touch: bool = True,
        classify: bool = True,
        count_turns: bool = True,
        idempotency_key: str | None = None,
    ) -> StoredMany:
        """Store many facts as one task, each with its own answer in order; an invalid one does not affect others."""

    def remember(
        self,
        messages: Sequence[Any],
        *,
        session: str | int | None = None,
        source: str | None = None,
        touch: bool = False,
        classify: bool = True,
        count_turns: bool = True,
        idempotency_key: str | None = None,
    ) -> Remembered:
        """Store the messages of a conversation as turns; known ones are not stored again.

        So the whole conversation may be given each time. Tool calls and their results become turns of the role `tool`.
        System instructions and injected contexts are left out.
        """

    def edit(
        self,
        id: UUID | str,
        *,
        category: str | None = None,
        entity: str | None = None,
        key: str | None = None,
        value: str | None = None,
        summary: str | None = None,
        source: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        importance: float | None = None,
        confidence: float | None = None,
        decay_class: DecayClass | None = None,
        role: Role | None = None,
        valid_from: datetime | str | None = None,
        valid_until: datetime | str | None = None,
        idempotency_key: str | None = None,
    ) -> Edited:
        """Change the fields of a fact except its text; its history keeps the earlier values.

        Omitted fields stay, null removes. A new decay class or confidence restarts its lifetime.
        """

    def recall(
        self,
        query: str,
        *,
        deep: bool = False,
        limit: int = 10,
        min_relevance: float | None = None,
        tag: str | None = None,
        category: str | None = None,
        kind: Kind | None = None,
        role: Role | None = None,
        pinned: bool | None = None,
        entity: str | None = None,
        key: str | None = None,
        session: str | int | None = None,
        source: str | None = None,
        tier: Tier | None = None,
        documents: bool = True,
        namespaces: Sequence[str] | None = None,
        explain: bool = False,
        why: UUID | str | None = None,
        as_of: datetime | str | None = None,
        known_as_of: datetime | str | None = None,
        touch: bool = True,
    ) -> Recalled:
        """Find the facts that best match a question, by words and by meaning.

        This counts as use and strengthens the facts, unless `touch` is false or the question is about the past.
        """

    def recall_many(self, queries: Sequence[Recall | str | Mapping[str, Any]]) -> RecalledMany:
        """Answer many questions as one task, each with its own answer in order; an invalid one does not affect others."""

    def lookup(
        self,
        entity: str,
        *,
        key: str | None = None,
        tag: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        as_of: datetime | str | None = None,
        known_as_of: datetime | str | None = None,
        touch: bool = True,
    ) -> LookedUp:
        """Return the facts about an entity, or one key of it, most confident first, then newest.

        This needs no embedding. It counts as use and strengthens the facts, unless `touch` is false.
        """

    def context(
        self,
        query: str,
        *,
        deep: bool = False,
        limit: int = 10,
        max_tokens: int | None = None,
        format: Literal["full", "short", "minimal"] | None = None,
        dates: bool | None = None,
        order: Literal["rank", "stable"] | None = None,
        summary_threshold: int | None = None,
        prefer_long_term: bool | None = None,
        use_importance_recency: bool | None = None,
        min_similarity: float | None = None,
        min_relevance: float | None = None,
        entity_lookup: bool | None = None,
        entities: Sequence[str] | None = None,
        documents: bool = False,
        explain: bool = False,
        touch: bool = True,
        tag: str | None = None,
        category: str | None = None,
        kind: Kind | None = None,
        role: Role | None = None,
        pinned: bool | None = None,
        entity: str | None = None,
        key: str | None = None,
        session: str | int | None = None,
        source: str | None = None,
        tier: Tier | None = None,
        namespaces: Sequence[str] | None = None,
    ) -> Injected:
        """Return a block of matching facts as text for a prompt; it counts as use of the facts in it."""

    def fact(self, id: UUID | str) -> Fact:
        """Return a fact; this does not count as use."""

    def facts(
        self,
        limit: int = 100,
        *,
        before: UUID | str | None = None,
        offset: int = 0,
        ids: Sequence[UUID | str] | None = None,
        cursor: str | None = None,
        tag: str | None = None,
        category: str | None = None,
        kind: Kind | None = None,
        role: Role | None = None,
        pinned: bool | None = None,
        entity: str | None = None,
        key: str | None = None,
        session: str | int | None = None,
        source: str | None = None,
        tier: Tier | None = None,
        documents: bool = True,
    ) -> Facts:
        """Return the facts of `ids`, in order, or a page of all facts that pass the filters, newest first.

        This does not count as use.
        """

    def history(
        self, id: UUID | str, *, limit: int | None = None, cursor: str | None = None, links: bool = True
    ) -> History:
        """Return the events of a fact, live or forgotten, oldest first."""

    def used(self, ids: Sequence[UUID | str], *, idempotency_key: str | None = None) -> Used:
        """Report which recalled facts were really used; these are strengthened once more and confirmed."""

    def reinforce(self, id: UUID | str, *, boost: float = 0.2, idempotency_key: str | None = None) -> Reinforced:
        """Strengthen a fact that proved true or useful, and confirm it, so that it fades later."""

    def pin(
        self,
        id: UUID | str,
        *,
        until: datetime | str | None = None,
        off: bool = False,
        idempotency_key: str | None = None,
    ) -> Pinned:
        """Pin a fact without end or until an instant: it neither fades nor ends."""

    def forget(
        self,
        ids: Sequence[UUID | str] | None = None,
        *,
        purge: bool = False,
        entity: str | None = None,
        key: str | None = None,
        tag: str | None = None,
        category: str | None = None,
        session: str | int | None = None,
        source: str | None = None,
        query: str | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> Forgot:
        """Forget facts because their owner asks for it: by ids, or all that fit a subject, also superseded and ended ones.

        Until they are purged, they can be restored, all of them by the `run` of the answer.
        """

    def forgotten(
        self,
        limit: int = 100,
        *,
        cursor: str | None = None,
        asked: bool = True,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        reason: Reason | None = None,
        run: UUID | str | None = None,
    ) -> Forgotten:
        """Return forgotten facts that can be restored, newest first, each with its reason and the run that forgot it."""

    def restore(
        self,
        ids: Sequence[UUID | str] | None = None,
        *,
        dry_run: bool = False,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        reason: Reason | None = None,
        run: UUID | str | None = None,
        idempotency_key: str | None = None,
    ) -> Restored:
        """Restore facts by their ids, or all that were forgotten in a period, for a reason or by a run.

        A time or a run alone matches what ended by itself; give `reason` for what was forgotten on request. What ended by
        itself and is restored again is pinned. Interrupted, it continues when it is asked again.
        """

    def held(self, limit: int = 100, *, cursor: str | None = None) -> HeldFacts:
        """Return facts that have ended but stay visible because of the forget limit, by the time when they ended."""

    def let_go(
        self, ids: Sequence[UUID | str] | None = None, *, everything: bool = False, idempotency_key: str | None = None
    ) -> Decided:
        """Forget held facts, which can be restored. If `left` is not 0, repeat the call for the rest."""

    def keep(
        self, ids: Sequence[UUID | str] | None = None, *, everything: bool = False, idempotency_key: str | None = None
    ) -> Decided:
        """Keep facts that are held or end soon, as if they had been stored now.

        If `left` is not 0, repeat the call for the rest.
        """

    def contradictions(self, limit: int = 100, *, cursor: str | None = None) -> Contradictions:
        """Return pairs of facts with one entity and key but different values, newest pair first."""

    def resolve(
        self,
        ids: Sequence[UUID | str],
        *,
        keep: UUID | str | None = None,
        both: bool = False,
        idempotency_key: str | None = None,
    ) -> Resolved:
        """Resolve a contradiction: one fact supersedes the others, or both of two are accepted."""

    def link(
        self,
        source: UUID | str,
        target: UUID | str,
        type: Literal["SUPERSEDES", "UPDATES", "CAUSED_BY", "PART_OF", "RELATED_TO", "DEPENDS_ON"],
        *,
        strength: float = 1.0,
        idempotency_key: str | None = None,
    ) -> Linked:
        """Link two facts, or change their link's strength: if one is recalled, the other is found too."""

    def unlink(
        self,
        source: UUID | str,
        target: UUID | str,
        *,
        type: Literal["SUPERSEDES", "UPDATES", "CAUSED_BY", "PART_OF", "RELATED_TO", "DEPENDS_ON"] | None = None,
        idempotency_key: str | None = None,
    ) -> Removed:
        """Remove the links between two facts, of one type or all; the facts stay."""

    def relate(
        self,
        source: str,
        target: str,
        type: str,
        *,
        weight: float | None = None,
        pinned: bool | None = None,
        last_observed: datetime | str | None = None,
        idempotency_key: str | None = None,
    ) -> Edge:
        """Record that an entity is related to another; a known relation counts as observed again.

        Its weight halves every 90 days (EBB_RELATION_HALF_LIFE) unless it is observed again or pinned.
        """

    def unrelate(self, source: str, target: str, type: str, *, idempotency_key: str | None = None) -> Removed:
        """Delete a relation."""

    def relations(
        self, decayed: bool | None = False, *, entity: str | None = None, limit: int = 1000, cursor: str | None = None
    ) -> Relations:
        """Return relations with their current weights, strongest first: those in use, or those below the minimum weight."""

    def decay_relations(
        self, dry_run: bool = False, *, everywhere: bool = False, idempotency_key: str | None = None
    ) -> RelationsDecayed:
        """Update the stored weights of relations, or report what would change."""

    def stats(self) -> Stats:
        """Return the numbers of facts by tier, fidelity and decay class, and of due facts."""

    def forecast(
        self,
        days: int = 7,
        *,
        shown: int = 3,
        set: Sequence[str] | None = None,
        ending: int | None = None,
        by: Literal["value", "date"] = "date",
    ) -> Forecast:
        """Return what passes will do on each of the coming days, if nothing is used until then.

        With `set` the forecast is for other settings; nothing is changed.
        """

    def timeline(self, entity: str, key: str, *, limit: int = 100, cursor: str | None = None) -> Timeline:
        """Return the values of a property of an entity over time, with their speakers, earliest first.

        Superseded and ended facts are included, facts forgotten on request are not. This does not count as use.
        """

    def time_series(self, days: int = 14) -> TimeSeries:
        """Return the time series of the namespace's numbers of facts."""

    def curve(self, id: UUID | str) -> Curve:
        """Return the forgetting curve of a fact: how it faded, was used, and will fade."""

    def neighbours(self, id: UUID | str, *, most: int = 20) -> Neighbours:
        """Return the facts with the strongest links to a fact, and the links among them."""

    def put_item(
        self,
        path: Sequence[str],
        key: str,
        document: str,
        *,
        text: str | None = None,
        ttl: float | None = None,
        idempotency_key: str | None = None,
    ) -> Put:
        """Store a document under a path and key, replacing an existing one.

        It is found by its `text`, if it has one. With a `ttl` it ends after that time without use; else it stays.
        """

    def put_items(self, items: Sequence[NewItem | Mapping[str, Any]], *, idempotency_key: str | None = None) -> PutMany:
        """Store many documents as one task, each replacing an existing one; no path and key may occur twice."""

    def items(
        self,
        path: Sequence[str] = ...,
        *,
        key: str | None = None,
        query: str | None = None,
        filter: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = True,
    ) -> Items:
        """Return items below a path, newest first, or the best for a query, or the one with a key."""

    def many_items(self, queries: Sequence[ItemQuery | Mapping[str, Any]]) -> ItemPages:
        """Answer many queries for items as one task, each with its own page, in order."""

    def drop_item(self, path: Sequence[str], key: str, *, idempotency_key: str | None = None) -> Dropped:
        """Forget the item under a path and key."""

    def item_paths(self) -> ItemPaths:
        """Return every path that has items."""

    def index(
        self,
        path: str,
        chunks: Sequence[Mapping[str, str]],
        digest: str,
        *,
        folder: str = "",
        idempotency_key: str | None = None,
    ) -> Indexed:
        """Replace the chunks of a file by those read at `now`.

        If a later reading is stored already, nothing is done, and the answer says `outdated`.
        """

    def upload(self, path: str, text: str, *, idempotency_key: str | None = None) -> Indexed:
        """Keep a Markdown text as a file: it is cut into chunks, which take the place of those of its path."""

    def unindex(self, paths: Sequence[str], *, idempotency_key: str | None = None) -> Unindexed:
        """Erase the chunks of removed files."""

    def documents(self, name: str) -> Documents:
        """Return the indexed files of a folder, each with the digest of its last reading."""

    def register_folder(
        self, path: str, *, name: str | None = None, idempotency_key: str | None = None
    ) -> RegisteredFolder:
        """Register a folder, whose Markdown files workers keep indexed from then on.

        Workers must see the folder under this path, and it must be below one that `EBB_FOLDERS` names.
        """

    def unregister_folder(self, name: str, *, idempotency_key: str | None = None) -> UnregisteredFolder:
        """Stop reading a registered folder; what was indexed stays."""

    def folders(self) -> RegisteredFolders:
        """Return the registered folders, when each was last read, and what went wrong in the latest attempt."""

    def decay(
        self,
        dry_run: bool = False,
        *,
        force: bool = False,
        everywhere: bool = False,
        now: datetime | str | None = None,
        idempotency_key: str | None = None,
    ) -> Decayed:
        """Run one pass over due facts, which cool, lose dimensions or are forgotten; return its counters at the end."""

    def prune(
        self,
        hard: bool = True,
        *,
        soft: bool = True,
        dry_run: bool = False,
        everywhere: bool = False,
        now: datetime | str | None = None,
        idempotency_key: str | None = None,
    ) -> Pruned:
        """Forget expired facts (hard), and halve the confidence of those near their expiry or forget them (soft)."""

    def backfill(
        self,
        dry_run: bool = False,
        *,
        prune: bool = False,
        everywhere: bool = False,
        idempotency_key: str | None = None,
    ) -> Backfilled:
        """Give facts whose decay class was not chosen the one that their words have today.

        Lifetimes begin when a fact was last confirmed. What would be over by its new lifetime keeps what it has, unless
        `prune` is true.
        """

    def runs(self, limit: int = 20, *, before: datetime | str | None = None, everything: bool = False) -> Runs:
        """Return the latest passes over a namespace's facts, newest first, or with `everything` all passes.

        The counts of passes over all namespaces are included only with `everything`.
        """

    def consolidate(
        self, apply: bool = False, *, force: bool = False, limit: int = 100, idempotency_key: str | None = None
    ) -> Consolidated:
        """Return near-duplicates; with `apply` they are merged, which `restore` undoes.

        With `everywhere` each namespace with new facts gets a run of its own.
        """

    def janitor(self, now: datetime | str | None = None, *, idempotency_key: str | None = None) -> Janitor:
        """Run the janitor: cull facts of low confidence and age episodes; return the changes since its last run.

        With `everywhere` each namespace with due facts gets a run of its own.
        """

    def janitor_snapshot(self) -> Janitor:
        """Return the report of the janitor's last run; `totalRuns` is 0 before the first."""

    def purge(self, dry_run: bool = False, *, everywhere: bool = False, idempotency_key: str | None = None) -> Purged:
        """Erase facts that were forgotten on request EBB_RETENTION_DAYS ago; repeat the call while some are `left`.

        Facts that decay forgot are moved to deep memory, and erased from there after EBB_DEEP_DAYS, by default never.
        """

    def doctor(self, mend: bool = False, *, everywhere: bool = False, idempotency_key: str | None = None) -> Examined:
        """Examine facts, and with `mend` repair them; return the faults and the condition of Redis."""

    def branch(self, older: int, *, idempotency_key: str | None = None) -> Branched:
        """Copy a namespace with every instant shifted into the past, to try out decay; the original does not change.

        Repeating it copies nothing twice.
        """

    def branches(self, everywhere: bool = False) -> Branches:
        """Return the branches of a namespace by name; making an incomplete branch again completes it."""

    def drop_branch(self, older: int | None = None, *, idempotency_key: str | None = None) -> BranchesDropped:
        """Erase all branches of a namespace, the one of an age, or the given branch."""

    def settings(
        self,
        set: Mapping[str, Any] | None = None,
        *,
        unset: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> NamespaceSettings:
        """Set and unset settings of a namespace by their paths; they apply from the next pass on.

        The answer has the effective settings and the namespace's own.
        """

    def shards(self, *, idempotency_key: str | None = None) -> Shards:
        """Return the shards, the schemas that namespaces are spread over, with the sizes of all that is in them."""

    def move_namespace(self, shard: int, *, idempotency_key: str | None = None) -> NamespaceMoved:
        """Move the namespace to another shard while it is in use; nothing is lost if it is interrupted.

        Large namespaces take minutes: do not wait, and ask for the state of the task. Moving to its own shard does nothing.
        """

    def import_records(self, records: Sequence[Any], *, idempotency_key: str | None = None) -> Imported:
        """Import records of an archive: facts with their past, links and relations."""

    def namespaces(self, prefix: str = "", *, limit: int = 100, idempotency_key: str | None = None) -> Namespaces:
        """Return the names of namespaces in order."""

    def system_time_series(self, days: int = 14, *, idempotency_key: str | None = None) -> SystemTimeSeries:
        """Return the time series of queue lengths and of the latency of writes."""

class AsyncOperations:
    """Every operation as a method, to be awaited."""

    options: ClassVar[tuple[str, ...]]

    async def _perform(
        self, operation: Operation, given: dict[str, Any], idempotency_key: str | None = None
    ) -> Any: ...
    async def store(
        self,
        text: str,
        *,
        id: UUID | str | None = None,
        kind: Kind = "semantic",
        durability: Durability | None = None,
        session: str | int | None = None,
        turn: int | None = None,
        role: Role | None = None,
        source_date: datetime | str | None = None,
        valid_from: datetime | str | None = None,
        valid_until: datetime | str | None = None,
        created_at: datetime | str | None = None,
        last_seen_at: datetime | str | None = None,
        category: str | None = None,
        entity: str | None = None,
        key: str | None = None,
        value: str | None = None,
        summary: str | None = None,
        source: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        importance: float = 0.5,
        salience: float = 0.5,
        strength: float | None = None,
        coactivations: int = 0,
        confidence: float = 1.0,
        decay_class: DecayClass | None = None,
        decay_class_source: ClassSource | None = None,
        supersedes: UUID | str | None = None,
        again: bool = False,
        apart: bool = False,
        touch: bool = True,
        classify: bool = True,
        count_turns: bool = True,
        idempotency_key: str | None = None,
    ) -> Stored:
        """Store one fact; a known fact counts as used, and its lifetime starts again."""

    async def store_many(
        self,
        facts: Sequence[NewFact | str | Mapping[str, Any]],
        *,
        touch: bool = True,
        classify: bool = True,
        count_turns: bool = True,
        idempotency_key: str | None = None,
    ) -> StoredMany:
        """Store many facts as one task, each with its own answer in order; an invalid one does not affect others."""

    async def remember(
        self,
        messages: Sequence[Any],
        *,
        session: str | int | None = None,
        source: str | None = None,
        touch: bool = False,
        classify: bool = True,
        count_turns: bool = True,
        idempotency_key: str | None = None,
    ) -> Remembered:
        """Store the messages of a conversation as turns; known ones are not stored again.

        So the whole conversation may be given each time. Tool calls and their results become turns of the role `tool`.
        System instructions and injected contexts are left out.
        """

    async def edit(
        self,
        id: UUID | str,
        *,
        category: str | None = None,
        entity: str | None = None,
        key: str | None = None,
        value: str | None = None,
        summary: str | None = None,
        source: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        importance: float | None = None,
        confidence: float | None = None,
        decay_class: DecayClass | None = None,
        role: Role | None = None,
        valid_from: datetime | str | None = None,
        valid_until: datetime | str | None = None,
        idempotency_key: str | None = None,
    ) -> Edited:
        """Change the fields of a fact except its text; its history keeps the earlier values.

        Omitted fields stay, null removes. A new decay class or confidence restarts its lifetime.
        """

    async def recall(
        self,
        query: str,
        *,
        deep: bool = False,
        limit: int = 10,
        min_relevance: float | None = None,
        tag: str | None = None,
        category: str | None = None,
        kind: Kind | None = None,
        role: Role | None = None,
        pinned: bool | None = None,
        entity: str | None = None,
        key: str | None = None,
        session: str | int | None = None,
        source: str | None = None,
        tier: Tier | None = None,
        documents: bool = True,
        namespaces: Sequence[str] | None = None,
        explain: bool = False,
        why: UUID | str | None = None,
        as_of: datetime | str | None = None,
        known_as_of: datetime | str | None = None,
        touch: bool = True,
    ) -> Recalled:
        """Find the facts that best match a question, by words and by meaning.

        This counts as use and strengthens the facts, unless `touch` is false or the question is about the past.
        """

    async def recall_many(self, queries: Sequence[Recall | str | Mapping[str, Any]]) -> RecalledMany:
        """Answer many questions as one task, each with its own answer in order; an invalid one does not affect others."""

    async def lookup(
        self,
        entity: str,
        *,
        key: str | None = None,
        tag: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        as_of: datetime | str | None = None,
        known_as_of: datetime | str | None = None,
        touch: bool = True,
    ) -> LookedUp:
        """Return the facts about an entity, or one key of it, most confident first, then newest.

        This needs no embedding. It counts as use and strengthens the facts, unless `touch` is false.
        """

    async def context(
        self,
        query: str,
        *,
        deep: bool = False,
        limit: int = 10,
        max_tokens: int | None = None,
        format: Literal["full", "short", "minimal"] | None = None,
        dates: bool | None = None,
        order: Literal["rank", "stable"] | None = None,
        summary_threshold: int | None = None,
        prefer_long_term: bool | None = None,
        use_importance_recency: bool | None = None,
        min_similarity: float | None = None,
        min_relevance: float | None = None,
        entity_lookup: bool | None = None,
        entities: Sequence[str] | None = None,
        documents: bool = False,
        explain: bool = False,
        touch: bool = True,
        tag: str | None = None,
        category: str | None = None,
        kind: Kind | None = None,
        role: Role | None = None,
        pinned: bool | None = None,
        entity: str | None = None,
        key: str | None = None,
        session: str | int | None = None,
        source: str | None = None,
        tier: Tier | None = None,
        namespaces: Sequence[str] | None = None,
    ) -> Injected:
        """Return a block of matching facts as text for a prompt; it counts as use of the facts in it."""

    async def fact(self, id: UUID | str) -> Fact:
        """Return a fact; this does not count as use."""

    async def facts(
        self,
        limit: int = 100,
        *,
        before: UUID | str | None = None,
        offset: int = 0,
        ids: Sequence[UUID | str] | None = None,
        cursor: str | None = None,
        tag: str | None = None,
        category: str | None = None,
        kind: Kind | None = None,
        role: Role | None = None,
        pinned: bool | None = None,
        entity: str | None = None,
        key: str | None = None,
        session: str | int | None = None,
        source: str | None = None,
        tier: Tier | None = None,
        documents: bool = True,
    ) -> Facts:
        """Return the facts of `ids`, in order, or a page of all facts that pass the filters, newest first.

        This does not count as use.
        """

    async def history(
        self, id: UUID | str, *, limit: int | None = None, cursor: str | None = None, links: bool = True
    ) -> History:
        """Return the events of a fact, live or forgotten, oldest first."""

    async def used(self, ids: Sequence[UUID | str], *, idempotency_key: str | None = None) -> Used:
        """Report which recalled facts were really used; these are strengthened once more and confirmed."""

    async def reinforce(self, id: UUID | str, *, boost: float = 0.2, idempotency_key: str | None = None) -> Reinforced:
        """Strengthen a fact that proved true or useful, and confirm it, so that it fades later."""

    async def pin(
        self,
        id: UUID | str,
        *,
        until: datetime | str | None = None,
        off: bool = False,
        idempotency_key: str | None = None,
    ) -> Pinned:
        """Pin a fact without end or until an instant: it neither fades nor ends."""

    async def forget(
        self,
        ids: Sequence[UUID | str] | None = None,
        *,
        purge: bool = False,
        entity: str | None = None,
        key: str | None = None,
        tag: str | None = None,
        category: str | None = None,
        session: str | int | None = None,
        source: str | None = None,
        query: str | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> Forgot:
        """Forget facts because their owner asks for it: by ids, or all that fit a subject, also superseded and ended ones.

        Until they are purged, they can be restored, all of them by the `run` of the answer.
        """

    async def forgotten(
        self,
        limit: int = 100,
        *,
        cursor: str | None = None,
        asked: bool = True,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        reason: Reason | None = None,
        run: UUID | str | None = None,
    ) -> Forgotten:
        """Return forgotten facts that can be restored, newest first, each with its reason and the run that forgot it."""

    async def restore(
        self,
        ids: Sequence[UUID | str] | None = None,
        *,
        dry_run: bool = False,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        reason: Reason | None = None,
        run: UUID | str | None = None,
        idempotency_key: str | None = None,
    ) -> Restored:
        """Restore facts by their ids, or all that were forgotten in a period, for a reason or by a run.

        A time or a run alone matches what ended by itself; give `reason` for what was forgotten on request. What ended by
        itself and is restored again is pinned. Interrupted, it continues when it is asked again.
        """

    async def held(self, limit: int = 100, *, cursor: str | None = None) -> HeldFacts:
        """Return facts that have ended but stay visible because of the forget limit, by the time when they ended."""

    async def let_go(
        self, ids: Sequence[UUID | str] | None = None, *, everything: bool = False, idempotency_key: str | None = None
    ) -> Decided:
        """Forget held facts, which can be restored. If `left` is not 0, repeat the call for the rest."""

    async def keep(
        self, ids: Sequence[UUID | str] | None = None, *, everything: bool = False, idempotency_key: str | None = None
    ) -> Decided:
        """Keep facts that are held or end soon, as if they had been stored now.

        If `left` is not 0, repeat the call for the rest.
        """

    async def contradictions(self, limit: int = 100, *, cursor: str | None = None) -> Contradictions:
        """Return pairs of facts with one entity and key but different values, newest pair first."""

    async def resolve(
        self,
        ids: Sequence[UUID | str],
        *,
        keep: UUID | str | None = None,
        both: bool = False,
        idempotency_key: str | None = None,
    ) -> Resolved:
        """Resolve a contradiction: one fact supersedes the others, or both of two are accepted."""

    async def link(
        self,
        source: UUID | str,
        target: UUID | str,
        type: Literal["SUPERSEDES", "UPDATES", "CAUSED_BY", "PART_OF", "RELATED_TO", "DEPENDS_ON"],
        *,
        strength: float = 1.0,
        idempotency_key: str | None = None,
    ) -> Linked:
        """Link two facts, or change their link's strength: if one is recalled, the other is found too."""

    async def unlink(
        self,
        source: UUID | str,
        target: UUID | str,
        *,
        type: Literal["SUPERSEDES", "UPDATES", "CAUSED_BY", "PART_OF", "RELATED_TO", "DEPENDS_ON"] | None = None,
        idempotency_key: str | None = None,
    ) -> Removed:
        """Remove the links between two facts, of one type or all; the facts stay."""

    async def relate(
        self,
        source: str,
        target: str,
        type: str,
        *,
        weight: float | None = None,
        pinned: bool | None = None,
        last_observed: datetime | str | None = None,
        idempotency_key: str | None = None,
    ) -> Edge:
        """Record that an entity is related to another; a known relation counts as observed again.

        Its weight halves every 90 days (EBB_RELATION_HALF_LIFE) unless it is observed again or pinned.
        """

    async def unrelate(self, source: str, target: str, type: str, *, idempotency_key: str | None = None) -> Removed:
        """Delete a relation."""

    async def relations(
        self, decayed: bool | None = False, *, entity: str | None = None, limit: int = 1000, cursor: str | None = None
    ) -> Relations:
        """Return relations with their current weights, strongest first: those in use, or those below the minimum weight."""

    async def decay_relations(
        self, dry_run: bool = False, *, everywhere: bool = False, idempotency_key: str | None = None
    ) -> RelationsDecayed:
        """Update the stored weights of relations, or report what would change."""

    async def stats(self) -> Stats:
        """Return the numbers of facts by tier, fidelity and decay class, and of due facts."""

    async def forecast(
        self,
        days: int = 7,
        *,
        shown: int = 3,
        set: Sequence[str] | None = None,
        ending: int | None = None,
        by: Literal["value", "date"] = "date",
    ) -> Forecast:
        """Return what passes will do on each of the coming days, if nothing is used until then.

        With `set` the forecast is for other settings; nothing is changed.
        """

    async def timeline(self, entity: str, key: str, *, limit: int = 100, cursor: str | None = None) -> Timeline:
        """Return the values of a property of an entity over time, with their speakers, earliest first.

        Superseded and ended facts are included, facts forgotten on request are not. This does not count as use.
        """

    async def time_series(self, days: int = 14) -> TimeSeries:
        """Return the time series of the namespace's numbers of facts."""

    async def curve(self, id: UUID | str) -> Curve:
        """Return the forgetting curve of a fact: how it faded, was used, and will fade."""

    async def neighbours(self, id: UUID | str, *, most: int = 20) -> Neighbours:
        """Return the facts with the strongest links to a fact, and the links among them."""

    async def put_item(
        self,
        path: Sequence[str],
        key: str,
        document: str,
        *,
        text: str | None = None,
        ttl: float | None = None,
        idempotency_key: str | None = None,
    ) -> Put:
        """Store a document under a path and key, replacing an existing one.

        It is found by its `text`, if it has one. With a `ttl` it ends after that time without use; else it stays.
        """

    async def put_items(
        self, items: Sequence[NewItem | Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> PutMany:
        """Store many documents as one task, each replacing an existing one; no path and key may occur twice."""

    async def items(
        self,
        path: Sequence[str] = ...,
        *,
        key: str | None = None,
        query: str | None = None,
        filter: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = True,
    ) -> Items:
        """Return items below a path, newest first, or the best for a query, or the one with a key."""

    async def many_items(self, queries: Sequence[ItemQuery | Mapping[str, Any]]) -> ItemPages:
        """Answer many queries for items as one task, each with its own page, in order."""

    async def drop_item(self, path: Sequence[str], key: str, *, idempotency_key: str | None = None) -> Dropped:
        """Forget the item under a path and key."""

    async def item_paths(self) -> ItemPaths:
        """Return every path that has items."""

    async def index(
        self,
        path: str,
        chunks: Sequence[Mapping[str, str]],
        digest: str,
        *,
        folder: str = "",
        idempotency_key: str | None = None,
    ) -> Indexed:
        """Replace the chunks of a file by those read at `now`.

        If a later reading is stored already, nothing is done, and the answer says `outdated`.
        """

    async def upload(self, path: str, text: str, *, idempotency_key: str | None = None) -> Indexed:
        """Keep a Markdown text as a file: it is cut into chunks, which take the place of those of its path."""

    async def unindex(self, paths: Sequence[str], *, idempotency_key: str | None = None) -> Unindexed:
        """Erase the chunks of removed files."""

    async def documents(self, name: str) -> Documents:
        """Return the indexed files of a folder, each with the digest of its last reading."""

    async def register_folder(
        self, path: str, *, name: str | None = None, idempotency_key: str | None = None
    ) -> RegisteredFolder:
        """Register a folder, whose Markdown files workers keep indexed from then on.

        Workers must see the folder under this path, and it must be below one that `EBB_FOLDERS` names.
        """

    async def unregister_folder(self, name: str, *, idempotency_key: str | None = None) -> UnregisteredFolder:
        """Stop reading a registered folder; what was indexed stays."""

    async def folders(self) -> RegisteredFolders:
        """Return the registered folders, when each was last read, and what went wrong in the latest attempt."""

    async def decay(
        self,
        dry_run: bool = False,
        *,
        force: bool = False,
        everywhere: bool = False,
        now: datetime | str | None = None,
        idempotency_key: str | None = None,
    ) -> Decayed:
        """Run one pass over due facts, which cool, lose dimensions or are forgotten; return its counters at the end."""

    async def prune(
        self,
        hard: bool = True,
        *,
        soft: bool = True,
        dry_run: bool = False,
        everywhere: bool = False,
        now: datetime | str | None = None,
        idempotency_key: str | None = None,
    ) -> Pruned:
        """Forget expired facts (hard), and halve the confidence of those near their expiry or forget them (soft)."""

    async def backfill(
        self,
        dry_run: bool = False,
        *,
        prune: bool = False,
        everywhere: bool = False,
        idempotency_key: str | None = None,
    ) -> Backfilled:
        """Give facts whose decay class was not chosen the one that their words have today.

        Lifetimes begin when a fact was last confirmed. What would be over by its new lifetime keeps what it has, unless
        `prune` is true.
        """

    async def runs(self, limit: int = 20, *, before: datetime | str | None = None, everything: bool = False) -> Runs:
        """Return the latest passes over a namespace's facts, newest first, or with `everything` all passes.

        The counts of passes over all namespaces are included only with `everything`.
        """

    async def consolidate(
        self, apply: bool = False, *, force: bool = False, limit: int = 100, idempotency_key: str | None = None
    ) -> Consolidated:
        """Return near-duplicates; with `apply` they are merged, which `restore` undoes.

        With `everywhere` each namespace with new facts gets a run of its own.
        """

    async def janitor(self, now: datetime | str | None = None, *, idempotency_key: str | None = None) -> Janitor:
        """Run the janitor: cull facts of low confidence and age episodes; return the changes since its last run.

        With `everywhere` each namespace with due facts gets a run of its own.
        """

    async def janitor_snapshot(self) -> Janitor:
        """Return the report of the janitor's last run; `totalRuns` is 0 before the first."""

    async def purge(
        self, dry_run: bool = False, *, everywhere: bool = False, idempotency_key: str | None = None
    ) -> Purged:
        """Erase facts that were forgotten on request EBB_RETENTION_DAYS ago; repeat the call while some are `left`.

        Facts that decay forgot are moved to deep memory, and erased from there after EBB_DEEP_DAYS, by default never.
        """

    async def doctor(
        self, mend: bool = False, *, everywhere: bool = False, idempotency_key: str | None = None
    ) -> Examined:
        """Examine facts, and with `mend` repair them; return the faults and the condition of Redis."""

    async def branch(self, older: int, *, idempotency_key: str | None = None) -> Branched:
        """Copy a namespace with every instant shifted into the past, to try out decay; the original does not change.

        Repeating it copies nothing twice.
        """

    async def branches(self, everywhere: bool = False) -> Branches:
        """Return the branches of a namespace by name; making an incomplete branch again completes it."""

    async def drop_branch(self, older: int | None = None, *, idempotency_key: str | None = None) -> BranchesDropped:
        """Erase all branches of a namespace, the one of an age, or the given branch."""

    async def settings(
        self,
        set: Mapping[str, Any] | None = None,
        *,
        unset: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> NamespaceSettings:
        """Set and unset settings of a namespace by their paths; they apply from the next pass on.

        The answer has the effective settings and the namespace's own.
        """

    async def shards(self, *, idempotency_key: str | None = None) -> Shards:
        """Return the shards, the schemas that namespaces are spread over, with the sizes of all that is in them."""

    async def move_namespace(self, shard: int, *, idempotency_key: str | None = None) -> NamespaceMoved:
        """Move the namespace to another shard while it is in use; nothing is lost if it is interrupted.

        Large namespaces take minutes: do not wait, and ask for the state of the task. Moving to its own shard does nothing.
        """

    async def import_records(self, records: Sequence[Any], *, idempotency_key: str | None = None) -> Imported:
        """Import records of an archive: facts with their past, links and relations."""

    async def namespaces(self, prefix: str = "", *, limit: int = 100, idempotency_key: str | None = None) -> Namespaces:
        """Return the names of namespaces in order."""

    async def system_time_series(self, days: int = 14, *, idempotency_key: str | None = None) -> SystemTimeSeries:
        """Return the time series of queue lengths and of the latency of writes."""

class JsonOperations:
    """Every operation as a method, with plain JSON as its answer."""

    options: ClassVar[tuple[str, ...]]

    store: Callable[..., dict[str, Any]]
    store_many: Callable[..., dict[str, Any]]
    remember: Callable[..., dict[str, Any]]
    edit: Callable[..., dict[str, Any]]
    recall: Callable[..., dict[str, Any]]
    recall_many: Callable[..., dict[str, Any]]
    lookup: Callable[..., dict[str, Any]]
    context: Callable[..., dict[str, Any]]
    fact: Callable[..., dict[str, Any]]
    facts: Callable[..., dict[str, Any]]
    history: Callable[..., dict[str, Any]]
    used: Callable[..., dict[str, Any]]
    reinforce: Callable[..., dict[str, Any]]
    pin: Callable[..., dict[str, Any]]
    forget: Callable[..., dict[str, Any]]
    forgotten: Callable[..., dict[str, Any]]
    restore: Callable[..., dict[str, Any]]
    held: Callable[..., dict[str, Any]]
    let_go: Callable[..., dict[str, Any]]
    keep: Callable[..., dict[str, Any]]
    contradictions: Callable[..., dict[str, Any]]
    resolve: Callable[..., dict[str, Any]]
    link: Callable[..., dict[str, Any]]
    unlink: Callable[..., dict[str, Any]]
    relate: Callable[..., dict[str, Any]]
    unrelate: Callable[..., dict[str, Any]]
    relations: Callable[..., dict[str, Any]]
    decay_relations: Callable[..., dict[str, Any]]
    stats: Callable[..., dict[str, Any]]
    forecast: Callable[..., dict[str, Any]]
    timeline: Callable[..., dict[str, Any]]
    time_series: Callable[..., dict[str, Any]]
    curve: Callable[..., dict[str, Any]]
    neighbours: Callable[..., dict[str, Any]]
    put_item: Callable[..., dict[str, Any]]
    put_items: Callable[..., dict[str, Any]]
    items: Callable[..., dict[str, Any]]
    many_items: Callable[..., dict[str, Any]]
    drop_item: Callable[..., dict[str, Any]]
    item_paths: Callable[..., dict[str, Any]]
    index: Callable[..., dict[str, Any]]
    upload: Callable[..., dict[str, Any]]
    unindex: Callable[..., dict[str, Any]]
    documents: Callable[..., dict[str, Any]]
    register_folder: Callable[..., dict[str, Any]]
    unregister_folder: Callable[..., dict[str, Any]]
    folders: Callable[..., dict[str, Any]]
    decay: Callable[..., dict[str, Any]]
    prune: Callable[..., dict[str, Any]]
    backfill: Callable[..., dict[str, Any]]
    runs: Callable[..., dict[str, Any]]
    consolidate: Callable[..., dict[str, Any]]
    janitor: Callable[..., dict[str, Any]]
    janitor_snapshot: Callable[..., dict[str, Any]]
    purge: Callable[..., dict[str, Any]]
    doctor: Callable[..., dict[str, Any]]
    branch: Callable[..., dict[str, Any]]
    branches: Callable[..., dict[str, Any]]
    drop_branch: Callable[..., dict[str, Any]]
    settings: Callable[..., dict[str, Any]]
    shards: Callable[..., dict[str, Any]]
    move_namespace: Callable[..., dict[str, Any]]
    import_records: Callable[..., dict[str, Any]]
    namespaces: Callable[..., dict[str, Any]]
    system_time_series: Callable[..., dict[str, Any]]
