"""Uses: which touches, reinforcements and statements were counted lately, so that no second delivery counts again."""

from uuid import UUID

from workers.storage.connection import Connection

# A second delivery that runs at the same time waits here until the first one commits or rolls back.
CLAIM = """
    insert into uses (namespace, id) values (%(namespace)s, %(id)s)
    on conflict do nothing
    returning id
"""

# A day before the newest use, not before now: after an outage, however long, what was delivered just before it may be
# delivered again.
DROP_OLD = """
    delete from uses where counted_at < (select max(counted_at) from uses) - interval '1 day'
"""


def claim(db: Connection, namespace: int, id_: UUID) -> bool:
    """Note that a use is counted in this transaction; return false if it was counted before, within the last day."""
    return db.execute(CLAIM, {"namespace": namespace, "id": id_}).fetchone() is not None


def drop_old(db: Connection) -> int:
    """Delete the notes of uses that are a day older than the newest one; return how many."""
    return db.execute(DROP_OLD).rowcount
