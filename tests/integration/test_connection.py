"""Connections: transactions commit or roll back; servers may be unavailable or read-only."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from celery.exceptions import SoftTimeLimitExceeded
from databases import new_database
from memory import Memory
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from relay import relayed

from api.up.servers import Postgres
from workers.admin.stats import health
from workers.context import Context
from workers.errors import NoConnectionError, UnavailableError
from workers.storage import schema, server
from workers.storage.connection import (
    POOL_SIZE,
    READ_WAIT_SECONDS,
    SEARCH,
    SLOW_SECONDS,
    Connection,
    close_pools,
    connect,
    in_pipeline,
    lift_limits,
    reader,
    reading,
    snapshot,
    transaction,
    writing,
)  # fmt: skip
from workers.storage.refusals import refused

AWAY = "postgresql://postgres@127.0.0.1:1/ebb"
ADD = "insert into namespaces (name) values ('ours')"
COUNT = "select count(*) from namespaces"


@pytest.fixture
def database_url(postgres: Postgres, template: str) -> Iterator[str]:
    """Return a database of its own, also where others are schemas on a cluster: these tests change more than tables."""
    with new_database(postgres, template) as url:
        yield url


def test_a_server_that_is_away_is_named_with_the_cause() -> None:
    with pytest.raises(UnavailableError) as failure:
        connect(AWAY)
    said = str(failure.value)
    assert "127.0.0.1" in said
    assert "Connection refused" in said
    assert said.endswith("Is it running at that address?")
    assert "\n" not in said


def test_a_pool_whose_server_is_away_says_the_same() -> None:
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1.*Connection refused"), transaction(AWAY, wait=0.2):
        pass
    close_pools()


def test_a_connection_can_be_used_after_two_trips_to_the_server(database_url: str) -> None:
    with relayed(database_url) as (url, relay), connect(url):
        assert relay.trips == 2
    with relayed(database_url) as (url, relay):
        with transaction(url) as db:
            db.execute("select null::halfvec")
        assert relay.trips == 5
        close_pools()


def test_a_distant_server_is_called_slow_and_not_short_of_connections(database_url: str) -> None:
    with relayed(database_url) as (url, relay):
        relay.delay = SLOW_SECONDS + 0.1
        said = r"answers slowly: .* a new one took 0\.\d s"
        with pytest.raises(UnavailableError, match=said), transaction(url, wait=0.2):
            pass
        close_pools()


def read(url: str, number: int, wait: Callable[[], None] = lambda: None) -> tuple[int] | None:
    with reader(url) as db, in_pipeline(db):
        wait()
        return db.execute("select %s", [number]).fetchone()


def test_a_time_limit_ends_a_pipeline_whose_server_does_not_answer(database_url: str) -> None:
    def interrupt(*_: object) -> None:
        raise TimeoutError("the time limit")

    main, before = threading.main_thread().ident or 0, signal.signal(signal.SIGUSR1, interrupt)
    limit = threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGUSR1))
    with relayed(database_url) as (url, relay):
        assert read(url, 1) == (1,)
        relay.passes.clear()
        with pytest.raises(TimeoutError, match="the time limit"):
            read(url, 2, limit.start)
        relay.passes.set()
        assert read(url, 3) == (3,)
        close_pools()
    signal.signal(signal.SIGUSR1, before)


def test_a_database_that_does_not_exist_is_named(memory: Memory) -> None:
    url = memory.context.database_url.replace("/test_", "/nowhere_")
    with pytest.raises(UnavailableError, match=r'database "nowhere_[0-9a-f]+" does not exist'):
        connect(url)


def test_a_transaction_commits_at_its_end_and_rolls_back_on_an_error(memory: Memory) -> None:
    url = memory.context.database_url
    with pytest.raises(psycopg.errors.DivisionByZero), transaction(url) as db:
        db.execute(ADD + "; select 1 / 0")
    assert memory.value(COUNT) == 0
    with transaction(url) as db:
        db.execute(ADD)
    assert memory.value(COUNT) == 1


def write(url: str, *statements: str) -> None:
    with writing(url) as db:
        for statement in statements:
            db.execute(statement.encode())


@pytest.mark.parametrize("setting", ["autocommit", "isolation_level"])
def test_a_time_limit_at_the_very_end_of_a_block_leaves_no_connection_in_its_mode(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    """In autocommit the statements of a transaction were on the first shard, and each for itself."""
    url, own, over = memory.context.database_url, getattr(psycopg.Connection, f"set_{setting}"), [True]

    def limited(db: Connection, value: Any) -> None:
        if not value and over:
            raise SoftTimeLimitExceeded(over.pop())
        own(db, value)

    monkeypatch.setattr(psycopg.Connection, f"set_{setting}", limited)
    with pytest.raises(SoftTimeLimitExceeded), reading(url):
        pass
    with transaction(url) as db:
        assert (db.autocommit, db.isolation_level) == (False, None)


def test_pipelined_writes_are_committed_at_the_end_or_rolled_back(memory: Memory) -> None:
    url = memory.context.database_url
    with pytest.raises(psycopg.errors.DivisionByZero):
        write(url, ADD, "select 1 / 0")
    assert memory.value(COUNT) == 0
    write(url, ADD)
    assert memory.value(COUNT) == 1


def test_a_large_statement_at_the_end_is_sent_whole(memory: Memory) -> None:
    with writing(memory.context.database_url) as db:
        db.execute("set local statement_timeout = '20s'")
        db.execute("insert into namespaces (name) select left(%s, 20)", ["ours" * 5_000_000])
    assert memory.value("select name from namespaces") == "ours" * 5


def test_a_pool_replaces_connections_that_the_server_has_ended(memory: Memory) -> None:
    url = memory.context.database_url
    with transaction(url) as db:
        ended = db.info.backend_pid
    with connect(url, autocommit=True) as db:
        db.execute("select pg_terminate_backend(%s, 5000)", (ended,))
    assert memory.value("select pg_backend_pid()") != ended


HANGS = """
import sys, time
from workers.storage import connection
connection.TRANSACTION_SECONDS = 2.0
with connection.writing(sys.argv[1]) as db:
    db.execute("update namespaces set name = 'hung'")
    db.execute("select 1").fetchone()
    print("holds", flush=True)
    time.sleep(600)
