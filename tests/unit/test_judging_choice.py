"""Without an LLM its client is not loaded, and errors name the missing setting."""

import subprocess
import sys

import pytest

from workers.errors import SettingsError
from workers.llm import make_chat
from workers.settings import Settings


def test_storing_needs_no_http_client() -> None:
    program = "import workers.memory.store, workers.llm, sys; print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert not set(answer.stdout.split()) & {"httpx2", "tenacity"}


@pytest.mark.parametrize("package", ["httpx2", "tenacity"])
def test_a_missing_extra_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(SettingsError, match=rf"{package}.*install 'ebb-server\[openai\]'.*EBB_CLASSIFY_BEFORE_WRITE"):
        make_chat(Settings())


def test_a_wrong_url_is_refused_before_any_call() -> None:
    with pytest.raises(SettingsError, match="EBB_LLM_URL='elsewhere' is no URL"):
        make_chat(Settings(llm_url="elsewhere"))
