"""Workers keep registered folders indexed: only below allowed roots, and what they cannot read erases nothing."""

import errno
import math
import os
from pathlib import Path
from typing import Any

import pytest
from ebb.contract.documents import (
    Index,
    ListDocuments,
    ListFolders,
    RegisteredFolder,
    RegisterFolder,
    UnregisterFolder,
)
from memory import Memory
from pydantic import ValidationError

from workers.coordination import signals
from workers.documents import files, folders
from workers.errors import InvalidInputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "boat.md").write_text("# Boat\n\nThe keel is oak.\n")
    (folder / "hut.md").write_text("# Hut\n\nThe roof leaks.\n")
    return folder


@pytest.fixture
def reading(memory: Memory, tmp_path: Path) -> Memory:
    """Return a memory whose workers may read below a folder."""
    return memory.having(folders=str(tmp_path))


def register(memory: Memory, folder: Path, name: str | None = None) -> RegisteredFolder:
    return files.register_folder(memory.context, RegisterFolder(path=str(folder), name=name))


def part(memory: Memory, name: str = "notes", until: float = math.inf) -> bool:
    """Read a registered folder until this time; return whether that was its end."""
    return files.read_folder(memory.context, "default", name, until)


def read(memory: Memory, name: str = "notes", until: float = math.inf) -> RegisteredFolder:
    """Read a registered folder; return what is recorded about it."""
    part(memory, name, until)
    return next(one for one in listed(memory) if one.name == name)


def listed(memory: Memory) -> list[RegisteredFolder]:
    return files.registered_folders(memory.context, ListFolders()).folders


def paths(memory: Memory) -> list[str]:
    return [one.path for one in files.known(memory.context, ListDocuments(name="notes")).documents]


def test_a_registered_folder_is_kept_in_step(reading: Memory, folder: Path) -> None:
    assert register(reading, folder) == RegisteredFolder(name="notes", path=str(folder), read_at=None, error=None)
    assert files.all_folders(reading.context) == [("default", "notes")]
    first = read(reading)
    assert (first.error, first.read_at is not None) == (None, True)
    assert paths(reading) == ["notes/boat.md", "notes/hut.md"]

    (folder / "hut.md").unlink()
    (folder / "cabin.md").write_text("# Cabin\n\nThe stove is new.\n")
    read(reading)
    assert paths(reading) == ["notes/boat.md", "notes/cabin.md"]


def test_reading_again_changes_nothing(reading: Memory, folder: Path) -> None:
    register(reading, folder)
    read(reading)
    rows = "select * from documents order by path", "select id, text, created_at from facts order by id"
    before = [reading.rows(one) for one in rows]
    read(reading)
    assert [reading.rows(one) for one in rows] == before


def test_a_reading_out_of_time_goes_on_where_it_stopped(reading: Memory, folder: Path) -> None:
    register(reading, folder)
    assert not part(reading, until=0)
    assert paths(reading) == ["notes/boat.md"]
    assert listed(reading)[0].read_at is None
    assert not part(reading, until=0)
    assert part(reading, until=0)
    assert paths(reading) == ["notes/boat.md", "notes/hut.md"]


def test_a_reading_puts_back_no_text_that_changed_since(reading: Memory, folder: Path) -> None:
    """Another one reads both files at a time when this one has read the first, and stored none."""
    register(reading, folder)
    place = folders.Folder(folder, "notes")
    indexer = folders.Indexer(files._Here(reading.context, "default"), place, reading.context.settings.tokenizer)

    def change(number: int, _: int) -> None:
        if number == 1:
            (folder / "boat.md").write_text("# Boat\n\nThe keel is elm.\n")
            read(reading)

    indexer.sync(change)
    kept = [text for (text,) in reading.rows("select text from facts order by text")]
    assert kept == ["# Boat\n\nThe keel is elm.", "# Hut\n\nThe roof leaks."]


def test_words_are_counted_again_only_after_a_reading_that_changed_something(reading: Memory, folder: Path) -> None:
    def grown() -> list[str]:
        found = signals.take_grown(reading.context.redis)
        for name in found:
            signals.note_counted(reading.context.redis, name)
        return found

    register(reading, folder)
    read(reading)
    assert grown() == ["default"]
    read(reading)
    assert grown() == []
    (folder / "hut.md").unlink()
    read(reading)
    assert grown() == ["default"]


@pytest.mark.parametrize("lost", ["away", "empty", "closed"])
def test_a_folder_out_of_reach_erases_nothing(reading: Memory, folder: Path, lost: str) -> None:
    register(reading, folder)
    first = read(reading)
    if lost == "away":
        folder.rename(folder.with_name("unmounted"))
    elif lost == "empty":
        for file in folder.iterdir():
            file.unlink()
    else:
        folder.rename(folder.with_name("unmounted"))
        folder.symlink_to(folder)
    then = read(reading)
    assert then.error is not None
    assert then.read_at == first.read_at
    assert paths(reading) == ["notes/boat.md", "notes/hut.md"]


def test_an_error_is_shown_until_a_reading_succeeds(reading: Memory, folder: Path) -> None:
    register(reading, folder)
    (folder / "hut.md").write_bytes(b"\xff")
    assert read(reading).error == "notes/hut.md: no UTF-8 at byte 0; convert it"
    (folder / "hut.md").write_text("# Hut\n")
    assert read(reading).error is None


def test_a_file_of_too_many_parts_is_an_error_and_others_are_read(reading: Memory, folder: Path) -> None:
    (folder / "all.md").write_text("\n\n".join(f"# Head {number}\n\nText {number}." for number in range(10_001)))
    register(reading, folder)
    done = read(reading)
    assert done.error == "notes/all.md: has 10,001 parts, more than 10,000; split it into several files"
    assert (done.read_at is not None, paths(reading)) == (True, ["notes/boat.md", "notes/hut.md"])


