"""What `ebb up` asks and prints while its processes start."""

import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from supervisor.options import ServerOptions

from api.cli import output, system
from api.up import servers, starting, supervision
from api.up.home import Home, State
from workers.errors import SystemStateError, UnavailableError


@pytest.mark.parametrize(
    "address",
    ["redis://:password@127.0.0.1:{0}/0", "sentinel://:password@127.0.0.1:{0},127.0.0.1:{0}/0?master_name=main"],
)
def test_no_worker_answers_while_redis_is_away(address: str) -> None:
    assert not starting.workers_answer(address.format(servers.free_port()))


@pytest.mark.parametrize(
    ("address", "is_own"),
    [
        ("redis://:own-Pass_word@127.0.0.1:{0}/0", True),
        ("redis://elsewhere:{0}/0", False),
        ("sentinel://:password@a:{0},b:{0}/0?master_name=main", False),
    ],
)
def test_the_port_of_ebbs_own_redis_stays_that_of_the_last_run(address: str, is_own: bool, tmp_path: Path) -> None:
    home, port = Home(tmp_path), servers.free_port()
    home.write_state(State("", address.format(port), ""))
    assert (starting._redis_port(home) == port) is is_own


def test_a_file_of_a_setting_is_found_by_processes_that_run_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EBB_LLM_KEY_FILE", "key")
    monkeypatch.setenv("EBB_RERANK_KEY_FILE", "")
    environment = starting._environment(Home(tmp_path / "home"), State("", "", ""))
    assert (environment["EBB_LLM_KEY_FILE"], environment["EBB_RERANK_KEY_FILE"]) == (str(tmp_path / "key"), "")


def test_why_a_server_of_its_own_cannot_be_reached_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSERVICE", "elsewhere")
    home, postgres = Home(tmp_path), servers.Postgres(data=tmp_path, sockets=tmp_path)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        started = supervision.System(home, State("", "", ""), process, supervision.Supervisor(home.control), {})
        fault = partial(servers.postgres_fault, postgres.url("postgres"))
        with pytest.raises(UnavailableError, match=r'no answer in 0 s \(.*definition of service "elsewhere" not found'):
            starting._wait(started, (), lambda: False, 0, fault)


def test_a_process_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "check_running", lambda *_: None)
    home = Home(tmp_path)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        started = supervision.System(home, State("", "", ""), process, supervision.Supervisor(home.control), {})
        with pytest.raises(UnavailableError, match=r"\(http://127.0.0.1:1/healthcheck does not answer"):
            starting._wait_for_answer(started, "http://127.0.0.1:1", "/healthcheck", 0)


def test_after_the_last_port_the_api_gets_one_that_browsers_open() -> None:
    assert starting._port_after(65_535) > 1024


def test_a_home_of_a_user_without_one_is_refused() -> None:
    with pytest.raises(SystemStateError, match=r"The home ~no-such-user/ebb is not known.*give a path"):
        Home(Path("~no-such-user/ebb"))


def test_the_lock_of_a_home_can_be_held_by_its_owner_alone(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.touch(0o644)
    with Home(tmp_path).locked():
        assert stat.S_IMODE(lock.stat().st_mode) == 0o600


def test_a_log_that_is_rotated_while_it_is_opened_is_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = supervision.Log(tmp_path / "worker.log")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", lambda _: True)  # it was there when the look began
        assert list(log.warnings()) == []
    log.path.write_text("2026-01-01 00:00:00 ERROR it failed\n")
    assert list(log.warnings()) == ["2026-01-01 00:00:00 ERROR it failed"]


def test_an_address_with_a_percent_sign_reaches_the_api(tmp_path: Path) -> None:
    home, options = Home(tmp_path), ServerOptions()
    home.prepare()
    programs = [*supervision.own(home, children=2, port=1), supervision.api("fe80::1%eth0", 2, "https://host/%7Eebb/")]
    supervision.configure(home, programs)
    options.realize(args=["-c", str(home.configuration)])
    environment = {one.name: one.environment for one in options.process_group_configs[0].process_configs}["api"]
    assert (environment["EBB_HOST"], environment["EBB_FLOWER_URL"]) == ("fe80::1%eth0", "https://host/%7Eebb/")


def test_where_the_current_folder_was_removed_the_next_commands_have_full_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert system._from_here(tmp_path / "year.jsonl") == str(tmp_path / "year.jsonl")


def test_where_standard_output_is_closed_nothing_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with output.tolerating_closed_stdout():
        output.print_json({"home": "/home/mira/.ebb"})
