"""The distributions ebb-memory and ebb-server, as wheels in an environment of their own."""

import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
from pathlib import Path
from typing import Any

import ebb
import pytest

from tests import run_frameworks

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "api" / "clients" / "python"
USERS_SCRIPT = """
from uuid import UUID

from ebb import AsyncMemory, Memory


def first(memory: Memory) -> UUID:
    return memory.recall("Where does Mira live?", limit=1, role="user").results[0].id


async def texts(memory: AsyncMemory) -> list[str]:
    return [fact.text for fact in (await memory.namespace("mira").recall("Where does Mira live?")).results]
"""


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fresh environment's package folder with both wheels, and their dependencies by path."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder / "venv", with_pip=False)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder / "venv")}))
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation")
    run(*pip, "--target", folder / "own", LIBRARY, ROOT, cwd=folder)
    (packages / "own.pth").write_text(f"{folder / 'own'}\n{sysconfig.get_path('purelib')}\n")
    return folder


def test_each_framework_has_an_extra_tests_and_a_page() -> None:
    docs = ROOT / "api" / "docs"
    index = (docs / "frameworks.md").read_text(encoding="utf-8")
    tried = {path.stem for path in (ROOT / "tests" / "acceptance").glob("test_framework_*.py")}
    assert {run_frameworks.tests_of(extra).stem for extra in run_frameworks.extras()} == tried
    for extra in run_frameworks.extras():
        assert f"(frameworks/{extra}.md) | `{extra}` |" in index
        assert f"`ebb-memory[{extra}]`" in (docs / "frameworks" / f"{extra}.md").read_text(encoding="utf-8")


def test_the_library_names_its_version() -> None:
    project = tomllib.loads((LIBRARY / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert ebb.__version__ == project["version"]


def test_the_wheels_have_the_library_and_the_system_and_nothing_else(installed: Path) -> None:
    names = {path.name for path in (installed / "own").iterdir() if not path.name.endswith(".dist-info")}

    assert names == {"ebb", "workers", "api", "bin"}
    assert not (installed / "own" / "api" / "clients").exists()
    assert all((installed / "own" / name / "py.typed").exists() for name in ("ebb", "workers", "api"))


@pytest.mark.parametrize("folder", [LIBRARY, ROOT], ids=["library", "system"])
def test_a_source_distribution_has_the_licence_and_no_links(folder: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", tmp_path, cwd=folder)
    (made,) = tmp_path.iterdir()

    with tarfile.open(made) as archive:
        assert [one.name for one in archive.getmembers() if not one.isfile()] == []
        licence = archive.extractfile(f"{made.name.removesuffix('.tar.gz')}/LICENSE")
        assert licence is not None
        assert licence.read() == (ROOT / "LICENSE").read_bytes()


def test_the_command_of_the_wheel_runs(installed: Path) -> None:
    python = installed / "venv" / "bin" / "python"

    shown = run(python, "-P", "-c", "from api.cli import main; main()", "--version", cwd=installed)

    assert shown == f"ebb {project(ROOT)['version']}\n"


def test_the_wheel_has_the_vectors_of_the_default_embedder_and_their_notice(installed: Path) -> None:
    python = installed / "venv" / "bin" / "python"
    program = (
        "from workers.embedding import make_embedder; from workers.settings import Settings;"
        "print(make_embedder(Settings()).embed(['tea']).shape)"
    )

    assert run(python, "-P", "-c", program, cwd=installed) == "(1, 256)\n"
    assert (installed / "own" / "workers" / "embedding" / "weights" / "NOTICE").exists()


def test_the_server_depends_on_the_library_of_its_own_version() -> None:
    server, library = project(ROOT), project(LIBRARY)

    assert server["version"] == library["version"]
    assert f"{library['name']}=={library['version']}" in server["dependencies"]


@pytest.mark.slow
def test_a_users_script_is_checked_with_the_librarys_types(installed: Path) -> None:
    (installed / "script.py").write_text(USERS_SCRIPT)

    python = installed / "venv" / "bin" / "python"
    cache = f"--cache-dir={ROOT / '.mypy_cache' / 'script'}"  # with the types of libraries from the run before
    run(sys.executable, "-m", "mypy", "--strict", cache, "--python-executable", python, "script.py", cwd=installed)


def project(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found