def test_a_path_that_means_another_folder_to_each_process_is_refused_with_what_to_give() -> None:
    with pytest.raises(ValidationError, match="must be an absolute path, such as /srv/notes"):
        RegisterFolder(path="notes")


def test_without_allowed_folders_none_is_read(memory: Memory, folder: Path) -> None:
    with pytest.raises(InvalidInputError, match="EBB_FOLDERS is empty"):
        register(memory, folder)


def test_only_folders_below_the_allowed_ones_are_read(memory: Memory, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "allowed").mkdir()
    (tmp_path / "allowed" / "link").symlink_to(folder)
    (tmp_path / "allowed-too").mkdir()
    reading = memory.having(folders=f"{tmp_path / 'allowed'}, /absent")
    for outside in (folder, tmp_path / "allowed" / "link", tmp_path / "allowed" / "..", tmp_path / "allowed-too"):
        with pytest.raises(InvalidInputError, match="is not below a folder that workers may read"):
            register(reading, outside)
    assert listed(reading) == []


def test_a_folder_whose_name_is_no_utf_8_is_refused_and_stops_no_other_reading(reading: Memory, folder: Path) -> None:
    register(reading, folder)
    moved = folder.rename(os.fsdecode(bytes(folder) + b"\xe9"))
    folder.symlink_to(moved)

    with pytest.raises(InvalidInputError, match=f"path: {folder} leads to a name that is no UTF-8; rename it"):
        register(reading, folder)
    assert read(reading).error == f"{folder}: path: {folder} leads to a name that is no UTF-8; rename it."


def test_a_folder_that_becomes_a_link_to_outside_is_not_read(memory: Memory, folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "allowed" / "notes"
    own.mkdir(parents=True)
    (own / "mine.md").write_text("# Mine\n")
    reading = memory.having(folders=str(own.parent))
    register(reading, own)
    read(reading)
    own.rename(own.with_name("moved"))
    own.symlink_to(folder)
    assert "is not below a folder that workers may read" in str(read(reading).error)
    assert paths(reading) == ["notes/mine.md"]


def test_a_file_that_cannot_be_looked_at_stops_no_other(
    reading: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(reading, folder)
    beyond = "x" * 300 + ".md"  # as in a folder whose names may be listed, but not followed
    monkeypatch.setattr(os, "walk", lambda *_, **__: [(str(folder), [], ["boat.md", beyond])])
    assert read(reading).error == f"notes/{beyond}: File name too long"
    assert paths(reading) == ["notes/boat.md"]


@pytest.mark.parametrize("replaced", ["notes/plans/hut.md", "notes/plans", "notes", "."])
def test_what_a_link_has_replaced_since_it_was_listed_is_not_read(tmp_path: Path, replaced: str) -> None:
    for part in ("inside", "outside"):
        (tmp_path / part / "notes" / "plans").mkdir(parents=True)
        (tmp_path / part / "notes" / "plans" / "hut.md").write_text(part)
    place = folders.folder(tmp_path / "inside" / "notes")
    file = folders.listing(place).files["notes/plans/hut.md"]
    assert folders.read(file, "")[0] == "inside"
    (tmp_path / "inside" / replaced).rename(tmp_path / "moved")
    (tmp_path / "inside" / replaced).symlink_to(tmp_path / "outside" / replaced)
    with pytest.raises(OSError, match=r"symbolic link|[Nn]ot a directory"):
        folders.read(file, "")


def test_two_folders_do_not_share_a_name(reading: Memory, folder: Path, tmp_path: Path) -> None:
    register(reading, folder)
    read(reading)
    (tmp_path / "other" / "notes").mkdir(parents=True)
    with pytest.raises(InvalidInputError, match="is indexed as 'notes' already"):
        register(reading, tmp_path / "other" / "notes")
    register(reading, tmp_path / "other" / "notes", "others")
    assert [one.name for one in listed(reading)] == ["notes", "others"]


def test_a_folder_that_may_not_be_looked_at_keeps_its_name(
    reading: Memory, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root, who runs tests as well, may look at all, the refusal is made here."""
    register(reading, folder)
    read(reading)
    (tmp_path / "other" / "notes").mkdir(parents=True)
    look = os.stat

    def refused(path: Any, **options: Any) -> os.stat_result:
        if str(path) == str(folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return look(path, **options)

    monkeypatch.setattr(os, "stat", refused)
    with pytest.raises(InvalidInputError, match=f"{folder} is indexed as 'notes' already"):
        register(reading, tmp_path / "other" / "notes")


def test_a_client_that_names_no_folder_that_can_be_takes_no_name(reading: Memory, folder: Path) -> None:
    at, given = reading.context.now(), {"text": "Tea.", "line": 1}
    asked = Index(path="notes/tea.md", chunks=[given], digest="0" * 64, folder=f"/{'x' * 300}")
    files.index(reading.context, asked, at)
    register(reading, folder)
    assert read(reading).error is None
    assert paths(reading) == ["notes/boat.md", "notes/hut.md"]


def test_what_was_indexed_stays_after_unregistering(reading: Memory, folder: Path) -> None:
    register(reading, folder)
    read(reading)
    asked = UnregisterFolder(name="notes")
    assert files.unregister_folder(reading.context, asked).removed
    assert not files.unregister_folder(reading.context, asked).removed
    assert part(reading)
    assert (listed(reading), len(paths(reading))) == ([], 2)
