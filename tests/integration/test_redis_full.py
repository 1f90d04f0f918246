"""A full Redis: callers get a clear error, and workers can still process its messages."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer

import pytest
import server_process
from kombu import Connection
from kombu.exceptions import OperationalError
from memory import Memory
from redis import Redis
from redis.exceptions import AuthenticationError, OutOfMemoryError, ResponseError
from redis.sentinel import MasterNotFoundError

from api.client import Client
from api.up import servers
from workers.coordination import bulk, outbox, redis, signals, transport
from workers.coordination.outbox import Entry
from workers.coordination.redis import explain, is_refusal, own_keys
from workers.errors import BusyError, UnavailableError

MIB = 1024**2
ADVICE = r"Redis is full and refuses writes.*maxmemory.*`ebb doctor`"


@pytest.fixture(scope="module")
def server(server_folder: Path) -> Iterator[servers.Redis]:
    server = servers.Redis(data=server_folder / "small", port=servers.free_port())
    servers.prepare_redis(server)
    log = server_folder / "small.log"
    with server_process.running(server.command(), log, lambda: servers.redis_fault(server.url()), signal.SIGTERM):
        yield server


@pytest.fixture
def small(server: servers.Redis) -> Iterator[Redis]:
    """Return connections to a server with a limit of two megabytes."""
    with Redis.from_url(server.url()) as client:
        client.flushall()
        client.config_set("maxmemory", client.info("memory")["used_memory"] + 2 * MIB)
        client.config_set("maxmemory-policy", "noeviction")
        yield client
        client.config_set("maxmemory", 0)


def fill(client: Redis, most: float = 1.0) -> None:
    """Fill it up to a share of its limit; a full one stays full when Redis frees the buffers of connections."""
    limit = int(client.config_get("maxmemory")["maxmemory"])
    try:
        while client.info("memory")["used_memory"] < limit * most:
            client.rpush("ballast", *["x" * 1_000] * 10)
    except OutOfMemoryError:
        pass
    if most == 1:
        client.config_set("maxmemory", limit - MIB)


def test_a_reply_to_remote_control_that_is_refused_raises_nothing(small: Redis, server: servers.Redis) -> None:
    with Connection(server.url(), transport=transport.Transport) as connection:
        replies = transport.Replies("pidbox")(connection)
        asking = replies.get_reply_queue()(connection.default_channel)
        asking.declare()
        fill(small)
        replies._publish_reply({"ok": "pong"}, asking.exchange.name, asking.routing_key, "ticket")
        assert small.llen(asking.name) == 0
        small.config_set("maxmemory", 0)  # `delete` frees memory in the background, so perhaps too late
        replies._publish_reply({"ok": "pong"}, asking.exchange.name, asking.routing_key, "ticket")
        assert small.llen(asking.name) == 1


def test_every_way_of_writing_says_that_redis_is_full_and_what_to_do(small: Redis, server: servers.Redis) -> None:
    fill(small)
    client = Client(server.url(), namespace="mira")
    for write in (
        lambda: client.store("An otter."),
        lambda: client.send("memory.store", {"text": "An otter."}),
        lambda: client.recall("An otter?"),
    ):
        with pytest.raises(UnavailableError, match=ADVICE):
            write()
    with pytest.raises(BusyError, match=r"more than 90%.*raise `maxmemory`"):
        client.store("An otter.", wait=False)
    with own_keys(server.url()) as keys, pytest.raises(UnavailableError, match=ADVICE):
        signals.try_write(keys)
    client.close()


def test_a_pipeline_says_it_too(small: Redis, server: servers.Redis) -> None:
    fill(small)
    with own_keys(server.url()) as keys, keys.pipeline() as pipeline:
        pipeline.set("a", 1)
        with pytest.raises(UnavailableError, match=ADVICE):
            pipeline.execute()


def test_a_nearly_full_redis_accepts_nothing_without_waiting_so_that_workers_have_room(
    small: Redis, server: servers.Redis
) -> None:
    fill(small, 0.93)
    client = Client(server.url(), namespace="mira")
    with pytest.raises(BusyError, match=r"more than 90%.*raise `maxmemory`"):
        client.store("An otter.", wait=False)
    assert small.llen("store") == 0
    small.delete("ballast")
    while redis.condition(small).is_nearly_full():  # memory is freed in the background
        time.sleep(0.01)
    client.store("An otter.", wait=False)
    assert small.llen("store") == 1
    client.close()


def test_a_full_redis_lets_go_of_what_is_done(small: Redis, server: servers.Redis) -> None:
    with own_keys(server.url()) as keys:
        for id_ in "ab":
            outbox.put(keys, Entry(id_, "memory.store", {}, 0.0))
        fill(small)
        outbox.remove(keys, "default", "a")
        assert [entry.id for entry in outbox.entries(keys)] == ["b"]
        signals.mark_grown(keys, "default")
        now = datetime.now(UTC)
        assert signals.first_seen(keys, "a", now) == now


def test_with_a_full_redis_facts_that_ended_are_recalled_too(
    small: Redis, server: servers.Redis, memory: Memory
) -> None:
    id_ = memory.add("An otter.", decay_class="checkpoint")
    memory.decay(30)
    fill(small)
    assert memory.having(redis_url=server.url()).ids("otter", at=31, deep=True) == [id_]


def test_a_full_redis_still_delivers_and_restores_later(small: Redis, server: servers.Redis) -> None:
    with Connection(server.url(), transport=transport.Transport) as connection:
        queue, channel = connection.SimpleQueue("otters"), connection.default_channel
        queue.put("An otter.")
        fill(small)
        message = queue.get(timeout=10)
        assert message.payload == "An otter."
        assert small.hlen(channel.unacked_key) == 0
        channel.qos.restore_visible()
        message.ack()
        small.delete("ballast")
        channel.qos.restore_visible(interval=1)
        queue.close()


def test_the_condition_reports_memory_file_and_eviction_and_warns(small: Redis) -> None:
    well = redis.condition(small)
    assert well.server.startswith("Valkey ")
    assert well.memory_limit - well.memory_used > MIB
    assert (well.append_only_file, well.fsync, well.eviction) == (True, "everysec", "noeviction")
    assert well.warnings() == []
    assert well.answer()["power_failure_loses"] == "about the last second"
    fill(small)
    small.config_set("maxmemory-policy", "volatile-lru")
    without = replace(redis.condition(small), append_only_file=False)
    said = " ".join(without.warnings())
    for part in ("evict messages", "noeviction", "`appendonly yes`", "raise `maxmemory`"):
        assert part in said
    assert without.loses() == "all that are not stored"


def test_a_full_disk_is_distinguished_from_a_server_that_is_away() -> None:
    unsaved = ResponseError("MISCONF Errors writing to the AOF file: No space left on device")
    assert is_refusal(unsaved)
    assert "make room on its disk" in explain(unsaved)
    assert not is_refusal(ResponseError("WRONGTYPE Operation against a key"))
    clustered = ResponseError("SELECT is not allowed in cluster mode")
    assert is_refusal(clustered)
    assert "Redis Cluster cannot be used" in explain(clustered)
    assert "does not answer" in explain(ConnectionError("Connection refused"))


def test_a_lack_of_replicas_is_distinguished_too(server: servers.Redis) -> None:
    with own_keys(server.url()) as keys:
        keys.config_set("min-replicas-to-write", 1)
        try:
            with pytest.raises(redis.RefusedError, match="fewer replicas follow it than its `min-replicas-to-write`"):
                keys.set("otter", "1")
            with pytest.raises(redis.RefusedError, match="fewer replicas"):
                keys.eval("return redis.call('set', KEYS[1], '1')", 1, "otter")
        finally:
            keys.config_set("min-replicas-to-write", 0)


def test_a_request_that_is_done_is_answered_although_redis_refuses_to_note_its_end(server: servers.Redis) -> None:
    with Client(server.url()) as client, own_keys(server.url()) as keys:
        try:
            with client._under_way("memory.recall", "a task's id", 10.0, interactive=True):
                keys.config_set("min-replicas-to-write", 1)
        finally:
            keys.config_set("min-replicas-to-write", 0)


@pytest.mark.parametrize("login", ["", ":another@", "mira:another@"])
def test_a_wrong_password_is_distinguished_from_a_server_that_is_away(server: servers.Redis, login: str) -> None:
    before, _, host = server.url().rpartition("@")
    url = f"{before.partition('//')[0]}//{login}{host}"
    with own_keys(url) as keys, pytest.raises(AuthenticationError) as raised:
        keys.ping()
    assert explain(raised.value).startswith("Redis refuses the user or password of EBB_REDIS_URL: correct it")


@pytest.mark.parametrize("transaction", [False, True])
def test_a_full_disk_is_reported_from_a_pipeline_too(server: servers.Redis, transaction: bool) -> None:
    with own_keys(server.url()) as keys, keys.pipeline(transaction=transaction) as pipeline:
        pipeline.eval("return redis.error_reply('MISCONF Errors writing to the AOF file')", 0)
        with pytest.raises(
            redis.RefusedError, match=r"cannot save .* It says: MISCONF Errors writing to the AOF file\.$"
        ):
            pipeline.execute()


def test_sentinels_that_are_away_are_reported_in_one_sentence() -> None:
    with pytest.raises(MasterNotFoundError) as away:
        redis.open_redis("sentinel://127.0.0.1:1,127.0.0.1:2/0?master_name=main").ping()
    assert explain(away.value).startswith(
        "Redis does not answer: No master found for 'main' by the Sentinels that answer. See `ebb status`"
    )


def test_sentinels_that_refuse_the_password_are_reported_as_such(server: servers.Redis) -> None:
    fault = servers.redis_fault(f"sentinel://:x@127.0.0.1:{server.port}/0?master_name=main&sentinel_password=wrong")
    assert fault == "the Sentinels refuse their own user or password, `sentinel_username` and `sentinel_password`"


@pytest.fixture
def hanging_up() -> Iterator[tuple[str, list[int]]]:
    """Return the address of a Sentinel that closes each connection, and the ports that these came from."""
    ports: list[int] = []

    class HangUp(BaseRequestHandler):
        def handle(self) -> None:
            ports.append(self.client_address[1])

    with ThreadingTCPServer(("127.0.0.1", 0), HangUp) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"sentinel://127.0.0.1:{listening.server_address[1]}/0?master_name=main", ports
        listening.shutdown()


def test_a_sentinel_that_is_away_is_asked_once_so_that_the_next_one_is_asked_soon(
    hanging_up: tuple[str, list[int]],
) -> None:
    url, ports = hanging_up
    with closing(Client(url)) as client:
        for asked, tries in (
            (client._own_keys, 1),
            (client._app.backend.client, 1),
            (client._app.connection_for_write().channel, 3),  # kombu begins again twice
        ):
            ports.clear()
            with pytest.raises((MasterNotFoundError, OperationalError)):
                asked.ping() if isinstance(asked, Redis) else asked()
            assert 1 <= len(ports) <= tries


def test_a_slice_that_was_lost_gets_a_slot_again(small: Redis, server: servers.Redis) -> None:
    with own_keys(server.url()) as own:
        bulk.join(own, bulk.Batch("a", "memory.store_many", "mira", {}), [["a fact"]])
        now = 1_800_000_000.0
        lost = bulk.claim(own, now)
        fill(small)
        assert lost == bulk.claim(own, now + bulk.LEASE_SECONDS + 1) != []
