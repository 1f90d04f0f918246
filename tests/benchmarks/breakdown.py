"""How the time of a recall through the queue is divided between the queue and Ebb.

A worker that includes this module records the stages of each recall, by the clock that it shares with the client.
"""

import json
import time
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from celery.signals import task_postrun, task_prerun, worker_process_init

from tests.benchmarks import running
from tests.benchmarks.figures import Answers, quantile
from tests.benchmarks.machine import Machine
from workers.coordination.redis import own_keys

TASK = "memory.recall"
KEY = "bench:moments:"
KEEP_SECONDS = 600

# What happens from one moment to the next, and whether the queue or Ebb does it.
STAGES = {
    "sent": ("the client sends the task", "the queue"),
    "begun": ("until a child begins it", "the queue"),
    "asked": ("arguments are checked, a mark is set for passes", "Ebb"),
    "found": ("the recall itself", "Ebb"),
    "shaped": ("the mark is removed, the answer becomes JSON's types", "Ebb"),
    "kept": ("the result is stored", "the queue"),
    "answered": ("until the client has it", "the queue"),
}
AFTERWARDS = "after the answer the child is busy for"

_moments: dict[str, float] = {}


def measure(machine: Machine, namespace: str, answers: Answers, asked: Sequence[str]) -> None:
    """Measure the stages of recalls that one client sends one after the other, and the work that follows them.

    Following work is measured separately, since a touch would occupy the one child when the next recall arrives.
    """
    with running.client(machine, namespace) as client, own_keys(machine.redis.url()) as keys:
        client.recall(asked[0])
        rows = [_one(client, keys, text, touch=False) for text in asked]
        touched = [_one(client, keys, text, touch=True) for text in asked]
    for stage, (what, whose) in STAGES.items():
        answers.add(f"of a recall by the queue, {whose}: {what}", "ms", [quantile([row[stage] for row in rows], 0.5)])
    answers.details["stages_ms"] = {
        what: quantile([row[stage] for row in rows], 0.5) for stage, (what, _) in STAGES.items()
    }
    for whose in ("the queue", "Ebb"):
        own = [stage for stage, (_, doer) in STAGES.items() if doer == whose]
        share = [100 * sum(row[stage] for stage in own) / sum(row[stage] for stage in STAGES) for row in rows]
        answers.add(f"share of {whose} in a recall by the queue", "%", [quantile(share, 0.5)])
    for what, those in (("", rows), (", a touch sent", touched)):
        answers.add(f"{AFTERWARDS}{what}", "ms", [quantile([row["idle"] for row in those], 0.5)])


def _one(client: Any, keys: Any, text: str, *, touch: bool) -> dict[str, float]:
    """Return the milliseconds of each stage of one recall."""
    began = time.time()
    sent = client.send(TASK, {"query": text, "namespace": client.namespace, "touch": touch})
    moments = {"sent": time.time()}
    client.wait(sent, running.START_SECONDS)
    moments["answered"] = time.time()
    moments |= _noted(keys, sent.id)
    return _milliseconds(began, moments)


def _noted(keys: Any, task_id: str) -> dict[str, float]:
    deadline = time.monotonic() + running.START_SECONDS
    while (noted := keys.get(KEY + task_id)) is None:
        if time.monotonic() > deadline:
            raise TimeoutError("The worker notes no moments; see worker.log.")
        time.sleep(0.001)
    moments: dict[str, float] = json.loads(noted)
    return moments


def _milliseconds(began: float, moments: dict[str, float]) -> dict[str, float]:
    """Return the time from each moment to the next; a child may begin before the client has sent all."""
    spent, before = {}, began
    for stage in STAGES:
        at = max(moments[stage], before)
        spent[stage], before = (at - before) * 1000, at
    return spent | {"idle": (moments["idle"] - moments["kept"]) * 1000}


@worker_process_init.connect  # type: ignore[untyped-decorator]  # Celery has no types
def note_moments(**_: Any) -> None:
    """Make this child record its stages."""
    from workers.celery import app
    from workers.memory import recall as finding  # in a worker alone

    finding.recall = _noting(finding.recall, before="asked", after="found")
    app.backend.mark_as_done = _noting(app.backend.mark_as_done, before="shaped", after="kept")
    task_prerun.connect(_begin, weak=False)
    task_postrun.connect(_end, weak=False)


def _noting(function: Callable[..., Any], before: str, after: str) -> Callable[..., Any]:
    @wraps(function)
    def noting(*arguments: Any, **named: Any) -> Any:
        _moments[before] = time.time()
        try:
            return function(*arguments, **named)
        finally:
            _moments[after] = time.time()

    return noting


def _begin(**_: Any) -> None:
    _moments.clear()
    _moments["begun"] = time.time()


def _end(task_id: str, task: Any, **_: Any) -> None:
    from workers.tasks.task import context

    if task.name == TASK:
        _moments["idle"] = time.time()
        context.redis.set(KEY + task_id, json.dumps(_moments), ex=KEEP_SECONDS)
