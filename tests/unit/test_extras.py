"""Adapters without their framework: the error names the extra that installs it."""

import subprocess
import sys

ADAPTERS = {
    "anthropic": "anthropic",
    "crewai": "crewai",
    "google_adk": "google",
    "langchain": "langchain_core",
    "langgraph": "langgraph",
    "llama_index": "llama_index",
    "pydantic_ai": "pydantic_ai",
}
PROGRAM = f"""
import sys
from importlib import import_module

for adapter, framework in {ADAPTERS!r}.items():
    sys.modules[framework] = None
    try:
        import_module(f"ebb.{{adapter}}")
    except ModuleNotFoundError as error:
        print(error)
"""


def test_an_adapter_without_its_framework_names_its_extra() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)

    for adapter, said in zip(ADAPTERS, done.stdout.splitlines(), strict=True):
        assert f"pip install 'ebb-memory[{adapter.replace('_', '-')}]'" in said
