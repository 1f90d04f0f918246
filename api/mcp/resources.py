"""Resources: a fact with its history, the profile of an entity, the timeline of a property. Reading is not use."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from urllib.parse import unquote

from ebb.contract.graph import RELATIONS
from ebb.contract.recall import LOOKUP
from ebb.contract.reports import FACT, TIMELINE
from ebb.contract.retention import HISTORY
from mcp.types import ResourceTemplate

from api.client import Client
from api.mcp import answers
from api.transport import Answer
from workers.errors import NotFoundError

MOST_FACTS = 100
MEDIA_TYPE = "application/json"
Read = Callable[..., Answer]


def _fact(memory: Client, id_: str) -> Answer:
    history = memory.perform(HISTORY, {"id": id_, "limit": MOST_FACTS})
    fact: Answer = {}
    with suppress(NotFoundError):  # a forgotten fact has only its history
        fact = memory.perform(FACT, {"id": id_})
    whole: Answer = answers.whole(fact | history)
    return whole


def _entity(memory: Client, name: str) -> Answer:
    about = memory.perform(LOOKUP, {"entity": name, "limit": MOST_FACTS, "touch": False})
    related = memory.perform(RELATIONS, {"entity": name, "limit": MOST_FACTS})
    return {"entity": name, **answers.looked_up(about), "relations": related["edges"]}


def _timeline(memory: Client, entity: str, key: str = "") -> Answer:
    found: Answer = answers.whole(memory.perform(TIMELINE, {"entity": entity, "key": key, "limit": MOST_FACTS}))
    return found


RESOURCES: Mapping[str, tuple[Read, ResourceTemplate]] = {
    prefix: (
        read,
        ResourceTemplate(uri_template=prefix + part, name=name, description=said, mime_type=MEDIA_TYPE),
    )
    for prefix, part, name, said, read in (
        ("ebb://fact/", "{id}", "fact", "A fact as it is, and what happened to it.", _fact),
        ("ebb://entity/", "{name}", "profile", "What is known of a person or thing, and its relations.", _entity),
        ("ebb://timeline/", "{entity}/{key}", "timeline", "What a property was, and who said so when.", _timeline),
    )
}


def read(memory: Client, uri: str) -> Answer:
    """Return the resource of a URI.

    Raises:
        NotFoundError: the URI is unknown.
    """
    for prefix, (found, template) in RESOURCES.items():
        if uri.startswith(prefix) and len(uri) > len(prefix):
            parts = uri.removeprefix(prefix).split("/", template.uri_template.removeprefix(prefix).count("/"))
            return found(memory, *map(unquote, parts))
    raise NotFoundError(
        f"{uri}: no resource; there are {', '.join(one.uri_template for _, one in RESOURCES.values())}."
    )
