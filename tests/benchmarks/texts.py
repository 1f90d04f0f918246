"""Generated texts with the statistics of real ones: Zipf's law, topics, and English function words."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from scipy.sparse import csr_array

from workers.core.arrays import Floats, Ints, Vectors
from workers.embedding.hashing import HashingEmbedder, from_counts
from workers.settings import Settings

ENGLISH = """
    the of and to a in is that for it was on with as be at by this have from or had not are but what were we when
    can said there use an each which do how their if will up other about out many then them these so some her would
    make like him into time has look two more go see no way could people my than first been call who its now find
    long down day did get come made may part
"""
FUNCTION_WORDS = ENGLISH.split()
VOCABULARY = 30_000
TOPICS = 400
WORDS_OF_TOPIC = 120
ZIPF = 1.05
SHORTEST, LONGEST = 8, 24
FUNCTION_SHARE, TOPIC_SHARE = 0.4, 0.35
SEED = 17
ONSETS = (*"bcdfghjklmnprstvwz", "br", "ch", "dr", "fl", "gr", "pl", "qu", "sh", "st", "tr")
VOWELS = (*"aeiou", "ai", "ea", "ou")
ENDS = ("", "", "", *"lmnrstx")


@dataclass(frozen=True, slots=True)
class Language:
    """A vocabulary with word frequencies, the words of each topic, and each word's n-gram counts."""

    words: list[str]
    common: Floats
    topics: Ints
    within_topic: Floats
    ngrams: Vectors


@lru_cache(maxsize=1)
def language() -> Language:
    """Return the language of all benchmarks, generated in each process."""
    rng = np.random.default_rng(SEED)
    made_up = _made_up(rng)
    words = FUNCTION_WORDS + made_up
    topics = rng.integers(len(FUNCTION_WORDS), len(words), size=(TOPICS, WORDS_OF_TOPIC))
    ngrams = embedder().counts(words)
    return Language(words, _zipf(VOCABULARY), topics, _zipf(WORDS_OF_TOPIC), ngrams)


@lru_cache(maxsize=1)
def embedder() -> HashingEmbedder:
    """Return the embedder of the vectors."""
    return HashingEmbedder(Settings(embedder="hashing"))


def write(rng: np.random.Generator, count: int) -> tuple[list[str], Vectors]:
    """Return texts, each of one topic, and their (count, dims) vectors, equal to the embedder's.

    N-grams do not cross words, so a text's counts are the sums of its words', which is many times faster.
    """
    spoken = language()
    lengths = rng.integers(SHORTEST, LONGEST + 1, size=count)
    ends = np.cumsum(lengths)
    words = _words(rng, spoken, np.repeat(rng.integers(TOPICS, size=count), lengths))
    said = np.array(spoken.words, dtype=object)[words]
    texts = [" ".join(said[end - length : end]) for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)]
    holds = csr_array(
        (np.ones(len(words), np.float32), words, np.concatenate([[0], ends])), shape=(count, len(spoken.words))
    )
    vectors = from_counts(holds @ spoken.ngrams, texts)
    if not np.allclose(vectors[:4], embedder().embed(texts[:4]), atol=1e-5):
        raise AssertionError("The embedder has changed: its vectors are no longer sums over words.")
    return texts, vectors


def _words(rng: np.random.Generator, spoken: Language, topics: Ints) -> Ints:
    kinds = rng.random(len(topics))
    places = rng.choice(WORDS_OF_TOPIC, size=len(topics), p=spoken.within_topic)
    anywhere = len(FUNCTION_WORDS) + rng.choice(VOCABULARY, size=len(topics), p=spoken.common)
    function_words = rng.integers(len(FUNCTION_WORDS), size=len(topics))
    content: Ints = np.where(kinds < FUNCTION_SHARE + TOPIC_SHARE, spoken.topics[topics, places], anywhere)
    return np.where(kinds < FUNCTION_SHARE, function_words, content)


def _made_up(rng: np.random.Generator) -> list[str]:
    """Return distinct words of two or three syllables, the most common ones first."""
    syllables = np.array(["".join(parts) for parts in product(ONSETS, VOWELS, ENDS)], dtype=object)
    made: dict[str, None] = {}
    while len(made) < VOCABULARY:
        chosen = syllables[rng.integers(len(syllables), size=(VOCABULARY, 4))]
        lengths = rng.integers(2, 4, size=VOCABULARY).tolist()
        made |= dict.fromkeys("".join(row[:length]) for row, length in zip(chosen, lengths, strict=True))
    return list(made)[:VOCABULARY]


def _zipf(count: int) -> Floats:
    shares: Floats = 1 / np.arange(1, count + 1) ** ZIPF
    shares /= shares.sum()
    return shares
