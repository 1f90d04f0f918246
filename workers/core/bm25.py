"""How well a text's words fit a query: Okapi BM25 with the inverse document frequency that Lucene uses.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009. The parameters are the
defaults of Anserini, made for short passages (Yang, Fang and Lin, 2017): a fact's length says little about it.
"""

import numpy as np

from workers.core.arrays import Floats, Ints

K1 = 0.9
B = 0.4


def inverse_document_frequency(document_frequencies: Ints, documents: int) -> Floats:
    """Return each term's weight: the fewer of the `documents` hold it, the more it says; never negative."""
    held = np.minimum(document_frequencies, documents)
    weights: Floats = np.log1p((documents - held + 0.5) / (held + 0.5))
    return weights


def scores(term_frequencies: Ints, lengths: Ints, weights: Floats, mean_length: float) -> Floats:
    """Return n scores for (n, terms) term frequencies, n lengths in words and the terms' weights."""
    relative_length = lengths / max(mean_length, 1.0)
    saturation = K1 * (1 - B + B * relative_length)
    frequencies = term_frequencies.astype(np.float64)
    gains: Floats = frequencies * (K1 + 1) / (frequencies + saturation[:, None])
    return gains @ weights
