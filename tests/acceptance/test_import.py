"""`ebb import` and `ebb export` as commands: bad lines, kills, repeats, large files, other products."""

import errno
import fcntl
import gzip
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import prepared
import psutil
import pytest
from live_system import ROOT, LiveSystem, eventually
from made_up import DEEP

from api import archive_import, transport
from api.archive_import import Checkpoint, Progress, import_file
from workers.coordination.redis import open_redis
from workers.queues import length_of

pytestmark = [pytest.mark.acceptance, pytest.mark.long]

LONG_LINE = 8 * 1_048_576
MEBIBYTE = 1_048_576

BAD_LINES: dict[str, tuple[bytes, str]] = {
    "bad JSON": (b'{"text": "half', "no JSON"),
    "no object": (b'["text"]', "no JSON object; give one"),
    "a number": (b"7", "no JSON object; give one"),
    "null": (b"null", "no JSON object; give one"),
    "nothing to remember": (b"{}", "text"),
    "blank text": (b'{"text": " \\t "}', "empty fact text"),
    "no text": (b'{"text": 7}', "text: "),
    "NUL": (b'{"text": "a\\u0000b"}', "NUL"),
    "a raw control character": (b'{"text": "a\x00b"}', "no JSON"),
    "lone surrogate": (b'{"text": "a\\ud800b"}', "lone surrogates"),
    "lone surrogate in a name": (b'{"text": "x", "\\ud800": 1}', "given '\\ud800'"),
    "NaN": (b'{"text": "x", "importance": NaN}', "NaN is no number"),
    "infinity": (b'{"text": "x", "importance": -Infinity}', "-Infinity is no number"),
    "huge number": (b'{"text": "x", "importance": 1e400}', "importance: "),
    "huge whole number": (b'{"text": "x", "turn": 1' + b"0" * 400 + b"}", "turn: "),
    "more digits than there are": (b'{"text": "x", "turn": 1' + b"0" * 5_000 + b"}", "no JSON"),
    "unknown field": (b'{"text": "x", "colour": "blue"}', "colour: is no field of a fact"),
    "naive datetime": (b'{"text": "x", "source_date": "2025-01-31T10:00:00"}', "needs a time zone"),
    "no UUID": (b'{"text": "x", "id": "seven"}', "id: "),
    "bad namespace": (b'{"text": "x", "namespace": "two words"}', "is no name"),
    "text over the limit": (b'{"text": "' + b"x" * 65_537 + b'"}', "EBB_MAX_TEXT"),
    "line over the limit": (b'{"text": "' + b"x" * LONG_LINE + b'"}', "longer than"),
    "invalid UTF-8": (b'{"text": "caf\xe9"}', "no UTF-8 at byte 13"),
    "nested without end": (b"[" * 100_000, "no JSON"),
}


