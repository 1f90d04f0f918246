"""The tasks of items: documents kept under a path and key, as LangGraph's stores keep them."""

from functools import partial
from typing import Any

from celery import Task

from workers import validation
from workers.celery import app, settings
from workers.coordination import signals
from workers.documents import items as keeping
from workers.documents.items import Put, satisfies
from workers.storage.items import Item
from workers.tasks.answers import shown
from workers.tasks.once import OnceTask
from workers.tasks.recall import touch
from workers.tasks.task import MOST_FACTS, EbbTask, context, instant, uuid_of, write_instant
from workers.validation.items import document as checked
from workers.validation.items import filters, item_key, item_path, item_place, labels, minutes, optional_text

MOST_ITEMS = 10_000


@app.task(base=OnceTask, bind=True, name="memory.put_item")
def put_item(
    self: Task,
    path: Any,
    key: Any,
    document: Any,
    text: Any = None,
    ttl: Any = None,
    namespace: Any = "default",
    now: Any = None,
) -> dict[str, Any]:
    """Keep a document under a path and key, in place of what was there; return its fact's id."""
    task_id = self.request.id or ""
    at, name = write_instant(self, now), validation.namespace_name(namespace)
    given = Put(item_place(path), item_key(key), checked(document), optional_text(text), minutes(ttl))
    done = keeping.put(context, name, given, keeping.item_id(uuid_of(task_id)), at)
    signals.mark_grown(context.redis, name)
    return {"id": str(done)}


@app.task(base=EbbTask, name="memory.items")
def items(
    path: Any = (),
    key: Any = None,
    query: Any = None,
    filter: Any = None,  # noqa: A002 - the contract's name
    limit: Any = 10,
    offset: Any = 0,
    refresh: Any = True,
    namespace: Any = "default",
    now: Any = None,
) -> dict[str, Any]:
    """Return items below a path, the newest first, or the best for a query, or the one with a key; that is use."""
    at, name, prefix = instant(now), validation.namespace_name(namespace), item_path(path)
    most, skipped = (
        validation.whole(limit, "limit", MOST_ITEMS),
        0 if offset == 0 else validation.whole(offset, "offset", MOST_ITEMS),
    )
    wanted = filters(filter)
    one = None if key is None else item_key(key)

    takes = partial(satisfies, wanted=wanted) if wanted else None
    if query is None or (isinstance(query, str) and not query.strip()):
        plain = keeping.find(context, name, prefix, at, key=one, takes=takes, most=skipped + most)
        found: list[tuple[Item, float | None]] = [(item, None) for item in plain]
    else:
        words = validation.query_text(query, settings.max_text)
        found = [*keeping.search(context, name, prefix, words, at, takes=takes, most=skipped + most)]
    page = found[skipped:]
    if page and validation.flag(refresh, "refresh"):
        ids = [str(item.id) for item, _ in page[:MOST_FACTS]]
        touch.apply_async(kwargs={"namespace": name, "ids": ids, "at": at.isoformat()})
    return {"items": [_told(item, score) for item, score in page]}


@app.task(base=OnceTask, bind=True, name="memory.drop_item")
def drop_item(self: Task, path: Any, key: Any, namespace: Any = "default", now: Any = None) -> dict[str, Any]:
    """Forget what is kept under a path and key; return whether there was something."""
    at, name = write_instant(self, now), validation.namespace_name(namespace)
    dropped = keeping.drop(context, name, item_place(path), item_key(key), at)
    signals.mark_grown(context.redis, name)
    return {"dropped": dropped}


@app.task(base=EbbTask, name="memory.item_paths")
def item_paths(namespace: Any = "default", now: Any = None) -> dict[str, Any]:
    """Return every path under which something is kept."""
    found = keeping.paths(context, validation.namespace_name(namespace), instant(now))
    return {"paths": [labels(path) for path in found]}


def _told(item: Item, score: float | None) -> dict[str, Any]:
    """Return an item with its document as the text that was given, which nothing on the way looks into."""
    return {
        "path": labels(item.path),
        "key": item.key,
        "document": item.metadata["document"],
        "created_at": item.metadata["created_at"],
        "updated_at": shown(item.created_at),
        "score": score,
    }
