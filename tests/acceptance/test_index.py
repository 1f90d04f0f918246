"""`ebb index` with real files and processes, and a folder that changes meanwhile."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from live_system import ROOT, LiveSystem, eventually

from workers.errors import InvalidInputError

pytestmark = pytest.mark.acceptance

BOAT = "# Boat\n\nThe keel is oak.\n\n## Engine\n\nThe engine is a Bukh.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "memory"
    write(folder / "boat.md", BOAT)
    write(folder / "projects" / "hut.md", "---\ntitle: Hut\n---\n# Hut\n\nThe roof leaks.\n")
    return folder


def write(file: Path, text: str | bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


def index(live: LiveSystem, folder: Path, namespace: str, *options: str, code: int = 0) -> dict[str, Any]:
    done = live.ebb("index", str(folder), "-n", namespace, "--json", *options)
    assert done.returncode == code, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def sources(live: LiveSystem, namespace: str) -> list[str]:
    """Return the path of every chunk, in order."""
    found = live.rows(
        """
        select source from facts join namespaces on namespaces.id = facts.namespace
        where kind = 'chunk' and name = %s order by 1
        """,
        [namespace],
    )
    return [source for (source,) in found]


def test_files_are_indexed_followed_and_found(live: LiveSystem, folder: Path, namespace: str) -> None:
    first = index(live, folder, namespace)
    assert first["files"] == {"indexed": 2, "unchanged": 0, "removed": 0}
    assert first["chunks"]["added"] == 4
    assert index(live, folder, namespace)["files"] == {"indexed": 0, "unchanged": 2, "removed": 0}
    best = live.ebb_json("recall", "Which engine has the boat?", "-n", namespace)["results"][0]
    assert (best["path"], best["section"]) == ("memory/boat.md", "Boat > Engine")
    assert best["text"] == "## Engine\n\nThe engine is a Bukh."

    write(folder / "boat.md", BOAT.replace("Bukh", "Farymann"))
    (folder / "projects" / "hut.md").rename(folder / "projects" / "cabin.md")
    second = index(live, folder, namespace)
    assert second["files"] == {"indexed": 2, "unchanged": 0, "removed": 1}
    assert second["chunks"] == {"added": 3, "unchanged": 1, "removed": 3, "forgotten": 0, "without_vector": 0}
    assert sources(live, namespace) == ["memory/boat.md"] * 2 + ["memory/projects/cabin.md"] * 2


def test_a_person_is_shown_path_and_section(live: LiveSystem, folder: Path, namespace: str) -> None:
    done = live.ebb("index", str(folder), "-n", namespace)
    assert "2 indexed, 0 unchanged, 0 removed" in done.stdout
    assert "memory/boat.md: Boat > Engine" in live.ebb("recall", "engine", "-n", namespace).stdout


def test_unreadable_files_are_reported_and_stay_indexed(
    live: LiveSystem, folder: Path, tmp_path: Path, namespace: str
) -> None:
    index(live, folder, namespace)
    write(tmp_path / "outside.md", "# Secret\n")
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    (folder / "loop").symlink_to(folder)
    write(folder / ".hidden" / "x.md", "# Hidden\n")
    write(folder / "notes.txt", "no Markdown")
    write(folder / "boat.md", b"# Boat\n\n\xff\xfe")
    write(folder / "huge.md", "word " * 1_000_000)
    write(folder / "nul.md", "a\0b")
    os.mkfifo(folder / "pipe.md")
    done = index(live, folder, namespace, code=1)
    assert {one["path"]: one["error"] for one in done["failed"]} == {
        "memory/boat.md": "no UTF-8 at byte 8; convert it",
        "memory/huge.md": "larger than 4194304 bytes; split it",
        "memory/nul.md": "must not contain NUL characters; remove them",
        "memory/pipe.md": "no regular file",
    }
    assert [one["path"] for one in done["skipped"]] == ["memory/link.md", "memory/loop"]
    assert sources(live, namespace) == ["memory/boat.md"] * 2 + ["memory/projects/hut.md"] * 2


def test_a_folder_is_not_mistaken_for_another_or_for_empty(
    live: LiveSystem, folder: Path, tmp_path: Path, namespace: str
) -> None:
    index(live, folder, namespace)
    write(tmp_path / "other" / "memory" / "x.md", "# X\n\nText.\n")
    refused = index(live, tmp_path / "other" / "memory", namespace, code=1)
    assert f"{folder} is indexed as 'memory' already" in refused["error"]["message"]
    assert index(live, tmp_path / "other" / "memory", namespace, "--as", "second")["files"]["indexed"] == 1
    moved = folder.rename(tmp_path / "elsewhere")
    assert index(live, moved, namespace, "--as", "memory")["files"] == {"indexed": 0, "unchanged": 2, "removed": 0}
    for file in moved.rglob("*.md"):
        file.unlink()
    emptied = index(live, moved, namespace, "--as", "memory", code=1)
    assert "(indexed: 2), and nothing was removed" in emptied["error"]["message"]
    assert index(live, moved, namespace, "--as", "memory", "--empty")["files"]["removed"] == 2
    assert sources(live, namespace) == ["second/x.md"]


def test_a_path_that_is_not_a_folder_is_refused(live: LiveSystem, tmp_path: Path, namespace: str) -> None:
    refused = live.ebb("index", str(tmp_path / "none"), "-n", namespace)
    assert refused.returncode == 1
    assert "is no folder: give one with Markdown files" in refused.stderr
    empty = live.ebb("index", "", "-n", namespace)
    assert (empty.returncode, "DIR is empty; give a folder, such as . for the current one" in empty.stderr) == (2, True)


ALONE = ("--list --as x", "--list --empty", "--register --empty .", "--unregister --empty .")


@pytest.mark.parametrize("options", ALONE)
def test_an_option_that_would_be_ignored_is_refused(live: LiveSystem, options: str, namespace: str) -> None:
    assert live.ebb("index", *options.split(), "-n", namespace).returncode == 2


def test_a_message_that_comes_twice_changes_nothing_more(live: LiveSystem, namespace: str) -> None:
    chunks = [{"section": "Boat", "text": "The keel is oak."}, {"text": "<memory-context>shown</memory-context>"}]
    arguments = {"path": "memory/boat.md", "chunks": chunks, "digest": "0" * 64, "namespace": namespace}
    first, second = live.delivered("memory.index", arguments, 2)
    assert (first["added"], first["unchanged"], first["removed"], second) == (1, 0, 0, first)
    assert [text for _, text in live.facts(namespace)] == ["The keel is oak."]
    once, again = live.delivered("memory.unindex", {"paths": ["memory/boat.md"], "namespace": namespace}, 2)
    assert (once, again) == ({"removed": 1}, {"removed": 1})
    assert live.facts(namespace) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"path": "/etc/passwd"}, "path: must be a folder's name and a path in it"),
        ({"path": "memory/../x.md"}, "path: must be a folder's name and a path in it"),
        ({"path": "memory/" + "x" * 1_020}, "path: must have at most 1024 bytes"),
        ({"digest": "abc"}, "digest: string should match pattern"),
        ({"chunks": [{"words": "x"}]}, "chunks.0.text: field required"),
        ({"chunks": "x"}, "chunks: input should be a valid list"),
    ],
)
def test_files_that_are_not_text_are_reported(
    live: LiveSystem, namespace: str, given: dict[str, Any], message: str
) -> None:
    arguments = {"path": "memory/boat.md", "chunks": [], "digest": "0" * 64, "namespace": namespace} | given
    with live.client(namespace) as client, pytest.raises(InvalidInputError, match=re.escape(message)):
        client.call("memory.index", arguments, 20)


@contextmanager
def watching(live: LiveSystem, folder: Path, namespace: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = live.command("index", str(folder), "--watch", "--json", "-n", namespace)
    with log.open("wb") as output:
        watcher = subprocess.Popen(command, cwd=ROOT, env=live.environment(), stdout=output, stderr=output)
    try:
        yield watcher
    finally:
        watcher.kill()
        watcher.wait()


@pytest.mark.slow
def test_watching_follows_every_change_and_ends_cleanly(
    live: LiveSystem, folder: Path, tmp_path: Path, namespace: str
) -> None:
    log = tmp_path / "watch.log"

    def has(expected: list[str]) -> Callable[[], bool]:
        return lambda: sorted(set(sources(live, namespace))) == expected

    with watching(live, folder, namespace, log) as watcher:
        eventually(has(["memory/boat.md", "memory/projects/hut.md"]), "the first look is done")
        write(folder / "new" / "deep.md", "# Deep\n\nBelow.\n")
        (folder / "boat.md").unlink()
        eventually(has(["memory/new/deep.md", "memory/projects/hut.md"]), "a new and a removed file are noticed")
        (folder / "projects").rename(folder / "plans")
        eventually(has(["memory/new/deep.md", "memory/plans/hut.md"]), "a renamed folder is noticed")
        write(folder / "new" / "deep.md", b"\xff")
        eventually(lambda: "no UTF-8" in log.read_text(), "a bad file is reported")
        write(folder / "new" / "deep.md", "# Deep\n\nDeeper.\n")
        eventually(lambda: live.ebb_json("recall", "deeper", "-n", namespace)["results"], "it goes on after an error")
        away = folder.rename(tmp_path / "away")
        eventually(lambda: "is no folder any more" in log.read_text(), "a vanished folder is reported")
        assert has(["memory/new/deep.md", "memory/plans/hut.md"])()
        away.rename(folder)
        write(folder / "back.md", "# Back\n\nAgain.\n")
        back = ["memory/back.md", "memory/new/deep.md", "memory/plans/hut.md"]
        eventually(has(back), "it goes on when the folder is back")
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait() == 0
    assert "Traceback" not in log.read_text()


@pytest.mark.slow
def test_watching_goes_on_after_a_name_that_is_no_utf8(
    live: LiveSystem, folder: Path, tmp_path: Path, namespace: str
) -> None:
    log = tmp_path / "watch.log"
    with watching(live, folder, namespace, log) as watcher:
        eventually(lambda: sources(live, namespace), "the first look is done")
        write(folder / os.fsdecode(b"\xff.md"), "# Odd\n\nName.\n")
        eventually(lambda: "rename it" in log.read_text(), "the name is reported")
        write(folder / "late.md", "# Late\n\nText.\n")
        eventually(lambda: "memory/late.md" in sources(live, namespace), "it goes on")
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait() == 0
    assert "Traceback" not in log.read_text()


def test_workers_keep_a_registered_folder_indexed(idle: LiveSystem, folder: Path, namespace: str) -> None:
    idle.settings["EBB_FOLDERS"] = str(folder.parent)
    idle.start("all")
    at = ["-n", namespace]
    done = idle.ebb("index", str(folder), "--register", *at)
    assert done.stdout == f"registered {folder} as memory; workers read it\n"

    def read_at() -> str | None:
        (one,) = idle.ebb_json("index", "--list", *at)["folders"]
        assert (one["name"], one["path"], one["error"]) == ("memory", str(folder), None)
        return str(one["read_at"]) if one["read_at"] else None

    eventually(read_at, "the folder is read once it is registered")
    assert sources(idle, namespace) == ["memory/boat.md"] * 2 + ["memory/projects/hut.md"] * 2

    (folder / "projects" / "hut.md").rename(folder / "cabin.md")
    for _ in range(2):
        idle.send("memory.read_folders", {})
    moved = ["memory/boat.md"] * 2 + ["memory/cabin.md"] * 2
    eventually(lambda: sources(idle, namespace) == moved, "beat's task has it read again")
    idle.settle()
    assert sources(idle, namespace) == moved

    assert "no longer registered" in idle.ebb("index", str(folder), "--unregister", *at).stdout
    assert idle.ebb_json("index", "--list", *at)["folders"] == []
    assert sources(idle, namespace) == moved
    refused = idle.ebb("index", "/etc", "--register", *at)
    assert refused.returncode == 1
    assert "/etc is not below a folder that workers may read" in refused.stderr
    assert idle.ebb("index", *at).returncode == 2
