"""The hashing embedder: reproducible, close for paraphrases, and defined for every text."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from made_up import examples

from workers.embedding import make_embedder
from workers.embedding.hashing import NGRAMS, HashingEmbedder
from workers.embedding.vectors import axis
from workers.settings import Settings

SCRIPTS = ["Alice moved to Lisbon in May.", "我喜欢猫", "u ~", "! <"]


@pytest.fixture
def embedder() -> HashingEmbedder:
    return HashingEmbedder(Settings())


def cosine(embedder: HashingEmbedder, one: str, other: str) -> float:
    first, second = embedder.embed([one, other])
    return float(first @ second)


def test_its_name_says_what_it_is() -> None:
    embedder = make_embedder(Settings(embedder="hashing"))

    assert (embedder.name, embedder.dims) == ("hashing:char3-5-log-centred:256", 256)


def test_fewer_dimensions_are_another_embedder() -> None:
    embedder = HashingEmbedder(Settings(max_vector_dim=128))

    assert (embedder.name, embedder.dims) == ("hashing:char3-5-log-centred:128", 128)
    assert embedder.embed(["a fact"]).shape == (1, 128)


def test_no_texts_give_no_rows(embedder: HashingEmbedder) -> None:
    vectors = embedder.embed([])

    assert vectors.shape == (0, 256)
    assert vectors.dtype == np.float32


def test_values_never_change(embedder: HashingEmbedder) -> None:
    # From scikit-learn 1.9; stored vectors depend on these values.
    vector = embedder.embed(["Alice moved to Lisbon in May."])[0]

    expected = np.full(16, -0.028447)
    expected[[10, 11, 13]], expected[15] = 0.115730, 0.259908
    np.testing.assert_allclose(vector[:16], expected, atol=1e-6)


def test_another_process_gives_the_same_vectors(embedder: HashingEmbedder) -> None:
    texts = SCRIPTS
    program = (
        "import json, sys\n"
        "from workers.embedding import make_embedder\n"
        "from workers.settings import Settings\n"
        "print(json.dumps(make_embedder(Settings(embedder='hashing')).embed(json.load(sys.stdin)).tolist()))"
    )

    answer = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(texts), capture_output=True, text=True, check=True
    )

    np.testing.assert_array_equal(np.array(json.loads(answer.stdout), np.float32), embedder.embed(texts))


def test_a_paraphrase_is_nearer_than_another_subject(embedder: HashingEmbedder) -> None:
    fact = "Caroline adopted a kitten named Luna from the shelter"

    paraphrase = cosine(embedder, fact, "Which kitten did Caroline adopt from a shelter?")
    other = cosine(embedder, fact, "The night train to Berlin leaves at nine")

    assert paraphrase > 0.6
    assert abs(other) < 0.1


def test_case_and_accents_make_no_difference(embedder: HashingEmbedder) -> None:
    assert cosine(embedder, "Zoë visited the Café", "zoe visited the cafe\u0301") == pytest.approx(1)


@pytest.mark.parametrize("text", ["", "   ", "\u0301"])
def test_a_text_without_features_gets_its_own_axis(embedder: HashingEmbedder, text: str) -> None:
    vector = embedder.embed(["something else", text])[1]

    assert np.flatnonzero(vector).tolist() == [axis(text, 256)]
    assert vector.sum() == 1


@pytest.mark.parametrize(("text", "dimension"), [("", 0), ("u ~", 48)])
def test_axes_never_change(text: str, dimension: int) -> None:
    assert axis(text, 256) == dimension


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=5))
def test_every_text_has_a_vector_of_length_1(texts: list[str]) -> None:
    vectors = HashingEmbedder(Settings()).embed(texts)

    assert vectors.shape == (len(texts), 256)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_text_has_the_same_vector_alone_and_in_a_batch(embedder: HashingEmbedder) -> None:
    texts = ["Alice moved to Lisbon", "!!!", "😀", "Bob plays the cello"]

    together = embedder.embed(texts)

    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_array_equal(embedder.embed([text])[0], vector)


@pytest.mark.parametrize("dims", [100, 256])
@given(st.lists(st.text(max_size=60), min_size=1, max_size=6))
@example(["\N{MATHEMATICAL BOLD ITALIC CAPITAL A}"])
@examples(100)
def test_counts_are_those_of_scikit_learn(dims: int, texts: list[str]) -> None:
    from sklearn.feature_extraction.text import HashingVectorizer  # every test process imports this module

    vectorizer = HashingVectorizer(
        analyzer="char_wb",
        ngram_range=NGRAMS,
        n_features=dims,
        strip_accents="unicode",
        alternate_sign=False,
        norm=None,
    )

    counts = HashingEmbedder(Settings(max_vector_dim=dims)).counts(texts)

    np.testing.assert_array_equal(counts, vectorizer.transform(texts).toarray())
