"""Memory libraries, each called as its users do, all with Ebb's embedder.

None calls a model or a network: mem0 keeps each text as it is instead of letting an LLM choose (`infer=False`), and
without spaCy's model, which PyPI does not have, matches words as they are written. LangGraph's PostgresStore is in no
extra, for the langchain-core that it needs does not get on with the versions that Ebb is tested with; it is measured
where it can be imported. LangMem is not among them: its memory is LangGraph's store, and what it adds is an LLM.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch
from uuid import uuid4

from api.up import servers
from tests.benchmarks.conversations import MAX_TEXT, Turn
from tests.benchmarks.data import AT
from tests.benchmarks.figures import Answers, console
from tests.benchmarks.machine import Machine, session
from workers.admin import search_indexes
from workers.context import Context
from workers.core.fidelity import FINGERPRINT
from workers.embedding import Embedder, make_embedder
from workers.memory import embed, recall, store
from workers.settings import Settings
from workers.storage.connection import close_pools
from workers.validation.facts import new_fact

BATCH = 1000
EBB = "bench_peer_ebb"
"""The database of Ebb where it is compared."""

SILENT = {"MEM0_TELEMETRY": "False", "ANONYMIZED_TELEMETRY": "False", "OPENAI_API_KEY": "unused"}


class Library(Protocol):
    """The operations of all libraries, within one of many namespaces."""

    def add_many(self, namespace: str, texts: Sequence[str]) -> None:
        """Store texts, in batches if supported."""

    def add(self, namespace: str, text: str) -> None:
        """Store one text."""

    def search(self, namespace: str, query: str, limit: int) -> list[str]:
        """Return the best texts."""


class Ebb:
    """Ebb in this process, without its queue, which the others do not have."""

    def __init__(self, context: Context, floor: float | None = None) -> None:
        self.context = context
        self.floor = floor

    def add_many(self, namespace: str, texts: Sequence[str]) -> None:
        """Store texts as one batch, and count their words as a daily task does."""
        given = [new_fact({"text": text}, MAX_TEXT) for text in texts]
        store.store_many(self.context, namespace, given, AT, classify=False)
        search_indexes.count_lexemes(self.context, namespace, AT)

    def add(self, namespace: str, text: str) -> None:
        """Store one text."""
        store.store_many(self.context, namespace, [new_fact({"text": text}, MAX_TEXT)], AT, classify=False)

    def fill(self, namespace: str, turns: Sequence[Turn]) -> None:
        """Store turns with their sessions and dates, for which other libraries have no parameter."""
        given = [turn.fact.model_copy(update={"source_date": turn.at}) for turn in turns]
        store.store_many(self.context, namespace, given, AT, touch=False, classify=False)
        self._embed_the_rest()
        search_indexes.count_lexemes(self.context, namespace, AT)

    def _embed_the_rest(self) -> None:
        """Embed the facts for which a slow embedder had no time when they were stored."""
        place: embed.Position | None = embed.START
        while place is not None:
            place = embed.embed_pending(self.context, place, AT)

    def search(self, namespace: str, query: str, limit: int) -> list[str]:
        """Return the best texts, without a touch."""
        return [result.text for result in self.results(namespace, query, limit)]

    def results(self, namespace: str, query: str, limit: int) -> list[recall.Result]:
        """Return the best results."""
        question = recall.Question(query, limit, min_relevance=self.floor)
        return recall.recall(self.context, namespace, question, AT).results


def fingerprint(context: Context) -> None:
    """Reduce each fact of a database to its signature, as a year without use does."""
    with session(context) as db:
        db.execute("truncate vectors")
        db.execute("update activity set fidelity = %s", [FINGERPRINT])


class Chroma:
    """One collection in a folder, with namespaces as metadata for filters."""

    def __init__(self, _: Machine, folder: Path) -> None:
        chromadb = import_module("chromadb")
        own = import_module("chromadb.config").Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(path=str(folder / f"chroma-{uuid4().hex}"), settings=own)
        near = {"hnsw": {"space": "cosine"}}
        self.collection = client.create_collection("memories", embedding_function=None, configuration=near)

    def add_many(self, namespace: str, texts: Sequence[str]) -> None:
        """Store texts in batches."""
        for part in _parts(texts):
            self.collection.add(
                ids=[uuid4().hex for _ in part],
                documents=list(part),
                embeddings=embedder().embed(part),
                metadatas=[{"namespace": namespace}] * len(part),
            )

    def add(self, namespace: str, text: str) -> None:
        """Store one text."""
        self.add_many(namespace, [text])

    def search(self, namespace: str, query: str, limit: int) -> list[str]:
        """Return the texts nearest by cosine."""
        near = embedder().embed([query])
        found = self.collection.query(query_embeddings=near, n_results=limit, where={"namespace": namespace})
        return list(found["documents"][0])


class LangGraph:
    """LangGraph's PostgresStore on the same PostgreSQL, with its HNSW index."""

    def __init__(self, machine: Machine, _: Path) -> None:
        module = import_module("langgraph.store.postgres")
        self.put = import_module("langgraph.store.base").PutOp
        machine.drop("bench_peer_langgraph")
        url = servers.ensure_database(machine.postgres, "bench_peer_langgraph")
        index = {"dims": embedder().dims, "embed": _vectors, "fields": ["text"]}
        self.opened = module.PostgresStore.from_conn_string(url, index=index)
        self.store = self.opened.__enter__()
        self.store.setup()

    def add_many(self, namespace: str, texts: Sequence[str]) -> None:
        """Store texts in batches."""
        for part in _parts(texts):
            self.store.batch([self.put((namespace,), uuid4().hex, {"text": text}) for text in part])

    def add(self, namespace: str, text: str) -> None:
        """Store one text."""
        self.store.put((namespace,), uuid4().hex, {"text": text})

    def search(self, namespace: str, query: str, limit: int) -> list[str]:
        """Return the texts nearest by cosine."""
        return [item.value["text"] for item in self.store.search((namespace,), query=query, limit=limit)]


