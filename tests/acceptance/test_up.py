"""`ebb up`, `ebb down` and `ebb status` with real processes, killed in every usual way."""

import errno
import fcntl
import json
import os
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit
from xmlrpc.server import SimpleXMLRPCDispatcher, SimpleXMLRPCRequestHandler

import command_line
import httpx2
import psutil
import psycopg
import pytest
import server_process

from api.up import redis_programs, servers, starting, stopping, supervision
from api.up.home import Home, State, locate
from api.up.processes import write_private
from workers.context import Context
from workers.errors import SystemStateError, UnavailableError
from workers.memory import embed
from workers.settings import Settings
from workers.storage.connection import close_pools

pytestmark = [pytest.mark.acceptance, pytest.mark.long]

PROGRAMS = ["supervisor", "postgres", "redis", "worker", "maintenance", "beat", "flower", "api"]
COMMAND = [sys.executable, "-m", "api.cli"]


REFUSING = """
import pathlib, sys, time
end = pathlib.Path(sys.argv[1])
while not end.exists():
    time.sleep(0.05)
end.unlink()
sys.exit("ebb: The vectors are too long.")
"""
"""A program that runs until a file exists, and ends with a message; started again, it runs until the next."""


class Place:
    """A home under test, with the command line of a user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = Home(folder)
        self.port = servers.free_port()
        self.said = ""

    def move(self, folder: Path) -> None:
        folder.parent.mkdir(exist_ok=True)
        self.folder = self.folder.rename(folder)
        self.home = Home(folder)

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("EBB_")}
        return clean | {"EBB_HOME": str(self.folder)} | extra

    def process(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run the command line in a process of its own, with as little as a system may allow.

        That is few file descriptors, no rights to what is made, and no warnings.
        """
        return subprocess.run(
            ["sh", "-c", 'ulimit -n 256 && umask 777 && exec "$@"', "sh", *COMMAND, *arguments],
            env=self.environment(settings) | {"PYTHONWARNINGS": "error"},
            capture_output=True,
            text=True,
            check=False,
        )

    def ebb(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run the command line in this process, whose signals it leaves as they were: a start takes half a second."""
        with _own_signals():
            return command_line.run(arguments, self.environment(settings))

    def up(self, **settings: str) -> subprocess.CompletedProcess[str]:
        return self.process(*self.detached(), **settings)

    def refused(self, *options: str, **settings: str) -> str:
        """Return why `ebb up` refuses to start anything."""
        up = self.ebb(*self.detached(), *options, **settings)
        assert up.returncode == 1, up.stdout + up.stderr
        error = json.loads(up.stdout)["error"]
        assert error["type"] in ("SystemStateError", "InvalidInputError", "SettingsError"), error
        return str(error["message"])

    def detached(self) -> list[str]:
        return ["up", "--detach", "--workers", "2", "--port", str(self.port), "--json"]

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ebb("status", "--json").stdout)
        return found

    def pids(self) -> dict[str, int]:
        return {each["name"]: each["pid"] for each in self.status()["processes"]}

    def family(self) -> list[psutil.Process]:
        """Return supervisord and its descendants."""
        top = psutil.Process(self.pids()["supervisor"])
        return [top, *top.children(recursive=True)]


@contextmanager
def _own_signals() -> Iterator[None]:
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@pytest.fixture
def place() -> Iterator[Place]:
    folder = Path(tempfile.mkdtemp(prefix="ebb-", dir="/tmp"))
    found = Place(folder / "home")
    yield found
    stopping.stop_home(found.home)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def shared() -> Iterator[Place]:
    """Return a home for tests that do not need their own, with an awkward path that later becomes long."""
    folder = Path(tempfile.mkdtemp(prefix="ebb-", dir="/tmp"))
    found = Place(folder / "Ren\u00e9e's home")
    yield found
    stopping.stop_home(found.home)
    shutil.rmtree(folder)
    shutil.rmtree(found.home.run, ignore_errors=True)  # within its folder until the path becomes long


@pytest.fixture
def running(shared: Place) -> Place:
    """Return the shared home, which is up, with what `ebb up` said."""
    if stopping.supervisor_of(shared.home) is None:
        done = shared.up()
        assert done.returncode == 0, done.stdout + done.stderr
        shared.said = done.stdout + done.stderr
    return shared


@pytest.fixture
def stopped(shared: Place) -> Place:
    """Return the shared home, which is down."""
    if stopping.supervisor_of(shared.home) is not None:
        stopping.stop_home(shared.home)
    return shared


def eventually(condition: Callable[[], object]) -> None:
    while not condition():
        time.sleep(0.1)


def all_gone(processes: list[psutil.Process]) -> bool:
    return not any(map(is_alive, processes))


def is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def arguments(process: psutil.Process) -> str:
    """Return the arguments of a process, or none if it has just ended, as connections to PostgreSQL do."""
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


@pytest.mark.slow
@pytest.mark.parametrize(("host", "setting"), [("0.0.0.0", ""), ("", "0.0.0.0")])
def test_the_api_is_not_opened_to_the_world_without_a_key(stopped: Place, host: str, setting: str) -> None:
    """An empty option is as none: the setting counts."""
    up = stopped.process(*stopped.detached(), "--host", host, EBB_HOST=setting)
    assert up.returncode == 1
    message = json.loads(up.stdout)["error"]["message"]
    assert "EBB_HOST='0.0.0.0' is not allowed without keys" in message
    assert "ebb keys create" in message
    assert stopping.supervisor_of(stopped.home) is None


@pytest.mark.slow
def test_up_with_closed_output_leaves_the_system_running(stopped: Place) -> None:
    """As with `ebb up --detach 2>&1 | head -1`."""
    reading, writing = os.pipe()
    command = [*COMMAND, "up", "--detach", "--workers", "2", "--port", str(stopped.port)]
    with subprocess.Popen(command, env=stopped.environment({}), stdout=writing, stderr=writing) as up:
        os.close(writing)
        os.close(reading)
    assert up.returncode == 0
    assert {each["state"] for each in stopped.status()["processes"]} == {"running"}
    stopping.stop_home(stopped.home)  # what it said is lost


def test_status_shows_all_addresses_and_running_processes(running: Place) -> None:
    status = running.status()
    assert list(status) == [
        "home", "database_url", "redis_url", "flower_url", "flower_user", "flower_password", "api_url", "processes",
        "faults",
    ]  # fmt: skip
    assert [each["name"] for each in status["processes"]] == PROGRAMS
    assert {each["state"] for each in status["processes"]} == {"running"}
    assert all(psutil.pid_exists(each["pid"]) for each in status["processes"])
    assert status["flower_url"] == f"http://127.0.0.1:{running.port}"
    assert starting.answers(status["flower_url"], "/healthcheck")
    assert starting.answers(status["api_url"], "/health/live")
    assert servers.postgres_fault(status["database_url"]) is None
    assert servers.redis_fault(status["redis_url"]) is None


@pytest.mark.parametrize("away", [["PostgreSQL"], ["Redis"], ["PostgreSQL", "Redis"]], ids=" and ".join)
def test_status_names_servers_that_do_not_answer_and_fails(running: Place, away: Sequence[str]) -> None:
    state = running.home.running()
    assert state is not None
    elsewhere = {
        "PostgreSQL": {"database_url": "postgresql://127.0.0.1:1/ebb"},
        "Redis": {"redis_url": "redis://127.0.0.1:1/0"},
    }
    for server in away:
        state = replace(state, **elsewhere[server])
    before = running.home.state_file.read_text(encoding="utf-8")
    try:
        running.home.write_state(state)
        shown, plain = running.ebb("status"), running.ebb("status", "--json")
    finally:
        write_private(running.home.state_file, before)
    assert shown.returncode == plain.returncode == 1
    assert [fault.split()[0] for fault in json.loads(plain.stdout)["faults"]] == away
    assert [line.split()[1] for line in shown.stderr.splitlines() if line.startswith("✗")] == away
    assert running.status()["faults"] == []


def test_no_password_is_shown_to_people(running: Place) -> None:
    password = (running.home.redis / "password").read_text()
    shown = running.ebb("status").stdout
    assert running.status()["redis_url"].replace(password, "•••") in shown
    assert password not in shown


def test_the_login_of_flower_is_shown_and_is_in_no_arguments(running: Place) -> None:
    status = running.status()
    login = (status["flower_user"], status["flower_password"])
    url = f"{status['flower_url']}/tasks"
    assert httpx2.get(url, auth=login, trust_env=False, timeout=None).status_code == 200
    assert httpx2.get(url, trust_env=False, timeout=None).status_code == 401
    assert url.replace("//", f"//{':'.join(login)}@").removesuffix("/tasks") in running.ebb("status").stdout
    assert login[1] not in running.home.configuration.read_text()
    assert [process for process in running.family() if login[1] in arguments(process)] == []


def test_secrets_are_readable_by_their_owner_alone(running: Place) -> None:
    secret = [running.home.state_file, running.home.redis / "password", running.home.redis / "redis.conf"]
    assert [file.stat().st_mode & 0o777 for file in secret] == [0o600] * 3
    folders = [running.home.postgres, running.home.run / "postgres", running.home.redis, running.home.logs]
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o700] * 4


def test_other_commands_find_the_running_system(running: Place, tmp_path: Path) -> None:
    found = locate(Settings(home=running.folder))
    assert found.database_url == running.status()["database_url"]
    assert found.redis_url == running.status()["redis_url"]
    given = locate(Settings(home=running.folder, redis_url="redis://elsewhere/0"))
    assert (given.database_url, given.redis_url) == (found.database_url, "redis://elsewhere/0")
    with pytest.raises(UnavailableError, match=r"start it with `ebb up`, or set EBB_DATABASE_URL and EBB_REDIS_URL\."):
        locate(Settings(home=tmp_path))
    with pytest.raises(UnavailableError, match=r"or set EBB_DATABASE_URL\.$"):
        locate(Settings(home=tmp_path, redis_url="redis://elsewhere/0"))


def test_a_second_up_reports_the_running_system_and_changes_nothing(running: Place) -> None:
    before = running.pids()
    assert f"running already at {running.folder} (pid {before['supervisor']})" in running.refused()
    assert running.pids() == before


@pytest.mark.parametrize("name", ["worker", "maintenance", "beat", "flower", "api", "redis", "postgres"])
def test_processes_that_die_are_restarted(running: Place, name: str) -> None:
    before = running.pids()
    psutil.Process(before[name]).kill()
    eventually(lambda: _runs_again(running, name, before[name]))
    status = running.status()
    eventually(lambda: servers.postgres_fault(status["database_url"]) is None)
    eventually(lambda: servers.redis_fault(status["redis_url"]) is None)


def _runs_again(place: Place, name: str, before: int) -> bool:
    now = {each["name"]: each for each in place.status()["processes"]}
    return now[name]["state"] == "running" and now[name]["pid"] != before


@pytest.mark.slow
def test_a_home_that_was_moved_while_it_runs_is_stopped_as_a_whole_and_its_data_survives(running: Place) -> None:
    """Started again, now with a long path, it has a key and opens the API to the world."""
    key = json.loads(running.ebb("keys", "create", "--json").stdout)["key"]
    with psycopg.connect(running.status()["database_url"]) as db:
        db.execute("create table kept (word text)")
        db.execute("insert into kept values ('here')")
    # a worker may end with the server that an earlier test killed
    eventually(lambda: {one["state"] for one in running.status()["processes"]} == {"running"})
    family = running.family()
    running.move(running.folder.with_name("moved"))
    assert "is running already" in running.refused()
    down = running.ebb("down", "--json")
    assert json.loads(down.stdout) == {"home": str(running.folder), "stopped": PROGRAMS}
    assert all_gone(family)
    running.move(running.folder.with_name("Ren\u00e9e's home") / ("long-" * 20))
    up = running.process(*running.detached(), "--host", "0.0.0.0")
    assert up.returncode == 0, up.stdout + up.stderr
    with psycopg.connect(running.status()["database_url"]) as db:
        assert db.execute("select word from kept").fetchone() == ("here",)
    url = json.loads(up.stdout)["api_url"]
    assert httpx2.get(f"{url}/memory/stats", timeout=None).status_code == 401
    assert httpx2.get(f"{url}/memory/stats", headers={"x-api-key": key}, timeout=None).json()["facts"] == 0


@pytest.mark.slow
def test_after_a_killed_supervisor_nothing_is_left_and_up_works_again(running: Place) -> None:
    family = running.family()
    family[0].kill()
    if sys.platform == "linux":
        eventually(lambda: all_gone(family))
    again = running.up()
    assert again.returncode == 0, again.stdout + again.stderr
    assert all_gone(family)
    assert [each["state"] for each in running.status()["processes"]] == ["running"] * len(PROGRAMS)


@pytest.mark.slow
def test_up_waits_until_a_recovery_from_a_backup_is_over(place: Place, tmp_path: Path) -> None:
    made = servers.Postgres(data=tmp_path / "made", sockets=tmp_path / "s")
    servers.prepare_postgres(made, report=print)
    url, data = made.url("postgres"), place.home.postgres
    with server_process.running(made.command(), tmp_path / "log", lambda: servers.postgres_fault(url), signal.SIGINT):
        copy = [str(servers.postgres_programs() / "pg_basebackup"), "-d", url, "-D", str(data), "--checkpoint=fast"]
        subprocess.run(copy, check=True)
    settings, waits = data / "postgresql.auto.conf", "restore_command = 'sleep 0.3; false'\n"
    settings.write_text(f"{waits}recovery_target = 'immediate'\n")
    (data / "recovery.signal").touch()

    paused = place.ebb(*place.detached())
    assert paused.returncode == 1
    assert "has reached the target of its recovery and is paused" in json.loads(paused.stdout)["error"]["message"]

    settings.write_text(waits)
    up = place.up()
    assert up.returncode == 0, up.stdout + up.stderr
    assert "PostgreSQL recovers from its archive" in up.stderr
    assert not (data / "recovery.signal").exists()


def test_up_prints_no_password_and_status_hands_them_to_programs(running: Place) -> None:
    known = running.status()
    secrets = [str(urlsplit(known["redis_url"]).password), known["flower_password"]]
    assert all(secrets)
    assert not any(secret in running.said for secret in secrets)
    assert json.loads(running.said.partition("\n")[0]).keys() == known.keys()
    assert servers.redis_fault(known["redis_url"]) is None


ENDINGS = (signal.SIGTERM, *(pytest.param(one, marks=pytest.mark.deep) for one in (signal.SIGINT, signal.SIGHUP)))
"""Signals that `ebb up` handles by one function."""


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
def test_when_all_are_killed_at_once_up_works_again_and_reports_what_happens_until_a_signal_stops_everything(
    running: Place, ending: signal.Signals
) -> None:
    """While the system is stopping, other commands say so; a suspended worker holds it in that state."""
    for process in running.family():
        with suppress(psutil.NoSuchProcess):  # killing one ends others
            process.kill()
    with _foreground(running) as up:
        psutil.Process(running.pids()["beat"]).kill()
        assert up.stderr is not None
        assert any("beat" in line and "is running as pid" in line for line in up.stderr)
        family, worker = running.family(), psutil.Process(running.pids()["worker"])
        worker.suspend()
        up.send_signal(ending)
        eventually(supervision.Supervisor(running.home.control).is_stopping)
        again, shown = running.refused(), running.ebb("status")
        worker.resume()
        assert up.wait() == 0
    assert "Ebb is stopping at" in again
    assert "Ebb is stopping: try again" in shown.stderr
    assert all_gone(family)


@pytest.mark.slow
def test_a_worker_that_refuses_to_start_stops_up_with_its_own_message(
    stopped: Place, database_url: str, redis_url: str
) -> None:
    embed.check_embedder(Context(Settings(database_url=database_url, redis_url=redis_url)))
    close_pools()
    up = stopped.up(EBB_DATABASE_URL=database_url, EBB_REDIS_URL=redis_url, EBB_MAX_VECTOR_DIM="128")
    assert up.returncode == 1
    message = json.loads(up.stdout)["error"]["message"]
    assert "does not start" in message
    assert "ebb reembed" in message
    assert stopping.supervisor_of(stopped.home) is None


@pytest.mark.slow
def test_a_worker_that_refuses_after_it_ran_for_a_while_stops_up_too(place: Place, tmp_path: Path) -> None:
    """The supervisor takes it for running then, and starts it again."""
    place.home.prepare()
    end, program = tmp_path / "end", tmp_path / "program.py"
    program.write_text(REFUSING)
    command = [sys.executable, str(program), str(end)]
    supervision.configure(place.home, [supervision.Program(name, command) for name in supervision.OWN])
    supervisor = supervision.Supervisor(place.home.control)

    def running_pid() -> int | None:
        states = {one.name: one for one in supervisor.processes()}
        return states["worker"].pid if states["worker"].state == "running" else None

    with ExitStack() as stack:
        process = stack.enter_context(supervision.spawn(place.home, os.environ, detached=True))
        stack.callback(stopping.stop_home, place.home)
        system = supervision.System(place.home, State("", "", ""), process, supervisor, {})
        eventually(lambda: place.home.control.exists() or process.poll() is not None)
        supervisor.start("worker")
        eventually(running_pid)
        first = running_pid()
        starting.check_running(system, ["worker"])
        end.touch()
        eventually(lambda: running_pid() not in {None, first})
        with pytest.raises(UnavailableError, match=r"worker does not start\. It said: The vectors are too long\."):
            starting.check_running(system, ["worker"])


def test_down_where_nothing_runs_says_so(place: Place) -> None:
    down = place.ebb("down")
    assert down.returncode == 0
    assert "Nothing was running" in down.stdout


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_the_status_of_a_home_where_nothing_runs_is_a_failure(place: Place, options: Sequence[str]) -> None:
    status = place.ebb("status", *options)
    assert status.returncode == 1
    assert ('"processes": []' if options else "Ebb is not running") in status.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
def test_killing_the_foreground_stops_everything(stopped: Place) -> None:
    with _foreground(stopped) as up:
        family = stopped.family()
        up.kill()
    eventually(lambda: all_gone(family))


def test_up_announces_what_takes_long_before_it_begins_and_under_nohup_outlives_its_terminal(stopped: Place) -> None:
    with _foreground(stopped, "--reembed", "--reindex", program=("nohup",)) as up:
        up.send_signal(signal.SIGHUP)
        psutil.Process(stopped.pids()["beat"]).kill()
        assert up.stderr is not None
        lines = list(takewhile(lambda line: "beat" not in line or "is running as pid" not in line, up.stderr))
        up.terminate()
        assert up.wait() == 0
    about_facts = [line.removeprefix("✓ ") for line in lines if "fact" in line.lower()]
    assert [line.partition(":")[0] for line in about_facts] == [
        "The words of all facts are stemmed again as english",
        "Facts whose words are stemmed as english now",
        "The vectors of all facts are dropped",
        "Facts that wait for new vectors, found by their words meanwhile",
    ]


def _foreground(place: Place, *options: str, program: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Start `ebb up`, by a program if given, and return when it reports that it is ready."""
    up = subprocess.Popen(
        [*program, *COMMAND, "up", "--port", str(place.port), "--json", *options],
        env=place.environment({}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert up.stdout is not None
    assert json.loads(up.stdout.readline())["home"] == str(place.folder)
    return up


def test_processes_without_their_supervisor_are_found_and_ended(place: Place) -> None:
    """As on systems whose kernel does not signal children when their parent dies."""
    data = place.home.redis
    server = servers.Redis(data=data, port=servers.free_port())
    servers.prepare_redis(server)
    with subprocess.Popen([str(redis_programs.choose(server.data).path), str(server.configuration)]) as redis:
        eventually(lambda: servers.redis_fault(server.url()) is None)
        assert stopping.end_leftovers(place.home) == ["redis"]
        assert redis.wait() == 0


def test_a_port_in_use_is_named_before_anything_starts(place: Place) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place.port = taken.getsockname()[1]
        message = place.refused()
    assert f"Port {place.port}" in message
    assert "--port" in message
    assert not place.home.postgres.exists()


def test_one_port_for_flower_and_the_api_is_refused_before_anything_starts(place: Place) -> None:
    message = place.refused("--api-port", str(place.port))
    assert f"Flower and the API cannot both listen on port {place.port}" in message
    assert not place.home.postgres.exists()


def test_a_wrong_setting_stops_up_before_anything_starts(place: Place) -> None:
    assert "EBB_SEGMENTS='many' is not allowed" in place.refused(EBB_SEGMENTS="many")
    assert "FLOWER_BASIC_AUTH_FILE='/missing' cannot be read" in place.refused(FLOWER_BASIC_AUTH_FILE="/missing")
    assert not place.folder.exists()


def test_two_ups_at_once_do_not_both_start(place: Place) -> None:
    place.home.prepare()
    with (place.folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "Another `ebb up`" in place.refused()


def test_a_full_disk_ends_neither_the_supervisor_nor_what_it_runs(place: Place) -> None:
    place.home.prepare()
    for log in ("supervisord.out", "supervisord.log", *(f"{name}.log" for name in supervision.OWN)):
        (place.home.logs / log).symlink_to("/dev/full")
    printed = place.folder / "printed"
    program = f"import pathlib, time; print('late ' * 100_000, flush=True); pathlib.Path({str(printed)!r}).touch()"
    command = [sys.executable, "-c", f"{program}; time.sleep(600)"]
    supervision.configure(place.home, [supervision.Program(name, command) for name in supervision.OWN])
    supervisor = supervision.Supervisor(place.home.control)
    with supervision.spawn(place.home, os.environ, detached=True) as process:
        eventually(lambda: place.home.control.exists() or process.poll() is not None)
        supervisor.start("worker")
        eventually(lambda: printed.exists() or process.poll() is not None)
        assert process.poll() is None
        eventually(lambda: "running" in [each.state for each in supervisor.processes() if each.name == "worker"])
        assert "supervisor" in stopping.stop_home(place.home)


def test_a_disk_that_becomes_full_during_the_start_is_named(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
    given = {"EBB_DATABASE_URL": "postgresql://localhost:1/ebb", "EBB_REDIS_URL": "redis://localhost:1/0"}
    assert place.refused(**given).startswith("The disk is full. The disk at ")


@pytest.mark.parametrize("name", ["lock", "logs/api.log", "postgres", "supervisord.conf"])
def test_what_cannot_be_used_in_a_home_is_named(place: Place, name: str) -> None:
    place.home.prepare()
    wrong = place.folder / name
    wrong.touch() if name == "postgres" else wrong.mkdir()
    message = place.refused()
    assert message.startswith(f"{wrong}")
    assert "cannot be used: " in message


@pytest.mark.parametrize("name", ["100%", "mira [old]", "mir\udce4"])
def test_a_home_with_unsupported_characters_is_refused(place: Place, name: str) -> None:
    assert "choose another path" in Place(place.folder / name).refused()


def test_the_sockets_of_a_home_with_a_comma_are_outside_of_it(place: Place) -> None:
    home = Home(place.folder / "mira, 2026")
    assert "," not in str(home.run)


def test_down_of_the_home_of_another_user_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.home.prepare()
    with subprocess.Popen(["sleep", "20"]) as other:
        monkeypatch.setattr(stopping, "supervisor_of", lambda _: psutil.Process(other.pid))
        with monkeypatch.context() as as_another:
            as_another.setattr(os, "geteuid", lambda: 54_321)
            with pytest.raises(SystemStateError, match="and you are user id 54321: run Ebb as its owner"):
                stopping.stop_home(place.home)
        status = other.poll()
        monkeypatch.undo()
        other.kill()
    assert status is None


class AtSocket(SimpleXMLRPCRequestHandler):
    disable_nagle_algorithm = False  # sockets of files have none


class Imitation(socketserver.UnixStreamServer, SimpleXMLRPCDispatcher):
    """Answers at the socket of a home as supervisord does, with the id of another process."""

    logRequests = False  # noqa: N815 - xmlrpc's name

    def __init__(self, socket_path: Path, pid: int) -> None:
        SimpleXMLRPCDispatcher.__init__(self)
        self.register_function(list, "supervisor.getAllProcessInfo")
        self.register_function(lambda: pid, "supervisor.getPID")
        super().__init__(str(socket_path), AtSocket)


def test_down_ends_no_process_that_another_program_names_at_the_socket_of_a_home(place: Place) -> None:
    home = Home(place.folder / "mira, 2026")
    home.prepare()
    with subprocess.Popen(["sleep", "20"]) as other, Imitation(home.control, other.pid) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        named = supervision.Supervisor(home.control).processes()[0].pid
        ended, status = stopping.stop_home(home), other.poll()
        server.shutdown()
        thread.join()
        other.kill()
    assert (named, ended, status) == (other.pid, [], None)
    shutil.rmtree(home.run)


@pytest.mark.slow
def test_configured_servers_are_used_instead_of_embedded_ones_until_down_stops_the_others(
    place: Place, database_url: str, redis_url: str
) -> None:
    up = place.up(EBB_DATABASE_URL=database_url, EBB_REDIS_URL=redis_url)
    assert up.returncode == 0, up.stdout + up.stderr
    assert "compares meaning, of English words" in " ".join(up.stderr.split())
    status = place.status()
    assert (status["database_url"], status["redis_url"]) == (database_url, redis_url)
    others = [name for name in PROGRAMS if name not in ("postgres", "redis")]
    assert [each["name"] for each in status["processes"]] == others
    family = place.family()
    down = place.process("down", "--json")
    assert json.loads(down.stdout) == {"home": str(place.folder), "stopped": others}
    assert all_gone(family)
    assert servers.postgres_fault(database_url) is None
    assert servers.redis_fault(redis_url) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variable", "url"),
    [
        ("EBB_DATABASE_URL", "postgresql://postgres@127.0.0.1:{port}/ebb"),
        ("EBB_REDIS_URL", "redis://127.0.0.1:{port}/0"),
    ],
)
def test_an_unreachable_configured_server_is_an_error_and_all_is_stopped(place: Place, variable: str, url: str) -> None:
    port = servers.free_port()
    up = place.up(**{variable: url.format(port=port)})
    assert up.returncode == 1
    message = json.loads(up.stdout)["error"]["message"]
    assert variable in message
    assert str(port) in message
    assert stopping.supervisor_of(place.home) is None
