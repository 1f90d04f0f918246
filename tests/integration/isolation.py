"""Whether PostgreSQL restricts each table of a statement to a namespace: what its own plan says, not the SQL's text."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

PLACEHOLDER = re.compile(r"%\((\w+)\)[sbt]")
CONDITIONS = ("Index Cond", "Recheck Cond", "Filter")
MANY = re.compile(r"ANY \(|\d|'")
"""Several namespaces, or a certain one."""

JOINS = ("Hash Cond", "Merge Cond", "Join Filter")
BOTH = {"Outer", "Inner"}
RESTRICTED_SIDES = {
    "Inner": BOTH, "Semi": BOTH, "Right Semi": BOTH,
    "Left": {"Inner"}, "Anti": {"Inner"}, "Right": {"Outer"}, "Right Anti": {"Outer"},
}  # fmt: skip
"""Of which of its two sides a join leaves only rows that satisfy its condition; of others, of neither."""

ALL_NAMESPACES = re.compile(r"%\((?:namespace|own)\)s(?:::int)? is null")
"""What some statements of passes and of the doctor ask, which serve one namespace or all; here one is given."""

KEYS = {"namespaces": ("id", "name")}
"""Columns of tables by which a statement chooses a namespace, where it is not `namespace`."""

TYPES = {"now": "timestamptz", "namespace": "integer", "one": "uuid", "two": "uuid", "most_related": "bigint"}
"""What psycopg says of values whose type PostgreSQL cannot conclude from the statement."""


def explainable(statement: str) -> str:
    """Return a statement with numbered parameters, as EXPLAIN takes them."""
    numbers: dict[str, int] = {}
    one = ALL_NAMESPACES.sub("false", statement).replace("name = %(namespace)s", "name = %(namespace)s::text")

    def numbered(match: re.Match[str]) -> str:
        name = match.group(1)
        given = f"${numbers.setdefault(name, len(numbers) + 1)}"
        typed = one[match.end() : match.end() + 2] == "::"
        return given if typed or name not in TYPES else f"{given}::{TYPES[name]}"

    return "explain (generic_plan, verbose, costs off, format json) " + PLACEHOLDER.sub(numbered, one).replace(
        "%%", "%"
    )


@dataclass
class Restrictions:
    """The tables that a plan reads, by alias, and what it demands the namespace of each to be equal to."""

    tables: dict[str, str] = field(default_factory=dict)
    equal: dict[str, set[str]] = field(default_factory=dict)

    def unrestricted(self) -> set[str]:
        """Return the tables of which rows of any namespace are read: nothing ties them to a parameter."""
        return {self.tables[alias] for alias in self._unrestricted()}

    def groups(self) -> list[set[str]]:
        """Return the unrestricted tables, grouped by those that are joined by namespace."""
        groups, left = [], self._unrestricted()
        while left:
            group = {left.pop()}
            while more := {alias for alias in left if any(self._are_joined(alias, other) for other in group)}:
                group |= more
                left -= more
            groups.append({self.tables[alias] for alias in group})
        return groups

    def _are_joined(self, one: str, other: str) -> bool:
        return one in self.equal[other] or other in self.equal[one]

    def _unrestricted(self) -> set[str]:
        tied = {
            alias
            for alias in self.tables
            if any(other.partition(".")[0] not in self.tables for other in self.equal[alias])
        }
        while more := {alias for alias in self.tables.keys() - tied if self.equal[alias] & tied}:
            tied |= more
        return self.tables.keys() - tied


def restrictions(plan: dict[str, Any], tenants: set[str]) -> Restrictions:
    """Return what a plan demands of the namespaces of tenants' tables."""
    found = Restrictions()
    for node in nodes(plan):
        if node.get("Relation Name") in tenants and node["Node Type"] != "ModifyTable":
            found.tables[node["Alias"]] = node["Relation Name"]
            found.equal.setdefault(node["Alias"], set())
    for node in nodes(plan):
        if node.get("Alias") in found.tables:
            _note(found, node, CONDITIONS, {node["Alias"]})
        for side in RESTRICTED_SIDES.get(node.get("Join Type", ""), ()):
            children = [child for child in node.get("Plans", []) if child.get("Parent Relationship") == side]
            _note(found, node, JOINS, {one["Alias"] for child in children for one in nodes(child) if "Alias" in one})
    return found


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every node of a plan."""
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def _note(found: Restrictions, node: dict[str, Any], kinds: tuple[str, ...], aliases: set[str]) -> None:
    for kind in kinds:
        for one, other in equalities(node.get(kind, "")):
            for own, value in ((one, other), (other, one)):
                alias, _, column = own.partition(".")
                if alias in aliases & found.tables.keys() and column in _keys(found, alias) and not MANY.match(value):
                    found.equal[alias].add(_table(found, value))


def _keys(found: Restrictions, alias: str) -> Sequence[str]:
    """Return the columns of a table that say to which namespace a row belongs."""
    return KEYS.get(found.tables[alias], ("namespace",))


def _table(found: Restrictions, value: str) -> str:
    """Return the alias of the table whose namespace a value is, or else the value."""
    alias, _, column = value.partition(".")
    return alias if alias in found.tables and column in _keys(found, alias) else value


def equalities(condition: str) -> Iterator[tuple[str, str]]:
    """Yield both sides of each equality that must hold whatever else does: of an `or`, what all alternatives demand."""
    for conjunct in split(condition, " AND "):
        alternatives = split(conjunct, " OR ")
        if len(alternatives) > 1:
            yield from set.intersection(*(set(equalities(one)) for one in alternatives))
            continue
        sides = [one.replace(" + 0", "").strip("()") for one in split(conjunct, " = ")]
        if len(sides) == 2:
            yield sides[0], sides[1]


def split(condition: str, separator: str) -> list[str]:
    """Return the parts of a condition between a separator that stands outside of any parentheses."""
    condition = _bare(condition)
    parts, depth, begin = [], 0, 0
    for place, letter in enumerate(condition):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and condition.startswith(separator, place):
            parts.append(condition[begin:place])
            begin = place + len(separator)
    return [*parts, condition[begin:]]


def _bare(condition: str) -> str:
    """Return a condition without parentheses around all of it."""
    depth = 0
    for place, letter in enumerate(condition):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and place < len(condition) - 1:
            return condition
    return _bare(condition[1:-1]) if condition.startswith("(") else condition
