"""LangGraph store for long-term memory, which keeps documents as items of one Ebb namespace.

>>> store = EbbStore(Memory("http://127.0.0.1:5556", namespace="mira"), index={"fields": ["text"]})
>>> store.put(("users", "1"), "drink", {"text": "likes green tea"})
>>> store.search(("users",), query="What does she drink?")[0].value
{'text': 'likes green tea'}
"""

import asyncio
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from ebb.contract.documents import Item as Found
from ebb.contract.values import MOST_QUESTIONS
from ebb.frameworks import batches, extra, synchronous
from ebb.memory import Memory

with extra("langgraph"):
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        IndexConfig,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        validate_op_namespace,
    )
    from langgraph.store.base.embed import get_text_at_path, tokenize_path

WHOLE = "$"
BEYOND = 10**400
"""An integer that is greater than every float; it stands for infinity in filters, as JSON has none."""

PUTS = 200
"""The most puts of a task."""


class EbbStore(BaseStore):
    """A LangGraph store over a `Memory`, within its namespace.

    LangGraph's namespaces are paths in it. Documents are returned unchanged. Workers embed them, so `index` only takes
    `fields`; without it, the whole document is searched. A `ttl` counts from the last use: expired items are hidden at
    once, and forgotten later. All reads of a batch see the state before it.
    """

    supports_ttl = True
    __slots__ = ("_fields", "_memory", "ttl_config")

    def __init__(self, memory: Memory, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None) -> None:
        given = dict(index or {})
        if given.keys() - {"fields"}:
            raise ValueError(
                f"index: {', '.join(sorted(given.keys() - {'fields'}))} cannot be given, for Ebb's workers embed as "
                "EBB_EMBEDDER says; give `fields`, or leave index out."
            )
        self._memory = synchronous(memory)
        self._fields: list[str] = list(given.get("fields") or [WHOLE])  # type: ignore[call-overload]  # LangGraph types it as None too
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Perform operations; return their results in order. Of several puts to one place, the last wins.

        Raises:
            InvalidNamespaceError: an operation has a label that LangGraph forbids; nothing was done.
        """
        given = list(ops)
        for op in given:
            validate_op_namespace(op)
        found = self._found([op for op in given if isinstance(op, GetOp | SearchOp)])
        results = [self._list(op) if isinstance(op, ListNamespacesOp) else self._result(op, found) for op in given]
        self._put([op for op in given if isinstance(op, PutOp)])
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Perform operations in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _found(self, ops: Sequence[GetOp | SearchOp]) -> Iterator[list[Found]]:
        """Yield the items that each of these operations reads, in order; many are read by one task."""
        queries = [self._query(op) for op in ops]
        for first in range(0, len(queries), MOST_QUESTIONS):
            part = queries[first : first + MOST_QUESTIONS]
            pages = [self._memory.items(**part[0])] if len(part) == 1 else self._memory.many_items(part).answers
            yield from (page.items for page in pages)

    def _query(self, op: GetOp | SearchOp) -> dict[str, Any]:
        if isinstance(op, GetOp):
            return {"path": list(op.namespace), "key": op.key, "limit": 1, "refresh": op.refresh_ttl}
        given = {"query": op.query, "filter": _sendable(op.filter), "limit": max(op.limit, 1), "offset": op.offset}
        return {"path": list(op.namespace_prefix), "refresh": op.refresh_ttl, **given}

    @staticmethod
    def _result(op: Op, found: Iterator[list[Found]]) -> Result:
        """Return the result of an operation; reads take the next items in `found`."""
        match op:
            case PutOp():
                return None
            case GetOp():
                return next((Item(**_item(one)) for one in next(found)), None)
            case SearchOp():
                return [SearchItem(**_item(one), score=one.score) for one in next(found)][: max(op.limit, 0)]
        raise ValueError(f"{type(op).__name__} is no operation of a store.")

    def _list(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        paths = [tuple(path) for path in self._memory.item_paths().paths]
        wanted = [path for path in paths if all(_matches(path, one) for one in op.match_conditions or ())]
        cut = sorted({path[: op.max_depth] for path in wanted})
        return cut[op.offset : op.offset + op.limit]

    def _put(self, ops: Sequence[PutOp]) -> None:
        last = {(op.namespace, op.key): op for op in ops}.values()
        for part in batches([self._item(op) for op in last if op.value is not None], PUTS):
            self._memory.put_items(part)
        for op in last:
            if op.value is None:
                self._memory.drop_item(op.namespace, op.key)

    def _item(self, op: PutOp) -> dict[str, Any]:
        value: Any = dict(op.value) if isinstance(op.value, Mapping) else op.value
        text = None if op.index is False else text_of(value, self._fields if op.index is None else op.index)
        own = {"path": list(op.namespace), "key": op.key, "document": json.dumps(value), "text": text}
        return own if op.ttl is None else own | {"ttl": op.ttl}


def _sendable(wanted: Any) -> Any:
    """Return a filter that JSON can represent: infinity becomes `BEYOND`, and NaN a value that equals nothing."""
    if isinstance(wanted, Mapping):
        return {name: _sendable(one) for name, one in wanted.items()}
    if isinstance(wanted, list | tuple):
        return [_sendable(one) for one in wanted]
    if not isinstance(wanted, float) or math.isfinite(wanted):
        return wanted
    return ["not a number"] if math.isnan(wanted) else BEYOND if wanted > 0 else -BEYOND


def text_of(value: Mapping[str, Any], fields: Sequence[str]) -> str | None:
    """Return the text of these fields of a document, one line each; None if it has none of them.

    A lone surrogate, which no text of Ebb may have, becomes a question mark.
    """
    found = [text for field in fields for text in _texts(value, field)]
    return "\n".join(found).encode(errors="replace").decode() or None


def _texts(value: Mapping[str, Any], field: str) -> list[str]:
    return ["\n".join(_words(value))] if field == WHOLE else get_text_at_path(dict(value), tokenize_path(field))


def _words(value: Any) -> Iterable[str]:
    """Yield the names and values of a document as text, without JSON syntax."""
    if not isinstance(value, Mapping):
        yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return
    for name, one in value.items():
        yield f"{name}: {' '.join(_words(one))}"


def _item(found: Found) -> dict[str, Any]:
    return {
        "value": json.loads(found.document),
        "key": found.key,
        "namespace": tuple(found.path),
        "created_at": datetime.fromisoformat(found.created_at),
        "updated_at": found.updated_at,
    }


def _matches(path: tuple[str, ...], condition: MatchCondition) -> bool:
    """Tell whether a path begins or ends as wanted, where `*` is any label."""
    wanted, kind = condition.path, condition.match_type
    if kind not in ("prefix", "suffix"):
        raise ValueError(f"{kind!r} is no way to match a namespace; give prefix or suffix.")
    if len(path) < len(wanted):
        return False
    part = path[: len(wanted)] if kind == "prefix" else path[len(path) - len(wanted) :]
    return all(asked in ("*", label) for label, asked in zip(part, wanted, strict=True))
