"""The tasks by which Markdown files become facts: documents, index and unindex."""

from dataclasses import asdict
from typing import Any

from celery import Task

from workers import validation
from workers.celery import app, settings
from workers.coordination import signals
from workers.documents import documents as keeping
from workers.tasks.once import OnceTask
from workers.tasks.task import EbbTask, context, write_instant
from workers.validation import documents as given


@app.task(base=EbbTask, name="memory.documents")
def documents(name: Any, namespace: Any = "default") -> dict[str, Any]:
    """Return which files of a folder are indexed, and the digest of each as it was last read."""
    known = keeping.known(context, validation.namespace_name(namespace), given.folder_name(name))
    return {
        "documents": [
            {"path": one.path, "folder": one.folder, "digest": None if one.digest is None else one.digest.hex()}
            for one in known
        ]
    }


@app.task(base=OnceTask, bind=True, name="memory.index", soft_time_limit=25, time_limit=28)
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
    at = write_instant(self, now)
    name = validation.namespace_name(namespace)
    document = given.document(path=path, folder=folder, digest=digest, chunks=chunks)
    words = document.words(settings.max_text)
    read = keeping.Document(document.path, document.folder, bytes.fromhex(document.digest), words)
    done = keeping.index(context, name, read, at)
    signals.mark_grown(context.redis, name)
    return {"path": read.path, **asdict(done)}


@app.task(base=OnceTask, name="memory.unindex")
def unindex(paths: Any, namespace: Any = "default") -> dict[str, Any]:
    """Erase the chunks of files that are not there any more; return how many."""
    name = validation.namespace_name(namespace)
    removed = keeping.remove(context, name, given.paths(paths))
    signals.mark_grown(context.redis, name)
    return {"removed": removed}
