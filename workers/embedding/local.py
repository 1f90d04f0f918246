"""Embedder that runs a sentence-transformers model on this machine."""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workers.core.arrays import Vectors
from workers.core.ranking import EVEN
from workers.embedding.vectors import unit_rows
from workers.errors import EmbeddingError
from workers.settings import Settings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

ORGANISATION = "sentence-transformers/"
DEFAULT_MODEL = f"{ORGANISATION}all-MiniLM-L6-v2"


class LocalEmbedder:
    """A model given by its name on the Hugging Face hub or by a folder.

    The first `name`, `dims` or `embed` loads it, which takes seconds. Texts are cut at the model's limit of tokens, so
    that long texts in a batch do not take minutes.
    """

    def __init__(self, settings: Settings) -> None:
        self.batch = settings.embedding_batch
        self.weights = (EVEN, EVEN)
        self.quick = False
        self._source = settings.embedding_model or DEFAULT_MODEL
        self._max_dims = settings.max_vector_dim

    @cached_property
    def name(self) -> str:
        """`local`, the model, and the dimensions; a folder's contents are part of its name."""
        folder = Path(self._source).expanduser()
        model = f"{folder.name}@{_digest(folder)}" if folder.is_dir() else self._source.removeprefix(ORGANISATION)
        return f"local:{model}:{self.dims}"

    @cached_property
    def dims(self) -> int:
        """The model's dimensions, at most EBB_MAX_VECTOR_DIM."""
        return len(self._encode(["dimensions"])[0])

    def embed(self, texts: Sequence[str], *, retry: bool = True) -> Vectors:  # noqa: ARG002 - a retry would not help
        """Return (n, dims) vectors of length 1."""
        if not texts:
            return np.empty((0, self.dims), np.float32)
        vectors = self._encode(texts)
        if not np.isfinite(vectors).all():
            raise EmbeddingError(
                f"The model {self._source!r} gave numbers that are not finite. Its files may be damaged: "
                "fetch it again, or choose another with EBB_EMBEDDING_MODEL."
            )
        return unit_rows(vectors, texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the (n, dims) vectors of queries."""
        return self.embed(texts)

    @cached_property
    def _model(self) -> "SentenceTransformer":
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415  takes seconds

        try:
            return SentenceTransformer(str(Path(self._source).expanduser()))
        except Exception as error:
            raise EmbeddingError(
                f"The model {self._source!r} cannot be loaded: {error} "
                "EBB_EMBEDDING_MODEL takes a name on the Hugging Face hub, or a folder with a saved model."
            ) from error

    def _encode(self, texts: Sequence[str]) -> Vectors:
        model = self._model
        try:
            vectors = model.encode(list(texts), show_progress_bar=False)
        except Exception as error:
            raise EmbeddingError(
                f"The model {self._source!r} failed on {len(texts)} texts: {error} "
                "Send fewer at a time if memory ran out, or choose another with EBB_EMBEDDING_MODEL."
            ) from error
        return np.asarray(vectors[:, : self._max_dims], np.float32)


def _digest(folder: Path) -> str:
    """Return eight hex digits of the model's files: another model in the same folder gets another name."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if path.is_file() and path.suffix != ".md" and not any(part.startswith(".") for part in relative.parts):
            total.update(relative.as_posix().encode())
            with path.open("rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()[:8]
