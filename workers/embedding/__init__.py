"""Text to vector: one module for each provider, all with the same face."""

import importlib.util
from collections.abc import Sequence
from typing import Protocol

from workers.core.arrays import Vectors
from workers.errors import SettingsError
from workers.settings import Settings

__all__ = ["Embedder", "make_embedder"]

EXTRAS = {"local": ["sentence_transformers"], "openai": ["httpx2", "tenacity"]}
"""The packages that come with the extra of an embedder's name."""


class Embedder(Protocol):
    """Whatever turns texts into vectors that can be compared with each other."""

    @property
    def name(self) -> str:
        """Provider, model and dimensions; two embedders of one name give comparable vectors."""

    @property
    def dims(self) -> int:
        """The length of every vector."""

    @property
    def weight(self) -> float:
        """The share of a fact's relevance that its similarity deserves, beside the words that it shares, in [0, 1]."""

    @property
    def batch(self) -> int:
        """How many texts are best given at once."""

    def embed(self, texts: Sequence[str], *, retry: bool = True) -> Vectors:
        """Return (n, dims) vectors of length 1, in the order of the texts; without `retry`, after one attempt.

        Raises:
            EmbeddingError: there are no usable vectors; nothing is returned in part.
        """

    def embed_query(self, text: str) -> Vectors:
        """Return the (dims,) vector of a query, after one attempt and within two seconds where it asks a server.

        Raises:
            EmbeddingError: there is no usable vector.
        """


def make_embedder(settings: Settings) -> Embedder:
    """Return the embedder of the settings; make one in each process, since it may own connections.

    Raises:
        SettingsError: the embedder's extra is not installed, or its settings cannot work.
    """
    _require_extra(settings.embedder)
    # Each embedder pulls in a heavy package, so that only the chosen one may be imported.
    match settings.embedder:
        case "hashing":
            from workers.embedding.hashing import HashingEmbedder  # noqa: PLC0415

            return HashingEmbedder(settings)
        case "local":
            from workers.embedding.local import LocalEmbedder  # noqa: PLC0415

            return LocalEmbedder(settings)
        case "openai":
            from workers.embedding.openai import OpenAIEmbedder  # noqa: PLC0415

            return OpenAIEmbedder(settings)


def _require_extra(embedder: str) -> None:
    missing = [package for package in EXTRAS.get(embedder, []) if importlib.util.find_spec(package) is None]
    if missing:
        raise SettingsError(
            f"The embedder {embedder!r} needs {' and '.join(missing)}, not installed here. "
            f"Run: pip install 'ebb-server[{embedder}]', or choose another with EBB_EMBEDDER."
        )
