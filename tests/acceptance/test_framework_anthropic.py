"""Anthropic's memory tool on a real system: commands on files that are items of a namespace."""

from typing import Any

import pytest
from ebb import Memory
from frameworks import need

need("anthropic.lib.tools")

from anthropic.lib.tools import ToolError
from ebb.anthropic import EbbMemoryTool

pytestmark = [pytest.mark.acceptance, pytest.mark.filterwarnings("ignore")]

NOTES = "/memories/notes/tea.md"


@pytest.fixture
def tool(memory: Memory) -> EbbMemoryTool:
    tool = EbbMemoryTool(memory)
    assert tool.call({"command": "create", "path": NOTES, "file_text": "Sencha\nMira likes it\n"}).endswith(NOTES)
    return tool


def call(tool: EbbMemoryTool, command: str, **given: Any) -> str:
    return str(tool.call({"command": command, **given}))


def test_a_file_is_seen_with_its_lines_and_a_folder_with_its_files(tool: EbbMemoryTool) -> None:
    assert tool.to_dict()["name"] == "memory"
    assert "     1\tSencha\n     2\tMira likes it" in call(tool, "view", path=NOTES)
    assert call(tool, "view", path=NOTES, view_range=[2, 2]).endswith("     2\tMira likes it")
    listed = call(tool, "view", path="/memories")
    assert [line.split("\t")[1] for line in listed.splitlines()[1:]] == [
        "/memories", "/memories/notes/", "/memories/notes/tea.md",
    ]  # fmt: skip


def test_a_file_is_changed_moved_and_forgotten(tool: EbbMemoryTool, memory: Memory) -> None:
    call(tool, "str_replace", path=NOTES, old_str="Sencha", new_str="Gyokuro")
    call(tool, "insert", path=NOTES, insert_line=1, insert_text="Uji\n")
    assert "     1\tGyokuro\n     2\tUji\n     3\tMira likes it" in call(tool, "view", path=NOTES)
    assert memory.items(["memories"], query="Who likes Gyokuro?").items[0].key == "tea.md"

    call(tool, "rename", old_path="/memories/notes", new_path="/memories/old")
    assert "Gyokuro" in call(tool, "view", path="/memories/old/tea.md")
    call(tool, "delete", path="/memories/old")
    assert call(tool, "view", path="/memories").splitlines()[1:] == ["0B\t/memories"]
    assert tool.clear_all_memory() == "All memory cleared"


def test_a_file_with_the_name_of_a_folder_is_deleted_and_moved_alone(tool: EbbMemoryTool) -> None:
    below = f"{NOTES}/more.md"
    call(tool, "create", path=below, file_text="Sencha is green.")
    call(tool, "rename", old_path=NOTES, new_path="/memories/tea.md")
    call(tool, "create", path="/memories/tea.md/more.md", file_text="So is Gyokuro.")
    call(tool, "delete", path="/memories/tea.md")
    assert "So is Gyokuro." in call(tool, "view", path="/memories/tea.md/more.md")
    assert "Sencha is green." in call(tool, "view", path=below)


def test_more_files_than_a_call_returns_are_known_and_cleared(
    tool: EbbMemoryTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebb.anthropic.MOST_FACTS", 1)
    call(tool, "create", path="/memories/notes/cake.md", file_text="Plum")
    with pytest.raises(ToolError, match="already exists"):
        call(tool, "create", path=NOTES, file_text="again")
    assert tool.clear_all_memory() == "All memory cleared"
    assert call(tool, "view", path="/memories").splitlines()[1:] == ["0B\t/memories"]


@pytest.mark.slow
def test_files_that_are_too_large_for_one_answer_are_listed_and_cleared(tool: EbbMemoryTool) -> None:
    for number in range(70):
        call(tool, "create", path=f"/memories/plans/{number}.md", file_text=f"{number}{'-' * 500_000}")
    assert len(call(tool, "view", path="/memories/plans").splitlines()) == 72
    assert tool.clear_all_memory() == "All memory cleared"
    assert call(tool, "view", path="/memories").splitlines()[1:] == ["0B\t/memories"]


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("view", {"path": "/memories/none.md"}),
        ("view", {"path": "/etc/passwd"}),
        ("view", {"path": "/memories/../etc"}),
        ("create", {"path": NOTES, "file_text": "again"}),
        ("str_replace", {"path": NOTES, "old_str": "Matcha", "new_str": "x"}),
        ("str_replace", {"path": NOTES, "old_str": "e", "new_str": "x"}),
        ("insert", {"path": NOTES, "insert_line": 9, "insert_text": "x"}),
        ("delete", {"path": "/memories"}),
        ("delete", {"path": "/memories/none.md"}),
        ("rename", {"old_path": "/memories/none.md", "new_path": "/memories/x.md"}),
    ],
)
def test_impossible_commands_are_errors_of_the_tool(tool: EbbMemoryTool, command: str, given: dict[str, Any]) -> None:
    with pytest.raises(ToolError):
        call(tool, command, **given)


def test_no_file_takes_the_place_of_the_folder_of_all(memory: Memory) -> None:
    with pytest.raises(ToolError, match="already exists"):
        call(EbbMemoryTool(memory), "create", path="/memories/", file_text="tea")