def lines(count: int, word: str = "pebble", **more: Any) -> Iterator[str]:
    """Yield lines of distinct facts of usual length."""
    for number in range(count):
        text = f"The {word} number {number} lay on the beach between two boulders when the tide was out that evening."
        yield json.dumps({"text": text, "tags": ["beach"], "session": number // 50, "turn": number % 50} | more)


def written(file: Path, given: Iterable[str]) -> str:
    with file.open("w") as opened:
        opened.writelines(line + "\n" for line in given)
    return str(file)


def imported(live: LiveSystem, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the output of an import."""
    done = live.ebb("import", *arguments, "--json")
    assert done.stdout, done.stderr
    counts: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, counts


@pytest.fixture(autouse=True)
def _nothing_left(live: LiveSystem, namespace: str) -> Iterator[None]:
    """Empty the shared system: passes of other modules' tests would process all these facts.

    A task that still runs locks activity before facts, which this deletes in the other order.
    """
    yield
    live.settle()
    live.rows(
        "delete from facts where namespace in (select id from namespaces where starts_with(name, %s))", [namespace]
    )


def test_each_bad_line_is_reported_by_its_number_and_affects_no_other(
    live: LiveSystem, namespace: str, tmp_path: Path
) -> None:
    file, numbers, number = tmp_path / "mixed.jsonl", {}, 0
    with file.open("wb") as opened:
        for fault, (line, _) in BAD_LINES.items():
            opened.write(f'{{"text": "Good line before {fault}."}}\n\n'.encode() + line + b"\n")
            number += 3
            numbers[number] = fault
        opened.write(b'{"text": "Good last line without an end."}')
    code, counts = imported(live, str(file), "--namespace", namespace)
    assert code == 1
    assert [numbers[error["line"]] for error in counts["errors"]] == list(BAD_LINES)
    for error in counts["errors"]:
        assert BAD_LINES[numbers[error["line"]]][1] in error["error"]
    assert (counts["lines"], counts["rejected"]) == (number + 1, len(BAD_LINES))
    assert counts["added"] == len(BAD_LINES) + 1
    assert {text for _, text in live.facts(namespace)} == {
        "Good last line without an end.",
        *(f"Good line before {fault}." for fault in BAD_LINES),
    }


def test_bad_lines_are_shown_to_people_too(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    file = written(tmp_path / "bad.jsonl", iter(['{"text": "Good."}', "no json [bold]"]))
    done = live.ebb("import", file, "--namespace", namespace)
    assert done.returncode == 1
    assert "line 2: no JSON" in done.stderr
    assert "1 added" in done.stdout


def test_standard_input_is_imported_as_well(live: LiveSystem, namespace: str) -> None:
    done = live.ebb("import", "-", "-n", namespace, "--json", stdin="\n".join(lines(700)))
    assert json.loads(done.stdout)["added"] == 700


def test_a_file_that_is_not_there_is_an_error(live: LiveSystem) -> None:
    done = live.ebb("import", "absent.jsonl", "--json")
    assert done.returncode == 1
    assert "absent.jsonl cannot be read: No such file or directory. " in json.loads(done.stdout)["error"]["message"]


def test_a_file_that_cannot_be_written_is_an_error(live: LiveSystem, namespace: str) -> None:
    live.ebb("store", "Anselm bakes at four.", "-n", namespace)
    done = live.ebb("export", "x" * 300, "-n", namespace)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "File name too long. Give a file in a folder where you may write." in " ".join(done.stderr.split())


def test_a_gzipped_file_is_refused_with_how_to_unpack_it(live: LiveSystem, tmp_path: Path) -> None:
    (file := tmp_path / "facts.jsonl.gz").write_bytes(gzip.compress("\n".join(lines(700)).encode()))
    done = live.ebb("import", str(file))
    assert done.returncode == 1
    assert "gunzip -c FILE | ebb import -" in done.stderr
    assert not done.stdout


def test_a_killed_or_interrupted_import_continues_and_doubles_nothing(
    live: LiveSystem, namespace: str, tmp_path: Path
) -> None:
    count = 4_000
    file = written(tmp_path / "many.jsonl", lines(count))
    checkpoints = live.folder / "home" / "imports"
    command = ["api.cli", "import", file, "--namespace", namespace]
    for end in (signal.SIGKILL, signal.SIGINT):
        before = progress(checkpoints)
        with (tmp_path / "log").open("wb") as log, prepared.start(command, live.environment(), log) as killed:
            eventually(lambda before=before: progress(checkpoints) > before, "a window is stored")  # type: ignore[misc]
            killed.send_signal(end)
    assert "run the same command again" in (tmp_path / "log").read_text(encoding="utf-8")
    reached = progress(checkpoints)
    assert 0 < reached < count
    code, counts = imported(live, file, "--namespace", namespace)
    assert code == 0
    assert counts["lines"] == count == counts["added"] + counts["duplicates"] + counts["unchanged"]
    live.settle()
    assert len(live.facts(namespace)) == count
    assert live.incomplete() == 0
    assert not list(checkpoints.iterdir())


def progress(checkpoints: Path) -> int:
    """Return the number of lines done by the only running import."""
    states = list(checkpoints.glob("*.json")) if checkpoints.exists() else []
    return int(json.loads(states[0].read_text())["lines"]) if states else 0


@pytest.mark.slow
def test_an_import_that_was_interrupted_in_another_database_starts_at_the_beginning(
    live: LiveSystem, namespace: str, tmp_path: Path
) -> None:
    file, how = Path(written(tmp_path / "many.jsonl", lines(1_200))), {"into": namespace}
    checkpoint = Checkpoint(tmp_path / "imports", file, how)
    checkpoint.save(Progress(offset=sum(len(line) + 1 for line in lines(1_000)), lines=1_000, added=1_000))
    with live.client(namespace) as client, file.open("rb") as opened:
        done = import_file(client, opened, checkpoint, lambda _: None, lambda _: None, into=namespace)
    assert (done.lines, done.added + done.duplicates) == (1_200, 1_200)
    assert len(live.facts(namespace)) == 1_200


@pytest.mark.parametrize("last", [0, 500])
def test_an_interrupted_import_continues_after_the_lines_that_are_stored(
    live: LiveSystem, namespace: str, tmp_path: Path, last: int
) -> None:
    file = Path(written(tmp_path / "many.jsonl", lines(1_200)))
    places = {count: sum(len(line) + 1 for line in lines(count)) for count in (0, 500, 1_000)}
    with live.client(namespace) as client:
        client.store_many([json.loads(line) for line in lines(1_000)])
        checkpoint = Checkpoint(tmp_path / "imports", file, {})
        checkpoint.save(Progress(offset=places[1_000], lines=1_000, added=1_000, last=places[last]))
        with file.open("rb") as opened:
            done = import_file(client, opened, checkpoint, lambda _: None, lambda _: None)
    assert (done.lines, done.added, done.duplicates) == (1_200, 1_200, 0)


def test_an_import_needs_no_place_for_its_progress(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    file, taken = written(tmp_path / "many.jsonl", lines(600)), tmp_path / "no-folder"
    taken.write_text("")
    with live.client(namespace) as client, Path(file).open("rb") as opened:
        checkpoint = Checkpoint(taken / "imports", Path(file), {})
        done = import_file(client, opened, checkpoint, lambda _: None, lambda _: None)
    assert (done.added, done.rejected) == (600, 0)


def test_two_imports_of_one_file_at_once_store_each_fact_once(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    file = written(tmp_path / "many.jsonl", lines(1_200))
    command = ["api.cli", "import", file, "--namespace", namespace, "--json"]
    counts = [json.loads(said) for said, _, _ in at_once(command, live, tmp_path)]
    assert [one["rejected"] for one in counts] == [0, 0, 0]
    assert len(live.facts(namespace)) == 1_200


@pytest.mark.slow
def test_importing_twice_adds_nothing_and_strengthens_nothing(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    file = written(tmp_path / "twice.jsonl", lines(1_200))
    assert imported(live, file, "--namespace", namespace)[1]["added"] == 1_200
    before = live.state()
    code, counts = imported(live, file, "--namespace", namespace)
    assert (code, counts["added"], counts["duplicates"]) == (0, 0, 1_200)
    assert live.state() == before


def at_once(command: list[str], live: LiveSystem, folder: Path) -> list[tuple[str, str, int]]:
    """Run a command three times at the same time; return what each printed, its errors, and its exit status."""
    with ExitStack() as opened:
        logs = [
            [opened.enter_context((folder / f"{name} {place}").open("w+b")) for name in ("output", "errors")]
            for place in range(3)
        ]
        running = [prepared.start(command, live.environment(), *pair) for pair in logs]
        codes = [process.wait() for process in running]
        texts = [[Path(one.name).read_text() for one in pair] for pair in logs]
    return [(output, errors, code) for (output, errors), code in zip(texts, codes, strict=True)]


def peak_memory(live: LiveSystem, file: str, namespace: str) -> int:
    """Return the peak memory in bytes of an import of a file."""
    command = live.command("import", file, "--namespace", namespace, "--json")
    with subprocess.Popen(command, cwd=ROOT, env=live.environment(), stdout=subprocess.PIPE) as process:
        watched, peak = psutil.Process(process.pid), 0
        while process.poll() is None:
            peak = max(peak, watched.memory_info().rss)
            time.sleep(0.02)
        assert process.returncode == 0
    return peak


@pytest.mark.slow
def test_the_memory_of_an_import_does_not_grow_with_the_file(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    begin, size, ballast = 2_200, (27_000 if DEEP else 5_000), {"letter": "x" * 9_000}
    small = written(tmp_path / "small.jsonl", lines(begin, "shell", metadata=ballast))  # more than are sent at once
    large = written(tmp_path / "large.jsonl", lines(size, "stone", metadata=ballast))
    more = Path(large).stat().st_size - Path(small).stat().st_size
    few = peak_memory(live, small, namespace)
    many = peak_memory(live, large, namespace)
    assert many < few + more
    assert many < 150 * MEBIBYTE
    assert len(live.facts(namespace)) == begin + size


RICH: list[dict[str, Any]] = [
    {"text": "Session as a number.", "session": 7, "turn": 0, "kind": "episodic"},
    {"text": "Session as digits.", "session": "7", "turn": 1, "kind": "chunk"},
    {"text": "No session, umlauts: \u00e4\u00f6\u00fc, a clef: \U0001d11e, and a\nline break.", "tags": ["a b", "c"]},
    {
        "text": "Everything.",
        "source_date": "2024-02-29T23:30:00-02:00",
        "created_at": "2024-03-01T10:00:00.123456Z",
        "last_seen_at": "2025-01-01T00:00:00Z",
        "category": "fact",
        "entity": "Ren\u00e9e",
        "key": "name",
        "value": "Ren\u00e9e Halloran",
        "importance": 0.125,
        "salience": 0.7,
        "decay_class": "permanent",
        "confidence": 0.375,
        "source": "letter",
    },
]


def exported(live: LiveSystem, namespace: str) -> list[dict[str, Any]]:
    done = live.ebb("export", "--json", "--namespace", namespace, "--now", "2026-01-01T00:00:00Z")
    assert done.returncode == 0, done.stderr
    facts = [json.loads(line) for line in done.stdout.splitlines()]
    return sorted((fact | {"namespace": None} for fact in facts), key=lambda fact: str(fact["text"]))


def test_an_export_of_facts_alone_to_a_file_answers_with_their_number(
    live: LiveSystem, namespace: str, tmp_path: Path
) -> None:
    imported(live, written(tmp_path / "rich.jsonl", (json.dumps(fact) for fact in RICH)), "-n", namespace)
    file = tmp_path / "facts.jsonl"
    done = live.ebb("export", str(file), "--json", "--namespace", namespace)
    assert json.loads(done.stdout) == {"file": str(file), "facts": len(RICH)}
    assert len(file.read_text().splitlines()) == len(RICH)


def test_an_export_is_the_same_after_import(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    imported(live, written(tmp_path / "rich.jsonl", (json.dumps(fact) for fact in RICH)), "-n", namespace)
    before = exported(live, namespace)
    other = f"{namespace}-copy"
    file = written(tmp_path / "copy.jsonl", (json.dumps(fact | {"namespace": other}) for fact in before))
    code, counts = imported(live, file)
    assert (code, counts["added"]) == (0, len(RICH))
    assert exported(live, other) == before
    assert [fact["session"] for fact in before] == [None, None, 7, "7"]
    assert {fact["text"]: fact["tags"] for fact in before} == {str(fact["text"]): fact.get("tags", []) for fact in RICH}
    everything = before[0]
    assert everything["source_date"] == "2024-03-01T01:30:00Z"
    assert everything["created_at"] == "2024-03-01T10:00:00.123456Z"
    assert everything["last_seen_at"] == "2025-01-01T00:00:00Z"


def test_an_export_is_restored_elsewhere_and_a_second_import_changes_nothing(
    live: LiveSystem, namespace: str, tmp_path: Path
) -> None:
    with live.client(namespace) as client:
        old = client.store("The gate is green.")["id"]
        new = client.store("The gate is blue.", supersedes=old)["id"]
        gone = client.store("The key is under the mat.")["id"]
        client.forget([gone])
        client.pin(new)
        client.call("memory.link", {"source": new, "target": old, "type": "CAUSED_BY", "namespace": namespace}, 30)
    file = tmp_path / "archive.jsonl"
    assert live.ebb("export", str(file), "--namespace", namespace).returncode == 0
    other = f"{namespace}-again"
    code, counts = imported(live, str(file), "--namespace", other)
    assert (code, counts["added"], counts["kept"], counts["rejected"]) == (0, 1, 2, 0)
    assert counts["beside"] == 3
    before = exported(live, other)
    assert [fact["text"] for fact in before if fact["pinned"]] == ["The gate is blue."]
    assert imported(live, str(file), "--namespace", other)[1]["unchanged"] == 3
    assert exported(live, other) == before
    with live.client(other) as client:
        assert client.store("The key is under the mat.")["action"] == "forgotten"
    again = written(tmp_path / "new.jsonl", ['{"text": "The key is under the mat."}'])
    counts = imported(live, again, "--namespace", other)[1]
    assert (counts["forgotten"], counts["without_vector"]) == (1, 0)


@pytest.mark.parametrize(
    "kept", [1, 700, 1_200], ids=["its first line", "lines of several windows", "all but the last"]
)
def test_a_truncated_archive_is_imported_up_to_its_end_and_reported(
    live: LiveSystem, namespace: str, tmp_path: Path, kept: int
) -> None:
    facts = [json.dumps({"text": f"Note {place} of {namespace}"}) for place in range(1_199)]
    lines = ['{"archive": "begins"}', *facts, '{"archive": "ends", "lines": 1199}']
    code, counts = imported(live, written(tmp_path / "whole.jsonl", lines), "-n", namespace)
    assert (code, counts["added"], counts["errors"]) == (0, 1_199, [])
    code, counts = imported(live, written(tmp_path / "cut.jsonl", lines[:kept]), "-n", f"{namespace}-cut")
    assert (code, counts["added"]) == (1, kept - 1)
    assert [one["line"] for one in counts["errors"]] == [kept + 1]
    assert "cut off" in counts["errors"][0]["error"]


def test_an_archive_that_has_lost_lines_says_so(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    with live.client(namespace) as client:
        client.store_many([{"text": f"Note {place}"} for place in range(5)])
    file = tmp_path / "archive.jsonl"
    assert live.ebb("export", str(file), "--namespace", namespace).returncode == 0
    assert [one.name for one in tmp_path.iterdir()] == ["archive.jsonl"]
    lines = file.read_text().splitlines()
    assert imported(live, str(file), "-n", f"{namespace}-whole")[0] == 0
    code, counts = imported(live, written(tmp_path / "less.jsonl", lines[:2] + lines[3:]), "-n", f"{namespace}-less")
    assert (code, counts["added"]) == (1, 4)
    there = len(lines) - 2
    assert f"had {there} lines, and {there - 1} of them are here" in counts["errors"][0]["error"]


def test_an_export_says_what_it_wrote_and_keeps_the_previous_one_if_the_namespace_is_unknown(
    live: LiveSystem, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "archive.jsonl"
    live.ebb("store", "The spare key hangs behind the kitchen clock", "--namespace", namespace)
    written = live.ebb("export", str(file), "--namespace", namespace)
    assert (written.stdout, " ".join(written.stderr.split())) == ("", f"✓ 1 fact and 0 other records in {file}")
    before = file.read_text()
    assert len(live.ebb("export", "-", "--namespace", namespace).stdout.splitlines()) == len(before.splitlines())
    refused = live.ebb("export", str(file), "--namespace", f"{namespace}-misspelt")
    assert (refused.returncode, "so nothing is exported" in " ".join(refused.stderr.split())) == (1, True)
    assert [one.read_text() for one in tmp_path.iterdir()] == [before]
    printed = live.ebb("export", "--namespace", f"{namespace}-misspelt")
    assert (printed.returncode, printed.stdout) == (1, "")


def test_a_failed_export_keeps_the_previous_one(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    file = written(tmp_path / "archive.jsonl", ["the backup of yesterday"])
    away = replace(live, database_url="postgresql://no-role@127.0.0.1:1/ebb")
    assert away.ebb("export", file, "--namespace", namespace).returncode == 1
    assert [one.read_text() for one in tmp_path.iterdir()] == ["the backup of yesterday\n"]


@pytest.mark.slow
def test_two_exports_at_once_into_one_file_leave_a_whole_archive(
    live: LiveSystem, namespace: str, tmp_path: Path
) -> None:
    with live.client(namespace) as client:
        client.store_many([{"text": f"Note {place} of {namespace}"} for place in range(3_000)])
    file = tmp_path / "own" / "archive.jsonl"
    file.parent.mkdir()
    ended = at_once(["api.cli", "export", str(file), "--namespace", namespace], live, tmp_path)
    assert 0 in [status for _, _, status in ended]
    assert all("being written by another" in errors for _, errors, status in ended if status), ended
    assert [one.name for one in file.parent.iterdir()] == ["archive.jsonl"]
    assert imported(live, str(file), "-n", f"{namespace}-copy")[1]["errors"] == []


def test_a_draft_that_a_killed_export_left_is_written_again(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    live.ebb("store", "The spare key hangs behind the kitchen clock", "--namespace", namespace)
    written(tmp_path / "archive.jsonl.part", ["half of a line that is longer than all of the others " * 100])
    assert live.ebb("export", str(tmp_path / "archive.jsonl"), "--namespace", namespace).returncode == 0
    assert [one.name for one in tmp_path.iterdir()] == ["archive.jsonl"]
    assert imported(live, str(tmp_path / "archive.jsonl"), "-n", f"{namespace}-copy")[1]["added"] == 1


LEFT: dict[str, Callable[[Path, Path], None]] = {
    "link": lambda draft, other: draft.symlink_to(other),
    "dangling link": lambda draft, other: draft.symlink_to(other.with_name("none")),
    "hard link": lambda draft, other: draft.hardlink_to(other),
    "pipe": lambda draft, _: os.mkfifo(draft),
    "folder": lambda draft, _: draft.mkdir(),
}


@pytest.mark.parametrize("left", LEFT)
def test_an_export_writes_to_no_other_file_by_what_has_the_name_of_its_draft(
    live: LiveSystem, namespace: str, tmp_path: Path, left: str
) -> None:
    other, draft = tmp_path / "other", tmp_path / "archive.jsonl.part"
    other.write_text("another's")
    LEFT[left](draft, other)
    done = live.ebb("export", str(tmp_path / "archive.jsonl"), "--namespace", namespace)
    assert (done.returncode, "remove it, or give another file" in " ".join(done.stderr.split())) == (1, True)
    assert {one.name for one in tmp_path.iterdir()} == {"other", "archive.jsonl.part"}
    assert other.read_text() == "another's"


def test_an_export_writes_to_no_draft_of_another_user_who_could_read_it(
    live: LiveSystem, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "archive.jsonl.part").touch()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    done = live.ebb("export", str(tmp_path / "archive.jsonl"), "--namespace", namespace)
    assert (done.returncode, "remove it, or give another file" in " ".join(done.stderr.split())) == (1, True)
    assert [one.name for one in tmp_path.iterdir()] == ["archive.jsonl.part"]


def test_an_export_into_a_file_system_without_locks_is_written(
    live: LiveSystem, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    live.ebb("store", "The spare key hangs behind the kitchen clock", "--namespace", namespace)
    monkeypatch.setattr(fcntl, "flock", refuse)
    assert live.ebb("export", str(tmp_path / "archive.jsonl"), "--namespace", namespace).returncode == 0
    assert [one.name for one in tmp_path.iterdir()] == ["archive.jsonl"]


@pytest.mark.parametrize("more", [(), ("--again",)])
def test_lines_that_ended_at_once_are_found_when_the_file_is_imported_again(
    live: LiveSystem, namespace: str, tmp_path: Path, more: tuple[str, ...]
) -> None:
    long_ago = "2001-01-01T00:00:00Z"
    given = {"text": "The ferry left at nine.", "decay_class": "session", "last_seen_at": long_ago}
    file = written(tmp_path / "old.jsonl", [json.dumps(given), json.dumps({"text": "Mira sails."})])
    own = ("--namespace", namespace)
    first = live.ebb_json("import", file, *own)
    assert (first["added"], first["ended_at_once"]) == (2, 1)
    repeated = live.ebb_json("import", file, *own, *more)
    assert (repeated["added"], repeated["duplicates"]) == (0, 1)
    assert repeated["unchanged"] + repeated["restored"] == 1
    assert live.rows("select count(*) from facts where text = %s", [given["text"]]) == [(1,)]


def test_of_facts_stored_again_only_the_superseded_ones_have_their_long_past(
    live: LiveSystem, namespace: str, tmp_path: Path
) -> None:
    with live.client(namespace) as memory:
        old, other = (memory.store(f"{name} lives in Rome.")["id"] for name in ("Ana", "Mira"))
        for id_, number in product((old, other), range(3)):
            memory.edit(id_, metadata={"note": str(number) * 600_000})
        memory.store("Ana lives in Bonn.", supersedes=old)
    file, copy = str(tmp_path / "archive.jsonl"), f"{namespace}-2"
    live.ebb("export", file, "--namespace", namespace)
    live.ebb("import", file, "--again", "--namespace", copy)
    with live.client(copy) as memory:
        edits = {id_: [one["what"] for one in memory.history(id_)["events"]].count("edited") for id_ in (old, other)}
    assert edits == {old: 3, other: 0}


def test_a_line_that_is_hardly_believed_is_stored_once(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    file = written(tmp_path / "doubts.jsonl", [json.dumps({"text": "The ferry left at nine.", "confidence": 0.05})])
    done = [live.ebb_json("import", file, "--namespace", namespace) for _ in range(2)]
    assert [(one["added"], one["ended_at_once"], one["unchanged"]) for one in done] == [(1, 1, 0), (0, 0, 1)]


def test_an_agent_file_of_letta_is_imported_once(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    agent = {
        "name": "Skipper",
        "memory_blocks": [{"label": "human", "value": "Name: Mira"}],
        "messages": [{"role": "user", "content": "I moved to Leipzig."}, {"role": "assistant", "content": "Noted."}],
    }
    file = tmp_path / "skipper.af"
    file.write_text(json.dumps(agent, indent=2))
    first, again = (live.ebb("import", str(file), "--from", "letta", "-n", namespace, "--json") for _ in range(2))

    assert (json.loads(first.stdout)["added"], json.loads(again.stdout)["added"]) == (3, 0), first.stderr
    assert sorted(text for _, text in live.facts(namespace)) == ["I moved to Leipzig.", "Name: Mira", "Noted."]


def test_an_export_of_mem0_is_imported_once_with_counts_and_reasons(
    live: LiveSystem, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "mem0.json"
    memories = [
        {"id": "1", "memory": "Mira sails to Zanzibar", "user_id": namespace, "categories": ["travel"]},
        {"id": "2", "memory": "", "user_id": namespace},
        {"id": "3", "memory": "Anselm bakes", "user_id": "two words"},
        {"id": "4", "memory": "Mira rents a flat", "user_id": namespace, "expiration_date": "2020-01-01"},
        {"id": "5", "memory": "Anselm bakes", "user_id": namespace, "metadata": {"a": [1, None, {"b": 2.5}]}},
    ]
    file.write_text(json.dumps({"results": memories}))

    first = live.ebb("import", str(file), "--from", "mem0", "--json")
    again = live.ebb("import", str(file), "--from", "mem0", "--json")
    with live.client(namespace) as client, live.client("u::two+20words") as other:
        stored = {fact["text"]: fact for fact in client.facts()["facts"]}
        theirs = [fact["text"] for fact in other.facts()["facts"]]

    assert first.returncode == again.returncode == 1, "some were rejected"
    counts, repeated = json.loads(first.stdout), json.loads(again.stdout)
    assert (counts["lines"], counts["added"], counts["rejected"]) == (5, 3, 2)
    assert (repeated["added"], repeated["unchanged"]) == (0, 3)
    assert theirs == ["Anselm bakes"]
    reasons = {error["line"]: error["error"] for error in counts["errors"]}
    assert "empty fact text" in reasons[2]
    assert "forgotten at 2020-01-01" in reasons[4]
    assert stored["Mira sails to Zanzibar"]["tags"] == ["travel"]
    assert stored["Anselm bakes"]["metadata"] == {"a": [1, None, {"b": 2.5}]}
    assert stored["Anselm bakes"]["decay_class"] is None


def test_an_export_of_openmemory_goes_into_the_given_namespace(
    live: LiveSystem, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "openmemory.json"
    item = {"id": "1", "content": "An otter", "user_id": "a-user", "salience": 0.9, "last_seen_at": 1_790_000_000_000}
    file.write_text(json.dumps({"items": [item]}))

    assert live.ebb_json("import", str(file), "--from", "openmemory", "--namespace", namespace)["added"] == 1
    with live.client(namespace) as client:
        (fact,) = client.facts()["facts"]
    assert fact["strength"] == pytest.approx(0.9)
    assert fact["last_seen_at"].startswith("2026-09-21")


def test_an_unknown_product_is_wrong_usage(live: LiveSystem, tmp_path: Path) -> None:
    done = live.ebb("import", str(tmp_path / "x"), "--from", "zep")

    assert done.returncode == 2
    assert "openmemory" in done.stderr


def test_the_counts_of_an_import_are_shown_without_zeros(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    file = written(tmp_path / "facts.jsonl", ['{"text": "Mira sails"}', '{"text": "Mira sails"}', "{}"])
    done = live.ebb("import", file, "--namespace", namespace)
    assert (done.returncode, done.stdout.strip()) == (1, "3 lines, 1 added, 1 duplicate, 1 rejected")
    alone = live.ebb("import", written(tmp_path / "one.jsonl", ['{"text": "Mira sails"}']), "--namespace", namespace)
    assert alone.stdout.strip() == "1 line, 1 duplicate"


def test_lines_that_an_emptied_redis_lost_are_sent_again(
    idle: LiveSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_import, "WINDOW", 25)
    monkeypatch.setattr(transport, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(transport, "EMPTIED_SECONDS", 0.2)
    file = tmp_path / "facts.jsonl"
    written(file, lines(50))
    with idle.client() as client, ThreadPoolExecutor() as pool, file.open("rb") as opened:
        done = pool.submit(import_file, client, opened, None, print, lambda _: None)
        with open_redis(idle.redis_url) as queues:
            eventually(lambda: length_of(queues, "store") == 2, "both batches wait")
            queues.flushall()
            eventually(lambda: length_of(queues, "store") > 0, "the first batch waits again")
        idle.start("all")
        assert done.result().added == 50
    assert len(idle.facts("default")) == 50
