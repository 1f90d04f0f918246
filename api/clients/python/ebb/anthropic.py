"""Anthropic's memory tool: Claude's files are items of a namespace.

>>> client.beta.messages.run_tools(model="…", messages=[…], tools=[EbbMemoryTool(memory)]).until_done()
"""

import json
from typing import Any

from ebb.contract.documents import Item
from ebb.contract.values import MOST_FACTS
from ebb.frameworks import AT_ONCE, batches, extra, items_below, synchronous
from ebb.memory import Memory

with extra("anthropic"):
    from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError

ROOT = "memories"
DEPTH = 2
WIDTH = 6
"""Width of line numbers, as in Anthropic's own tool."""


class EbbMemoryTool(BetaAbstractMemoryTool):
    """Files under `/memories`, which `recall` finds too; they end only with a `ttl` in minutes."""

    def __init__(self, memory: Memory, *, ttl: float | None = None) -> None:
        super().__init__()
        self._memory, self._ttl = synchronous(memory), ttl

    def view(self, command: Any) -> str:
        """Return a file with line numbers, or the files of a folder."""
        path = _parts(command.path)
        text = self._read(path)
        if text is None:
            return self._listed(path, command.path)
        lines = text.split("\n")
        first, last = command.view_range or (1, -1)
        shown = lines[max(first, 1) - 1 : len(lines) if last == -1 else last]
        return f"Here's the content of {command.path} with line numbers:\n{_numbered(shown, max(first, 1))}"

    def create(self, command: Any) -> str:
        """Write a new file."""
        path = _parts(command.path)
        if path == [ROOT] or self._files(path):
            raise ToolError(f"File {command.path} already exists")
        self._write(path, command.file_text)
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: Any) -> str:
        """Replace a text that occurs once in a file."""
        path, text = self._file(command.path)
        if text.count(command.old_str) != 1:
            what = "did not appear verbatim" if command.old_str not in text else "appears several times"
            raise ToolError(f"No replacement was performed, old_str `{command.old_str}` {what} in {command.path}.")
        before = text[: text.index(command.old_str)].count("\n")
        changed = text.replace(command.old_str, command.new_str)
        self._write(path, changed)
        start = max(before - 2, 0)
        return f"The memory file has been edited.\n{_numbered(changed.split(chr(10))[start : before + 3], start + 1)}"

    def insert(self, command: Any) -> str:
        """Insert lines after a line of a file."""
        path, text = self._file(command.path)
        lines = text.removesuffix("\n").split("\n") if text else []
        if not 0 <= command.insert_line <= len(lines):
            raise ToolError(f"Invalid `insert_line` parameter: {command.insert_line}. It should be 0 to {len(lines)}.")
        lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
        self._write(path, "\n".join(lines) + "\n")
        return f"The file {command.path} has been edited."

    def delete(self, command: Any) -> str:
        """Delete a file, or all files of a folder."""
        path = _parts(command.path)
        for file in self._known(path, command.path):
            self._memory.drop_item(file[:-1], file[-1])
        return f"Successfully deleted {command.path}"

    def rename(self, command: Any) -> str:
        """Move a file or folder; an existing destination is an error."""
        old, new = _parts(command.old_path), _parts(command.new_path)
        found = self._known(old, command.old_path)
        if self._files(new):
            raise ToolError(f"The destination {command.new_path} already exists")
        for file, text in found.items():
            self._write([*new, *file[len(old) :]], text)
            self._memory.drop_item(file[:-1], file[-1])
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """Delete all files."""
        while found := items_below(self._memory, [ROOT], MOST_FACTS, refresh=False):
            for part in batches((str(one.id) for one in found), AT_ONCE):
                self._memory.forget(part)
        return "All memory cleared"

    def _files(self, path: list[str]) -> dict[tuple[str, ...], str]:
        """Return the text of the file at a path, or of the files below it, by path."""
        found = items_below(self._memory, path, MOST_FACTS, refresh=False)
        if path != [ROOT]:  # not among all files of its folder, of which there may be too many
            found += self._memory.items(path[:-1], key=path[-1], refresh=False).items
        return {_place(one): json.loads(one.document)["text"] for one in sorted(found, key=_place)}

    def _known(self, path: list[str], named: str) -> dict[tuple[str, ...], str]:
        """Return the file at a path, else those below it: a file may have the name of a folder."""
        if path == [ROOT]:
            raise ToolError("Cannot delete or rename the /memories directory itself")
        found = self._files(path)
        if not found:
            raise ToolError(f"The path {named} does not exist")
        one = tuple(path)
        return {one: found[one]} if one in found else found

    def _read(self, path: list[str]) -> str | None:
        found = self._memory.items(path[:-1], key=path[-1]).items if len(path) > 1 else []
        return str(json.loads(found[0].document)["text"]) if found else None

    def _file(self, named: str) -> tuple[list[str], str]:
        path = _parts(named)
        text = self._read(path)
        if text is None:
            raise ToolError(f"The path {named} does not exist. Please provide a valid path.")
        return path, text

    def _write(self, path: list[str], text: str) -> None:
        document = json.dumps({"text": text})
        self._memory.put_item(path[:-1], path[-1], document, text=text.strip() or None, ttl=self._ttl)

    def _listed(self, path: list[str], named: str) -> str:
        files = self._files(path)
        if not files and path != [ROOT]:
            raise ToolError(f"The path {named} does not exist. Please provide a valid path.")
        sizes: dict[str, int] = {}
        for file, text in files.items():
            inner = file[len(path) :]
            for depth in range(1, min(len(inner), DEPTH) + 1):
                shown = "/".join(inner[:depth]) + ("/" if depth < len(inner) else "")
                sizes[shown] = sizes.get(shown, 0) + len(text.encode())
        lines = [f"{sum(len(text.encode()) for text in files.values())}B\t{named}"]
        lines += [f"{size}B\t{named.rstrip('/')}/{shown}" for shown, size in sorted(sizes.items())]
        return f"Here're the files and directories up to 2 levels deep in {named}:\n" + "\n".join(lines)


def _place(file: Item) -> tuple[str, ...]:
    return (*file.path, file.key)


def _parts(path: str) -> list[str]:
    """Return the parts of a path, the first of which is `memories`."""
    parts = [one for one in path.split("/") if one]
    if not path.startswith(f"/{ROOT}") or parts[0] != ROOT or ".." in parts or "." in parts:
        raise ToolError(f"Path must be within /{ROOT}, got: {path}")
    return parts


def _numbered(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>{WIDTH}}\t{line}" for number, line in enumerate(lines, first))