"""


def test_a_process_that_is_stopped_within_a_write_does_not_keep_its_locks(memory: Memory) -> None:
    memory.rows(ADD)
    url = memory.context.database_url
    with subprocess.Popen([sys.executable, "-c", HANGS, url], stdout=subprocess.PIPE, text=True) as hanging:
        assert hanging.stdout is not None
        assert hanging.stdout.readline() == "holds\n"
        hanging.send_signal(signal.SIGSTOP)
        with transaction(url) as db:
            assert db.execute("update namespaces set name = 'other'").rowcount == 1
        hanging.kill()
    assert memory.value("select name from namespaces") == "other"


ENDS = """
import atexit, sys, threading
atexit.register(lambda: print([one.name for one in threading.enumerate() if one.name.startswith("ebb-")]))
from workers.storage import connection
with connection.transaction(sys.argv[1]) as db:
    print(any(one.name.startswith("ebb-") for one in threading.enumerate()))
"""


def test_a_process_ends_the_threads_of_its_pools(memory: Memory) -> None:
    asked = [sys.executable, "-c", ENDS, memory.context.database_url]
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines() == ["True", "[]"]


def test_work_of_the_pool_is_limited_and_that_which_may_take_long_is_not(memory: Memory) -> None:
    url, asked = memory.context.database_url, "select current_setting('transaction_timeout')"
    for given in (transaction, reading, writing):
        with given(url) as db:
            assert db.execute(asked).fetchone() != ("0",)
    with transaction(url) as db:
        lift_limits(db)
        assert db.execute(asked).fetchone() == ("0",)
        assert db.execute("select current_setting('statement_timeout')").fetchone() == ("0",)
    assert memory.value(asked) != "0"
    with snapshot(url) as db:
        assert db.execute(asked).fetchone() == ("0",)
    with connect(url) as db:
        assert db.execute(asked).fetchone() == ("0",)


@pytest.mark.parametrize("limits", [{"transaction_timeout": "700ms"}, {"idle_session_timeout": "700ms"}])
def test_limits_of_the_servers_administrator_end_neither_a_vacuum_nor_an_idle_session(
    memory: Memory, limits: dict[str, str]
) -> None:
    ((name, value),) = limits.items()
    url = make_conninfo(memory.context.database_url, options=f"-c{name}={value}")
    with connect(url, autocommit=True) as db:
        server.vacuum(db)
        assert db.execute(f"show {name}".encode()).fetchone() == ("0",)
    with transaction(url) as db:
        assert db.execute(f"show {name}".encode()).fetchone() != (value,)
    close_pools()


def test_an_address_may_say_itself_when_a_connection_counts_as_dead(memory: Memory) -> None:
    url = memory.context.database_url
    with connect(url) as db:
        assert db.info.get_parameters()["tcp_user_timeout"] == "25000"
    with connect(make_conninfo(url, tcp_user_timeout=1_234)) as db:
        given = db.info.get_parameters()
        assert (given["tcp_user_timeout"], given["keepalives_idle"]) == ("1234", "10")


ENDLESS = """
import sys
from workers.storage import connection

