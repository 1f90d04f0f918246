"""Embedders: one module per provider, all with the same interface."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from workers.settings import Settings, require_extra

if TYPE_CHECKING:
    from workers.core.arrays import Vectors

ABILITIES = {
    "static": "compares meaning, of English words, and parts of words in any language",
    "hashing": "compares parts of words, not meaning; EBB_EMBEDDER=static and `ebb reembed` add meaning",
    "onnx": "compares meaning, by a model on this machine",
    "local": "compares meaning, by a model on this machine",
    "openai": "compares meaning, by the model behind the endpoint",
}


class Embedder(Protocol):
    """Converts texts to vectors that are comparable with each other."""

    @property
    def name(self) -> str:
        """Provider, model and dimensions; embedders with equal names give comparable vectors."""

    @property
    def dims(self) -> int:
        """Length of every vector."""

    @property
    def weights(self) -> tuple[float, float]:
        """Share of similarity against shared words in [0, 1], for short and for long texts."""

    @property
    def batch(self) -> int:
        """Preferred number of texts per call."""

    @property
    def quick(self) -> bool:
        """Whether a text takes a fraction of a millisecond and cannot fail, so that a transaction may wait for it."""

    def embed(self, texts: Sequence[str], *, retry: bool = True) -> "Vectors":
        """Return (n, dims) vectors of length 1, in the order of the texts; without `retry`, after one attempt.

        Raises:
            EmbeddingError: there are no usable vectors; there are no partial results.
        """

    def embed_queries(self, texts: Sequence[str]) -> "Vectors":
        """Return the (n, dims) vectors of queries, after one attempt and within two seconds if it calls a server.

        Raises:
            EmbeddingError: there are no usable vectors.
        """


def default_for(stored: str | None) -> str:
    """Return the default provider for a database with vectors of this name, or without any.

    Databases of earlier versions, whose default was `hashing`, keep it.
    """
    return "hashing" if stored and stored.startswith("hashing:") else "static"


def ability(name: str) -> str:
    """Return what the embedder of this name can compare, for display."""
    return ABILITIES[name.partition(":")[0]]


def make_embedder(settings: Settings, stored: str | None = None) -> Embedder:
    """Return the embedder of the settings; create one per process, since it may own connections.

    If they name none, it is that of the database's vectors, whose name is `stored`.

    Raises:
        SettingsError: the embedder's extra is not installed, or its settings are invalid.
    """
    provider = settings.embedder or default_for(stored)
    require_extra(provider, f"The embedder {provider!r}", "choose another with EBB_EMBEDDER")
    # Each embedder loads a heavy package, so only the chosen one is imported.
    match provider:
        case "static":
            from workers.embedding.static import StaticEmbedder

            return StaticEmbedder(settings)
        case "onnx":
            from workers.embedding.onnx import OnnxEmbedder

            return OnnxEmbedder(settings)
        case "hashing":
            from workers.embedding.hashing import HashingEmbedder

            return HashingEmbedder(settings)
        case "local":
            from workers.embedding.local import LocalEmbedder

            return LocalEmbedder(settings)
        case _:
            from workers.embedding.openai import OpenAIEmbedder

            return OpenAIEmbedder(settings)
