"""Report words that the code should not use, with file, line and replacement; run by `make lint`."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

WORDS = {
    "anew": "again, rebuild",
    "everybody": "all, everyone who",
    "likeness": "near-duplicate, similarity",
    "nobody": "none, no caller",
    "nowhere": "not found",
    "outrunning": "turn limit",
    "remembering": "memory",
    "somebody": "the caller, a user, on request",
    "telling": "report",
    "to no avail": "without effect",
    "told": "stored, reported",
    "whoever": "the caller, a client",
    "whom": "who, whose",
}
"""Each word with its replacement."""

ROW = "row of a document"
ROW_IDS = re.compile(r"(?<![\w\"'`#.-])(?:C-[A-Z]\d{1,3}|[DEHORS]\d{1,2})(?![\w\"'`])(?!:)")
"""Ids of rows in external documents, such as the D and the number of a decision."""

KINDS = (".py", ".md", ".html", ".sql", ".yaml", "Makefile", ".ci/run")
EXEMPT = (
    "tests/benchmarks/distil.py",
    "tests/words.py",
    "tests/unit/test_words_that_do_not_come_back.py",
    "tests/golden/",
    "tests/integration/releases/",
    "workers/core/summary.py",
    "workers/storage/migrations/",
)
"""Files that may contain such words: this list, recorded output, sentences of users, stop words, and migrations."""


def main() -> None:
    """Report words that are not allowed."""
    sys.exit(
        "\n".join(
            f"{path}:{number}: {word!r}: write {better}"
            for path in files()
            for number, word, better in found((ROOT / path).read_text(encoding="utf-8"))
        )
        or None
    )


def files() -> list[str]:
    """Return the paths of the files to check, tracked or new in git."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [path for path in listed if path.endswith(KINDS) and not path.startswith(EXEMPT) and (ROOT / path).exists()]


def found(text: str) -> list[tuple[int, str, str]]:
    """Return line number, word and replacement for each word in a text that is not allowed.

    A single word in quotes is a value, such as a key of the export format.
    """
    word = rf"\b(?:{'|'.join(WORDS)})\b"
    pattern = re.compile(rf"(?<![\"']){word}|{word}(?![\"'])", re.IGNORECASE)
    hits = []
    for number, line in enumerate(text.splitlines(), start=1):
        hits += [(number, word.lower(), WORDS[word.lower()]) for word in pattern.findall(line)]
        hits += [(number, ROW, f"the reason, not {id_}") for id_ in ROW_IDS.findall(line) if "noqa" not in line]
    return hits


if __name__ == "__main__":
    main()
