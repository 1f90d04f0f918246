"""Keys are copied to Redis by one process at a time, so that an older copy never replaces a newer one."""

from uuid import UUID

import pytest
from memory import Memory, day

from workers.admin import keys
from workers.coordination import key_ring
from workers.storage import api_keys
from workers.storage.connection import transaction

TRY_LOCK = "select pg_try_advisory_xact_lock(%s)"


def test_nothing_else_publishes_until_the_copy_is_written(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    copy, free = key_ring.copy, list[bool]()

    def observed(*given: object) -> None:
        with transaction(memory.context.database_url) as db:
            free.extend(db.execute(TRY_LOCK, [api_keys.PUBLISHING]).fetchone() or ())
        copy(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(key_ring, "copy", observed)
    made = keys.create(memory.context, "mira", ["read"], "", day(0))
    keys.revoke(memory.context, "mira", UUID(str(made.id)), day(1))
    assert free == [False, False]
