"""The SQL statements of the code that touch tables with rows of tenants."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import workers

WORKERS = Path(workers.__file__).parent

TENANTS = (
    r"(?:facts|activity|anchors|remembered|vectors|signatures|events|forgotten_hashes|lexemes|contradictions|tallies"
    r"|tally_changes|tally_history|links|relations|likenesses|janitors|documents|uses|deep)"
)
STATEMENT = re.compile(r"\s*(?:select|insert|update|delete|truncate|with|create|copy|merge|alter|lock)\b")
TOUCHES = re.compile(
    rf"\b(?:from|join|into|update|truncate|table|on|using)\s+(?:only\s+)?{TENANTS}\b|truncate.*\b{TENANTS}"
)

ACROSS_TENANTS = {
    "activity.ANCHORS": "the part that statements share, each of which says whose rows it wants",
    "links.LINK": "the same",
    "relations.RELATION": "the same",
    "visible.VISIBLE": "the same",
    "limits.HELD_BY_NAMESPACE": "tells the operator in which namespaces facts wait for a decision",
    "facts.SIZES": "reads how large the tables are, and how many facts are in them",
    "facts.NEXT_UNESTIMATED": "finds the tenant whose facts are estimated next",
    "vectors.PENDING": "one task embeds what is pending of all tenants; each row says whose",
    "vectors.COUNT_PENDING": "counts what that task has still to do",
    "vectors.MARK_ALL_PENDING": "another embedder makes the vectors of all tenants useless",
    "vectors.CLEAR": "the same",
    "vectors.CLEAR_DEEP": "the same",
    "deep.UNPACKED": "reads what is given to it, and no table",
    "namespaces.FACTS_DUE": "the namespaces whose settings changed are looked at by one statement; each row says whose",
    "due.ALL_DUE": "an operator's rules of fading hold for all tenants",
    "faults.FOLLOWING": "the doctor walks over the facts of one tenant, or of all; each row says whose",
    "faults.EMPTY": "asks which tenants hold no fact",
    "deep.EXPORT": "an operator exports one namespace by name, or all; each row says whose",
    "exports.LINKS": "an operator exports one namespace by name, or all; each row says whose",
    "exports.CONTRADICTIONS": "the same",
    "exports.LIKENESSES": "the same",
    "exports.DOCUMENTS": "the same",
    "exports.RELATIONS": "the same",
    "exports.DELETION_REQUESTS": "the same",
    "exports.OWN": "the same",
    "exports.EVENTS": "the same",
    "exports.ROWS": "an operator exports one namespace by name, or all; each row says whose",
    "exports.WITHOUT_ACTIVITY": "the same",
    "activity.DROP_OLD_USES": "lets go of what is long ago, whosever it is",
    "tallies.SETTLE": "adds what changed to the totals of all tenants; each row says whose",
    "time_series.DUE": "notes how much is due, for each namespace where that changed",
    "time_series.THIN_TALLIES": "lets go of what is long ago, whosever it is",
    "time_series.DROP_OLD_TALLIES": "the same",
    "namespaces.FIND": "finds one tenant by name",
    "relations.EXAMINE": "beat has relations fade in all namespaces; a key says whose each is",
    "relations.MATERIALISE": "the same",
    "relations.PREVIEW": "the same without changing them",
    "janitors.DUE_NAMESPACES": "asks in which tenants something is due",
    "duplicate_pairs.UNCOMPARED_NAMESPACES": "asks which tenants have something to compare",
    "words.HOLDS_FACTS": "one language stems the words of all tenants",
    "words.REBUILD": "the same",
    "server.FACT_TOTALS": "an operator watches the whole database, in figures without words",
    "server.OLDEST_DUE": "the same",
    "limits.TAKE_BACK": "a clock that is set right is right for all tenants; each row is joined to its own",
    "signatures.LARGE": "asks which tenants are large",
}
"""Statements that concern several tenants, each with its reason."""


def strings(module: Path) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of every string in a module that is such a statement; inline ones by line."""
    names: dict[ast.AST, str] = {}
    parts: set[ast.AST] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant | ast.JoinedStr):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            names[node.value] = target.id if isinstance(target, ast.Name) else ""
        if isinstance(node, ast.JoinedStr):
            parts.update(node.values)
            if names.get(node, "").isupper() and is_statement(composed := value(module, names[node])):
                yield f"{module.stem}.{names[node]}", composed
        if isinstance(node, ast.Constant) and node not in parts and is_statement(str(node.value)):
            yield f"{module.stem}.{names.get(node, f'line {node.lineno}')}", str(node.value)


def value(module: Path, name: str) -> str:
    """Return a constant composed of others."""
    path = module.relative_to(WORKERS.parent).with_suffix("").parts
    return str(getattr(importlib.import_module(".".join(path)), name))


def is_statement(text: str) -> bool:
    return bool(STATEMENT.match(text) and TOUCHES.search(text))


STATEMENTS = dict(sorted(one for module in WORKERS.rglob("*.py") for one in strings(module)))
