"""The embedded servers of the tests and `ebb up`, and a full disk."""

import os
import shutil
import signal
import threading
import time
from pathlib import Path
from unittest.mock import Mock

import psycopg
import pytest
import redis
import server_process
from supervisor import loggers

from api.client import Client
from api.up import home, servers
from api.up.supervisord import LossyLog
from workers.coordination.redis import compact, condition, own_keys
from workers.errors import SystemStateError, UnavailableError


def test_the_embedded_postgres_is_18_with_pgvector_and_durable(postgres: servers.Postgres) -> None:
    with psycopg.connect(servers.ensure_database(postgres, "servers"), autocommit=True) as db:
        db.execute("create extension if not exists vector")
        assert db.info.server_version // 10_000 == 18
        assert db.execute("select boot_val from pg_settings where name = 'fsync'").fetchone() == ("on",)
        assert db.execute("show max_connections").fetchone() == ("200",)
    assert not any("fsync" in part for part in postgres.command())  # tests alone switch it off, behind this


def test_text_search_knows_letters_and_case_beyond_ascii(postgres: servers.Postgres) -> None:
    with psycopg.connect(postgres.url("postgres")) as db:
        row = db.execute("select to_tsvector('simple', 'ÄRGER… „Über“')::text").fetchone()
    assert row == ("'ärger':1 'über':2",)


def test_a_start_has_the_log_recycled_again_after_a_scrub_that_was_killed(postgres: servers.Postgres) -> None:
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as db:
        db.execute("alter system set wal_recycle = off")
        servers.ensure_database(postgres, "postgres")
        assert db.execute("select from pg_file_settings where name = 'wal_recycle'").fetchone() is None


def test_the_embedded_redis_keeps_what_it_accepts_and_wants_its_password(redis_server: servers.Redis) -> None:
    with redis.Redis.from_url(redis_server.url()) as client:
        assert client.config_get("appendonly") == {"appendonly": "yes"}
    assert "Authentication required" in str(servers.redis_fault(f"redis://127.0.0.1:{redis_server.port}/0"))
    assert (redis_server.data / "password").stat().st_mode & 0o777 == 0o600


def test_a_password_that_a_failure_of_power_left_empty_is_made_again(tmp_path: Path) -> None:
    server = servers.Redis(data=tmp_path / "redis", port=servers.free_port())
    servers.prepare_redis(server)
    (server.data / "password").write_text("")
    servers.prepare_redis(server)
    given = server.url()
    with server_process.running(server.command(), tmp_path / "log", lambda: servers.redis_fault(given), signal.SIGTERM):
        assert not given.startswith("redis://:@")


def test_a_redis_with_too_few_databases_or_rights_is_refused_with_what_to_do(redis_server: servers.Redis) -> None:
    last = f"{redis_server.url().removesuffix('/0')}/14"
    with Client(last) as client, pytest.raises(UnavailableError, match=r"^Redis has too few databases: .*next two"):
        client.call("memory.stats", {"namespace": "default"}, 2.0)
    assert "too few databases" in str(servers.redis_fault(last))
    with redis.Redis.from_url(redis_server.url()) as admin:
        admin.acl_setuser("reader", enabled=True, passwords=["+x"], commands=["+@read", "+@connection"], keys=["*"])
        limited = f"redis://reader:x@127.0.0.1:{redis_server.port}/0"
        with Client(limited) as client, pytest.raises(UnavailableError, match=r"may not do .*`\+@all "):
            client.accept("memory.store", {"text": "Tea at four."})
        admin.acl_deluser("reader")


def test_a_user_without_administration_sees_the_condition_except_fsync(redis_server: servers.Redis) -> None:
    with redis.Redis.from_url(redis_server.url()) as admin:
        commands = ["+@all", "-@admin", "-@dangerous", "+info"]
        admin.acl_setuser("modest", enabled=True, passwords=["+p@s:w/o%#?"], commands=commands, keys=["*"])
        url = f"redis://modest:p%40s%3Aw%2Fo%25%23%3F@127.0.0.1:{redis_server.port}/0"
        with own_keys(url) as keys:
            assert condition(keys).answer().items() >= {"append_only_file": True, "fsync": None}.items()
            assert compact(keys) is False
        admin.acl_deluser("modest")


PANIC = 'PANIC:  could not write to file "pg_wal/xlogtemp.4711": No space left on device\nchild process was terminated'


def test_a_start_on_a_disk_without_room_names_the_disk_what_is_free_and_what_is_needed(tmp_path: Path) -> None:
    needed = shutil.disk_usage(tmp_path).total // home.MIB + 1
    with pytest.raises(SystemStateError, match=rf"holds {tmp_path}, has \d+ of \d+ MiB free; Ebb needs {needed} MiB"):
        home.refuse_full(tmp_path, needed)
    home.refuse_full(tmp_path, 0)


def test_a_server_that_ended_for_want_of_room_is_explained_and_any_other_is_not(tmp_path: Path) -> None:
    said = home.explain_full(PANIC, tmp_path)
    assert said is not None
    named = Path(said.split("The disk at ")[1].split(",")[0])
    assert os.path.ismount(named)
    assert tmp_path.is_relative_to(named)
    assert "--home" in said
    assert home.explain_full("FATAL: lock file exists", tmp_path) is None


