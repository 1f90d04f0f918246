"""The choice of a Redis or Valkey program by version and by the format of existing data."""

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
import server_process

from api.up import redis_programs, servers
from workers.errors import SystemStateError, UnavailableError


@contextmanager
def started(server: servers.Redis, command: list[str]) -> Iterator[redis.Redis]:
    log = server.data / "log"
    with (
        server_process.running(command, log, lambda: servers.redis_fault(server.url()), signal.SIGTERM),
        redis.Redis.from_url(server.url()) as client,
    ):
        yield client


@pytest.fixture
def server(tmp_path: Path) -> servers.Redis:
    server = servers.Redis(data=tmp_path / "redis", port=servers.free_port())
    servers.prepare_redis(server)
    return server


def on_the_path(folder: Path, monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    """Put only these programs on the PATH, which print their versions."""
    folder.mkdir()
    for product, version in versions.items():
        file = folder / f"{product}-server"
        file.write_text(f"#!/bin/sh\necho '{product.capitalize()} server v={version} sha=00000000:0'\n")
        file.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def parts(data: Path, header: bytes) -> None:
    folder = data / redis_programs.PARTS
    folder.mkdir(parents=True)
    (folder / "appendonly.aof.manifest").write_text("file appendonly.aof.1.base.rdb seq 1 type b\n")
    (folder / "appendonly.aof.1.base.rdb").write_bytes(header)


def test_what_redis_6_wrote_is_kept_whole_by_the_bundled_server(server: servers.Redis) -> None:
    shutil.copy(Path(__file__).parent / "releases" / "redis-6.2.aof", server.data / "appendonly.aof")
    assert redis_programs.written_by(server.data) == ("Redis", 9)
    with started(server, server.command()) as client:
        assert client.info("server")["server_name"] == "valkey"
        assert client.hlen("ebb:outbox") == 100
        assert client.zscore("unacked_index", "a") == 1.5
        assert client.lrange("store", 0, -1) == [b"message"]


@pytest.mark.parametrize(
    ("versions", "chosen"),
    [
        ({}, "bundled"),
        ({"redis": "6.2.14"}, "bundled"),
        ({"redis": "8.4.0", "valkey": "9.1.1"}, "bundled"),
        ({"valkey": "9.1.2"}, "on the PATH"),
        ({"redis": "6.2.14", "valkey": "10.0.1"}, "on the PATH"),
    ],
)
def test_a_server_on_the_path_is_used_if_it_is_not_older_than_the_bundled_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, versions: dict[str, str], chosen: str
) -> None:
    on_the_path(tmp_path / "bin", monkeypatch, **versions)
    found = redis_programs.choose(tmp_path)
    assert (found.product, found.origin) == ("Valkey", chosen)


def test_data_of_a_redis_that_the_bundled_server_cannot_read_are_given_to_the_one_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts(tmp_path, b"REDIS0012...")
    on_the_path(tmp_path / "none", monkeypatch)
    with pytest.raises(SystemStateError, match=r"written by a newer Redis \(format 12\).*PATH.*--home"):
        redis_programs.choose(tmp_path)
    on_the_path(tmp_path / "bin", monkeypatch, redis="8.2.0")
    assert str(redis_programs.choose(tmp_path)) == "Redis 8.2.0 (on the PATH)"


def test_an_old_server_that_would_begin_without_the_data_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts(tmp_path, b"REDIS0011...")
    on_the_path(tmp_path / "bin", monkeypatch, redis="6.2.14")
    monkeypatch.setattr(redis_programs, "_bundled", lambda: None)
    with pytest.raises(SystemStateError, match=r"version 7 or later.*Redis 6\.2\.14"):
        redis_programs.choose(tmp_path)


def test_where_there_is_no_server_the_message_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_the_path(tmp_path / "bin", monkeypatch)
    monkeypatch.setattr(redis_programs, "_bundled", lambda: None)
    with pytest.raises(UnavailableError, match=r"ebb-server\[embedded\].*EBB_REDIS_URL"):
        redis_programs.choose(tmp_path)


def test_data_of_a_later_version_of_the_same_server_stop_the_start_with_the_reason(server: servers.Redis) -> None:
    with started(server, server.command()) as client:
        client.set("a", 1)
    base = next((server.data / redis_programs.PARTS).glob("*.base.rdb"))
    base.write_bytes(b"VALKEY099" + base.read_bytes()[9:])
    with (
        pytest.raises(UnavailableError, match=r"written by a newer server, in format 99.*PATH.*--home"),
        started(server, server.command()),
    ):
        pass
    shutil.rmtree(server.data)


@pytest.mark.parametrize("damage", ["zeros at the end", "a byte in the middle"])
def test_a_damaged_file_stops_the_start_with_what_it_holds_and_what_to_do(server: servers.Redis, damage: str) -> None:
    with started(server, server.command()) as client:
        client.mset({str(number): number for number in range(100)})
        client.set("a", 1)
    file = next((server.data / redis_programs.PARTS).glob("*.incr.aof"))
    content = file.read_bytes()
    file.write_bytes(content + bytes(4096) if damage == "zeros at the end" else content.replace(b"*201", b"?201"))
    with (
        pytest.raises(
            UnavailableError, match=r"file is damaged.*all facts are in PostgreSQL.*check-aof.*appendonlydir"
        ),
        started(server, server.command()),
    ):
        pass
