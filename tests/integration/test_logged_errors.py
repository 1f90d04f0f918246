"""Logs: refused statements, messages and answers are logged without the rows, values and texts that they quote."""

import json
import logging
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest
from celery.backends.base import _create_chord_error_with_cause
from celery.worker.consumer import consumer
from llm import saying
from memory import Memory
from stand_in import Reply, StandIn, serving

from workers import logs
from workers.errors import EbbError, InvalidInputError
from workers.llm import StrictAnswer
from workers.llm.chat import Chat
from workers.llm.rerank import Reranker
from workers.settings import Settings
from workers.storage.connection import connect

SECRET = "Zebra 47110815."
FAILING = {
    "check": "create table short (text text check (length(text) < 3)); insert into short select %s",
    "unique": "create table once (text text unique); insert into once select %s from generate_series(1, 2)",
    "value": "select %s::uuid",
}
FORMATS = {"text": logs.Lines(logs.FOR_PEOPLE), "json": logs.JsonLines()}


def logged(memory: Memory, statement: str, form: logging.Formatter) -> list[str]:
    """Return records of a failing statement: as quoted, as by Celery, and with the traceback of what it caused."""
    logger, said = logging.getLogger("test"), []

    def note(message: str, *args: object, exc_info: bool = False) -> None:
        info = sys.exc_info() if exc_info else None
        said.append(form.format(logger.makeRecord("test", logging.ERROR, "x.py", 1, message, args, info)))

    try:
        try:
            with connect(memory.context.database_url) as db:
                psycopg.ClientCursor(db).execute(statement, [SECRET])
        except psycopg.Error as error:
            note("refused: %s", error)
            note("Task %s raised unexpected: %s", "memory.store", repr(error), exc_info=True)
            note("rebuilt: %s", type(error)(str(error)))
            raise RuntimeError("It failed.") from error
    except RuntimeError:
        note("caused", exc_info=True)
    return said


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("statement", FAILING)
def test_a_logged_error_of_the_database_quotes_no_fact(memory: Memory, statement: str, form: str) -> None:
    said = logged(memory, FAILING[statement], FORMATS[form])
    assert len(said) == 4
    assert all("left out" in one and "47110815" not in one for one in said)


def test_debug_logs_quote_rows(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    said = logged(memory, FAILING["check"], FORMATS["text"])
    assert len(said) == 4
    assert all("47110815" in one for one in said)


@pytest.mark.parametrize("form", FORMATS)
def test_a_logged_error_of_a_chord_quotes_no_fact(form: str) -> None:
    cause = InvalidInputError(f"text: is not allowed; given '{SECRET}'.")
    error = _create_chord_error_with_cause(f"Dependency 7 raised {cause!r}", cause)
    record = logging.makeLogRecord({"msg": "Chord %r raised: %r", "args": ("8", error)})
    record.exc_info = type(error), error, None
    said = FORMATS[form].format(record)
    assert "Dependency 7 raised InvalidInputError" in said
    assert "47110815" not in said


def ask(url: str) -> None:
    with closing(Chat(Settings(llm_url=url, llm_key="key"))) as chat:
        chat.ask("", {}, StrictAnswer, 5.0)


def rank(url: str) -> None:
    with closing(Reranker(Settings(rerank_url=url))) as reranker:
        reranker.scores("", [SECRET])


UNUSABLE = {
    "cut": (ask, saying(f'{{"facts": [{{"number": 1, "quote": "{SECRET}')),
    "refused": (ask, saying(None, f"I will not read {SECRET}")),
    "scores": (rank, lambda handler: handler.send(200, json.dumps({"results": [{"text": SECRET}]}).encode())),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("act", "reply"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_logged_answer_of_a_model_that_cannot_be_used_quotes_no_fact(
    act: Callable[[str], None], reply: Reply, form: str
) -> None:
    with serving(StandIn(reply)) as server, pytest.raises(EbbError, match="47110815") as caught:
        act(server.url)
    record = logging.makeLogRecord({"msg": "nothing is drawn: %s", "args": (caught.value,)})
    record.exc_info = caught.type, caught.value, None
    said = FORMATS[form].format(record)
    assert "47110815" not in said
    assert "left out" in said
    assert "Check EBB_" in said


QUOTING = {
    consumer.UNKNOWN_FORMAT: (consumer.MESSAGE_REPORT.format(SECRET, "json", "utf-8", {}, {"kwargsrepr": SECRET}),),
    consumer.UNKNOWN_TASK_ERROR: (KeyError("memory.stor"), SECRET, {"kwargsrepr": SECRET}, {"routing_key": "store"}),
    consumer.INVALID_TASK_ERROR: (ValueError("untrusted content"), SECRET),
    consumer.MESSAGE_DECODE_ERROR: (ValueError("no JSON"), "json", "utf-8", {"kwargsrepr": SECRET}, SECRET),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("message", QUOTING)
def test_a_logged_refusal_of_a_message_quotes_no_fact(message: str, form: str) -> None:
    record = logging.makeLogRecord({"name": consumer.logger.name, "msg": message, "args": QUOTING[message]})
    said = FORMATS[form].format(record)
    assert "left out" in said
    assert "47110815" not in said
    assert message.split("%", maxsplit=1)[0].split("\n", maxsplit=1)[0].strip() in said


DROPPED = """
import threading
from workers import logs
from workers.settings import Settings

class Cleared:
    def __del__(self):
        raise SystemExit

logs.configure(Settings(log_format="json"))
Cleared()
threading.Thread(target=lambda: 1 / 0, name="own").start()
"""


def test_errors_that_python_drops_are_json_for_machines() -> None:
    done = subprocess.run([sys.executable, "-c", DROPPED], capture_output=True, text=True, check=True)
    said = [json.loads(line) for line in done.stderr.splitlines()]
    dropped = ["Exception ignored in: Cleared.__del__", "Exception ignored while calling deallocator"]
    assert said[0]["message"] == dropped[sys.version_info >= (3, 14)]
    assert said[1]["message"] == "the thread own ended"
    assert "SystemExit" in said[0]["exception"]
    assert "ZeroDivisionError" in said[1]["exception"]