url, statement = sys.argv[1:]
for name in {"client_connection_check_interval"}.intersection(connection.SERVER_ALIVE):
    connection.SERVER_ALIVE[name] = "100ms"
with connection.connect(url, autocommit=True) as db:
    db.execute("set statement_timeout = 0")
    db.execute(statement)
"""


def test_what_a_killed_process_began_ends_soon(memory: Memory) -> None:
    url, statement = memory.context.database_url, f"select pg_sleep(1e6), '{uuid4()}'"
    running = "select count(*) from pg_stat_activity where query = %s and state = 'active'"
    with subprocess.Popen([sys.executable, "-c", ENDLESS, url, statement]) as process:
        try:
            while not memory.value(running, statement):
                assert process.poll() is None
        finally:
            process.kill()
    while memory.value(running, statement):
        pass


@pytest.fixture
def crowded(memory: Memory) -> Iterator[str]:
    """Return the URL of a role that may not connect."""
    role = f"crowded_{uuid4().hex}"
    memory.rows(f"create role {role} login connection limit 0")
    yield make_conninfo(memory.context.database_url, user=role)
    memory.rows(f"drop role {role}")


@pytest.mark.parametrize("given", [connect, partial(transaction, wait=0.2), reading])
def test_the_error_for_no_free_connection_says_what_to_do(crowded: str, given: Callable[[str], Any]) -> None:
    with pytest.raises(NoConnectionError, match=r"too many connections.*max_connections"), given(crowded):
        pass


def test_a_server_that_recovers_is_said_to_take_no_connections_yet() -> None:
    said = str(refused("FATAL:  the database system is in recovery mode"))
    assert said.startswith("PostgreSQL takes no connections yet: FATAL:  the database system is in recovery mode. Try")


@pytest.mark.slow
def test_a_pool_connects_soon_after_an_outage_however_long_that_was(memory: Memory, crowded: str) -> None:
    for _ in range(4):  # ten seconds, after which a pool by itself waits for five more
        with pytest.raises(NoConnectionError), reading(crowded):
            pass
    memory.rows(f"alter role {conninfo_to_dict(crowded)['user']} connection limit -1")
    with reading(crowded) as db:
        assert db.execute("select 1").fetchone() == (1,)
    close_pools()


@pytest.mark.parametrize("act", [transaction, writing])
def test_a_full_disk_is_named_and_what_to_do(
    memory: Memory, act: Callable[[str], AbstractContextManager[Connection]]
) -> None:
    full = "do $$ begin raise 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$"
    said = r"^PostgreSQL's disk is full: could not extend file: No space left on device\. Make room there"
    with pytest.raises(UnavailableError, match=said), act(memory.context.database_url) as db:
        db.execute(full.encode())


@pytest.mark.parametrize("act", [transaction, writing, reading, snapshot])
def test_rights_that_the_role_lacks_are_named_and_what_to_do(
    memory: Memory, act: Callable[[str], AbstractContextManager[Connection]]
) -> None:
    lacking = "do $$ begin raise 'permission denied for table facts' using errcode = 'insufficient_privilege'; end $$"
    said = r"^PostgreSQL does not let Ebb's role do this: permission denied for table facts\. Have the owner of the"
    with pytest.raises(UnavailableError, match=said), act(memory.context.database_url) as db:
        db.execute(lacking.encode())


@pytest.mark.parametrize(
    "cause",
    ['FATAL:  password authentication failed for user "ebb"', 'FATAL:  permission denied for database "ebb"',
     'FATAL:  role "ebb" is not permitted to log in', 'FATAL:  database "ebb" does not exist'],
)  # fmt: skip
def test_a_server_that_refuses_the_role_is_not_said_to_be_away(cause: str) -> None:
    said = str(refused(cause))
    assert said.startswith(f"PostgreSQL refuses this connection: {cause}. Check role, password and database in EBB_")


@pytest.mark.parametrize(
    "cause",
    ['server certificate for "other.example" does not match host name "db"', "SSL error: certificate verify failed",
     "server does not support SSL, but SSL was required", "FATAL: SSL required"],
)  # fmt: skip
def test_a_server_without_a_trusted_tls_connection_is_not_said_to_be_away(cause: str) -> None:
    said = str(refused(f'connection failed: connection to server at "10.0.0.1", port 5432 failed: {cause}'))
    assert said.startswith("There is no TLS connection to PostgreSQL: connection failed: ")
    assert f"{cause}. Check the host, `sslmode`" in said


@pytest.mark.parametrize(
    ("address", "cause"),
    [
        ("127.0.0.1:1/x?sslmode=verify", 'invalid sslmode value: "verify"'),
        ("127.0.0.1:1/x?ssl_min_protocol_version=TLS", 'invalid "ssl_min_protocol_version" value: "TLS"'),
        ("127.0.0.1:1/x?sslrootcert=system&sslmode=prefer", 'weak sslmode "prefer" may not be used'),
        ("127.0.0.1:1/x?service=ebb", 'definition of service "ebb" not found'),
        ("127.0.0.1:x/x", 'invalid integer value "x" for connection option "port"'),
        ("127.0.0.1:99999/x", 'invalid port number: "99999"'),
        ("127.0.0.1:1/x?keepalives_idle=x", 'invalid integer value "x" for connection option "keepalives_idle"'),
    ],
)
def test_an_address_with_a_wrong_option_is_not_said_to_be_that_of_a_server_that_is_away(
    address: str, cause: str
) -> None:
    with pytest.raises(UnavailableError) as caught, connect(f"postgresql://postgres@{address}"):
        pass
    said = str(caught.value)
    assert said.startswith("The address of PostgreSQL cannot be used: connection is bad: ")
    assert cause in said


def test_of_several_servers_that_are_not_there_each_is_named_once() -> None:
    with pytest.raises(UnavailableError) as caught, connect("postgresql://postgres@127.0.0.1:1,127.0.0.1:2/x"):
        pass
    said = str(caught.value)
    assert [said.count(f'"127.0.0.1", port {port} failed: Connection refused') for port in (1, 2)] == [1, 1]
    assert "; host: '127.0.0.1', port: '2', hostaddr: '127.0.0.1': connection failed: " in said


@pytest.mark.parametrize("act", [transaction, writing])
@pytest.mark.parametrize(
    "said", ["server closed the connection unexpectedly", "failure on connection marked as essential: 127.0.0.1:5433"]
)
def test_a_node_of_citus_that_ended_is_named_though_citus_calls_it_an_internal_error(
    memory: Memory, act: Callable[[str], AbstractContextManager[Connection]], said: str
) -> None:
    ended = f"do $$ begin raise '{said}' using errcode = 'internal_error'; end $$"
    named = rf"^A node of the Citus cluster ended \({said}\)\. Try again"
    with pytest.raises(UnavailableError, match=named), act(memory.context.database_url) as db:
        db.execute(ended.encode())


def test_a_server_without_room_for_a_session_is_named_as_full() -> None:
    error = refused("FATAL: could not write init file: No space left on device")
    assert str(error).startswith("PostgreSQL's disk is full: FATAL: could not write init file")


def test_a_pool_whose_connections_are_all_in_use_says_so(memory: Memory) -> None:
    url = memory.context.database_url
    with ExitStack() as held:
        for _ in range(POOL_SIZE):
            held.enter_context(transaction(url))
        with pytest.raises(NoConnectionError, match="fewer workers"), reading(url):
            pass


def test_the_clock_is_read_within_the_time_that_a_reader_may_wait(memory: Memory) -> None:
    url = memory.context.database_url
    with ExitStack() as held:
        for _ in range(POOL_SIZE):
            held.enter_context(transaction(url))
        with pytest.raises(NoConnectionError, match=f"free for {READ_WAIT_SECONDS:g} s"):
            server.read_clock(url)


def test_a_snapshot_reads_one_state_and_writes_nothing(memory: Memory) -> None:
    with snapshot(memory.context.database_url) as db:
        assert db.execute(COUNT).fetchone() == (0,)
        memory.rows(ADD)
        assert db.execute(COUNT).fetchone() == (0,)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            db.execute(ADD)
        db.rollback()


def test_every_connection_works_in_utc_with_plans_made_for_its_values(memory: Memory) -> None:
    expected = {"timezone": "UTC", "plan_cache_mode": "force_custom_plan"} | SEARCH
    asked = "select name, current_setting(name) from unnest(%s::text[]) as given (name)"
    assert dict(memory.rows(asked, list(expected))) == expected


ODD_SETTINGS = {
    "client_encoding": "SQL_ASCII",
    "timezone": "Asia/Kathmandu",
    "datestyle": "German",
    "intervalstyle": "sql_standard",
    "bytea_output": "escape",
    "extra_float_digits": "0",
    "quote_all_identifiers": "on",
    "standard_conforming_strings": "off",
    "default_transaction_isolation": "serializable",
}


def test_whatever_the_server_is_set_to_its_catalogue_and_answers_are_the_same(memory: Memory) -> None:
    fact = memory.add("Mira moved to Leipzig.", entity="Mira", key="home", value="Leipzig")
    memory.touch(fact, at=1.25)
    before = memory.archive(2)
    name = sql.Identifier(str(conninfo_to_dict(memory.context.database_url)["dbname"]))
    with psycopg.connect(memory.context.database_url, autocommit=True) as db:
        for setting, value in ODD_SETTINGS.items():
            db.execute(sql.SQL("alter database {} set {} = {}").format(name, sql.Identifier(setting), value))
    close_pools()
    with connect(memory.context.database_url) as db:
        assert schema.live_catalogue(db) == schema.expected_catalogue()
        assert db.execute("select current_setting('transaction_isolation')").fetchone() == ("read committed",)
    assert memory.archive(2) == before
    assert memory.ids("Where does Mira live?") == [fact]


def test_who_reads_sees_one_state_to_the_end_and_the_next_one_sees_what_came_meanwhile(memory: Memory) -> None:
    url = memory.context.database_url
    with reading(url) as db:
        assert db.execute(COUNT).fetchone() == (0,)
        with connect(url) as other:
            other.execute(ADD)
        assert db.execute(COUNT).fetchone() == (0,)
    with transaction(url) as db:
        assert db.execute("select current_setting('transaction_isolation')").fetchone() == ("read committed",)
        assert db.execute(COUNT).fetchone() == (1,)


def test_a_connection_that_failed_or_was_lost_while_reading_does_not_affect_the_next(memory: Memory) -> None:
    url = memory.context.database_url
    with pytest.raises(psycopg.errors.DivisionByZero), reading(url) as db:
        db.execute("select 1 / 0")
    with pytest.raises(psycopg.OperationalError), reading(url) as db:
        db.execute("select pg_terminate_backend(pg_backend_pid())")
    with transaction(url) as db:
        assert db.execute("select current_setting('transaction_isolation')").fetchone() == ("read committed",)


def fail_in_a_statement(db: Connection) -> None:
    db.pgconn.send_query(b"select 1")
    raise psycopg.OperationalError("the server ended")


@pytest.mark.parametrize("act", [reader, reading])
def test_an_error_in_the_middle_of_a_statement_is_raised_as_it_is(
    memory: Memory, act: Callable[[str], AbstractContextManager[Connection]]
) -> None:
    url = memory.context.database_url
    with pytest.raises(psycopg.OperationalError), act(url) as db:
        fail_in_a_statement(db)
    with act(url) as db:
        assert db.execute("select 1").fetchone() == (1,)


def test_a_database_that_is_read_only_is_not_well(context: Context, database_url: str) -> None:
    assert health(context)["database"] == "ok"
    name = sql.Identifier(str(conninfo_to_dict(database_url)["dbname"]))
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute(sql.SQL("alter database {} set default_transaction_read_only = on").format(name))
    close_pools()  # it is of new sessions
    assert "takes no writes" in health(context)["database"]


def test_a_disk_on_which_no_file_grows_is_not_well(context: Context, database_url: str) -> None:
    name = sql.Identifier(str(conninfo_to_dict(database_url)["dbname"]))
    with psycopg.connect(database_url, autocommit=True) as db:  # fails as a full disk does, which keeps room in its log
        db.execute(sql.SQL("alter database {} set temp_file_limit = 0").format(name))
    close_pools()
    assert health(context)["database"].startswith("PostgreSQL takes no writes: temporary file size exceeds")


def test_the_health_of_a_distant_server_is_known_after_few_trips(context: Context) -> None:
    with relayed(context.database_url) as (url, relay):
        distant = Context(context.settings.model_copy(update={"database_url": url}))
        assert health(distant)["database"] == "ok"
        relay.trips = 0
        assert health(distant)["database"] == "ok"
        assert relay.trips <= 8
        close_pools()


def _write_read_only(begun: AbstractContextManager[Connection]) -> None:
    with begun as db:
        db.execute("set transaction_read_only = on")
        db.execute(ADD)


@pytest.mark.parametrize("act", [transaction, writing])
def test_a_write_to_a_server_that_became_read_only_is_tried_again_by_a_new_connection(
    database_url: str, act: Callable[[str], AbstractContextManager[Connection]]
) -> None:
    def pid() -> Any:
        with act(database_url) as db:
            return db.execute("select pg_backend_pid()").fetchone()

    before = pid()
    with pytest.raises(UnavailableError, match=r"^PostgreSQL takes no writes: it is read-only"):
        _write_read_only(act(database_url))
    assert pid() != before
    with act(database_url) as db:
        db.execute(ADD)


END_OWN = "select pg_terminate_backend(pg_backend_pid())"


def test_a_server_that_ends_during_a_statement_is_reported_as_unavailable(database_url: str) -> None:
    said = r"^PostgreSQL does not answer: .*Try again when it does\."
    with connect(database_url) as db, pytest.raises(UnavailableError, match=said), server.answers():
        db.execute(END_OWN)
    with connect(database_url) as db:
        db.execute("set statement_timeout = 1")
        with pytest.raises(psycopg.errors.QueryCanceled), server.answers():
            db.execute("select pg_sleep(10)")


def test_a_server_that_is_not_there_is_reported_without_the_hints_of_the_driver() -> None:
    refused = 'connection failed: connection to server at "127.0.0.1", port 1 failed: Connection refused'
    with pytest.raises(UnavailableError) as caught, connect("postgresql://postgres@127.0.0.1:1/x"):
        pass
    assert str(caught.value) == f"PostgreSQL does not answer: {refused}. Is it running at that address?"
