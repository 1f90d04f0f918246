"""A fact's text in fewer words, the fewer the fainter the memory. Always made from the original (C-O14).

Source: tiered decay, O28-O33. The text itself and the user's own summary are never changed (C-O15), and since this
is a function of text and retention, nothing is stored: whoever shows it computes it.
"""

import re
from collections import Counter

import snowballstemmer

from workers.core.stop_words import ENGLISH_STOP_WORDS

TRUNCATED, SENTENCES, KEYWORDS = 1, 2, 3
TRUNCATED_LENGTH = 200
SENTENCES_LENGTH = 80
TRUNCATE_ABOVE = 0.8
SENTENCES_ABOVE = 0.4

WORD = re.compile(r"\w+")
SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")  # noqa: RUF001 - full-width marks end sentences too


def summarise(text: str, retention: float, layers: int = KEYWORDS) -> str:
    """Return the text as remembered at `retention`: its start, its best sentences, or five keywords.

    `layers` says how far this may go: 1 truncates only, 2 also picks sentences, 3 also keywords.
    """
    if retention > TRUNCATE_ABOVE or layers == TRUNCATED:
        return truncate(text)
    if retention > SENTENCES_ABOVE or layers == SENTENCES:
        return top_sentences(text, 3)[:SENTENCES_LENGTH]
    return " ".join(top_keywords(text, 5))


def truncate(text: str) -> str:
    """Return the first 200 characters, with an ellipsis only if there was more."""
    return text if len(text) <= TRUNCATED_LENGTH else text[:TRUNCATED_LENGTH] + "..."


def top_sentences(text: str, count: int) -> str:
    """Return the `count` sentences with most of the text's frequent words, in their order."""
    sentences = SENTENCE_END.split(text.strip())
    frequencies = Counter(_stems(text))
    ranked = sorted(range(len(sentences)), key=lambda i: -sum(frequencies[s] for s in set(_stems(sentences[i]))))
    return " ".join(sentences[i] for i in sorted(ranked[:count]))


def top_keywords(text: str, count: int) -> list[str]:
    """Return the `count` most frequent word stems, ties in the order of their first appearance."""
    return [stem for stem, _ in Counter(_stems(text)).most_common(count)]


def _stems(text: str) -> list[str]:
    words = [word for word in WORD.findall(text.lower()) if word not in ENGLISH_STOP_WORDS]
    stems: list[str] = snowballstemmer.stemmer("english").stemWords(words)
    return stems
