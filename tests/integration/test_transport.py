"""A channel keeps its client, a closed connection raises Redis' error, and messages are redelivered by Redis' clock."""

import time
from collections import Counter

import pytest
from kombu import Connection
from kombu.transport import redis
from redis.exceptions import ConnectionError as RedisConnectionError

from workers.coordination import transport
from workers.queues import configuration


def test_a_channel_of_a_closed_connection_raises_an_error_of_connections(redis_url: str) -> None:
    connection = Connection(redis_url, transport=transport.Transport)
    channel = connection.default_channel
    connection.close()
    with pytest.raises(RedisConnectionError, match="closed before"):
        channel.basic_ack("a message's tag")
    assert issubclass(RedisConnectionError, connection.connection_errors)


def test_a_channel_makes_a_client_once_for_its_connections(redis_url: str) -> None:
    with Connection(redis_url, transport=transport.Transport) as connection:
        channel = connection.default_channel
        with channel.conn_or_acquire() as first, channel.conn_or_acquire() as second:
            assert first is second
        channel._disconnect_pools()
        with channel.conn_or_acquire() as third:
            assert third is not first
            assert third.ping()


HOUR = 3_600.0


@pytest.mark.parametrize(
    ("at_delivery", "at_look", "patience", "redelivered"),
    [(0, HOUR, 60.0, False), (-HOUR, 0, 60.0, False), (HOUR, 0, 0.0, True), (0, -HOUR, 0.0, True)],
)
def test_a_message_is_redelivered_by_the_clock_of_redis_whatever_those_of_workers_show(
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    at_delivery: float,
    at_look: float,
    patience: float,
    redelivered: bool,
) -> None:
    real, options = time.time, {"visibility_timeout": patience}

    def set_clock(ahead: float) -> None:
        for module in (time, redis):
            monkeypatch.setattr(module, "time", lambda: real() + ahead)

    with Connection(redis_url, transport=transport.Transport, transport_options=options) as connection:
        queue, channel = connection.SimpleQueue("otters"), connection.default_channel
        queue.put("An otter.")
        set_clock(at_delivery)
        message = queue.get(timeout=10)
        set_clock(at_look)
        channel.qos.restore_visible(interval=1)
        assert channel.client.hlen(channel.unacked_key) == (not redelivered)
        message.ack()
        queue.clear()
        queue.close()


def test_what_a_worker_of_another_program_holds_for_long_is_left_to_it(redis_url: str) -> None:
    own = configuration(redis_url)["broker_transport_options"]
    with (
        Connection(redis_url) as others,
        Connection(redis_url, transport=transport.Transport, transport_options=own) as connection,
    ):
        queue, held = others.SimpleQueue("lessons"), others.default_channel
        queue.put("Practise the scales.")
        message = queue.get(timeout=10)
        held.client.zadd(held.unacked_index_key, {message.delivery_tag: 0.0})
        connection.default_channel.qos.restore_visible(interval=1)
        assert held.client.hkeys(held.unacked_key) == [message.delivery_tag.encode()]
        message.ack()
        queue.close()


def test_a_look_for_messages_of_dead_workers_in_vain_is_one_command(redis_url: str) -> None:
    def commands() -> Counter[str]:
        return Counter({name: said["calls"] for name, said in channel.client.info("commandstats").items()})

    with Connection(redis_url, transport=transport.Transport) as connection:
        channel = connection.default_channel
        channel.qos.restore_visible(interval=1)  # reads the clock of Redis
        before = commands()
        channel.qos.restore_visible(interval=1)
        assert commands() - before == Counter(cmdstat_info=1, cmdstat_zcount=1)
