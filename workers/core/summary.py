"""Summaries of a fact's text, shorter for fainter memories and always made from the original.

They are a function of text and retention, computed on reading and never stored; the text and the user's own summary
never change. Sources: the summary layers and fingerprints of OpenMemory's tiered decay.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import snowballstemmer

from workers.core.passages import in_pairs, is_unspaced
from workers.core.text import beginning, words

WORDS = """
    a about above across after afterwards again against all almost alone along already also although always am
    among amongst amoungst amount an and another any anyhow anyone anything anyway anywhere are around as at
    back be became because become becomes becoming been before beforehand behind being below beside besides
    between beyond bill both bottom but by call can cannot cant co con could couldnt cry de describe detail do
    done down due during each eg eight either eleven else elsewhere empty enough etc even ever every everyone
    everything everywhere except few fifteen fifty fill find fire first five for former formerly forty found
    four from front full further get give go had has hasnt have he hence her here hereafter hereby herein
    hereupon hers herself him himself his how however hundred i ie if in inc indeed interest into is it its
    itself keep last latter latterly least less ltd made many may me meanwhile might mill mine more moreover
    most mostly move much must my myself name namely neither never nevertheless next nine no nobody none noone
    nor not nothing now nowhere of off often on once one only onto or other others otherwise our ours ourselves
    out over own part per perhaps please put rather re same see seem seemed seeming seems serious several she
    should show side since sincere six sixty so some somehow someone something sometime sometimes somewhere
    still such system take ten than that the their them themselves then thence there thereafter thereby
    therefore therein thereupon these they thick thin third this those though three through throughout thru thus
    to together too top toward towards twelve twenty two un under until up upon us very via was we well were
    what whatever when whence whenever where whereafter whereas whereby wherein whereupon wherever whether which
    while whither who whoever whole whom whose why will with within without would yet you your yours yourself
    yourselves
"""
ENGLISH_STOP_WORDS = frozenset(WORDS.split())

TRUNCATED, SENTENCES, KEYWORDS = 1, 2, 3
TRUNCATED_LENGTH = 200
SENTENCES_LENGTH = 80
TRUNCATE_ABOVE = 0.8
SENTENCES_ABOVE = 0.4

MOST_STEMS, LONGEST_STEMMED = 32_768, 40
"""Number of words whose stems are kept, and maximum characters of such a word."""

SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])(?=\w)")  # noqa: RUF001
"""The end of a sentence; full-width marks need no blank after them."""

BLANK_AFTER_MARK = re.compile("(?<=[。！？]) ")  # noqa: RUF001


def summarise(text: str, retention: float, layers: int = KEYWORDS) -> str:
    """Return the text as remembered at `retention`: its start, its best sentences, or five keywords.

    `layers` limits it: 1 truncates only, 2 also picks sentences, 3 also keywords.
    """
    if retention > TRUNCATE_ABOVE or layers == TRUNCATED:
        return truncate(text)
    if retention > SENTENCES_ABOVE or layers == SENTENCES:
        return beginning(top_sentences(text, 3), SENTENCES_LENGTH)
    return " ".join(top_keywords(text, 5))


def fingerprint(text: str) -> str:
    """Return the three keywords that represent a text whose vector is gone."""
    return " ".join(top_keywords(text, 3))


def truncate(text: str) -> str:
    """Return the first 200 characters, with an ellipsis if there are more."""
    return text if len(text) <= TRUNCATED_LENGTH else beginning(text, TRUNCATED_LENGTH) + "..."


def top_sentences(text: str, count: int) -> str:
    """Return the `count` sentences with the most frequent words of the text, in their original order."""
    sentences = SENTENCE_END.split(text.strip())
    if len(sentences) <= count:
        return _joined(sentences)
    frequencies = Counter(_stems_of(text))
    ranked = sorted(range(len(sentences)), key=lambda i: -sum(frequencies[s] for s in set(_stems_of(sentences[i]))))
    return _joined([sentences[i] for i in sorted(ranked[:count])])


def _joined(sentences: Sequence[str]) -> str:
    return BLANK_AFTER_MARK.sub("", " ".join(sentences))


def top_keywords(text: str, count: int) -> list[str]:
    """Return the `count` most frequent word stems, ties in the order of their first appearance.

    In scripts without blanks between words, they are pairs of characters, of which no two overlap in the text.
    """
    found: list[str] = []
    trios = {word[i : i + 3] for word in words(text.lower()) if not word.isascii() for i in range(len(word) - 2)}
    for stem, _ in Counter(_stems_of(text)).most_common():
        if len(found) < count and not any(_overlap(stem, one, trios) for one in found):
            found.append(stem)
    return found


def _overlap(one: str, other: str, trios: set[str]) -> bool:
    """Return whether two stems are pairs of characters that overlap in one of the text's runs of three."""
    orders = ((one, other), (other, one)) if is_unspaced(one) and is_unspaced(other) else ()
    return any(first[-1] == second[0] and first + second[1:] in trios for first, second in orders)


def stems(said: Sequence[str]) -> list[str]:
    """Return the English stems of words in lower case; the stemmer takes longer than all else in a summary."""
    return [_kept_stem(word) if len(word) <= LONGEST_STEMMED else _stem(word) for word in said]


def _stem(word: str) -> str:
    return str(snowballstemmer.stemmer("english").stemWord(word))


_kept_stem = lru_cache(MOST_STEMS)(_stem)


def _stems_of(text: str) -> list[str]:
    return stems([word for word in in_pairs(words(text.lower())) if word not in ENGLISH_STOP_WORDS])
