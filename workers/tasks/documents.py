"""Tasks of documents: Markdown files, and items for LangGraph's stores."""

import time
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from celery import Task
from ebb.contract import documents as contract
from ebb.contract.operation import Answer, Params, Scoped
from ebb.contract.values import MOST_FACTS

from workers.coordination import signals
from workers.documents import files
from workers.documents import items as kept
from workers.documents import registered as folders
from workers.tasks.operation import internal, task_of
from workers.tasks.recall import touch
from workers.tasks.task import WORK_SECONDS, OnceTask, context, uuid_of, write_instant

FOLDER_SECONDS = 660.0
"""Time after which the reading of a folder is broken off; its lock lasts as long."""


class FolderPart(Scoped):
    """A registered folder to read."""

    name: contract.Folder


@task_of(contract.DOCUMENTS, contract.ListDocuments, from_replica=True)
def documents(_: Task, asked: contract.ListDocuments) -> Answer:
    """Return the indexed files of a folder with their digests."""
    return files.known(context, asked)


@task_of(contract.INDEX, contract.Index, base=OnceTask, grows=True, soft_time_limit=25, time_limit=28)
def index(self: Task, asked: contract.Index) -> Answer:
    """Replace the chunks of a file by those read at `now`; return how many were added and removed."""
    return files.index(context, asked, write_instant(self, asked.now))


@task_of(contract.UPLOAD, contract.Upload, base=OnceTask, grows=True, soft_time_limit=25, time_limit=28)
def upload(self: Task, asked: contract.Upload) -> Answer:
    """Keep a Markdown text as a file, in place of what was kept of its path; return how many chunks came and went."""
    return files.upload(context, asked, write_instant(self, asked.now))


@task_of(contract.UNINDEX, contract.Unindex, base=OnceTask, grows=True)
def unindex(_: Task, asked: contract.Unindex) -> Answer:
    """Erase the chunks of removed files; return how many."""
    return files.remove(context, asked)


@task_of(contract.REGISTER_FOLDER, contract.RegisterFolder, base=OnceTask)
def register_folder(_: Task, asked: contract.RegisterFolder) -> Answer:
    """Register a folder to be kept indexed, and send its first reading."""
    done = folders.register(context, asked)
    read_folder.apply_async(kwargs={"name": done.name, "namespace": asked.namespace})
    return done


@task_of(contract.UNREGISTER_FOLDER, contract.UnregisterFolder, base=OnceTask)
def unregister_folder(_: Task, asked: contract.UnregisterFolder) -> Answer:
    """Stop keeping a folder indexed; return whether it was registered."""
    return folders.unregister(context, asked)


@task_of(contract.FOLDERS, contract.ListFolders, from_replica=True)
def registered_folders(_: Task, asked: contract.ListFolders) -> Answer:
    """Return the registered folders of a namespace."""
    return folders.listed(context, asked)


@internal("memory.read_folders", Params, ignore_result=True)
def read_folders(_: Task, __: Params) -> None:
    """Send the reading of every registered folder; messages that wait longer than their period expire."""
    for namespace, name in folders.everywhere(context):
        given = {"name": name, "namespace": namespace}
        read_folder.apply_async(kwargs=given, expires=max(context.settings.folder_minutes * 60, 30.0))


@internal(
    "memory.read_folder", FolderPart, ignore_result=True,
    soft_time_limit=FOLDER_SECONDS - 60, time_limit=FOLDER_SECONDS - 30,
)  # fmt: skip
def read_folder(_: Task, asked: FolderPart) -> None:
    """Index what changed in a registered folder, for about 30 seconds; a successor continues. One at a time."""
    with signals.try_lock(context.redis, f"folder:{asked.namespace}:{asked.name}", FOLDER_SECONDS) as alone:
        complete = not alone or folders.read(context, asked.namespace, asked.name, time.monotonic() + WORK_SECONDS)
    if alone:
        signals.mark_grown(context.redis, asked.namespace)
    if not complete:
        read_folder.apply_async(kwargs={"name": asked.name, "namespace": asked.namespace})


@task_of(contract.PUT_ITEM, contract.PutItem, base=OnceTask, grows=True)
def put_item(self: Task, asked: contract.PutItem) -> Answer:
    """Store an item under a path and key, replacing an existing one; return its fact's id."""
    at = write_instant(self, asked.now)
    return contract.Put(id=_put(self, asked.namespace, [asked], at)[0])


@task_of(contract.PUT_ITEMS, contract.PutItems, base=OnceTask, grows=True)
def put_items(self: Task, asked: contract.PutItems) -> Answer:
    """Store items under their paths and keys, replacing existing ones; return their facts' ids."""
    return contract.PutMany(ids=_put(self, asked.namespace, asked.items, write_instant(self, asked.now)))


def _put(task: Task, namespace: str, given: Sequence[contract.NewItem], at: datetime) -> list[UUID]:
    own_id = uuid_of(task.request.id or "")
    ids = [kept.item_id(own_id, place) for place in range(len(given))]
    kept.put(context, namespace, given, ids, at)
    return ids


@task_of(contract.ITEMS, contract.ListItems, from_replica=True)
def items(_: Task, asked: contract.ListItems) -> Answer:
    """Return items below a path, and send their touch, as by a recall."""
    return _find(asked.namespace, asked, asked.now or context.now())


@task_of(contract.MANY_ITEMS, contract.ListManyItems, from_replica=True, soft_time_limit=35, time_limit=40)
def many_items(_: Task, asked: contract.ListManyItems) -> Answer:
    """Return the items for each of many queries, and send their touch."""
    at = asked.now or context.now()
    return contract.ItemPages(answers=[_find(asked.namespace, one, at) for one in asked.queries])


def _find(namespace: str, asked: contract.ItemQuery, at: datetime) -> contract.Items:
    page, ids = kept.find(context, namespace, asked, at)
    if ids and asked.refresh:
        used = [str(id_) for id_ in ids[:MOST_FACTS]]
        touch.apply_async(kwargs={"namespace": namespace, "ids": used, "at": at.isoformat()})
    return page


@task_of(contract.DROP_ITEM, contract.DropItem, base=OnceTask, grows=True)
def drop_item(self: Task, asked: contract.DropItem) -> Answer:
    """Forget the item under a path and key; return whether there was one."""
    return kept.drop(context, asked, write_instant(self, asked.now))


@task_of(contract.ITEM_PATHS, contract.ListItemPaths, from_replica=True)
def item_paths(_: Task, asked: contract.ListItemPaths) -> Answer:
    """Return every path that has items."""
    return kept.paths(context, asked, asked.now or context.now())
