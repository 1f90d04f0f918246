"""The layers hold: light imports stay light, the core stays pure, and every statement keeps tenants apart."""

import ast
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import workers.core

WORKERS = Path(workers.core.__file__).parents[1]
HEAVY = ["sklearn", "scipy", "torch", "sentence_transformers"]
IMPURE = ["psycopg", "psycopg_pool", "pgvector", "celery", "redis", "pydantic", "workers.settings", "workers.storage"]
CORE = [f"workers.core.{module.name}" for module in pkgutil.iter_modules(workers.core.__path__)]

TENANTS = (
    r"(?:facts|activity|anchors|remembered|vectors|signatures|events|forgotten_hashes|lexemes|contradictions|tallies"
    r"|tally_changes|tally_history|links|relations|likenesses|janitors|documents|uses)"
)
STATEMENT = re.compile(r"\s*(?:select|insert|update|delete|truncate|with|create|copy|merge|alter|lock)\b")
TOUCHES = re.compile(
    rf"\b(?:from|join|into|update|truncate|table|on|using)\s+(?:only\s+)?{TENANTS}\b|truncate.*\b{TENANTS}"
)
RESTRICTED = re.compile(
    r"\bnamespace (?:\+ 0 )?= (?:%\(namespace\)s|\{namespace\}|%%s|(?:new|gone|wanted)\.namespace)"  # one tenant's rows
    rf"|\binsert into {TENANTS} \(namespace,"  # or rows that are each written with their tenant
)
JOINED = re.compile(rf"\bjoin ({TENANTS}) on")

ACROSS_TENANTS = {
    "pending.NEXT": "one task embeds what is pending of all tenants; each row says whose",
    "pending.COUNT": "counts what that task has still to do",
    "pending.FORGET_VECTORS": "another embedder makes everybody's vectors useless",
    "embedders.CLEAR_VECTORS": "the same",
    "choices.ALL_DUE": "the namespaces whose settings changed are looked at by one statement; each row says whose",
    "rules.ALL_DUE": "an operator's rules of fading hold for everybody",
    "faults.FOLLOWING": "the doctor walks over the facts of one tenant, or of all; each row says whose",
    "leftovers.EMPTY": "asks which tenants hold no fact",
    "archives.LINKS": "an operator exports one namespace by name, or all; each row says whose",
    "archives.CONTRADICTIONS": "the same",
    "archives.LIKENESSES": "the same",
    "archives.DOCUMENTS": "the same",
    "archives.RELATIONS": "the same",
    "archives.WISHES": "the same",
    "archives.OWN": "the same",
    "exports.EVENTS": "the same",
    "exports.ROWS": "an operator exports one namespace by name, or all; each row says whose",
    "exports.WITHOUT_ACTIVITY": "the same",
    "tombstones.CLAIM_OLD": "a purge takes what was forgotten long ago, whosever it is; each row says whose",
    "uses.DROP_OLD": "lets go of what is long ago, whosever it is",
    "tombstones.COUNT_OLD": "counts what a purge has still to do",
    "tallies.SETTLE": "adds what changed to the totals of all tenants; each row says whose",
    "tally_history.DUE": "notes how much is due, for each namespace where that changed",
    "tally_history.THIN": "lets go of what is long ago, whosever it is",
    "tally_history.LET_GO": "the same",
    "namespaces.FIND": "one tenant, whom it finds by name",
    "relations.EXAMINE": "beat has relations fade in all namespaces; a key says whose each is",
    "relations.MATERIALISE": "the same",
    "relations.PREVIEW": "the same without changing them",
    "janitors.DUE_NAMESPACES": "asks in which tenants something is due",
    "likenesses.UNCOMPARED_NAMESPACES": "asks which tenants have something to compare",
    "languages.HOLDS_FACTS": "one language stems everybody's words",
    "languages.REBUILD": "the same",
    "measures.HELD": "an operator watches the whole database, in figures without words",
    "measures.OLDEST_DUE": "the same",
    "signatures.LARGE": "asks which tenants are large",
}
"""Statements that are no tenant's own, each with its reason."""


def loaded_by(*modules: str, among: list[str]) -> list[str]:
    """Return which of those modules a fresh process has loaded after importing `modules`."""
    program = f"import sys, {', '.join(modules)}; print(*[name for name in {among!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return answer.stdout.split()


def strings(module: Path) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of every string in a module that is a statement on a tenant's table; inline ones by line."""
    names: dict[ast.AST, str] = {}
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            names[node.value] = target.id if isinstance(target, ast.Name) else ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_statement(node.value):
            yield f"{module.stem}.{names.get(node, f'line {node.lineno}')}", node.value


def is_statement(text: str) -> bool:
    return bool(STATEMENT.match(text) and TOUCHES.search(text))


STATEMENTS = dict(sorted(one for module in WORKERS.rglob("*.py") for one in strings(module)))


@pytest.mark.parametrize(
    "module", ["workers.core.tiers", "workers.core.fading", "workers.settings", "api.cli", "workers.intake"]
)
def test_a_light_import_loads_no_machine_learning(module: str) -> None:
    assert loaded_by(module, among=HEAVY) == []


def test_recalling_needs_no_torch() -> None:
    assert loaded_by("workers.recall", "workers.embedding", among=["torch", "sentence_transformers"]) == []


def test_the_core_knows_neither_database_nor_queue_nor_settings() -> None:
    assert len(CORE) >= 10
    assert loaded_by(*CORE, among=IMPURE) == []


@pytest.mark.parametrize("module", sorted((WORKERS / "core").glob("*.py")), ids=lambda module: module.stem)
def test_the_core_has_neither_clock_nor_environment(module: Path) -> None:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert not {name.split(".")[0] for name in imported} & {"time", "datetime", "os", "random", "logging", "socket"}


def test_the_statements_on_tenants_tables_are_found() -> None:
    assert len(STATEMENTS) >= 30
    assert {"facts.ADD", "activity.LOCK", "vectors.READ", "signatures.NEAREST", "lexemes.COUNT"} <= STATEMENTS.keys()


def test_each_stands_in_a_constant() -> None:
    assert [name for name in STATEMENTS if not name.split(".")[1].isupper()] == []


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - ACROSS_TENANTS.keys()))
def test_a_statement_on_a_tenants_table_carries_the_namespace(name: str) -> None:
    assert RESTRICTED.search(STATEMENTS[name]), STATEMENTS[name]


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_tables_are_joined_by_namespace(name: str) -> None:
    for table in JOINED.findall(STATEMENTS[name]):
        assert re.search(rf"\bjoin {table} on {table}\.namespace = ", STATEMENTS[name])


def test_every_exception_is_still_one() -> None:
    assert ACROSS_TENANTS.keys() <= STATEMENTS.keys()
    assert [name for name in ACROSS_TENANTS if RESTRICTED.search(STATEMENTS[name])] == []


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
