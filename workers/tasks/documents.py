"""The tasks by which Markdown files become facts: documents, index and unindex."""

from dataclasses import asdict
from typing import Any

from celery import Task

from workers import intake
from workers.celery import app, settings
from workers.intake import documents as given
from workers.remembering import documents as keeping
from workers.storage import signals
from workers.tasks.task import EbbTask, context, instant


@app.task(base=EbbTask, name="memory.documents")
def documents(name: Any, namespace: Any = "default") -> dict[str, Any]:
    """Return which files of a folder are indexed, and the digest of each as it was last read."""
    known = keeping.known(context, intake.namespace_name(namespace), given.folder_name(name))
    return {
        "documents": [
            {"path": one.path, "folder": one.folder, "digest": None if one.digest is None else one.digest.hex()}
            for one in known
        ]
    }


@app.task(base=EbbTask, bind=True, name="memory.index", soft_time_limit=25, time_limit=28)
def index(
    self: Task,
    path: Any,
    chunks: Any,
    digest: Any,
    folder: Any = "",
    namespace: Any = "default",
    now: Any = None,
) -> dict[str, Any]:
    """Keep the chunks of a file, read at `now`, and no others of its path; return how many came and went.

    If the file was read again since, nothing is done, and the answer says `outdated`.
    """
    at = signals.first_seen(context.redis, self.request.id or "", instant(now))
    name = intake.namespace_name(namespace)
    document = given.document(path=path, folder=folder, digest=digest, chunks=chunks)
    words = document.words(settings.max_text)
    read = keeping.Document(document.path, document.folder, bytes.fromhex(document.digest), words)
    done = keeping.index(context, name, read, at)
    signals.mark_grown(context.redis, name)
    if done.removed:
        signals.mark_erased(context.redis)
    return {"path": document.path, **asdict(done)}


@app.task(base=EbbTask, name="memory.unindex")
def unindex(paths: Any, namespace: Any = "default") -> dict[str, Any]:
    """Erase the chunks of files that are not there any more; return how many."""
    name = intake.namespace_name(namespace)
    removed = keeping.remove(context, name, given.paths(paths))
    signals.mark_grown(context.redis, name)
    if removed:
        signals.mark_erased(context.redis)
    return {"removed": removed}
