"""Agent files, Letta's `.af` and Cognee's COGX, as facts: memory blocks, memories, statements and turns."""

import json
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, cast
from uuid import UUID

from ebb.contract.values import parsed

from api.contrib.records import records, undamaged
from workers.core.conversation import first_given, split, utterances
from workers.errors import InvalidInputError

Record = Mapping[str, Any]

LONGEST = 65_536
"""Bytes of a fact's text; a longer passage is split."""

BLOCKS = ("core_memory", "blocks", "memory_blocks")
PASSAGES = ("archival_memory", "passages", "archival_passages")
MESSAGES = ("messages", "in_context_messages", "message_history")
"""Names of these lists of an agent in versions of Letta."""

PARTS = {"agents", *BLOCKS, *PASSAGES, *MESSAGES}
"""One of these is in each agent file."""

MANIFEST, LONGEST_MANIFEST = "manifest.json", 1_048_576
SPEAK, SPEAKS = "send_message", "letta_v1_agent"
"""Letta's tool for speaking, and the type of agents that need none; of others, content beside calls is thoughts."""

COGX_FILES = (
    "entities.jsonl", "memory_blocks.jsonl", "memories.jsonl", "facts.jsonl", "episodes.jsonl", "documents.jsonl",
)  # fmt: skip
"""Files of a COGX archive that are read, names first; raw nodes are internal to its system."""


