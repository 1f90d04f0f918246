"""Branch: a copy of a namespace with all instants shifted into the past, to try out decay without changing anything."""

from datetime import datetime, timedelta
from uuid import UUID

from workers.admin import keys
from workers.context import Context
from workers.coordination import contexts, signals
from workers.errors import InvalidInputError, NotFoundError, UnavailableError
from workers.storage import branches, deep, namespaces, shards, signatures, tallies, vectors, words
from workers.storage.branches import Branch
from workers.storage.connection import Connection, connect, lift_limits, reading, transaction

START = UUID(int=0)
BATCH = 500
"""Facts copied or deleted in one transaction."""

LONGEST = 128
"""Maximum characters of a namespace's name."""


class StoppedError(UnavailableError):
    """A branch was completed or dropped by another task."""


def name_of(original: str, days: int) -> str:
    """Return the name of a namespace's branch of an age in days.

    Raises:
        InvalidInputError: it would be too long.
    """
    name = f"{original}-older-{days}d"
    if len(name) > LONGEST:
        raise InvalidInputError(
            f"namespace: the branch {name!r} would have {len(name)} characters; a name may have {LONGEST}. "
            "Import an export of it under a shorter name, and branch that."
        )
    return name


def begin(context: Context, original: str, days: int, *, is_new: bool = True) -> Branch:
    """Return the branch of a namespace of an age in days; add it, without facts, if it is missing and `is_new`.

    Raises:
        NotFoundError: there is no such namespace, or the branch was dropped since its making began.
        InvalidInputError: it is a branch itself, or the name of the branch is taken by another namespace.
        UnavailableError: the branch is being dropped.
    """
    name, age = name_of(original, days), timedelta(days=days)
    with transaction(context.database_url) as db:
        source = branches.find(db, original)
        if source is None:
            raise NotFoundError(f"namespace: there is no {original!r}; `ebb branch --list` lists branches.")
        if source.original is not None:
            raise InvalidInputError(f"namespace: {original!r} is a branch itself; branch {source.original!r}.")
        branch = branches.find(db, name)
        if branch is None and not is_new:
            raise NotFoundError(f"namespace: the branch {name!r} was dropped while it was made.")
        if branch is None and shards.place_branch(db, name):
            branch = branches.begin(db, original, name, age)
    if branch is None or (branch.original, branch.age) != (original, age):
        raise InvalidInputError(f"namespace: {name!r} is a namespace of its own and no branch; it was left as it is.")
    if branch.dropping:
        raise UnavailableError(f"The branch {name!r} is being dropped: try again, or run `ebb branch --drop` again.")
    return branch


def copy(context: Context, branch: Branch, after: UUID, *, pairs: bool = False) -> UUID | None:
    """Copy the next facts, or with `pairs` their links, contradictions and near-duplicates. Idempotent.

    Returns the id to continue after, if any.

    Raises:
        StoppedError: another task has completed the branch, or drops it.
        SerializationFailure: the embedder or the language was replaced at this very moment.
    """
    with reading(context.database_url) as db:
        original = _original(db, branch)
        ids = branches.following(db, branch.id if pairs else original, after, BATCH)
        if ids and pairs:
            branches.copy_pairs(db, original, branch, ids)
        elif ids:
            branches.copy_facts(db, original, branch, ids)
    return ids[-1] if ids else None


def conclude(context: Context, branch: Branch, now: datetime) -> None:
    """Copy the rows of the namespace as a whole and the facts still missing, and have its words counted. Idempotent."""
    with reading(context.database_url) as db:
        lift_limits(db)  # a million facts in deep memory take minutes
        original = _original(db, branch)
        if missing := branches.missing(db, original, branch):
            branches.copy_facts(db, original, branch, missing)
            branches.copy_pairs(db, original, branch, missing, both_ways=True)
        deep.age(db, branch, branches.copy_namespace_rows(db, original, branch))
        branches.complete(db, branch, now)
    signals.mark_grown(context.redis, branch.name)


def live_and_forgotten(context: Context, branch: Branch) -> tuple[int, int]:
    """Return the numbers of live and forgotten facts of a branch, whose shard may be another than the caller's."""
    with context.at(branch.name), transaction(context.database_url) as db:
        return tallies.live(db, branch.id), tallies.forgotten(db, branch.id)


def listed(context: Context, original: str | None) -> list[Branch]:
    """Return the branches of one namespace, or all."""
    found = []
    for _ in context.each_shard() if original is None else [0]:
        with transaction(context.database_url) as db:
            found += branches.listed(db, original)
    return sorted((one for one in found if " " not in one.name), key=lambda one: one.name)


def to_drop(context: Context, name: str, days: int | None) -> list[Branch]:
    """Return the branch with this name, or the branches of the namespace with this name, of one age or all."""
    with transaction(context.database_url) as db:
        own = branches.find(db, name)
        if own is not None and own.original is not None and days is None:
            return [own]
        found = branches.listed(db, name)
    return [one for one in found if days is None or one.age == timedelta(days=days)]


def drop_facts(context: Context, branch: Branch) -> int:
    """Delete the next facts of a branch; return how many, 0 at the end."""
    with transaction(context.database_url) as db:
        return branches.drop_facts(db, branch, BATCH)


def drop(context: Context, branch: Branch) -> None:
    """Delete a branch whose facts are deleted: its rows, regrets, vector index and keys. Idempotent."""
    with transaction(context.database_url) as db:
        lift_limits(db)
        tallies.wait_for_settling(db)
        branches.drop(db, branch)
        shards.forget(db, branch.name)
    keys.publish_everywhere(context)
    signals.count_elsewhere(context.redis, signals.REGRETS, branch.name)
    context.redis.delete(f"{contexts.KEY}{branch.name}")
    with connect(context.direct_database_url, autocommit=True) as db:
        name = signatures.index_name(branch.id)
        if name in signatures.indexes(db) and signatures.claim_building(db):
            db.execute("set statement_timeout = 0; set lock_timeout = 0")
            signatures.drop_index(db, name)


def _original(db: Connection, branch: Branch) -> int:
    """Return the id of a branch's original.

    The branch is locked so that it is not dropped meanwhile, the embedder so that vectors are not cleared, and the
    language so that words are not rebuilt.
    """
    vectors.hold_embedder(db)
    words.hold_language(db)
    if not branches.hold(db, branch):
        raise StoppedError(f"The branch {branch.name!r} was completed or dropped at this very moment: try again.")
    found = None if branch.original is None else namespaces.find(db, branch.original)
    if found is None:
        raise NotFoundError(f"namespace: {branch.original!r} is gone; drop its branch {branch.name!r}.")
    return found.id
