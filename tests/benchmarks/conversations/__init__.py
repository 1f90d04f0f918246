"""Conversations with questions and labelled evidence: the project's own, and public ones from given files.

No public set is shipped or has a default path.
"""

from pathlib import Path

from tests.benchmarks.conversations import beam, locomo, memora, realtalk, sample, statements
from tests.benchmarks.conversations.conversation import BEGIN, MAX_TEXT, Asked, Change, Conversation, Turn, sampled

__all__ = [
    "BEGIN",
    "MAX_TEXT",
    "OWN",
    "Asked",
    "Change",
    "Conversation",
    "Turn",
    "read",
    "sampled",
    "sets",
    "statements",
]

OWN = "small"
"""The name of the project's own set."""


def read(path: Path | None) -> tuple[str, list[Conversation]]:
    """Return the conversations of a file in LoCoMo's format, or the shipped sample year, and their name."""
    if path is None:
        return "the shipped sample year", [sample.year()]
    return path.name, locomo.read(path)


def sets(
    conversations: Path | None,
    beam_folder: Path | None,
    memora_folder: Path | None,
    realtalk_folder: Path | None,
    *,
    judging: bool = False,
) -> dict[str, list[Conversation]]:
    """Return the given sets by name; also the project's small set, unless others are for judging.

    A file is used completely; of a folder, the tuning part, or with `judging` the rest.
    """
    found = {} if judging else {OWN: sample.small()}
    if conversations:
        found["LoCoMo"] = locomo.read(conversations)
    if beam_folder:
        found[f"BEAM-{beam_folder.name}"] = beam.read(beam_folder, judging=judging)
    if memora_folder:
        found[f"Memora {memora_folder.name}"] = memora.read(memora_folder, judging=judging)
    if realtalk_folder:
        found["REALTALK"] = realtalk.read(realtalk_folder, judging=judging)
    return found
