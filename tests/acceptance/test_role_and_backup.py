"""A system with an unprivileged database role, and the backup of its database, as configured in compose.yaml."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest
import redis
from databases import new_database, wait_until_dropped
from live_system import ROOT, LiveSystem, eventually
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from api.up import servers

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

DEPLOY = ROOT / "api" / "deploy"
PASSWORD = "it's secret"


@pytest.fixture(scope="module")
def role(postgres: servers.Postgres) -> Iterator[str]:
    name = f"ebb_{uuid4().hex[:8]}"
    yield name
    wait_until_dropped()
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as db:
        db.execute(sql.SQL("drop owned by {name}; drop role {name}").format(name=sql.Identifier(name)))


def prepared(url: str, role: str, *, again: bool = False) -> str:
    """Return a database's address for the role, after role.sql as a superuser; `again`: the role is there already."""
    name = str(conninfo_to_dict(url)["dbname"])
    script = re.sub(r"^\\set .*\n", "", (DEPLOY / "role.sql").read_text(encoding="utf-8"), flags=re.MULTILINE)
    script = re.sub(r"^create role .*\n", "", script, flags=re.MULTILINE) if again else script
    script = script.replace(":'password'", sql.quote(PASSWORD)).replace("database ebb", f'database "{name}"')
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(re.sub(r"\bebb\b", role, script).encode())
    return url.replace("postgres@", f"{role}:{quote(PASSWORD)}@")


@pytest.fixture(scope="module")
def database(postgres: servers.Postgres, role: str) -> Iterator[str]:
    with new_database(postgres) as url:
        yield prepared(url, role)


@pytest.fixture(scope="module")
def system(
    database: str, redis_server: servers.Redis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveSystem]:
    """Return a system whose addresses are in files, of a role that is no superuser."""
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "database_url").write_text(f"{database}\n")
    settings = {
        "EBB_DATABASE_URL_FILE": str(folder / "database_url"),
        "EBB_ANN_THRESHOLD": "60",
    }
    with redis.Redis.from_url(redis_server.url()) as keys:
        keys.flushall()
    system = _OfFiles(database, redis_server.url(), tmp_path_factory.mktemp("role"), settings)
    assert system.ebb("migrate").returncode == 0
    try:
        system.start("all")
        yield system
    finally:
        system.stop()


class _OfFiles(LiveSystem):
    def environment(self) -> dict[str, str]:
        environment = super().environment()
        del environment["EBB_DATABASE_URL"]
        return environment


def test_a_role_that_is_no_superuser_stores_recalls_indexes_fades_cleans_and_is_well(system: LiveSystem) -> None:
    assert system.rows("select rolsuper from pg_roles where rolname = current_user") == [(False,)]
    with system.client("mira") as client:
        client.store_many([{"text": f"Stone number {number} lies on shelf {number % 7}."} for number in range(200)])
        assert client.recall("Where is stone number 7?")["results"]
        system.send("memory.ann", {})
        indexes = "select indexname from pg_indexes where indexname like 'signatures_near_%%'"
        eventually(lambda: system.rows(indexes), "the namespace has its vector index")
        client.decay(now="2031-01-01T00:00:00Z")
        system.settle()
    for task in ("memory.clean", "memory.rebuild_indexes", "memory.settle_tallies", "memory.consolidate_all"):
        system.send(task, {})
    system.settle()
    for command in (["purge", "--all", "--yes"], ["reembed"], ["doctor"], ["stats", "-n", "mira"]):
        done = system.ebb(*command)
        assert done.returncode == 0, (command, done.stdout + done.stderr)
    assert not re.search("permission denied|must be owner|insufficient", system.logs(), re.IGNORECASE)


def test_a_backup_restores_the_same_rows(
    system: LiveSystem, postgres: servers.Postgres, role: str, tmp_path: Path
) -> None:
    with system.client("mira") as client:
        client.store("The spare key is under the blue flowerpot.")
    system.settle()
    killed, running = tmp_path / "ebb-20260101T000000Z.dump.part", tmp_path / "ebb-20260102T000000Z.dump.part"
    for part in (killed, running):
        part.touch()
    os.utime(killed, (0, 0))
    assert backup(system, tmp_path).returncode == 0
    assert not killed.exists()
    running.unlink()
    (dump,) = tmp_path.iterdir()
    assert re.fullmatch(r"ebb-\d{8}T\d{6}Z\.dump", dump.name)
    with new_database(postgres) as url:
        restored = prepared(url, role, again=True)
        restore = [
            servers.postgres_programs() / "pg_restore",
            "--no-owner",
            "--no-comments",
            "--exit-on-error",
            f"--dbname={restored}",
            dump,
        ]
        done = subprocess.run(restore, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert LiveSystem(restored, system.redis_url, tmp_path).state() == system.state()


def backup(system: LiveSystem, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "PATH": f"{servers.postgres_programs()}:{os.environ['PATH']}",
        "BACKUP_FOLDER": str(folder),
        "BACKUP_HOURS": "0",
        "EBB_DATABASE_URL_FILE": system.settings["EBB_DATABASE_URL_FILE"],
    }
    command = ["/bin/sh", DEPLOY / "backup.sh"]
    return subprocess.run(command, check=False, env=environment | settings, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("given", [{"BACKUP_HOURS": "0.5"}, {"BACKUP_HOURS": "1d"}, {"BACKUP_DAYS": "two"}])
def test_a_backup_with_a_wrong_interval_makes_no_dump_again_and_again(
    system: LiveSystem, tmp_path: Path, given: dict[str, str]
) -> None:
    done = backup(system, tmp_path, **given)
    assert (done.returncode, "must be whole numbers" in done.stderr) == (1, True)
    assert not [*tmp_path.iterdir()]
