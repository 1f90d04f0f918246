"""The static embedder: close in meaning, reproducible, and defined for every text."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples

from workers.embedding import make_embedder
from workers.embedding.static import StaticEmbedder
from workers.embedding.vectors import axis
from workers.embedding.word_vectors import pieces, sums
from workers.embedding.wordpiece import VOCABULARY
from workers.settings import Settings


@pytest.fixture
def embedder() -> StaticEmbedder:
    return StaticEmbedder(Settings())


def test_it_is_the_default_and_its_name_says_what_it_is() -> None:
    embedder = make_embedder(Settings())

    assert (embedder.name, embedder.dims) == ("static:minilm-distilled:256", 256)


@pytest.mark.parametrize("dims", [2, 3, 100, 256])
def test_fewer_dimensions_are_another_embedder(dims: int) -> None:
    embedder = StaticEmbedder(Settings(max_vector_dim=dims, min_vector_dim=1))

    assert (embedder.name, embedder.dims) == (f"static:minilm-distilled:{dims}", dims)
    assert embedder.embed(["a fact"]).shape == (1, dims)


def test_no_texts_give_no_rows(embedder: StaticEmbedder) -> None:
    vectors = embedder.embed([])

    assert vectors.shape == (0, 256)
    assert vectors.dtype == np.float32


def test_values_never_change() -> None:
    # Stored vectors depend on these values.
    assert sums(["Alice moved to Lisbon in May."])[0, :8].tolist() == [26, 25, 24, 51, -4, -8, -79, 48]


@pytest.mark.parametrize(
    ("question", "fact", "other"),
    [
        ("car trouble", "The engine of my Honda broke down.", "Cats are small felines."),
        ("What is her profession?", "Anna works as a nurse in a hospital.", "Anna lives in a small town."),
        ("any pets?", "We adopted a puppy.", "We bought a lamp."),
    ],
)
def test_a_fact_in_other_words_is_nearer_than_another_subject(
    embedder: StaticEmbedder, question: str, fact: str, other: str
) -> None:
    asked, near, far = embedder.embed([question, fact, other])

    assert asked @ near > asked @ far


def test_names_that_no_vocabulary_holds_are_found_by_their_parts(embedder: StaticEmbedder) -> None:
    asked, near, far = embedder.embed(["Kasparovich", "Mrs Kasparowitch called", "Mrs Thistlewood called"])

    assert asked @ near > asked @ far + 0.1


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=5))
@examples(100)
def test_every_text_has_a_vector_of_length_1(texts: list[str]) -> None:
    vectors = StaticEmbedder(Settings()).embed(texts)

    assert vectors.shape == (len(texts), 256)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_text_has_the_same_vector_alone_and_in_a_batch(embedder: StaticEmbedder) -> None:
    texts = ["Alice moved to Lisbon", "!!!", "😀", "", "Bob plays the cello"]

    together = embedder.embed(texts)

    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_array_equal(embedder.embed_queries([text])[0], vector)


def test_a_text_without_features_gets_the_axis_of_its_parts(embedder: StaticEmbedder) -> None:
    (vector,) = embedder.embed(["   "])

    assert np.flatnonzero(vector).tolist() == [axis("   ", 128)]


def test_each_piece_of_the_vocabulary_has_a_vector() -> None:
    vocabulary = VOCABULARY.read_text(encoding="utf-8").splitlines()
    words = [piece for piece in vocabulary if piece.isalpha() and piece.isascii()]

    assert len(vocabulary) == len(pieces())
    assert sums(words).any(axis=1).all()


def test_loading_it_needs_no_library_of_models() -> None:
    program = (
        "import sys; from workers.embedding import make_embedder; from workers.settings import Settings\n"
        "make_embedder(Settings()).embed(['tea']); print(*sys.modules)"
    )

    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert not {"torch", "onnxruntime", "tokenizers", "sklearn", "scipy"} & set(answer.stdout.split())
