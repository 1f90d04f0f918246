"""A Celery program that only knows names of tasks and queues stores and recalls through Ebb."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import command_line
import pytest
import redis
from ebb.broker import celery_configuration
from live_system import LiveSystem, clean_environment, eventually

pytestmark = pytest.mark.acceptance

PROGRAM = """
import json, sys
from celery import Celery

app = Celery("foreign", broker=sys.argv[1], backend=sys.argv[2])
answers = []
for task, queue, arguments in json.load(sys.stdin):
    try:
        answers.append(app.send_task(task, kwargs=arguments, queue=queue).get())
    except Exception as error:
        answers.append({"raised": type(error).__name__, "message": str(error)})
app.close()
assert not {"workers", "api"} & {name.split(".")[0] for name in sys.modules}
print(json.dumps(answers))
"""

RESULT = {
    "id", "text", "score", "tier", "fidelity", "source", "session", "turn",
    "entity", "key", "value", "category", "tags",
}  # fmt: skip
COUNTERS = {
    "processed", "changed", "hot", "warm", "cold",
    "compressed", "fingerprinted", "forgotten", "duration_ms", "segments",
}  # fmt: skip

Call = tuple[str, str, dict[str, Any]]


def ask(live: LiveSystem, folder: Path, *calls: Call) -> list[Any]:
    """Return the answers to the other program's calls, made one after the other."""
    program = folder / "somebody_else.py"
    program.write_text(PROGRAM)
    environment = clean_environment({})
    del environment["PYTHONPATH"]
    done = subprocess.run(
        [sys.executable, str(program), live.redis_url, celery_configuration(live.redis_url)["result_backend"]],
        cwd=folder,
        env=environment,
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers


def test_it_stores_and_recalls_by_name(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    fact = {"text": "Mira moved to Leipzig.", "namespace": namespace, "tags": ["city"], "session": 7, "salience": 0.9}
    stored, recalled = ask(
        live,
        tmp_path,
        ("memory.store", "store", fact),
        ("memory.recall", "recall", {"query": "Where does Mira live now?", "namespace": namespace}),
    )
    assert stored.items() >= {"id": stored["id"], "action": "added", "embedded": True}.items()
    (found,) = recalled["results"]
    assert found.keys() >= RESULT
    assert (found["id"], found["text"], found["session"]) == (stored["id"], fact["text"], 7)
    assert (found["tier"], found["fidelity"], found["tags"]) == ("hot", "full", ["city"])


def test_many_facts_are_answered_in_order_and_an_invalid_one_affects_no_other(
    live: LiveSystem, namespace: str, tmp_path: Path
) -> None:
    facts = [{"text": "One."}, {"text": " "}, {"text": "Two."}, {"text": "One."}, {"text": "Three.", "colour": 3}]
    (stored,) = ask(live, tmp_path, ("memory.store_many", "store", {"facts": facts, "namespace": namespace}))
    first, blank, second, again, unknown = stored["results"]
    assert [first["action"], second["action"]] == ["added", "added"]
    assert blank["index"] == 1
    assert "empty fact text" in blank["error"]
    assert again.items() >= {"id": first["id"], "action": "duplicate", "embedded": True}.items()
    assert "colour: is no field of a fact" in unknown["error"]


def test_it_reinforces_and_has_decay_planned(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    id_ = str(UUID(int=77))
    arguments = {"id": id_, "namespace": namespace}
    _, reinforced, planned = ask(
        live,
        tmp_path,
        ("memory.store", "store", {"text": "A key lies under the mat.", "salience": 0.5, **arguments}),
        ("memory.reinforce", "store", {"boost": 0.3, **arguments}),
        ("decay.plan", "maintenance", {"dry_run": True, "now": "2100-01-01T00:00:00Z", "namespace": namespace}),
    )
    assert reinforced == {"id": id_, "salience": pytest.approx(0.8, abs=1e-4)}
    assert planned.keys() >= COUNTERS
    assert planned["processed"] >= 1


@pytest.mark.parametrize(
    ("task", "queue", "arguments", "message"),
    [
        ("memory.store", "store", {"text": ""}, "empty fact text"),
        ("memory.recall", "recall", {"query": "who?", "limit": 0}, "limit: input should be greater than or equal to 1"),
        ("memory.reinforce", "store", {"id": "seven"}, "valid UUID"),
        ("decay.plan", "maintenance", {"now": "yesterday"}, "now: "),
    ],
)
def test_errors_arrive_as_messages(
    live: LiveSystem, tmp_path: Path, task: str, queue: str, arguments: dict[str, Any], message: str
) -> None:
    (answer,) = ask(live, tmp_path, (task, queue, arguments))
    assert answer["raised"] == "InvalidInputError"
    assert message in answer["message"]


def test_each_message_is_delivered_once(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    before = live.begun_when_idle().get("memory.store", 0)
    facts = [{"text": f"Message {number}.", "namespace": namespace} for number in range(5)]
    ask(live, tmp_path, *(("memory.store", "store", fact) for fact in facts))
    assert live.begun_when_idle()["memory.store"] - before == len(facts)


ROUTED = """
import json, sys
from celery import Celery
from ebb.celery import configure

app = Celery("foreign", broker=sys.argv[1])
app.conf.task_routes = {"mine.*": {"queue": "mine"}}
configure(app)
stored = app.send_task("memory.store", kwargs={"text": "An otter", "namespace": sys.argv[2]}).get()
app.send_task("mine.task")
app.close()
print(json.dumps(stored))
"""


def test_a_program_that_is_configured_needs_no_queue_and_keeps_its_own_routes(live: LiveSystem, namespace: str) -> None:
    command = [sys.executable, "-c", ROUTED, live.redis_url, namespace]
    done = subprocess.run(command, env=clean_environment({}), capture_output=True, text=True, check=True)

    assert json.loads(done.stdout)["action"] == "added"
    with redis.Redis.from_url(live.redis_url) as queues:
        assert queues.llen("mine") == 1
        queues.delete("mine")


PICKLING = """
import sys
from celery import Celery
from ebb.celery import configure

app = Celery("foreign", broker=sys.argv[1])
app.conf.update(task_serializer="pickle", result_accept_content=["pickle"])
configure(app)
print(app.send_task("memory.store", kwargs={"text": "A heron", "namespace": sys.argv[2]}).get(timeout=10)["action"])
app.close()
"""


def test_a_program_with_another_serializer_sends_and_reads_json_of_ebb(live: LiveSystem, namespace: str) -> None:
    command = [sys.executable, "-c", PICKLING, live.redis_url, namespace]
    done = subprocess.run(command, env=clean_environment({}), capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "added"


CATCHING = """
import sys
import ebb
from celery import Celery
from ebb.celery import configure

app = Celery("foreign", broker=sys.argv[1])
configure(app)
try:
    app.send_task("memory.store", kwargs={"text": "", "namespace": sys.argv[2]}).get(timeout=10)
except ebb.InvalidInputError as error:
    print(error)
app.close()
"""


def test_a_program_catches_an_error_of_a_task_as_that_of_the_library(live: LiveSystem, namespace: str) -> None:
    command = [sys.executable, "-c", CATCHING, live.redis_url, namespace]
    done = subprocess.run(command, env=clean_environment({}), capture_output=True, text=True, check=True)

    assert "empty fact text" in done.stdout


def test_variables_of_celery_programs_lead_no_command_away(live: LiveSystem, namespace: str) -> None:
    theirs = dict.fromkeys(("CELERY_BROKER_URL", "CELERY_RESULT_BACKEND"), "redis://127.0.0.1:9/0")
    theirs |= {"DJANGO_SETTINGS_MODULE": "project.settings", "CELERY_LOADER": "project.loader"}
    theirs["CELERY_CONFIG_MODULE"] = "project.celeryconfig"
    done = command_line.run(["store", "An otter", "-n", namespace], live.environment() | theirs)

    assert done.returncode == 0, done.stderr


def test_the_doctor_shows_tasks_that_were_sent_to_no_queue_of_ebb(live: LiveSystem) -> None:
    with redis.Redis.from_url(live.redis_url) as queues:
        queues.rpush("celery", "{}")
        try:
            shown = live.ebb("doctor").stdout
        finally:
            queues.delete("celery")

    assert "1 task in celery, which no worker of Ebb serves" in " ".join(shown.split())


def push(live: LiveSystem, body: bytes, headers: dict[str, Any], envelope: dict[str, Any] | None = None) -> None:
    """Put a message into a queue, as programs do that are not Celery."""
    properties = {"body_encoding": "base64", "delivery_tag": str(uuid4())}
    message = {
        "body": base64.b64encode(body).decode(),
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": headers,
        "properties": properties | {"delivery_info": {"exchange": "", "routing_key": "store"}},
    }
    with redis.Redis.from_url(live.redis_url) as queues:
        queues.lpush("store", json.dumps(message | (envelope or {})))


def answer_to(live: LiveSystem, task_id: str) -> dict[str, Any]:
    """Return the stored result of a task, once it is there."""
    backend = live.control.backend
    eventually(lambda: backend.get_task_meta(task_id)["status"] != "PENDING", "the sender has an answer")
    stored: dict[str, Any] = json.loads(backend.client.get(backend.get_key_for_task(task_id)))
    return stored


@pytest.mark.parametrize(
    ("body", "headers", "why"),
    [
        (b"[[], {}]", {}, "no JSON list of args, kwargs and embed"),
        (b'"An otter"', {}, "no JSON list of args, kwargs and embed"),
        (b"", {}, "no JSON list of args, kwargs and embed"),
        (b"{nope", {}, "JSONDecodeError"),
        (b"[[], {}, {}]", {"compression": "application/x-gzip"}, "decompressing"),
        (b"[null, [], 1]", {}, "no valid args, kwargs, embed"),
        (b"[[], {}, {}]", {"timelimit": [5], "retries": "0"}, "no valid retries, timelimit"),
        (b'{"args": {}, "kwargs": []}', {}, "no valid args, kwargs"),
    ],
)
def test_a_malformed_message_is_refused_and_answered_and_the_worker_goes_on(
    live: LiveSystem, namespace: str, body: bytes, headers: dict[str, Any], why: str
) -> None:
    worker, task_id = live.workers["worker"].pid, str(uuid4())
    push(live, body, {"task": "memory.store", "id": task_id} | headers)
    refused = answer_to(live, task_id)
    assert refused["status"] == "FAILURE"
    assert why in str(refused["result"]["exc_message"])
    assert live.send("memory.store", {"text": "An otter", "namespace": namespace}).get()["action"] == "added"
    assert live.workers["worker"].pid == worker


def test_messages_of_protocol_1_are_answered_and_refused_alike(live: LiveSystem, namespace: str) -> None:
    for number, arguments, status in ((1, {"text": "An otter", "namespace": namespace}, "SUCCESS"), (2, 3, "FAILURE")):
        task_id = f"{namespace}-{number}"
        push(live, json.dumps({"id": task_id, "task": "memory.store", "kwargs": arguments}).encode(), {})
        assert answer_to(live, task_id)["status"] == status


@pytest.mark.parametrize("envelope", [{"properties": {}}, {"properties": None}, {"body": "An otter"}])
def test_an_entry_that_is_no_message_is_dropped(live: LiveSystem, namespace: str, envelope: dict[str, Any]) -> None:
    push(live, b"[[], {}, {}]", {"task": "memory.store", "id": namespace}, envelope)
    with redis.Redis.from_url(live.redis_url) as queues:
        queues.lpush("store", "no JSON", b"\xff", "[1]")
    assert live.send("memory.store", {"text": "A heron", "namespace": namespace}).get()["action"] == "added"
