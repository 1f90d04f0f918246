"""A channel keeps its client; a closed connection raises Redis' error."""

import pytest
from kombu import Connection
from redis.exceptions import ConnectionError as RedisConnectionError

from workers.coordination import transport


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
