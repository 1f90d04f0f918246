"""What a command prints that has sent a task to each of many namespaces."""

import pytest

from api.cli.decay import _say_sent


@pytest.mark.parametrize(
    ("names", "total", "shown"),
    [
        ([], 0, "sent to 0 namespaces: nothing is due\n"),
        (["ana"], 1, "sent to 1 namespace: ana\n"),
        ([f"n{i}" for i in range(1_000)], 20_000, f"{', '.join(f'n{i}' for i in range(20))} and 19,980 more\n"),
    ],
)
def test_the_first_of_many_namespaces_are_named(
    capsys: pytest.CaptureFixture[str], names: list[str], total: int, shown: str
) -> None:
    _say_sent({"namespaces": names, "total": total})
    assert " ".join(capsys.readouterr().out.split()).endswith(shown.strip())
