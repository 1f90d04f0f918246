"""Tasks of documents: Markdown files, and items for LangGraph's stores."""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4, uuid5

from celery import Task
from ebb.contract import documents as contract
from ebb.contract.operation import Answer, Params, Scoped
from ebb.contract.values import MOST_FACTS

from workers.coordination import signals
from workers.core.cost import check_size
from workers.documents import files
from workers.documents import items as kept
from workers.tasks.operation import internal, task_of, verb_of
from workers.tasks.recall import touch
from workers.tasks.task import WORK_SECONDS, OnceTask, context, use_of, uuid_of, write_instant

FOLDER_SECONDS = 600.0
"""Time after which the reading of a folder is broken off."""

ALONE_SECONDS = 120.0
"""Lock TTL of a reading, which renews it. A reading that was killed keeps others out for so long."""


class FolderPart(Scoped):
    """A registered folder to read."""

    name: contract.Folder


CHANGING: dict[str, Any] = {"base": OnceTask, "grows": True}

documents = verb_of(contract.DOCUMENTS, files.known, from_replica=True)
index = verb_of(contract.INDEX, files.index, **CHANGING)
upload = verb_of(contract.UPLOAD, files.upload, **CHANGING)
unindex = verb_of(contract.UNINDEX, files.remove, **CHANGING)
unregister_folder = verb_of(contract.UNREGISTER_FOLDER, files.unregister_folder, base=OnceTask)
registered_folders = verb_of(contract.FOLDERS, files.registered_folders, from_replica=True)
drop_item = verb_of(contract.DROP_ITEM, kept.drop, **CHANGING)
item_paths = verb_of(contract.ITEM_PATHS, kept.paths, from_replica=True)


@task_of(contract.REGISTER_FOLDER, contract.RegisterFolder, base=OnceTask)
def register_folder(_: Task, asked: contract.RegisterFolder) -> Answer:
    """Register a folder to be kept indexed, and send its first reading."""
    done = files.register_folder(context, asked)
    read_folder.apply_async(kwargs={"name": done.name, "namespace": asked.namespace})
    return done


@internal("memory.read_folders", Params, ignore_result=True)
def read_folders(_: Task, __: Params) -> None:
    """Send the reading of every registered folder; messages that wait longer than their period expire."""
    for namespace, name in files.all_folders(context):
        given = {"name": name, "namespace": namespace}
        read_folder.apply_async(kwargs=given, expires=max(context.settings.folder_minutes * 60, 30.0))


@internal(
    "memory.read_folder", FolderPart, ignore_result=True,
    soft_time_limit=FOLDER_SECONDS, time_limit=FOLDER_SECONDS + 30,
)  # fmt: skip
def read_folder(_: Task, asked: FolderPart) -> None:
    """Index what changed in a registered folder, for about 30 seconds; a successor continues. One at a time."""
    work, until = f"folder:{asked.namespace} {asked.name}", time.monotonic() + WORK_SECONDS
    with signals.try_lock(context.redis, work, ALONE_SECONDS, renew=True) as alone:
        complete = not alone or files.read_folder(context, asked.namespace, asked.name, until)
    if not complete:
        read_folder.apply_async(kwargs={"name": asked.name, "namespace": asked.namespace})


@task_of(contract.PUT_ITEM, contract.PutItem, **CHANGING)
def put_item(self: Task, asked: contract.PutItem) -> Answer:
    """Store an item under a path and key, replacing an existing one; return its fact's id."""
    at = write_instant(self, asked.now)
    return contract.Put(id=_put(self, asked.namespace, [asked], at)[0])


@task_of(contract.PUT_ITEMS, contract.PutItems, **CHANGING)
def put_items(self: Task, asked: contract.PutItems) -> Answer:
    """Store items under their paths and keys, replacing existing ones; return their facts' ids."""
    return contract.PutMany(ids=_put(self, asked.namespace, asked.items, write_instant(self, asked.now)))


def _put(task: Task, namespace: str, given: Sequence[contract.NewItem], at: datetime) -> list[UUID]:
    own_id = uuid_of(task.request.id or "")
    ids = [kept.item_id(own_id, place) for place in range(len(given))]
    kept.put(context, namespace, given, ids, at)
    return ids


@task_of(contract.ITEMS, contract.ListItems, from_replica=True)
def items(self: Task, asked: contract.ListItems) -> Answer:
    """Return items below a path, and send their touch, as by a recall."""
    return _find(self, asked.namespace, asked, asked.now or context.now())


@task_of(contract.MANY_ITEMS, contract.ListManyItems, from_replica=True, soft_time_limit=35, time_limit=40)
def many_items(self: Task, asked: contract.ListManyItems) -> Answer:
    """Return the items for each of many queries, and send their touch."""
    at = asked.now or context.now()
    found, size = [], 0
    for place, one in enumerate(asked.queries):
        page = _find(self, asked.namespace, one, at, place)
        check_size(size := size + sum(len(item.document) for item in page.items))
        found.append(page)
    return contract.ItemPages(answers=found)


def _find(task: Task, namespace: str, asked: contract.ItemQuery, at: datetime, place: int = 0) -> contract.Items:
    """Return the items for a query; a redelivery sends their touch with the same id, by which it counts once."""
    page, ids = kept.find(context, namespace, asked, at)
    if ids and asked.refresh:
        used = [str(id_) for id_ in ids[:MOST_FACTS]]
        use = uuid5(use_of(task) or uuid4(), f"touch {place}")
        given = {"namespace": namespace, "ids": used, "at": at.isoformat()}
        touch.apply_async(kwargs=given, task_id=str(use))
    return page
