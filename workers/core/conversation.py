"""Conversations: text and speaker of messages in the formats of OpenAI, Anthropic, Gemini and plain ones."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ebb.contract.values import LONE_SURROGATE

from workers.core import injection
from workers.core.text import outside_injected

ROLES = {
    "user": "user", "human": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant", "chatbot": "assistant",
    "tool": "tool", "function": "tool",
}  # fmt: skip
"""Roles by the providers' names for them; all others, such as system and developer, are instructions."""

FACT = r'\{"id":\s*"[0-9a-f]{8}-[0-9a-f-]{27}",\s*"(?:text|passage)"'
RECALLED = re.compile(
    rf'\s*\{{"facts":\s*\[\s*{FACT}'
    rf'|\s*\[\s*{FACT}.*?,\s*"(?:said|fidelity)":'
    rf'|\s*\{{"facts":\s*\[\]|\s*\{{"context":\s*"(?:"|{injection.OPENING})',
    re.DOTALL,
)
"""Answers of this memory's own tools to an agent, which would come back as memories of their own.

Other products also list texts with ids: in a bare list, fields that only facts of this memory have are required.
"""

TEXTS = ("text", "input_text", "output_text", "refusal", None)
"""Types of parts that are text; Gemini's parts have no type, and those with a `thought` are the model's thoughts."""

CALLS, RESULTS = ("tool_use", "server_tool_use", "function_call"), ("tool_result", "function_call_output")
LONGEST = 65_536
CUTS = ("\n\n", "\n", ". ", " ")
NO_BLANK = re.compile(r"\S")
"""Where a text that is too long is cut, the best places first."""

REPLACEMENT = "\ufffd"

TIMES = ("created_at", "timestamp", "create_time", "time")


@dataclass(frozen=True, slots=True)
class Utterance:
    """A text from a message: index of the message, role, text, and time if known.

    `name` is the provider's id of the message, since messages may repeat each other.
    """

    message: int
    role: str
    text: str
    at: Any = None
    name: str = ""


def utterances(messages: Sequence[Any], longest: int = LONGEST) -> list[Utterance]:
    """Return the texts of messages in order; a bare string is the user's, and messages without words are skipped.

    A text of more than `longest` bytes is split into several.
    """
    every = [one for place, message in enumerate(messages) for one in _of_message(place, message)]
    return [replace(one, text=part) for one in every for part in split(one.text, longest)]


def split(text: str, longest: int) -> Iterator[str]:
    """Yield a text in parts of at most `longest` bytes of UTF-8, cut at a paragraph, line, sentence or word.

    Lone surrogates, with which a part is refused later, count as characters of three bytes.
    """
    begin = 0
    while len(encoded := LONE_SURROGATE.sub(REPLACEMENT, text[begin : begin + longest + 1]).encode()) > longest:
        start = text[begin : begin + (len(encoded[:longest].decode(errors="ignore")) or 1)]
        ends = (start.rfind(cut) + len(cut) for cut in CUTS if start.rfind(cut) >= len(start) // 2)
        end = next(ends, len(start))
        yield start[:end].rstrip()
        following = NO_BLANK.search(text, begin + end)
        begin = following.start() if following else len(text)
    if begin < len(text):
        yield text[begin:]


def _of_message(place: int, message: Any) -> Iterator[Utterance]:
    given = message if isinstance(message, Mapping) else {"role": "user", "content": message}
    at, id_ = first_filled(given, *TIMES), str(first_filled(given, "id", "uuid") or "")
    for role, text in _parts(given, ROLES.get(str(_role(given)).lower())):
        words = "\n".join(part.strip() for part in outside_injected(text)).strip()
        if role and words and not (role == "tool" and RECALLED.match(text)):
            yield Utterance(place, role, words, at, id_)


def _role(message: Mapping[str, Any]) -> Any:
    """Return the speaker; items of OpenAI's Responses API have a type instead."""
    kind = message.get("type")
    return first_filled(message, "role", "sender") or ("tool" if kind in (*CALLS, *RESULTS) else kind)


def _parts(message: Mapping[str, Any], role: str | None) -> Iterator[tuple[str | None, str]]:
    """Yield each tool call and result, and the text of a message in its role, joined where its first part stands."""
    content = first_filled(message, "content", "parts", "text", "refusal")
    parts = [message] if message.get("type") in (*CALLS, *RESULTS) else _listed(content)
    said = "\n".join(filter(None, map(_text, parts)))
    for one in [*parts, *_listed(message.get("tool_calls"))]:
        if said and _text(one):
            yield role, said
            said = ""
        elif isinstance(one, Mapping) and (tool := _tool(one)):
            yield "tool", tool


def _listed(content: Any) -> list[Any]:
    return list(content or ()) if isinstance(content, list | tuple | None) else [content]


def _text(part: Any) -> str:
    if isinstance(part, str):
        return part
    is_other = not isinstance(part, Mapping) or "function" in part or part.get("thought")
    found = None if is_other or part.get("type") not in TEXTS else part.get("text") or part.get("refusal")
    return found if isinstance(found, str) else ""


def _tool(part: Mapping[str, Any]) -> str:
    """Return a tool call as `name(arguments)`, a result as its text, and anything else as an empty string."""
    if part.get("type") in RESULTS:
        return _plain(part.get("content") or part.get("output"))
    if isinstance(result := first_given(part, "functionResponse", "function_response"), Mapping):
        return _plain(result.get("response"))
    called = first_given(part, "function", "functionCall", "function_call")
    call = called if isinstance(called, Mapping) else part if part.get("type") in CALLS else {}
    return f"{call.get('name', 'tool')}({_plain(first_given(call, 'arguments', 'args', 'input'))})" if call else ""


def first_given(given: Mapping[str, Any], *names: str) -> Any:
    """Return the first value under these names, None if there is none."""
    return next((given[name] for name in names if given.get(name) is not None), None)


def first_filled(given: Mapping[str, Any], *names: str) -> Any:
    """Return the first value under these names that is not empty, None if there is none."""
    return next(filter(None, map(given.get, names)), None)


def _plain(value: Any) -> str:
    """Return a tool's arguments or result as text: strings as they are, text parts joined, the rest as JSON."""
    if isinstance(value, str) or value is None:
        return value or ""
    texts = [_text(one) for one in value] if isinstance(value, list) else []
    return "\n".join(texts) if texts and all(texts) else json.dumps(value, ensure_ascii=False)


def skipped(messages: Sequence[Any], found: Iterable[Utterance]) -> list[int]:
    """Return the indexes of messages without text."""
    places = {one.message for one in found}
    return [place for place in range(len(messages)) if place not in places]