class Mem0:
    """mem0 on the same PostgreSQL, with its HNSW index and its own hybrid score; without an LLM."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        machine.drop("bench_peer_mem0")
        url = servers.ensure_database(machine.postgres, "bench_peer_mem0")
        near = {"connection_string": url, "embedding_model_dims": embedder().dims, "hnsw": True}
        self.memory = import_module("mem0").Memory.from_config(
            {
                "vector_store": {"provider": "pgvector", "config": near},
                "history_db_path": str(folder / f"mem0-{uuid4().hex}.db"),
            }
        )
        self.memory.embedding_model = _Mem0Embedder()

    def add_many(self, namespace: str, texts: Sequence[str]) -> None:
        """Store each text as the messages of one call; mem0 embeds and writes them one by one."""
        for part in _parts(texts):
            self.memory.add([_message(text) for text in part], user_id=_without_blanks(namespace), infer=False)

    def add(self, namespace: str, text: str) -> None:
        """Store one text."""
        self.memory.add([_message(text)], user_id=_without_blanks(namespace), infer=False)

    def search(self, namespace: str, query: str, limit: int) -> list[str]:
        """Return the texts with the best scores, however low."""
        found = self.memory.search(query, filters={"user_id": _without_blanks(namespace)}, top_k=limit, threshold=0.0)
        return [one["memory"] for one in found["results"]]


def _without_blanks(namespace: str) -> str:
    return namespace.replace(" ", "-")


class _Mem0Embedder:
    """Ebb's embedder with the interface of mem0."""

    config = None

    def embed(self, text: str, _action: Any = None) -> list[float]:
        return _vectors([text])[0]

    def embed_batch(self, texts: Sequence[str], _action: Any = None) -> list[list[float]]:
        return _vectors(texts)


@lru_cache(maxsize=1)
def embedder() -> Embedder:
    """Return the embedder of every library: Ebb's default."""
    return make_embedder(Settings())


def _ebb(machine: Machine, _: Path) -> Ebb:
    return Ebb(machine.create(EBB), floor=0)


PEERS: dict[str, tuple[str, Callable[[Machine, Path], Library]]] = {
    "Ebb": ("", _ebb),
    "chromadb": ("chromadb", Chroma),
    "langgraph-checkpoint-postgres": ("langgraph.store.postgres", LangGraph),
    "mem0ai": ("mem0", Mem0),
}
"""By their names at PyPI: the module that there must be, and how it is called."""


def opened(machine: Machine, answers: Answers) -> Iterator[tuple[str, Library]]:
    """Yield each usable library, empty, by name and version; print why others are not usable."""
    sys.modules.pop("opentelemetry.sdk.metrics", None)  # Ebb keeps it out of its processes, and ChromaDB needs it
    # Read when they are imported: telemetry is off, so no server hears of what is measured here.
    with patch.dict(os.environ, SILENT | {"MEM0_DIR": str(machine.folder / "mem0")}):
        for name, (module, library) in PEERS.items():
            if fault := _fault(module):
                console.print(f"  {name} is not measured: {fault}")
                answers.details[f"{name} skipped"] = fault
                continue
            with tempfile.TemporaryDirectory(dir=machine.folder) as folder:
                one = library(machine, Path(folder))
                yield (f"{name} {version(name)}" if module else name), one
                _close(one)


def _fault(module: str) -> str:
    """Return why a library cannot be used: it is missing, or conflicts with other installed versions."""
    try:
        import_module(module or __name__)
    except ModuleNotFoundError as error:
        return f"it is not installed ({error}); `pip install 'ebb-server[peers]'` has ChromaDB and mem0"
    except Exception as error:  # noqa: BLE001 - anything may go wrong in another project's module
        return f"it cannot be imported: {type(error).__name__}: {error}"
    return ""


def _close(library: Library) -> None:
    """Close what a library left open."""
    if isinstance(library, LangGraph):
        library.opened.__exit__(None, None, None)
    if isinstance(library, Mem0):
        library.memory.vector_store.connection_pool.close()
    close_pools()


def _parts(texts: Sequence[str]) -> list[Sequence[str]]:
    return [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]


def _message(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _vectors(texts: Sequence[str]) -> list[list[float]]:
    vectors: list[list[float]] = embedder().embed(list(texts)).tolist()
    return vectors
