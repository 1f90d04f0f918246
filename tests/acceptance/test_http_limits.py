"""The API without workers, with too many waiting tasks, or with all its threads waiting."""

import json
import math
import platform
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx2
import psutil
import pytest
import redis
import server_process
from live_api import serving
from live_system import ROOT, LiveSystem, end, eventually

from api.http.door import Door
from api.http.limits import SHARE, SPARE, THREADS
from api.http.monitoring import KNOWN_SECONDS, checks
from api.up import servers, supervision
from api.up.home import Home
from workers.coordination import outbox, signals
from workers.coordination.redis import clock
from workers.queues import length_of
from workers.settings import Settings

pytestmark = [pytest.mark.acceptance, pytest.mark.long]


def problem(answer: httpx2.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    return str(answer.json()["detail"])


def test_logs_for_machines_are_json_with_task_and_namespace(idle: LiveSystem, namespace: str) -> None:
    idle.settings["EBB_LOG_FORMAT"] = "json"
    idle.start("worker")
    with serving(idle) as api:
        answer = api.post("/memory/recall", json={"query": "key"}, headers={"X-Ebb-Namespace": namespace})
        assert answer.status_code == 200
        assert api.post("/memory/facts", json={"text": ""}, headers={"X-Ebb-Namespace": namespace}).status_code == 422
    lines = [json.loads(line) for line in (idle.folder / "api.log").read_text().splitlines()]
    (entry,) = [line for line in lines if line.get("path") == "/memory/recall"]
    assert (entry["level"], entry["namespace"], entry["status"], entry["method"]) == ("INFO", namespace, 200, "POST")
    assert entry["task"]
    log = idle.folder / "worker.log"
    psutil.Process(idle.workers["worker"].pid).children()[0].kill()
    eventually(lambda: "exited with" in log.read_text(), "the worker has seen that a child was killed")
    worker = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(line["level"] and line["message"] for line in worker)


@pytest.mark.slow
def test_all_processes_started_together_log_json_only(idle: LiveSystem, tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.beat.mkdir()
    started = {"beat": "Starting", "flower": "Connected to", "maintenance": "ready"}
    for program in supervision.own(home, children=1, port=servers.free_port()):
        if program.name not in started:
            continue
        log = tmp_path / f"{program.name}.log"
        own = {"EBB_LOG_FORMAT": "json", "FLOWER_BASIC_AUTH": "mira:a password"}
        environment = idle.environment() | own | program.environment
        with (
            log.open("wb") as file,
            subprocess.Popen(
                program.command, env=environment, cwd=ROOT, stdout=file, stderr=file, stdin=subprocess.DEVNULL
            ) as process,
        ):
            try:
                eventually(partial(_said_or_ended, process, log, started[program.name]), "it has started")
                assert process.poll() is None, log.read_text()
            finally:
                end(process)
        assert [line for line in log.read_text().splitlines() if not json.loads(line)["message"]] == []


def _said_or_ended(process: subprocess.Popen[bytes], log: Path, sign: str) -> bool:
    return sign in log.read_text() or process.poll() is not None


def test_an_unreachable_redis_is_reported_and_the_api_recovers(database_url: str, tmp_path: Path) -> None:
    server = servers.Redis(data=tmp_path, port=servers.free_port())
    servers.prepare_redis(server)
    command, log = server.command(), tmp_path / "redis.log"
    system = LiveSystem(database_url, server.url(), tmp_path)
    with server_process.running(command, log, lambda: servers.redis_fault(server.url()), signal.SIGTERM):
        system.own_keys.hset("ebb:keys", "copied", "1")
        api = serving(system)
        client = api.__enter__()
    try:
        ready = client.get("/health/ready")
        assert ready.status_code == 503
        assert "Redis does not answer" in ready.json()["checks"]["redis"]
        assert client.get("/health/live").status_code == 200
        answer = client.get("/memory/stats")
        assert "Redis does not answer" in problem(answer, 503)
        assert int(answer.headers["retry-after"]) > 0
        page = client.get("/dashboard/facts")
        assert "Redis does not answer" in page.text
        assert str(server.port) not in ready.text + answer.text + page.text
        with server_process.running(command, log, lambda: servers.redis_fault(server.url()), signal.SIGTERM):
            system.own_keys.hset("ebb:keys", "copied", "1")
            problem(client.get("/memory/stats", params={"timeout": 0.2}), 504)
    finally:
        api.__exit__(None, None, None)
        system.stop()


@pytest.mark.slow
def test_a_request_with_a_timeout_is_answered_although_redis_hangs(database_url: str, tmp_path: Path) -> None:
    server = servers.Redis(data=tmp_path, port=servers.free_port())
    servers.prepare_redis(server)
    command, log, asked = server.command(), tmp_path / "redis.log", {"timeout": 0.2}
    system = LiveSystem(database_url, server.url(), tmp_path)
    with (
        server_process.running(command, log, lambda: servers.redis_fault(server.url()), signal.SIGTERM),
        serving(system) as api,
    ):
        system.own_keys.hset("ebb:keys", "copied", "1")
        problem(api.post("/memory/recall", params=asked, json={"query": "key"}), 504)
        hanging = psutil.Process(system.own_keys.info("server")["process_id"])
        hanging.suspend()
        try:
            recalled = problem(api.post("/memory/recall", params=asked, json={"query": "key"}), 504)
            stored = problem(api.post("/memory/facts", params=asked, json={"text": "Tea at four."}), 504)
            assert recalled == stored == "No worker answered within 0.2 s, and Redis may hang. See `ebb status`."
        finally:
            hanging.resume()
    system.stop()


def test_the_health_check_of_a_container_reports_its_worker(idle: LiveSystem) -> None:
    command = [sys.executable, "-m", "workers.heartbeat"]
    assert subprocess.run(command, cwd=ROOT, env=idle.environment(), check=False).returncode == 1
    recent = time.time() + 600  # the process that looks for it may take longer to start than a heartbeat counts
    signals.note_heartbeat(idle.own_keys, f"celery@{platform.node()}", ["recall"], recent)
    assert subprocess.run(command, cwd=ROOT, env=idle.environment(), check=False).returncode == 0


def test_a_container_is_not_unhealthy_because_redis_is(idle: LiveSystem) -> None:
    command = [sys.executable, "-m", "workers.heartbeat"]
    away = idle.environment() | {"EBB_REDIS_URL": "redis://127.0.0.1:1/0"}
    done = subprocess.run(command, cwd=ROOT, env=away, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "is not known. Redis does not answer" in done.stdout
    wrong = idle.environment() | {"EBB_REDIS_URL": idle.redis_url.replace("redis://:", "redis://:not-")}
    assert subprocess.run(command, cwd=ROOT, env=wrong, check=False).returncode == 1
    for name, value in (("EBB_SEGMENTS", "many"), ("EBB_REDIS_URL", "")):
        invalid = idle.environment() | {name: value}
        done = subprocess.run(command, cwd=ROOT, env=invalid, check=False, capture_output=True, text=True)
        assert (done.returncode, done.stderr.startswith("ebb: "), done.stderr.count("\n")) == (1, True, 1)


def test_a_recall_that_takes_too_long_is_answered_with_its_task_and_revoked(idle: LiveSystem) -> None:
    """No worker runs: the task waits, is revoked, and is never started."""
    idle.own_keys.hset("ebb:keys", "copied", "1")
    with serving(idle) as api:
        answer = api.post("/memory/recall", params={"timeout": 0.3}, json={"query": "key"})
        assert "No worker answered within 0.3 s" in problem(answer, 504)
        assert api.get(f"/tasks/{answer.json()['task']}").json()["state"] == "late"


def test_a_queue_that_is_too_long_and_workers_that_are_away_are_distinguished(idle: LiveSystem) -> None:
    idle.own_keys.hset("ebb:keys", "copied", "1")
    with serving(idle, EBB_MAX_QUEUE="2") as api:
        for place in range(4):
            assert api.post("/memory/facts", params={"wait": "false"}, json={"text": f"{place}."}).status_code == 202
        time.sleep(0.3)
        one_more = {"url": "/memory/facts", "params": {"wait": "false"}, "json": {"text": "One more."}}
        busy = api.post(**one_more)
        assert "EBB_MAX_QUEUE=2" in problem(busy, 429)
        assert int(busy.headers["retry-after"]) == busy.json()["retry_after"] > 0
        assert api.post(**one_more, headers={"X-Ebb-Namespace": "other"}).status_code == 202
        ready = api.get("/health/ready")
        assert ready.status_code == 503
        assert ready.json()["status"] == "down"
        assert ready.json()["checks"]["redis"] == "ok"
        assert "no worker" in ready.json()["checks"]["recall"]
        assert api.get("/health/live").json() == {"status": "live"}
        assert {entry.task for entry in outbox.entries(idle.own_keys)} == {"memory.store"}


def test_a_database_whose_state_workers_do_not_say_in_time_takes_no_api_out_of_service(idle: LiveSystem) -> None:
    idle.own_keys.hset("ebb:keys", "copied", "1")
    with serving(idle) as api:
        now = clock(idle.own_keys).timestamp()
        signals.note_heartbeat(idle.own_keys, "busy@tests", ["recall", "store", "maintenance"], now)
        ready = api.get("/health/ready")
    assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
    assert ready.json()["checks"]["database"].startswith("not known: no worker said within 3 s")


def test_requests_that_come_while_a_check_runs_begin_none() -> None:
    """They wait for the first one, and are answered with the last result during another."""
    door = Door(Settings(redis_url="redis://127.0.0.1:1/0"))
    first, second = {"redis": "first"}, {"redis": "second"}
    with ThreadPoolExecutor(8) as pool:
        with door.checking:
            waiting = [pool.submit(checks, door) for _ in range(8)]
            door.known_health = (math.inf, first)
        assert [one.result() for one in waiting] == [first] * 8
        with door.checking:
            door.known_health = (time.monotonic() - KNOWN_SECONDS, second)
            assert [one.result() for one in [pool.submit(checks, door) for _ in range(8)]] == [second] * 8


def test_a_namespace_with_too_many_requests_is_refused_and_others_are_served(idle: LiveSystem) -> None:
    """No worker runs until the end: each request waits."""
    idle.own_keys.hset("ebb:keys", "copied", "1")
    idle.own_keys.hset("ebb:outbox:bounds", "requests", 2)
    question = {"url": "/memory/recall", "params": {"timeout": 120}, "json": {"query": "key"}, "timeout": 240}
    with serving(idle) as api, ThreadPoolExecutor(2) as waiting:
        pending = [waiting.submit(api.post, **question) for _ in range(2)]
        try:
            eventually(lambda: idle.own_keys.zcard("ebb:requests:default") == 2, "both wait")
            refused = api.post(**question)
            assert "EBB_MAX_REQUESTS=2" in problem(refused, 429)
            assert refused.json()["retry_after"] == int(refused.headers["retry-after"])
            other = question | {"params": {"timeout": 0.3}, "headers": {"X-Ebb-Namespace": "other"}}
            assert api.post(**other).status_code == 504
        finally:
            idle.start("worker")
        assert {one.result().status_code for one in pending} == {200}
    assert idle.own_keys.zcard("ebb:requests:default") == 0


def test_liveness_is_answered_while_all_threads_wait(idle: LiveSystem) -> None:
    """No worker runs until the end: each request waits."""
    idle.own_keys.hset("ebb:keys", "copied", "1")
    with serving(idle) as api, ThreadPoolExecutor(2 * THREADS) as waiting:
        wait = {"timeout": 120}
        pending = [
            waiting.submit(api.post, "/memory/recall", params=wait, json={"query": "key"}, timeout=240)
            for _ in range(THREADS)
        ]
        try:
            with redis.Redis.from_url(idle.redis_url) as queues:
                eventually(lambda: length_of(queues, "recall") >= SHARE, "all threads of the namespace wait")
            assert api.get("/health/live").json() == {"status": "live"}
            assert not any(one.done() for one in pending)
        finally:
            idle.start("worker")


def test_a_write_that_is_answered_before_its_turn_is_not_done_later(idle: LiveSystem) -> None:
    """No worker runs until the end: each recall waits, and the write for their threads."""
    idle.own_keys.hset("ebb:keys", "copied", "1")
    question = {"url": "/memory/recall", "params": {"timeout": 120}, "json": {"query": "key"}, "timeout": 240}
    with serving(idle) as api, ThreadPoolExecutor(SHARE) as waiting, redis.Redis.from_url(idle.redis_url) as queues:
        pending = [waiting.submit(api.post, **question) for _ in range(SHARE)]
        try:
            eventually(lambda: length_of(queues, "recall") >= SHARE, "all threads of the namespace wait")
            for wait in (True, False):
                params = {"timeout": 0.05, "wait": wait}
                late = api.post("/memory/facts", params=params, json={"text": "Tea at four."})
                assert (late.status_code, late.json().get("task")) == (504, None)
            assert not any(one.done() for one in pending)
        finally:
            idle.start("worker")
        assert {one.result().status_code for one in pending} == {200}
        assert api.post(**question).status_code == 200
        assert (length_of(queues, "store"), outbox.held(idle.own_keys, "default")) == (0, 0)
    assert idle.rows("select count(*) from facts") == [(0,)]


TOOL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "recall", "arguments": {"query": "key"}}}
DOORS = {
    "tools": {"method": "POST", "url": "/mcp", "json": TOOL, "headers": {"accept": "application/json"}},
    "pages": {"method": "GET", "url": "/dashboard/recall?query=key"},
}


def seems_to_run(system: LiveSystem) -> bool:
    """Leave the heartbeat of a worker."""
    system.own_keys.zadd(signals.ALIVE, {"recall worker@none": clock(system.own_keys).timestamp()})
    return True


@pytest.mark.parametrize("door", DOORS)
def test_tools_and_pages_of_one_namespace_leave_threads_to_others(idle: LiveSystem, door: str) -> None:
    """No worker runs until the end, although one seems to: each request waits."""
    idle.own_keys.hset("ebb:keys", "copied", "1")
    with serving(idle) as api, ThreadPoolExecutor(2 * THREADS) as waiting:
        seems_to_run(idle)
        pending = [waiting.submit(api.request, **DOORS[door], timeout=240) for _ in range(THREADS + SPARE)]
        try:
            with redis.Redis.from_url(idle.redis_url) as queues:
                eventually(
                    lambda: seems_to_run(idle) and length_of(queues, "recall") >= SHARE,
                    "all threads of the namespace wait",
                )
            there = {"X-Ebb-Namespace": "other"}
            unknown = api.get("/tasks/01a1fd54-5b58-7629-9b8d-dfaf36313cae", headers=there, timeout=240)
            assert unknown.status_code == 404
            assert not any(one.done() for one in pending)
        finally:
            idle.start("worker")


@pytest.mark.slow
def test_limits_of_the_operator_are_published_again_to_a_redis_that_was_emptied(idle: LiveSystem) -> None:
    def published() -> bool:
        return idle.own_keys.hget(outbox.BOUNDS, "requests") == b"7"

    idle.settings["EBB_MAX_REQUESTS"] = "7"
    idle.start("worker")
    eventually(published, "the worker has published the limits")
    idle.own_keys.flushall()
    eventually(published, "the limits are published again")
