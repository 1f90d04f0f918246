"""The embedder of sentence-transformers models, with a tiny model created here; needs the extra `local`."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workers.core.arrays import Vectors
from workers.embedding import make_embedder
from workers.embedding.vectors import axis
from workers.errors import EmbeddingError
from workers.settings import Settings

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None, reason="the extra `local` is not installed"
)

WORDS = ["[UNK]", "cat", "kitten", "train", "void"]
WEIGHTS = np.array([[0, 0, 0, 0], [1, 0.2, 0, 3], [0.9, 0.3, 0, 3], [0, 0, 1, 3], [0, 0, 0, 0]], np.float32)


def save_model(folder: Path, weights: Vectors = WEIGHTS) -> str:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = Tokenizer(WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    words = StaticEmbedding(tokenizer, embedding_weights=weights)
    SentenceTransformer(modules=[words], device="cpu").save(str(folder))
    return str(folder)


def settings(model: str, **others: Any) -> Settings:
    return Settings.model_validate({"embedder": "local", "embedding_model": model} | others)


def test_a_folder_is_a_model_of_its_own_name(tmp_path: Path) -> None:
    embedder = make_embedder(settings(save_model(tmp_path / "tiny")))

    vectors = embedder.embed(["cat", "kitten", "train"])

    np.testing.assert_allclose(vectors, WEIGHTS[1:4] / np.linalg.norm(WEIGHTS[1:4], axis=1, keepdims=True))
    assert vectors.dtype == np.float32
    assert embedder.dims == 4
    prefix, _, digest = embedder.name.removesuffix(":4").partition("@")
    assert (prefix, len(digest)) == ("local:tiny", 8)


def test_other_weights_in_the_same_folder_are_another_embedder(tmp_path: Path) -> None:
    before = make_embedder(settings(save_model(tmp_path / "tiny"))).name
    again = make_embedder(settings(save_model(tmp_path / "elsewhere" / "tiny"))).name

    after = make_embedder(settings(save_model(tmp_path / "tiny", WEIGHTS * 2))).name

    assert before == again != after


def test_longer_vectors_are_cut_and_scaled_again(tmp_path: Path) -> None:
    embedder = make_embedder(settings(save_model(tmp_path / "tiny"), max_vector_dim=2, min_vector_dim=1))

    cat, kitten = embedder.embed(["cat", "kitten"])

    assert embedder.dims == 2
    assert embedder.name.endswith(":2")
    np.testing.assert_allclose(cat, np.array([1, 0.2]) / np.hypot(1, 0.2), rtol=1e-6)
    assert float(cat @ kitten) > 0.98


def test_no_texts_give_no_rows(tmp_path: Path) -> None:
    assert make_embedder(settings(save_model(tmp_path / "tiny"))).embed([]).shape == (0, 4)


def test_a_text_that_the_model_does_not_know_gets_its_own_axis(tmp_path: Path) -> None:
    vectors = make_embedder(settings(save_model(tmp_path / "tiny"))).embed(["cat", "void", "!!!"])

    assert np.flatnonzero(vectors[1]).tolist() == [axis("void", 4)]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


def test_a_damaged_model_is_reported(tmp_path: Path) -> None:
    weights = WEIGHTS.copy()
    weights[1, 0] = np.nan
    embedder = make_embedder(settings(save_model(tmp_path / "tiny", weights)))

    with pytest.raises(EmbeddingError, match=r"tiny.*not finite"):
        embedder.embed(["cat"])


def test_a_folder_without_a_model_is_reported(tmp_path: Path) -> None:
    embedder = make_embedder(settings(str(tmp_path)))

    with pytest.raises(EmbeddingError, match=r"cannot be loaded.*EBB_EMBEDDING_MODEL"):
        _ = embedder.dims
