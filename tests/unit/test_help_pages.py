"""The help pages: links resolve in the repository and at `/help`, and tables agree with the code."""

import re
import weakref
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import ebb
import pytest
from ebb import Memory
from ebb.celery import route
from typer.main import get_command

from api.cli import command_line
from api.http import app
from api.http.dashboard import help_pages
from api.mcp.tools import BY_NAME
from workers.core import relevance
from workers.settings import Settings
from workers.storage import schema

ROOT = Path(__file__).parents[2]
FILES = sorted(help_pages.FOLDER.rglob("*.md"))
LINK = re.compile(r"!?\[[^]]*]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def prose(path: Path) -> str:
    return CODE.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    return {help_pages.slug(heading) for heading in HEADING.findall(prose(path))}


def rows(name: str) -> list[list[str]]:
    """Return the cells of all table rows of a page, without code marks."""
    lines = (help_pages.FOLDER / f"{name}.md").read_text(encoding="utf-8").splitlines()
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


@pytest.mark.parametrize("path", [*FILES, ROOT / "README.md"], ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_page_resolves_in_the_repository(path: Path) -> None:
    for link in LINK.findall(prose(path)):
        parts = urlsplit(link)
        assert not parts.scheme, link
        target = (path.parent / parts.path).resolve() if parts.path else path
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        assert not parts.fragment or parts.fragment in anchors(target), link


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_page_links_only_to_what_is_served_at_help(path: Path) -> None:
    for link in LINK.findall(prose(path)):
        target = help_pages.address(link, str(path.parent.relative_to(help_pages.FOLDER)))
        served = target.startswith((help_pages.ADDRESS, "#")) or Path(link).parts[0] == "images"
        assert served, link


@pytest.mark.parametrize("name", help_pages.names())
def test_a_page_is_rendered_with_a_title_and_without_anything_inline(name: str) -> None:
    found = help_pages.read(name)
    assert found is not None
    assert found.title != name
    assert found.html.count("<h1") == 1
    assert not re.search(r"style=|<script|<style", found.html)


def test_the_index_lists_every_page_once() -> None:
    listed = [target for target, _ in help_pages.contents()]
    assert len(listed) == len(set(listed))
    assert set(listed) == {help_pages.address(str(path.relative_to(help_pages.FOLDER))) for path in FILES}


def test_a_page_that_does_not_exist_is_not_read() -> None:
    assert help_pages.read("nothing") is None
    assert help_pages.read("../docs/start") is None


class Address(str):
    """A text of which is seen whether it is still kept."""

    __slots__ = ("__weakref__",)


def test_what_names_no_page_is_not_kept_in_memory() -> None:
    wanted = Address("made up")
    kept = weakref.ref(wanted)
    assert help_pages.read(wanted) is None
    del wanted
    assert kept() is None


def test_headings_get_the_anchors_that_repositories_give_them() -> None:
    assert help_pages.slug("See a year in a minute") == "see-a-year-in-a-minute"
    assert help_pages.slug("`EBB_HOST`, and keys") == "ebb_host-and-keys"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def default(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_the_settings_page_lists_every_setting_once_with_its_default() -> None:
    listed = [(row[0], row[1]) for row in rows("settings") if len(row) == 3 and row[0].startswith("EBB_")]
    known = [(f"EBB_{name.upper()}", default(field.default)) for name, field in Settings.model_fields.items()]
    assert sorted(listed) == sorted(known)


def test_the_default_floors_of_relevance_are_those_of_the_models() -> None:
    models = {"hashing": relevance.HASHING, "onnx": relevance.ONNX, "others": relevance.STATIC}
    listed = {row[0]: tuple(map(float, row[1:])) for row in rows("recall") if row[0] in models and len(row) == 4}
    assert listed == {name: model.floors for name, model in models.items()}


def test_the_settings_page_knows_no_variable_that_does_not_exist() -> None:
    known = {f"EBB_{name.upper()}{file}" for name in [*Settings.model_fields, "NAME"] for file in ("", "_FILE")}
    known.add("EBB_TEST_CITUS_URL")  # which only tests read
    for path in [*FILES, ROOT / "README.md"]:
        assert set(re.findall(r"EBB_(?!TEST_)[A-Z_]+[A-Z]", path.read_text(encoding="utf-8"))) <= known, path


def test_the_page_of_the_command_line_lists_every_command() -> None:
    listed = [row[0].removeprefix("ebb ") for row in rows("cli") if row[0].startswith("ebb ")]
    assert sorted(listed) == sorted(get_command(command_line()).commands)  # type: ignore[attr-defined]


def test_pages_name_only_commands_and_options_that_exist() -> None:
    commands = get_command(command_line()).commands  # type: ignore[attr-defined]
    for path in [*FILES, ROOT / "README.md"]:
        text = path.read_text(encoding="utf-8")
        for line in re.findall(r"^\$ ebb (.+)$", text, re.MULTILINE) + re.findall(r"`ebb ([a-z][^`]*)`", text):
            name, *words = line.partition("#")[0].split()
            assert name in commands, (path, line)
            command = commands[name]
            if words and words[0] in getattr(command, "commands", {}):
                command = command.commands[words[0]]
            options = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
            named = {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)}
            assert named <= options, (path, line)


def test_the_page_of_http_lists_every_route() -> None:
    listed = {row[0] for row in rows("http") if " /" in row[0]}
    document = app.openapi()["paths"]
    assert listed == {f"{method.upper()} {path}" for path, operations in document.items() for method in operations}


def test_the_page_of_celery_names_tasks_that_programs_send_to_these_queues() -> None:
    listed = {row[0]: re.findall(r"[a-z]+\.[a-z_]+", row[1]) for row in rows("celery")[2:]}
    assert {name: route(name) for names in listed.values() for name in names} == {
        name: {"queue": queue, "serializer": "json"} for queue, names in listed.items() for name in names
    }


def test_the_page_of_mcp_lists_every_tool() -> None:
    listed = {name for row in rows("mcp")[2:] for name in re.findall(r"[a-z]+", row[0])}
    assert listed == BY_NAME.keys()


def test_the_page_of_python_lists_every_method_of_an_operation() -> None:
    named = [name for row in rows("python")[2:10] for name in re.findall(r"[a-z_]+", row[1])]
    methods = {name for name in dir(Memory) if not name.startswith("_")}
    assert sorted(named) == sorted(methods - {"accept", "close", "namespace", "options"})


def test_the_page_of_python_lists_every_error_of_the_library() -> None:
    listed = {row[0] for row in rows("python") if row[0].endswith("Error")}
    assert listed == {name for name in ebb.__all__ if name.endswith("Error")} - {"EbbError"}


def test_pages_show_the_version_of_the_schema() -> None:
    shown = {
        path.name: found
        for path in [*FILES, ROOT / "README.md"]
        if (found := re.findall(r"The schema has version (\d+)", path.read_text(encoding="utf-8")))
    }
    assert shown == {name: [str(schema.version())] for name in ("README.md", "start.md", "first-minutes.md")}
