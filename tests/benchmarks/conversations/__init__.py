"""Conversations with questions whose evidence is known: the project's own, and public ones from files that are given.

None of the public sets is shipped, and none has a default place.
"""

from pathlib import Path

from tests.benchmarks.conversations import beam, locomo, memora, sample
from tests.benchmarks.conversations.conversation import BEGIN, MAX_TEXT, Asked, Change, Conversation, Turn, sampled

__all__ = ["BEGIN", "MAX_TEXT", "OWN", "Asked", "Change", "Conversation", "Turn", "read", "sampled", "sets"]

OWN = "small"
"""The name of the project's own set."""


def read(path: Path | None) -> tuple[str, list[Conversation]]:
    """Return the conversations of a file in LoCoMo's form, or the shipped sample year, and what they are called."""
    if path is None:
        return "the shipped sample year", [sample.year()]
    return path.name, locomo.read(path)


def sets(
    conversations: Path | None, beam_folder: Path | None, memora_folder: Path | None, *, judging: bool = False
) -> dict[str, list[Conversation]]:
    """Return the sets that are given by name; the small one of the project always, unless others judge.

    A file of conversations is taken whole; of the folders, what constants are chosen on, or with `judging` the rest.
    """
    found = {} if judging else {OWN: sample.small()}
    if conversations:
        found["LoCoMo"] = locomo.read(conversations)
    if beam_folder:
        found[f"BEAM-{beam_folder.name}"] = beam.read(beam_folder, judging=judging)
    if memora_folder:
        found[f"Memora {memora_folder.name}"] = memora.read(memora_folder, judging=judging)
    return found
