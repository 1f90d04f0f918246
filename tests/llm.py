"""Replies of a stand-in for an LLM's chat endpoint."""

import json
from collections.abc import Callable
from typing import Any

from stand_in import Handler, Reply

Said = tuple[str, str | None]


def completion(content: str | None, refusal: str | None = None) -> bytes:
    """Return the body of an answer in the API's format."""
    message = {"role": "assistant", "content": content, "refusal": refusal}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice]}).encode()


def saying(content: str | None, refusal: str | None = None) -> Reply:
    """Return a reply with that content, independent of the question."""
    return lambda handler: handler.send(200, completion(content, refusal))


def question(asked: dict[str, Any]) -> Any:
    """Return the question in the body of a request."""
    return json.loads(asked["messages"][1]["content"])


def answering(answer: Callable[[Any], Any]) -> Reply:
    """Return a reply that answers the question with JSON."""

    def reply(handler: Handler) -> None:
        handler.send(200, completion(json.dumps(answer(question(handler.request_json)))))

    return reply


def judging(decide: Callable[[dict[str, Any]], Said]) -> Reply:
    """Return a reply that gives each new fact the action and id that `decide` returns."""

    def verdicts(asked: Any) -> dict[str, Any]:
        said = [(fact["number"], *decide(fact)) for fact in asked["facts"]]
        return {"verdicts": [{"number": number, "action": action, "id": id_} for number, action, id_ in said]}

    return answering(verdicts)


def always(action: str) -> Reply:
    """Return a reply with the same action for each new fact, on the first known fact shown with it."""
    return judging(lambda fact: (action, fact["known"][0]["id"]))
