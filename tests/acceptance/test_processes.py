"""Each process on its own: it starts in any folder, loads only what it needs, and shares memory with its children."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit
from uuid import UUID

import psutil
import pytest
from live_system import ROOT, LiveSystem, clean_environment, end, eventually, node

from api.up import processes, servers

pytestmark = pytest.mark.acceptance

EBB = Path(sys.executable).with_name("ebb")
NUMERIC = ("numpy", "scipy", "sklearn")
DECOYS = ("api", "workers", "ebb", "celery", "redis", "psycopg", "uvicorn", "numpy")
OPTIONS = {
    "worker": ["--queues=recall", "--concurrency=1"],
    "beat": [],
    "flower": ["--port={port}"],
    "api": ["--port={port}"],
}
SIGNS = {"worker": "ready", "beat": "Starting", "flower": "Connected to", "api": "Uvicorn running"}


@contextmanager
def running(name: str, system: LiveSystem, folder: Path) -> Iterator[psutil.Process]:
    """Yield the process of `ebb NAME` in a folder, once its log says that it has started."""
    command = [str(EBB), name, *(each.format(port=servers.free_port()) for each in OPTIONS[name])]
    environment = system.environment() | {"FLOWER_BASIC_AUTH": "mira:a password"}
    del environment["PYTHONPATH"]
    log = system.folder / f"{name}.log"
    with (
        log.open("wb") as file,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=file, stderr=file) as one,
    ):
        try:
            eventually(lambda: SIGNS[name] in log.read_text() or one.poll() is not None, f"{name} starts")
            assert one.poll() is None, log.read_text()
            yield psutil.Process(one.pid)
        finally:
            end(one)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_process_starts_in_a_folder_with_packages_of_the_same_names(
    name: str, idle: LiveSystem, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    for decoy in DECOYS:
        (folder / decoy).mkdir(parents=True)
        (folder / decoy / "__init__.py").write_text(f"raise SystemExit('{decoy} of the current folder was imported')")

    with running(name, idle, folder) as process:
        loaded = [each for each in NUMERIC if any(f"/{each}/" in mapped.path for mapped in process.memory_maps())]

    assert loaded == (["numpy"] if name == "worker" else [])


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        (["worker", "--queues", "recall,write"], 2, "'write' is no queue; give some of recall, store, maintenance"),
        (["api", "--host", "0.0.0.0", "--port", "1"], 1, "EBB_HOST='0.0.0.0' is not allowed without keys"),
        (["beat", "--schedule", "/dev/null/ebb/schedule"], 1, "The folder /dev/null/ebb cannot be made: Not a dir"),
    ],
)
def test_a_process_that_cannot_start_says_why_in_one_message(
    live: LiveSystem, command: list[str], status: int, words: str
) -> None:
    done = live.ebb_process(*command)
    assert done.returncode == status, done.stderr
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


INTERRUPTED_AT = """
import signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == wanted:
            signal.raise_signal(signal.SIGINT)

