"""The recipe of LangGraph works as described, on a running system."""

import os
import re
import subprocess
import sys

import pytest
from frameworks import need
from live_api import serving
from live_system import ROOT, LiveSystem, clean_environment

need("langgraph.graph")

pytestmark = pytest.mark.acceptance


def test_a_graph_knows_what_earlier_threads_put_into_its_store(live: LiveSystem, namespace: str) -> None:
    recipe = (ROOT / "api/docs/recipes/langgraph.md").read_text()
    named = recipe.replace('namespace="mira"', f'namespace="{namespace}"')
    (source,) = re.findall(r"^```python\n(.*?)^```", named, re.MULTILINE | re.DOTALL)
    with serving(live) as api:
        program = source.replace("http://127.0.0.1:5556", str(api.base_url).rstrip("/"))
        for question in ("I moved to Leipzig in the spring.\n", "Who moved to Leipzig?\n"):
            done = subprocess.run(
                [sys.executable, "-c", program],
                input=question,
                cwd=ROOT,
                env=clean_environment({"PYTHONPATH": os.environ.get("PYTHONPATH", "")}),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
    assert "I moved to Leipzig in the spring." in done.stdout
