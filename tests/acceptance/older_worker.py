"""A worker of the previous version: recorded answers, and only the arguments that it knew."""

import json
import os
from pathlib import Path
from typing import Any

from celery import Celery, Task

from workers.errors import InvalidInputError
from workers.queues import configuration

RECORDED: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("older_answers.json").read_text(encoding="utf-8")
)
"""For each task its arguments, which are required, whether it takes others, and its answer."""

app = Celery("older", set_as_current=False)
app.conf.update(configuration(os.environ.get("EBB_REDIS_URL", "redis://")))


class Recorded(Task):  # type: ignore[misc]  # Celery comes without types
    """A task that checks its arguments and returns the recorded answer."""

    typing = False
    throws = (InvalidInputError,)

    def run(self, **given: Any) -> Any:
        own = RECORDED[self.name]
        faults = [f"{name}: Field required" for name in own["needed"] if name not in given]
        if not own["open"]:
            unknown = [name for name in given if name not in own["arguments"]]
            known = ", ".join(own["arguments"])
            faults += [f"{name}: is no argument of {self.name}; known are {known}" for name in unknown]
        elif "count_turns" in given:
            faults.append("count_turns: is no field of a fact; known are text, id, kind")
        if faults:
            raise InvalidInputError("; ".join(faults) + ".")
        return own["explained"] if given.get("explain") else own["answer"]


for name in RECORDED:
    app.register_task(type(name, (Recorded,), {"name": name})())
