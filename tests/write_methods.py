"""Write `ebb/methods.pyi`, what type checkers and editors see of the library's methods, from the contract.

Run by `make golden`; a test compares the file with the contract.
"""

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

from ebb.contract import values
from ebb.contract.documents import Chunk, ItemQuery, NewItem
from ebb.contract.facts import NewFact, StoreMany
from ebb.contract.operation import Operation
from ebb.contract.recall import Recall, RecallMany
from ebb.methods import Method, Operations
from pydantic import AwareDatetime

FILE = Path(__file__).parents[1] / "api" / "clients" / "python" / "ebb" / "methods.pyi"
NAMED = {repr(kind): name for name, kind in vars(values).items() if get_origin(kind) is Literal}
PLAIN = {
    UUID: "UUID | str",
    AwareDatetime: "datetime | str",
    NoneType: "None",
    Any: "Any",
    Chunk: "Mapping[str, str]",
    NewItem: "NewItem | Mapping[str, Any]",
    ItemQuery: "ItemQuery | Mapping[str, Any]",
}
OWN = {
    (StoreMany, "facts"): "Sequence[NewFact | str | Mapping[str, Any]]",
    (RecallMany, "queries"): "Sequence[Recall | str | Mapping[str, Any]]",
}
"""Types that the contract leaves open, so that what is wrong with one fact keeps out no other."""

HEAD = '''"""Every operation of the contract as a method; `python -m tests.write_methods` writes this file."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Literal
from uuid import UUID

from ebb.contract.operation import Operation
'''


KEY = "idempotency_key: str | None = None"


def annotation(kind: Any) -> str:
    """Return what a caller may give for a parameter of this type."""
    origin, of = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return annotation(of[0])
    if repr(kind) in NAMED:
        return NAMED[repr(kind)]
    if origin in (Union, UnionType):
        return " | ".join(dict.fromkeys(part for one in of for part in annotation(one).split(" | ")))
    if origin in (list, dict):
        return f"{'Sequence[' if origin is list else 'Mapping[str, '}{annotation(of[-1])}]"
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, of))}]"
    return PLAIN.get(kind) or kind.__name__


def parameters(operation: Operation) -> Iterator[str]:
    """Yield the parameters of a method: those that are needed by their place, or the first; all others by name."""
    fields = operation.params.model_fields
    needed = [name for name in operation.over_http if fields[name].is_required()]
    by_place = needed or list(operation.over_http[:1])
    for name in by_place:
        yield parameter(operation, name)
    by_name = [parameter(operation, name) for name in operation.over_http if name not in by_place]
    by_name += [KEY] if operation.scope != "read" else []
    yield from ["*", *by_name] if by_name else []


def parameter(operation: Operation, name: str) -> str:
    """Return a parameter as a signature has it."""
    field = operation.params.model_fields[name]
    kind = OWN.get((operation.params, name)) or annotation(field.annotation)
    if field.is_required():
        return f"{name}: {kind}"
    default = field.get_default(call_default_factory=True)
    is_plain = isinstance(default, bool | int | float | str | None)
    return f"{name}: {kind} = {default!r}" if is_plain else f"{name}: {kind} = ..."


def method(name: str, operation: Operation, kind: str) -> str:
    """Return a method: its signature and its docstring."""
    doc = inspect.cleandoc(operation.params.__doc__ or "").replace("\n", "\n        ")
    closing = "\n        " if "\n" in doc else ""
    arguments = ", ".join(["self", *parameters(operation)])
    return f'    {kind} {name}({arguments}) -> {operation.answer.__name__}:\n        """{doc}{closing}"""\n'


def stub() -> str:
    """Return the whole file in the house's form."""
    methods = {name: one.operation for name, one in vars(Operations).items() if isinstance(one, Method)}
    classes = [
        "\n".join(
            [head(name, how)]
            + [f"    {kind} _perform(self, operation: Operation, given: dict[str, Any], {KEY}) -> Any: ..."]
            + [method(own, operation, kind) for own, operation in methods.items()]
        )
        for name, kind, how in (("Operations", "def", ""), ("AsyncOperations", "async def", ", to be awaited"))
    ]
    plain = [f"    {own}: Callable[..., dict[str, Any]]" for own in methods]
    body = "\n".join([*classes, head("JsonOperations", ", with plain JSON as its answer"), *plain]) + "\n"
    return formatted(HEAD + "".join(imports(body, methods.values())) + body)


def head(name: str, how: str) -> str:
    """Return the first lines of a class."""
    return f'\nclass {name}:\n    """Every operation as a method{how}."""\n\n    options: ClassVar[tuple[str, ...]]\n'


def imports(body: str, operations: Any) -> Iterator[str]:
    """Yield the imports of what signatures name."""
    where = {one.answer.__name__: one.answer.__module__ for one in operations}
    where |= dict.fromkeys(NAMED.values(), values.__name__)
    where |= {one.__name__: one.__module__ for one in (NewFact, NewItem, ItemQuery, Recall)}
    named = sorted(name for name in where if re.search(rf"\b{name}\b", body))
    for module in sorted({where[name] for name in named}):
        yield f"from {module} import {', '.join(name for name in named if where[name] == module)}\n"


def formatted(text: str) -> str:
    """Return a stub as ruff writes it."""
    ruff = Path(sys.executable).with_name("ruff")
    given = [str(ruff), "format", "--quiet", "--stdin-filename", str(FILE), "-"]
    return subprocess.run(given, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    FILE.write_text(stub(), encoding="utf-8")
