"""Layers: light imports stay light, the core stays pure, and every statement is restricted to a tenant."""

import ast
import pkgutil
import re
import subprocess
import sys

import pytest
from statements import ACROSS_TENANTS, TENANTS, WORKERS, is_statement, on_tenants, on_tenants_or_namespaces

import workers.core

HEAVY = ["sklearn", "scipy", "torch", "sentence_transformers"]
IMPURE = ["psycopg", "psycopg_pool", "pgvector", "celery", "redis", "workers.settings", "workers.storage"]
CORE = [f"workers.core.{module.name}" for module in pkgutil.iter_modules(workers.core.__path__)]

RESTRICTED = re.compile(
    # one tenant's rows
    r"\bnamespace (?:\+ 0 )?= (?:(?:\(select )?%\(namespace\)s|\{namespace\}|%%s|(?:new|gone|wanted)\.namespace)"
    r"|\bnamespace = \(select id from namespaces where name = %\(name\)s\)"
    rf"|\binsert into {TENANTS} \((?:run, )?namespace\b"  # or rows written with their tenant
)
JOINED = re.compile(rf"\bjoin ({TENANTS}) on")
TIME_IN_A_CHOICE = re.compile(
    r"\bupdate\b.*(?:\bcoalesce\([^()]*|\bcase\b(?:(?!\bend\b).)*)\b(?:now|\w+_timestamp|random)\(\)", re.DOTALL
)


def loaded_by(*modules: str, among: list[str]) -> list[str]:
    """Return which of the modules in `among` a fresh process has loaded after importing `modules`."""
    program = f"import sys, {', '.join(modules)}; print(*[name for name in {among!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return answer.stdout.split()


def test_a_light_import_loads_no_machine_learning() -> None:
    light = ["workers.core.tiers", "workers.core.fading", "workers.settings", "api.cli", "workers.validation"]
    assert loaded_by(*light, among=HEAVY) == []


def test_recalling_needs_no_torch() -> None:
    assert loaded_by("workers.memory.recall", "workers.embedding", among=["torch", "sentence_transformers"]) == []


@pytest.mark.parametrize("module", ["workers.coordination.redis", "api.client", "api.http"])
def test_redis_loads_no_metrics_of_opentelemetry(module: str) -> None:
    among = ["redis", "opentelemetry.sdk.trace", "opentelemetry.sdk.metrics._internal"]
    assert loaded_by("opentelemetry.sdk.trace", module, among=among) == among[:2]


def test_the_core_knows_neither_database_nor_queue_nor_settings() -> None:
    assert len(CORE) >= 10
    assert loaded_by(*CORE, among=IMPURE) == []


def test_the_core_has_neither_clock_nor_environment() -> None:
    for module in (WORKERS / "core").glob("*.py"):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
        imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

        impure = {"time", "datetime", "os", "random", "logging", "socket"}
        assert not {name.split(".")[0] for name in imported} & impure, module


def test_the_statements_on_tenants_tables_are_found() -> None:
    assert len(on_tenants()) >= 30
    assert {"facts.ADD", "activity.LOCK", "vectors.READ", "signatures.NEAREST", "words.COUNT"} <= on_tenants().keys()


def test_each_statement_is_a_constant() -> None:
    assert [name for name in on_tenants() if not name.split(".")[1].isupper()] == []


def test_a_statement_on_a_tenants_table_carries_the_namespace() -> None:
    of_one_tenant = on_tenants().keys() - ACROSS_TENANTS.keys()
    assert [name for name in of_one_tenant if not RESTRICTED.search(on_tenants()[name])] == []


def test_no_update_chooses_between_the_time_and_another_value_which_citus_refuses() -> None:
    assert [name for name, statement in on_tenants().items() if TIME_IN_A_CHOICE.search(statement)] == []


def test_tables_are_joined_by_namespace() -> None:
    for name, statement in on_tenants().items():
        for table in JOINED.findall(statement):
            assert re.search(rf"\bjoin {table} on {table}\.namespace = ", statement), name


def test_every_exception_is_still_one() -> None:
    every = on_tenants_or_namespaces()
    assert ACROSS_TENANTS.keys() <= every.keys()
    assert [name for name in ACROSS_TENANTS if RESTRICTED.search(every[name])] == []


@pytest.mark.parametrize(
    "statement",
    [
        "select text from facts where id = %(id)s",
        "update activity set held = false where fact = any(%(ids)s)",
        "delete from vectors",
        "select namespace from signatures where namespace is not null",
        "insert into lexemes (lexeme, namespace) values (%(lexeme)s, %(namespace)s)",
    ],
)
def test_a_statement_that_forgets_the_namespace_would_be_noticed(statement: str) -> None:
    assert is_statement(statement)
    assert not RESTRICTED.search(statement)


def test_no_worker_goes_by_the_clock_of_its_machine() -> None:
    found = {
        f"{module.relative_to(WORKERS)}: {match}"
        for module in WORKERS.rglob("*.py")
        for match in re.findall(
            r"datetime\.now\(|datetime\.utcnow\(|date\.today\(|\btime\.time\(", module.read_text("utf-8")
        )
    }
    assert found == {
        "endpoint.py: datetime.now(",  # a Retry-After header with an instant
        "coordination/transport.py: time.time(",  # what kombu subtracts, so that Redis' clock decides
        "documents/folders.py: time.time(",  # whether a file changed just now
        "logs.py: datetime.now(",  # time of a log line
        "tasks/task.py: datetime.now(",  # messages of other programs, whose deadline is by their own clock
    }
