"""The dashboard while servers are down: each page names the fault, with the right status, and recovers afterwards."""

from collections.abc import Iterator

import httpx2
import psycopg
import pytest
from live_api import serving
from live_system import LiveSystem, eventually
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from api.up import servers

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

PATHS = ("/", "/dashboard/facts", "/dashboard/runs", "/dashboard/namespaces")


@pytest.fixture
def without_redis(idle: LiveSystem) -> Iterator[httpx2.Client]:
    with serving(idle, EBB_REDIS_URL=f"redis://127.0.0.1:{servers.free_port()}/0") as client:
        yield client


def test_without_redis_each_page_says_so(without_redis: httpx2.Client) -> None:
    for path in PATHS:
        answer = without_redis.get(path)
        assert answer.status_code == 503, path
        assert answer.headers["content-type"].startswith("text/html")
        assert answer.headers["retry-after"]
        assert "Redis does not answer" in answer.text
        assert "Try again" in answer.text


def test_without_workers_each_page_says_so_and_works_once_they_are_there(idle: LiveSystem) -> None:
    idle.start("worker")
    with serving(idle) as client:
        assert client.get("/").status_code == 200
        idle.kill_worker("worker")
        eventually(lambda: client.get("/").status_code == 503, "the lack of workers is noticed")
        for path in PATHS:
            answer = client.get(path)
            assert answer.status_code == 503, path
            assert "No worker serves the queue" in answer.text
        idle.start("worker")
        assert eventually(lambda: client.get("/").status_code == 200, "it works again")


def test_without_a_database_a_page_says_so_in_time_and_works_once_it_is_there(
    idle: LiveSystem, postgres: servers.Postgres
) -> None:
    name = str(conninfo_to_dict(idle.database_url)["dbname"])
    allow = "alter database {} allow_connections {}"
    idle.start("worker")
    with serving(idle) as client, psycopg.connect(postgres.url("postgres"), autocommit=True) as admin:
        assert client.get("/").status_code == 200
        admin.execute(sql.SQL(allow).format(sql.Identifier(name), sql.SQL("false")))
        admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name])
        answer = client.get("/")
        said = {503: "PostgreSQL does not answer", 504: "the database does not answer"}  # if the last try takes long
        assert said[answer.status_code] in answer.text
        assert "/health/ready" in answer.text
        admin.execute(sql.SQL(allow).format(sql.Identifier(name), sql.SQL("true")))
        assert eventually(lambda: client.get("/").status_code == 200, "it works again")