def test_a_disk_without_room_for_the_log_is_full_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Mock(free=4_096, total=home.MIB))
    assert str(home.explain_full("", tmp_path)).startswith("The disk is full. The disk at ")
    assert home.explain_full("", tmp_path / "gone") is None


@pytest.mark.parametrize(
    ("stored", "cache"), [(0, "2048MB"), (1024**3, "2048MB"), (3 * 512 * 1024**2, "3072MB"), (2**33, "4096MB")]
)
def test_the_cache_of_postgresql_grows_with_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: int, cache: str
) -> None:
    monkeypatch.setattr(servers.os, "sysconf", {"SC_PHYS_PAGES": 2**23, "SC_PAGE_SIZE": 4096}.__getitem__)
    (tmp_path / "base" / "5").mkdir(parents=True)
    with (tmp_path / "base" / "5" / "16384").open("wb") as file:
        file.truncate(stored)
    assert servers.shared_buffers(tmp_path) == cache


def test_a_small_machine_has_a_small_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers.os, "sysconf", {"SC_PHYS_PAGES": 2**19, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert servers.shared_buffers(tmp_path) == "512MB"


@pytest.mark.parametrize(("limit", "cache"), [("1073741824", "256MB"), ("max", "2048MB"), (None, "2048MB")])
def test_a_small_container_on_a_large_machine_has_a_small_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str | None, cache: str
) -> None:
    monkeypatch.setattr(servers.os, "sysconf", {"SC_PHYS_PAGES": 2**23, "SC_PAGE_SIZE": 4096}.__getitem__)
    monkeypatch.setattr(servers, "MEMORY_OF_CONTAINER", tmp_path / "memory.max")
    if limit is not None:
        (tmp_path / "memory.max").write_text(f"{limit}\n")
    assert servers.shared_buffers(tmp_path) == cache


def test_the_data_of_postgresql_may_be_a_link_to_a_folder_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "disk" / "data").mkdir(parents=True)
    server = servers.Postgres(data=tmp_path / "postgres", sockets=tmp_path / "s")
    server.data.symlink_to(tmp_path / "disk" / "data")
    servers.prepare_postgres(server, report=print)
    url = server.url("postgres")
    with server_process.running(server.command(), tmp_path / "log", lambda: servers.postgres_fault(url), signal.SIGINT):
        assert server.data.is_symlink()


def test_a_data_directory_that_cannot_be_replaced_is_named_and_nothing_is_left_over(tmp_path: Path) -> None:
    server = servers.Postgres(data=tmp_path / "postgres", sockets=tmp_path / "s")

    def occupy() -> None:
        while not (tmp_path / "postgres.new").exists():
            time.sleep(0.001)
        (server.data / "late").touch()

    occupied = threading.Thread(target=occupy)
    occupied.start()
    with pytest.raises(SystemStateError, match=r"postgres cannot be replaced: .* mount point.* symbolic link"):
        servers.prepare_postgres(server, report=print)
    occupied.join()
    assert not (tmp_path / "postgres.new").exists()


def test_a_folder_with_other_files_is_refused_before_any_of_them_is_given_away(tmp_path: Path) -> None:
    server = servers.Postgres(data=tmp_path / "postgres", sockets=tmp_path / "s")
    server.data.mkdir()
    (server.data / "lost+found").mkdir()
    with pytest.raises(SystemStateError, match=r"has lost\+found and no PG_VERSION\. Give another home"):
        servers.prepare_postgres(server, report=print)
    assert (server.data / "lost+found").stat().st_uid == os.geteuid()


def test_a_log_that_could_not_be_rotated_is_written_to_again(tmp_path: Path) -> None:
    path, blocked = tmp_path / "worker.log", tmp_path / "worker.log.1" / "file"
    blocked.parent.mkdir()
    blocked.touch()
    log = LossyLog(str(path), "a", maxBytes=8, backupCount=1)
    log.setFormat("%(message)s")
    for line in (b"one two three\n", b"four\n"):
        log.emit(loggers.LogRecord(loggers.LevelsByName.INFO, line))
    assert path.read_text().splitlines() == ["one two three", "four"]
    log.close()


def test_the_address_is_the_same_whatever_port_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = servers.Postgres(data=tmp_path / "data", sockets=tmp_path / "s")
    servers.prepare_postgres(server, report=print)
    url = server.url("postgres")
    monkeypatch.setenv("PGPORT", "5433")
    with server_process.running(server.command(), tmp_path / "log", lambda: servers.postgres_fault(url), signal.SIGINT):
        monkeypatch.delenv("PGPORT")
        assert servers.postgres_fault(url) is None


def test_a_copy_of_a_data_directory_with_another_owner_and_more_rights_starts(tmp_path: Path) -> None:
    made = servers.Postgres(data=tmp_path / "made", sockets=tmp_path / "s")
    servers.prepare_postgres(made, report=print)
    copy = servers.Postgres(data=Path(shutil.copytree(made.data, tmp_path / "copy")), sockets=made.sockets)
    copy.data.chmod(0o755)
    said = list[str]()
    servers.prepare_postgres(copy, said.append)
    url = copy.url("postgres")
    with server_process.running(copy.command(), tmp_path / "log", lambda: servers.postgres_fault(url), signal.SIGINT):
        assert any(f"files of {copy.data}" in line for line in said) == (os.geteuid() == 0)
