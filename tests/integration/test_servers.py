"""The embedded servers as the tests and `ebb up` run them."""

import psycopg
import redis

from api.up import servers


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


def test_the_embedded_redis_keeps_what_it_accepts_and_wants_its_password(redis_server: servers.Redis) -> None:
    with redis.Redis.from_url(redis_server.url()) as client:
        assert client.config_get("appendonly") == {"appendonly": "yes"}
    assert "authenticate" in str(servers.redis_fault(f"redis://127.0.0.1:{redis_server.port}/0"))
    assert (redis_server.data / "password").stat().st_mode & 0o777 == 0o600