def letta(source: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yield the facts of an agent file: memory blocks, archival passages, and the turns of user and agent."""
    for document in records(source):
        if not isinstance(document, dict):
            raise InvalidInputError("The export is no agent file: a .af file holds one JSON object.")
        if document.keys().isdisjoint(PARTS):
            raise InvalidInputError(
                "The export is no agent file: it has neither agents nor blocks, passages or messages."
            )
        shared = {str(one["id"]): one for one in _listed(document, "blocks") if one.get("id") is not None}
        agents = _listed(document, "agents")
        for agent in agents:
            given = agent.get("block_ids")
            ids = map(str, given) if isinstance(given, list) else ()
            yield from _facts(agent, [shared[one] for one in ids if one in shared])
        if not agents:
            yield from _facts(document, [])


def _facts(agent: Record, shared: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """Yield the facts of an agent, with those of blocks that it shares with others."""
    name = str(agent.get("name") or agent.get("id") or "agent")
    for block in [*_listed(agent, *BLOCKS), *shared]:
        value = block.get("value")
        if not isinstance(value, str) or value.strip():
            yield _of_agent(_block(block, name), name)
    for passage in _listed(agent, *PASSAGES):
        for fact in _passage(passage, passage.get("text") or passage.get("content"), {"agent": name}):
            yield _of_agent(fact, name)
    speaks = agent.get("agent_type") == SPEAKS
    yield from _turns([_spoken(one, speaks=speaks) for one in _listed(agent, *MESSAGES)], name)


def _of_agent(fact: dict[str, Any], agent: str) -> dict[str, Any]:
    """Return a fact with an id of its text: agent files number their blocks and passages, each from 0."""
    return fact | {"id": f"{agent}:{fact['id']}:{fact['text']}"}


def _listed(record: Record, *names: str) -> list[Any]:
    """Return the objects of the first non-empty list under one of these names."""
    lists = (record.get(name) for name in names)
    found = ([one for one in given if isinstance(one, dict)] for given in lists if isinstance(given, list))
    return next((one for one in found if one), [])


def _block(block: Record, agent: str | None) -> dict[str, Any]:
    label = block.get("label") or block.get("name")
    about = {"agent": agent, "label": label, "description": block.get("description")}
    metadata = {name: one for name, one in about.items() if one}
    text = block.get("value") or block.get("content")
    given = block.get("id") or block.get("external_id") or f"{agent}:{label}"
    return {"id": given, "text": text, "category": label, "metadata": metadata, "created_at": block.get("created_at")}


def _passage(record: Record, text: Any, metadata: Record) -> Iterator[dict[str, Any]]:
    """Yield the facts of a passage, split if it is too long."""
    parts = list(split(text, LONGEST)) if isinstance(text, str) else [text]
    own = record.get("id") or record.get("external_id")
    for place, part in enumerate(parts):
        id_ = f"{own}:{place}" if own and len(parts) > 1 else own
        yield {"id": id_, "text": part, "metadata": dict(metadata) or None, "created_at": record.get("created_at")}


def _spoken(message: Record, *, speaks: bool) -> Record:
    """Return a Letta message as one of user or agent, without messages that Letta generates in their names.

    An agent that `speaks` does so without a tool.
    """
    content = first_given(message, "content", "text")
    if message.get("role") == "user":
        return {**message, "content": _of_user(content)}
    if message.get("role") != "assistant":
        return {}
    calls = [one.get("function") for one in _listed(message, "tool_calls")]
    spoken = [_argument(one) for one in calls if isinstance(one, dict) and one.get("name") == SPEAK]
    if spoken:
        content = "\n".join(spoken)
    elif calls and not speaks:
        return {}
    return {**message, "content": content, "tool_calls": None}


def _of_user(part: Any) -> Any:
    """Return a user's text; Letta wraps it in JSON with the time, like its own notices to the agent."""
    if isinstance(part, list):
        return [_of_user(one) for one in part]
    if isinstance(part, dict):
        return {**part, "text": _of_user(part.get("text"))}
    packed = parsed(part)
    if not isinstance(packed, dict) or "type" not in packed:
        return part
    return packed.get("message") if packed["type"] == "user_message" else ""


def _argument(call: Record) -> str:
    try:
        message = json.loads(call.get("arguments") or "{}")["message"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return ""
    return message if isinstance(message, str) else ""


def _turns(messages: Sequence[Any], session: str) -> Iterator[dict[str, Any]]:
    """Yield turns whose ids stay the same in later exports, which number messages from 0 again."""
    for turn, one in enumerate(utterances(messages, LONGEST)):
        yield {
            "id": f"{session}:{one.role}:{one.at or turn}:{one.text}", "text": one.text, "role": one.role,
            "session": session, "turn": turn, "source_date": one.at,
        }  # fmt: skip


def cogx(source: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yield the facts of a COGX archive, packed or one of its JSONL files.

    Raises:
        InvalidInputError: it is a damaged TAR, or one without any file of an archive.
    """
    names: dict[str, str] = {}
    for record in _records(source):
        if not isinstance(record, dict):
            yield {"text": None}
            continue
        given = record.get("scope")
        scope = given if isinstance(given, dict) else {}
        common = {
            "created_at": record.get("created_at"), "source_date": record.get("updated_at"),
            "namespace": scope.get("user_id") or scope.get("agent_id"),
            "session": scope.get("session_id") or scope.get("run_id"),
        }  # fmt: skip
        for fact in _of_kind(record, names):
            yield common | {name: one for name, one in fact.items() if one is not None or name == "text"}


def _records(source: BinaryIO) -> Iterator[Any]:
    if not source.seekable():  # a pipe, of which a TAR cannot be read
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(source, copy)
            copy.seek(0)
            yield from _records(cast("BinaryIO", copy))
        return
    with undamaged("The archive cannot be read: {}. Export it again."):
        is_packed = tarfile.is_tarfile(source)
        source.seek(0)
        yield from _of_archive(source) if is_packed else records(source)


def _of_archive(source: BinaryIO) -> Iterator[Any]:
    with tarfile.open(fileobj=source, mode="r:*") as packed:
        inside: dict[str, list[tarfile.TarInfo]] = {}
        for path, one in {one.name: one for one in packed.getmembers() if one.isfile()}.items():
            inside.setdefault(path.rpartition("/")[2], []).append(one)
        if inside.keys().isdisjoint(COGX_FILES):
            raise InvalidInputError(f"The export is a TAR without {COGX_FILES[0]} or another file of a COGX archive.")
        for one in inside.get(MANIFEST, ()):
            _check_version(cast("BinaryIO", packed.extractfile(one)).read(LONGEST_MANIFEST))
        for name in COGX_FILES:
            for one in inside.get(name, ()):  # an archive may be of several folders
                yield from records(cast("BinaryIO", packed.extractfile(one)))


def _check_version(manifest: bytes) -> None:
    with suppress(ValueError, AttributeError, RecursionError):
        version = str(json.loads(manifest).get("cogx_version"))
        if version.partition(".")[0] not in ("0", "None"):
            raise InvalidInputError(f"The archive has version {version} of COGX; versions before 1.0 are read.")


def _of_kind(record: Record, names: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the facts of a record, by its kind; `names` collects the names of entities."""
    id_, metadata = record.get("external_id"), record.get("metadata") or None
    match record.get("kind"):
        case "entity":
            name = names[str(id_)] = str(record.get("name") or "")
            if description := record.get("description"):
                about = {"entity": name or None, "category": record.get("entity_type"), "metadata": metadata}
                yield {"id": id_, "text": f"{name}: {description}" if name else description, **about}
        case "memory":
            yield {"id": id_, "text": record.get("content"), "tags": record.get("categories"), "metadata": metadata}
        case "memory_block":
            yield _block(record, None)
        case "fact":
            if statement := _statement(record, names):
                yield statement | {"id": id_, "metadata": metadata}
        case "episode":
            turns = [{**one, "timestamp": one.get("occurred_at")} for one in _listed(record, "turns")]
            yield from _turns(turns, str(record.get("title") or id_))
        case "document":
            title = {"title": record["title"]} if record.get("title") else {}
            yield from _passage(record, record.get("content"), title)
        case "raw_node":
            return
        case _:
            yield {"text": None}


def _statement(record: Record, names: Mapping[str, str]) -> dict[str, Any]:
    """Return a triplet as a fact about its subject, with the predicate as key.

    Cognee also exports the edges of nodes without a name: of these only the text remains, and nothing if there is none.
    """
    subject, thing = (_named(str(record.get(name) or ""), names) for name in ("subject_ref", "object_ref"))
    predicate, text = str(record.get("predicate") or ""), record.get("fact_text")
    about = {"entity": subject, "key": predicate, "value": thing} if subject and predicate and thing else {}
    if not text and not about:
        return {}
    given = about | {
        "text": text or f"{subject} {predicate.replace('_', ' ')} {thing}", "confidence": record.get("confidence"),
        "valid_from": record.get("valid_at"), "valid_until": record.get("invalid_at"),
    }  # fmt: skip
    return {name: one for name, one in given.items() if one is not None}


def _named(ref: str, names: Mapping[str, str]) -> str | None:
    """Return the name of a node by its id, or a plain name; None for the id of a node without a name."""
    try:
        UUID(ref)
    except ValueError:
        return names.get(ref, ref)
    return names.get(ref)
