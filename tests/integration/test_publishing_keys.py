"""Keys are copied to Redis by one process at a time, so that an older copy never replaces a newer one."""

from collections.abc import Callable
from unittest.mock import Mock
from uuid import UUID

import pytest
from ebb.broker import database_after
from memory import Memory, day

from workers.admin import branches, keys
from workers.admin import shard_moves as moves
from workers.coordination import key_ring
from workers.coordination.redis import own_keys
from workers.errors import InvalidInputError
from workers.memory.embed import check_embedder
from workers.storage import api_keys, routing, shard_moves, shards
from workers.storage.api_keys import ApiKey
from workers.storage.connection import Connection, transaction

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


@pytest.mark.parametrize("end", [keys.revoke, lambda *key: keys.expire(*key[:-1], day(1.5), key[-1])])
def test_a_key_that_has_ended_is_given_no_other_end(memory: Memory, end: Callable[..., object]) -> None:
    id_ = UUID(str(keys.create(memory.context, "mira", ["read"], "", day(0)).id))
    end(memory.context, "mira", id_, day(1))
    with pytest.raises(InvalidInputError, match="has expired or was revoked"):
        keys.expire(memory.context, "mira", id_, None, day(2))


AWAY = "redis://127.0.0.1:1/0"


@pytest.fixture
def groups(sharded: Memory) -> Memory:
    """Two groups of shards; the Redis of the second does not answer."""
    return sharded.having(brokers=f"{sharded.context.settings.redis_url} {AWAY}", shards=2)


def found(memory: Memory, key: str, url: str = "") -> key_ring.Found:
    with own_keys(url or memory.context.settings.redis_url) as redis:
        return key_ring.look_up(redis, key_ring.digest(key).hex())


def test_a_key_is_shown_and_revoked_while_the_redis_of_another_group_is_away(groups: Memory) -> None:
    made = keys.create(groups.context, "ann", ["read"], None, day(0))
    assert made.unpublished == keys.FOLLOWS.format(1)
    assert found(groups, made.key).grant
    with pytest.raises(keys.UnpublishedError, match="set in the database, but the Redis of group 1"):
        keys.expire(groups.context, "ann", made.id, day(90_000), day(0))
    with pytest.raises(keys.UnpublishedError, match="revoked in the database, but the Redis of group 1"):
        keys.revoke(groups.context, "ann", made.id, day(0))
    assert found(groups, made.key).grant is None


def test_a_key_is_in_the_redis_of_every_group(groups: Memory) -> None:
    second = database_after(groups.context.settings.redis_url, 4)
    both = groups.having(brokers=f"{groups.context.settings.redis_url} {second}")
    made = keys.create(both.context, "ann", ["read"], None, day(0))
    assert made.unpublished is None
    assert found(both, made.key).grant
    assert found(both, made.key, second).grant


def test_keys_are_in_every_redis_after_a_move_and_a_drop(groups: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    own = groups.context.settings.redis_url
    both = groups.having(brokers=f"{own} {database_after(own, 4)}")
    for _ in both.context.each_shard():
        check_embedder(both.context)
    with both.context.at("ann"):
        both.store("Ann waits.", namespace="ann")
        branch = branches.begin(both.context, "ann", 30)
    moved, of_branch = (keys.create(both.context, name, ["read"], None, day(0)) for name in ("ann", branch.name))
    with both.context.at("ann"):
        while branches.drop_facts(both.context, branch):
            pass
        branches.drop(both.context, branch)
    for url in both.context.settings.broker_urls:
        assert found(both, of_branch.key, url).grant is None
        with own_keys(url) as redis:
            redis.delete(key_ring.KEY)
    monkeypatch.setattr(branches, "drop_facts", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        moves.move(both.context, "ann", _shards_of("ann")[1])
    assert all(found(both, moved.key, url).grant for url in both.context.settings.broker_urls)


def test_what_a_killed_move_left_opens_nothing_and_is_deleted(groups: Memory) -> None:
    name, (old, new) = "ann", _shards_of("ann")
    made = keys.create(groups.context, name, ["read"], None, day(0))
    with routing.at(0, 1), transaction(groups.context.database_url) as db:
        db.execute("update directory set shard = %s where name = %s", [new, name])
        source = shards.schema_of(shards.home(db), old)
    keys.publish_everywhere(groups.context)
    assert found(groups, made.key).grant is None
    with routing.at(0, 1), transaction(groups.context.database_url) as db:
        shard_moves.hide(db, name, source)
    with routing.at(old, 2), transaction(groups.context.database_url) as db:
        assert api_keys.every(db) == []
        assert db.execute("select name from namespaces").fetchall() == [(name + shard_moves.LEFT,)]


def test_a_key_whose_namespace_moves_while_keys_are_published_is_among_them(
    groups: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any key in Redis, the HTTP API would be open until the next copy."""
    name = next(one for one in ("ann", "bob", "cid", "dan", "eve") if _shards_of(one)[0] == 1)
    made = keys.create(groups.context, name, ["read"], None, day(0))
    every, moved = api_keys.every, list[str]()

    def overtaken(db: Connection) -> list[ApiKey]:
        read = every(db)
        if not moved:
            moved.append(name)
            with pytest.raises(KeyboardInterrupt):
                moves.move(groups.context, name, 0)
        return read

    monkeypatch.setattr(keys, "publish_everywhere", Mock(side_effect=KeyboardInterrupt))
    monkeypatch.setattr(api_keys, "every", overtaken)
    keys.publish(groups.context)
    assert found(groups, made.key).grant


def _shards_of(name: str) -> tuple[int, int]:
    with routing.at(0, 2):
        old = routing.shard_of_new(name)
    return old, 1 - old