wanted, sys.argv = sys.argv[1], ["ebb", "stats"]
sys.meta_path.insert(0, Finder())
from api.cli import main
main()
"""
NO_ROOM = "Error: the output cannot be written: No space left on device. Make room, or write elsewhere.\n"


@pytest.mark.parametrize("command", ["stats", "export", "unrelate a b c", "history --json no-id", "--version"])
def test_output_that_finds_no_room_is_one_message(live: LiveSystem, namespace: str, command: str) -> None:
    with live.client(namespace) as client:
        client.store("Otters sleep afloat.")
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = _written_to(full, live, namespace, command)
    assert (done.returncode, done.stderr) == (1, NO_ROOM)


@pytest.mark.parametrize("command", ["stats", "export", "unrelate a b c", "history --json no-id"])
def test_output_without_a_reader_ends_a_command_in_silence(live: LiveSystem, namespace: str, command: str) -> None:
    with live.client(namespace) as client:
        client.store("Otters sleep afloat.")
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="utf-8") as unread:  # noqa: PTH123 - a descriptor
        done = _written_to(unread, live, namespace, command)
    assert (done.returncode, done.stderr) == (1, "")


def _written_to(out: TextIO, live: LiveSystem, namespace: str, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        live.command(*command.split()),
        cwd=ROOT,
        env={**live.environment(), "EBB_NAMESPACE": namespace},
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("command", ["import", "import --from mem0", "remember"])
def test_a_file_that_fails_while_it_is_read_is_one_message(live: LiveSystem, command: str) -> None:
    done = live.ebb_process(*command.split(), "/proc/self/mem")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: a file or device fails: Input/output error. Check it, or give another file.\n"


@pytest.mark.parametrize("command", ["export facts.jsonl", "index .", "status --home ebb"])
def test_a_current_folder_that_is_gone_is_one_message(live: LiveSystem, tmp_path: Path, command: str) -> None:
    (folder := tmp_path / "gone").mkdir()
    shell = ["sh", "-c", 'cd "$0" && rmdir "$0" && exec "$@"', folder, *live.command(*command.split())]
    done = subprocess.run(shell, env=live.environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: the current folder is not there any more. Change to another one")


COMPLETE = "import sys; from api.cli import main; sys.argv = ['ebb']; main()"


@pytest.mark.parametrize(
    ("typed", "possible"),
    [("ebb rec", ["recall"]), ("ebb recall --ti", ["--tier"]), ("ebb keys ", ["create", "list", "revoke"])],
)
def test_a_shell_completes_commands_and_options(typed: str, possible: list[str]) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    environment = clean_environment({"_EBB_COMPLETE": "complete_bash", **words})
    done = subprocess.run([sys.executable, "-c", COMPLETE], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == possible


@pytest.mark.parametrize("module", ["typer", "api.cli.facts", "pydantic"])
def test_an_interruption_while_modules_are_loaded_is_silent(module: str) -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_AT, module], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode in (-signal.SIGINT, 130)
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.parametrize("command", ["index --register", "index --unregister", "down --home", "stats --home", "import"])
def test_a_link_to_itself_is_one_message(live: LiveSystem, tmp_path: Path, command: str) -> None:
    (loop := tmp_path / "loop").symlink_to(loop)
    done = live.ebb_process(*command.split(), str(loop))
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 1


def test_a_folder_whose_name_is_too_long_is_one_message(live: LiveSystem) -> None:
    done = live.ebb_process("index", "x" * 5_000)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("xxx… is no folder: give one with Markdown files.\n")


def test_an_export_takes_the_place_of_a_link_to_itself(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    with live.client(namespace) as client:
        client.store("Otters sleep afloat.")
    (loop := tmp_path / "loop").symlink_to(loop)
    done = live.ebb_process("export", str(loop), "-n", namespace)
    assert done.returncode == 0, done.stderr
    assert "Otters" in loop.read_text("utf-8")


@pytest.mark.parametrize("columns", ["0", "1", "20"])
def test_a_terminal_of_unknown_or_small_width_shows_all_columns(live: LiveSystem, namespace: str, columns: str) -> None:
    with live.client(namespace) as client:
        client.store("Otters sleep afloat.")
    environment = live.environment() | {"COLUMNS": columns}
    for name, stream, words in ((namespace, "stdout", "Otters"), (f"{namespace}-x", "stderr", "no namespace")):
        command = live.command("list", "-n", name)
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert words in getattr(done, stream)


def test_a_row_for_another_program_is_one_line_without_blanks_at_its_end(
    live: LiveSystem, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    text = "The keel is oak, " * 5 + "as ever."
    live.ebb("store", text, "--namespace", namespace)
    live.ebb("store", "The mast is pine.", "--namespace", namespace)
    listed = live.ebb_process("list", "--namespace", namespace)
    shown = [line.partition("faded")[2].strip() for line in listed.stdout.splitlines()[1:]]
    assert sorted(shown) == [text, "The mast is pine."]
    assert all(line == line.rstrip() for line in listed.stdout.splitlines())


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """Send an interruption until the process ends: Python does not notice one that comes just before it reads."""
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)


@pytest.mark.parametrize(("reply", "status"), [(b"y\n", 0), (b"n\n", 2), (b"\x04", 2), (None, 130)])
def test_a_question_on_a_terminal_takes_an_answer_an_end_or_an_interruption(
    live: LiveSystem, namespace: str, reply: bytes | None, status: int
) -> None:
    with live.client(namespace) as client:
        fact = client.store("Otters sleep afloat.")["id"]
    terminal, own = os.openpty()
    command = live.command("forget", fact, "--purge", "-n", namespace)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, env=live.environment(), stdin=own, **pipes) as asking:
        assert asking.stderr is not None
        asked = b""
        while not asked.endswith(b"[y/N]:"):
            asked += os.read(asking.stderr.fileno(), 1)
        if reply is None:
            interrupt(asking)
        else:
            os.write(terminal, reply)
        rest = asking.stderr.read()
    os.close(terminal)
    os.close(own)
    assert asking.returncode == status
    assert b"Abort" not in rest


@pytest.mark.parametrize("command", ["api", "flower"])
def test_a_port_in_use_is_one_message(live: LiveSystem, command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = live.ebb_process(command, "--port", str(port))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Error: Port {port} at 127.0.0.1 is in use: choose another with --port.\n"


def test_an_address_that_cannot_be_used_is_not_said_to_be_in_use() -> None:
    assert processes.port_is_free(1, "192.0.2.1")


def test_a_file_with_the_login_of_flower_that_is_not_there_is_one_message(
    live: LiveSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWER_BASIC_AUTH_FILE", "/missing")
    done = live.ebb("flower", "--port", str(servers.free_port()))
    assert done.returncode == 1
    assert done.stderr.startswith("Error: FLOWER_BASIC_AUTH_FILE='/missing' cannot be read: ")


@pytest.mark.parametrize(
    ("command", "closed", "status", "error"),
    [
        ("store -", "<&-", 1, "Error: standard input is closed,"),
        ("recall -", "<&-", 1, "Error: standard input is closed,"),
        (f"forget --purge {UUID(int=1)}", "<&-", 2, "Error: 1 fact would be erased fo"),
        ("export", ">&-", 1, "Error: standard output is closed"),
        ("mcp", "<&-", 1, "Error: standard input or output "),
        ("mcp", ">&-", 1, "Error: standard input or output "),
    ],
)
def test_a_closed_stream_is_one_message(
    live: LiveSystem, namespace: str, command: str, closed: str, status: int, error: str
) -> None:
    words = shlex.join(live.command(*command.split(), "--namespace", namespace))
    done = subprocess.run(
        ["/bin/sh", "-c", f"{words} {closed}"],
        cwd=ROOT,
        env=live.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr[:32]) == (status, error)


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_a_text_in_another_encoding_is_one_message(live: LiveSystem, namespace: str, errors: str) -> None:
    done = subprocess.run(
        live.command("store", "-", "--namespace", namespace),
        cwd=ROOT,
        env=live.environment() | {"PYTHONIOENCODING": f"utf-8:{errors}"},
        input="Grüße".encode("latin-1"),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, b"Error: standard input is no UTF-8; convert it.\n")


def test_what_the_terminal_cannot_show_is_escaped(live: LiveSystem, namespace: str) -> None:
    live.ebb_json("store", "Jürgen lives in 東京", "--namespace", namespace)
    environment = live.environment() | {"PYTHONIOENCODING": "ascii"}
    shown = []
    for more in ([], ["--json"]):
        arguments = live.command("list", "--namespace", namespace, *more)
        shown.append(
            subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
        )
    assert r"J\xfcrgen" in shown[0]
    assert json.loads(shown[1])["facts"][0]["text"] == "Jürgen lives in 東京"


DATABASE = 8
"""Another database of the same Redis, so that no other worker takes the task."""


@pytest.fixture
def collecting(live: LiveSystem, tmp_path: Path) -> Iterator[LiveSystem]:
    """Run a worker as `ebb up` does, with one additional task and no others."""
    url = urlsplit(live.redis_url)._replace(path=f"/{DATABASE}").geturl()
    system = LiveSystem(live.database_url, url, tmp_path, live.settings)
    command = [sys.executable, "-m", "celery", "-A", "workers", "worker", "--queues=recall", "--concurrency=1"]
    command += [f"--hostname={node('collecting')}", "--without-mingle", "--without-gossip", "--include=collecting"]
    environment = system.environment() | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parent)])}
    with (tmp_path / "collecting.log").open("ab") as log:
        system.workers["collecting"] = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    yield system
    system.stop()


def test_a_full_collection_in_a_child_copies_little_shared_memory(collecting: LiveSystem) -> None:
    result = collecting.control.send_task("tests.collect", queue="recall")
    sizes = result.get()
    result.forget()
    assert sizes["frozen"] > 100_000
    assert sizes["private"] * 1.5 < sizes["shared"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("export",), b"0 facts"),
        (("forget", "--query", "otters", "--yes"), b"facts are forgotten"),
        (("held", "--keep", "--all"), b"held facts are decided about"),
    ],
)
def test_what_takes_long_in_a_large_namespace_says_on_a_terminal_that_it_is_at_work(
    live: LiveSystem, namespace: str, command: tuple[str, ...], said: bytes
) -> None:
    live.ebb("store", "Otters sleep afloat.", "--namespace", namespace)
    terminal, own = os.openpty()
    environment = live.environment() | {"TERM": "xterm", "COLUMNS": "80"}
    working = live.command(*command, "-n", namespace)
    done = subprocess.run(working, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=own, check=False)
    os.close(own)
    shown = os.read(terminal, 65_536)
    assert (done.returncode, said in shown) == (0, True), shown
    os.close(terminal)
