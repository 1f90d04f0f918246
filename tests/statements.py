"""The SQL statements of the code that touch tables with rows of tenants."""

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import workers

WORKERS = Path(workers.__file__).parent

TENANTS = (
    r"(?:facts|activity|anchors|remembered|vectors|signatures|events|forgotten_hashes|lexemes|contradictions|tallies"
    r"|tally_changes|tally_history|links|relations|likenesses|janitors|documents|uses|deep|occurrences|api_keys|folders"
    r"|erasures|endings|decay_allowances|merged_texts)"
)
STATEMENT = re.compile(r"\s*(?:select|insert|update|delete|truncate|with|create|copy|merge|alter|lock)\b")
TOUCHES = r"\b(?:from|join|into|update|truncate|table|on|using)\s+(?:only\s+)?{0}\b|truncate.*\b{0}"

ACROSS_TENANTS = {
    "activity.ANCHORS": "a part shared by statements that each restrict the namespace",
    "deep.DEEP": "the same",
    "links.LINK": "the same",
    "supersession.GIVEN_END": "the same",
    "relations.RELATION": "the same",
    "visible.VISIBLE": "the same",
    "limits.HELD_BY_NAMESPACE": "lists for the operator the namespaces in which facts wait for a decision",
    "limits.CORRECT_HELD": "counts the held facts of the given namespaces; rows have the namespace",
    "facts.OWN_BYTES": "the mean size of some facts of all namespaces",
    "facts.COUNTED": "counts the facts of all namespaces, for the mean size of one",
    "facts.NEXT_UNESTIMATED": "finds the tenant whose facts are estimated next",
    "vectors.PENDING": "one task embeds the pending facts of all tenants; rows have the namespace",
    "vectors.COUNT_PENDING": "counts the facts left to that task",
    "vectors.MARK_ALL_PENDING": "a change of embedder invalidates the vectors of all tenants",
    "vectors.CLEAR": "the same",
    "vectors.CLEAR_DEEP": "the same",
    "deep.LOCK_ALL": "a change of the language applies to the words of all tenants",
    "deep.STEMMED": "reads its parameters and no table",
    "deep.UNPACKED": "reads its parameters and no table",
    "__init__.END_OF_PART": "a migration changes facts of all tenants; rows have the namespace",
    "due.FACTS_DUE": "changed settings of namespaces in one statement; an operator's decay rules apply to all tenants",
    "faults.FOLLOWING": "the doctor examines the facts of one tenant or of all; rows have the namespace",
    "faults.EMPTY": "lists tenants without facts",
    "deep.EXPORT": "an operator exports one namespace by name, or all; rows have the namespace",
    "exports.OWN": "an operator exports one namespace by name, or all; rows have the namespace",
    "exports.EVENTS": "the same",
    "exports.ROWS": "an operator exports one namespace by name, or all; rows have the namespace",
    "exports.SHOWN": "the same",
    "exports.WITHOUT_ACTIVITY": "the same",
    "activity.DROP_OLD_USES": "deletes old rows of all tenants",
    "tallies.SETTLE": "adds changes to the totals of all tenants; rows have the namespace",
    "tallies.COUNTS": "counts the facts of the given namespaces; rows have the namespace",
    "tallies.DUE_CHANGED": "records the number of due facts of each changed namespace",
    "tallies.THIN_TALLIES": "deletes old rows of all tenants",
    "tallies.DROP_OLD_TALLIES": "the same",
    "namespaces.FIND": "finds one tenant by name",
    "relations.EXAMINE": "relations of all namespaces fade on schedule; the key has the namespace",
    "relations.MATERIALISE": "the same",
    "relations.PREVIEW": "the same as a preview",
    "runs.DUE_NAMESPACES": "lists tenants with work due",
    "duplicate_pairs.UNCOMPARED_NAMESPACES": "lists tenants with facts to compare",
    "words.HOLDS_FACTS": "one language applies to the words of all tenants",
    "words.REBUILD": "the same",
    "shards.MEASURE": "sizes of the shards for the operator, without texts",
    "server.FACT_TOTALS": "totals of the whole database for the operator, without texts",
    "server.OLDEST_DUE": "the same",
    "limits.REMOVE_GAPS": "a corrected clock concerns all tenants; rows are joined by namespace",
    "signatures.LARGE": "lists large tenants",
    "api_keys.ALL": "publishes the keys of all namespaces to Redis",
    "documents.ALL_REGISTERED": "the folders that workers read; rows have the namespace",
    "exports.OTHER": "a part shared by statements of an operator's export, for one namespace by name or for all",
    "limits.DROP_OLD_ENDINGS": "deletes old rows of all tenants",
    "limits.DROP_ENDINGS_AHEAD": "a corrected clock concerns all tenants",
    "tombstones.ERASURES": "lists erasures of all tenants, whose pages one task vacuums",
    "tombstones.DROP_ERASURES": "the same",
}
"""Statements that concern several tenants, each with its reason."""


def strings(module: Path) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of every string in a module that is a statement; inline ones by line."""
    names: dict[ast.AST, str] = {}
    parts: set[ast.AST] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant | ast.JoinedStr):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            names[node.value] = target.id if isinstance(target, ast.Name) else ""
        if isinstance(node, ast.Assign) and is_derived(node.value):
            (target,) = node.targets
            name = target.id if isinstance(target, ast.Name) else ""
            if name.isupper() and STATEMENT.match(derived := value(module, name)):
                yield f"{module.stem}.{name}", derived
        if isinstance(node, ast.JoinedStr):
            parts.update(node.values)
            if names.get(node, "").isupper() and STATEMENT.match(composed := value(module, names[node])):
                yield f"{module.stem}.{names[node]}", composed
        if isinstance(node, ast.Constant) and node not in parts and STATEMENT.match(str(node.value)):
            yield f"{module.stem}.{names.get(node, f'line {node.lineno}')}", str(node.value)


def is_derived(node: ast.expr) -> bool:
    """Return whether an expression replaces a part of a string, such as a condition of a statement."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "replace"


def value(module: Path, name: str) -> str:
    """Return a constant composed of others."""
    path = module.relative_to(WORKERS.parent).with_suffix("").parts
    return str(getattr(importlib.import_module(".".join(path)), name))


def is_statement(text: str, tables: str = TENANTS) -> bool:
    return bool(STATEMENT.match(text) and re.search(TOUCHES.format(tables), text))


@cache
def every_statement() -> dict[str, str]:
    """Return all statements by name, read once a process needs them: it takes a second."""
    return dict(sorted(one for module in WORKERS.rglob("*.py") for one in strings(module)))


@cache
def on_tenants() -> dict[str, str]:
    return {name: text for name, text in every_statement().items() if is_statement(text)}


@cache
def on_tenants_or_namespaces() -> dict[str, str]:
    """Return also those on the table of namespaces alone: a namespace's settings and counts."""
    of_namespaces = {name: text for name, text in every_statement().items() if is_statement(text, "namespaces")}
    return on_tenants() | of_namespaces
