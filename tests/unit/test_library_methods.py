"""Methods of the library: one per operation, typed by the contract, and supported by HTTP."""

import ast
import inspect
import re
from collections.abc import Iterator
from typing import Any

import ebb
import pytest
from ebb import AsyncMemory, Memory
from ebb.contract.operation import EXAMPLE_ID, Answer, Operation, operations
from ebb.contract.retention import Forgot
from ebb.contract.values import NAMESPACE_SCHEMA
from ebb.methods import Method, Operations

from api.http import make_app
from tests.write_methods import FILE, stub

WHOLE = re.compile(r"\^.*\$")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """Return the document of OpenAPI, which takes a second to make."""
    return make_app().openapi()


def test_the_stub_says_what_the_contract_says() -> None:
    assert FILE.read_text(encoding="utf-8") == stub(), "run `make golden`"


@pytest.mark.parametrize("kind", [Memory, AsyncMemory])
def test_help_shows_the_parameters_that_the_stub_has(kind: type[Operations]) -> None:
    name = "AsyncOperations" if kind is AsyncMemory else "Operations"
    (stubbed,) = (one for one in ast.parse(stub()).body if isinstance(one, ast.ClassDef) and one.name == name)
    wanted = {one.name: parameters_of(one) for one in stubbed.body if isinstance(one, FUNCTIONS)}
    del wanted["_perform"]

    shown = {own: inspect.signature(getattr(kind, own)).parameters.values() for own in wanted}
    described = {own: [(one.name, one.kind, one.default is one.empty) for one in them] for own, them in shown.items()}

    assert described == wanted


def test_a_method_has_its_name_and_is_a_coroutine_function_if_it_is_awaited() -> None:
    assert (Memory.recall.__name__, Memory().recall.__qualname__) == ("recall", "Memory.recall")
    assert [inspect.iscoroutinefunction(one.recall) for one in (Memory, Memory(), AsyncMemory, AsyncMemory())] == [
        False, False, True, True,
    ]  # fmt: skip


def test_arguments_by_place_are_those_that_help_shows() -> None:
    for name, method in vars(Operations).items():
        if isinstance(method, Method):
            parameters = inspect.signature(getattr(Memory(), name)).parameters.values()
            shown = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
            assert list(method.operation.arguments(tuple(shown), {})) == shown


def test_the_package_lists_the_names_that_were_not_used_yet() -> None:
    assert set(ebb.__all__) <= set(dir(ebb))


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def parameters_of(method: ast.FunctionDef | ast.AsyncFunctionDef) -> list[tuple[str, Any, bool]]:
    """Return the parameters of a method of the stub: name, kind, and whether it is needed."""
    given = method.args
    by_place = [(one.arg, inspect.Parameter.POSITIONAL_OR_KEYWORD) for one in given.args]
    optional = len(by_place) - len(given.defaults)
    named = [(one.arg, inspect.Parameter.KEYWORD_ONLY, False) for one in given.kwonlyargs]
    return [(*one, place < optional) for place, one in enumerate(by_place)] + named


def test_every_operation_is_a_method_of_the_library() -> None:
    methods = [one.operation.name for one in vars(Operations).values() if isinstance(one, Method)]

    assert sorted(methods) == sorted(operations())


def test_every_operation_has_a_route_that_takes_its_parameters(document: dict[str, Any]) -> None:
    assert {name: missing for name, one in operations().items() if (missing := not_taken(one, document))} == {}


def test_the_id_of_a_route_is_the_name_of_the_method_and_no_other_has_it(document: dict[str, Any]) -> None:
    paths = document["paths"]
    methods = {one.operation.name: name for name, one in vars(Operations).items() if isinstance(one, Method)}
    ids = {name: paths[path][verb.lower()]["operationId"] for name, (verb, path) in routes().items()}
    every = [one["operationId"] for path in paths.values() for one in path.values()]

    assert {name: id_ for name, id_ in ids.items() if id_ != methods[name]} == {"memory.settings": "change_settings"}
    assert len(every) == len(set(every))


def test_the_document_has_only_keywords_of_json_schema_and_patterns_for_whole_texts(document: dict[str, Any]) -> None:
    schemas = list(schemas_of(document))

    assert [one for one in schemas if one.keys() & {"ge", "gt", "le", "lt", "max_length", "min_length"}] == []
    assert {one for schema in schemas if not WHOLE.fullmatch(one := schema.get("pattern", "^$"))} == set()


def test_the_document_says_which_namespaces_there_are(document: dict[str, Any]) -> None:
    parameters = document["paths"]["/memory/facts"]["get"]["parameters"]
    (header,) = (one["schema"] for one in parameters if one["name"] == "X-Ebb-Namespace")

    assert header["anyOf"] == [NAMESPACE_SCHEMA, {"type": "null"}]


def schemas_of(part: Any) -> Iterator[dict[str, Any]]:
    """Yield all schemas in a part of the document."""
    if isinstance(part, dict) and isinstance(part.get("type"), str):
        yield part
    for one in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from schemas_of(one)


def routes() -> dict[str, list[str]]:
    """Return the HTTP method and the path of each operation."""
    return {name: one.route.partition("?")[0].split() for name, one in operations().items()}


def not_taken(operation: Operation, document: dict[str, Any]) -> list[str]:
    """Return the parameters of an operation that its route does not accept."""
    method, path = operation.route.partition("?")[0].split()
    route = document["paths"][path][method.lower()]
    taken = {one["name"] for one in route.get("parameters", [])}
    if "requestBody" in route:
        schema = route["requestBody"]["content"]["application/json"]["schema"]
        name = schema.get("$ref") or schema["anyOf"][0]["$ref"]
        taken |= document["components"]["schemas"][name.rpartition("/")[2]]["properties"].keys()
    return [one for one in operation.over_http if operation.spelled.get(one, one) not in taken]


def test_no_list_in_an_answer_has_plain_dictionaries() -> None:
    plain = [
        f"{model.__name__}.{name}"
        for model in models(Answer)
        for name, field in model.model_fields.items()
        if "list[dict" in str(field.annotation) or "list[Any" in str(field.annotation)
    ]

    assert plain == []


def models(kind: type[Answer]) -> Iterator[type[Answer]]:
    """Yield all subclasses in the contract."""
    for one in kind.__subclasses__():
        if one.__module__.startswith("ebb.contract"):
            yield one
            yield from models(one)


def test_an_entry_of_an_answer_has_attributes_for_what_is_not_said_of_it() -> None:
    (entry,) = Forgot.model_validate({"results": [{"id": EXAMPLE_ID, "action": "forgotten"}]}).results

    assert (entry.action, entry.reason) == ("forgotten", None)
    with pytest.raises(AttributeError, match="moods"):
        _ = entry.moods  # type: ignore[attr-defined]
