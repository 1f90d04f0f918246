"""Commands that work on the database themselves, and whose statement PostgreSQL breaks off."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from databases import CITUS_URL
from live_system import LiveSystem, eventually

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(bool(CITUS_URL), reason="Citus cannot rebuild the words of facts"),
]

WAITING = "where datname = current_database() and application_name = 'ebb' and wait_event_type = 'Lock'"


@pytest.mark.parametrize("end", ["pg_cancel_backend", "pg_terminate_backend"])
def test_a_command_that_postgres_breaks_off_says_to_run_it_again(idle: LiveSystem, end: str) -> None:
    ending = f"select {end}(pid) from pg_stat_activity {WAITING}"
    with psycopg.connect(idle.database_url) as db, ThreadPoolExecutor() as pool:
        db.execute("lock table facts")
        running = pool.submit(idle.ebb_process, "reindex")
        eventually(lambda: idle.rows(ending), "it waits for the table, and is ended")
        done = running.result()
    assert done.returncode == 1
    assert "Error: PostgreSQL broke this off: " in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.endswith(". Run the command again.\n")
    assert idle.ebb_process("reindex").returncode == 0
