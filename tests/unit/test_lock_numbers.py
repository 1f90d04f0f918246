"""Advisory locks of PostgreSQL: no two purposes share a number."""

import re
from pathlib import Path

import workers

NUMBER = re.compile(r"= \(?(0x0EBB\b(?: \+ \d+)?)")


def test_every_advisory_lock_has_its_own_number() -> None:
    files = Path(workers.__path__[0]).rglob("*.py")
    numbers = [number for file in files for number in NUMBER.findall(file.read_text())]
    assert len(numbers) == len({*numbers}) > 1
