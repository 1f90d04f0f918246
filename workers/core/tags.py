"""Tags: topics that a text names, found by fixed patterns (S82-S87, C-S11)."""

import re

PATTERNS = {
    "nibe": r"nibe",
    "zigbee": r"zigbee",
    "z-wave": r"z-?wave",
    "auth": r"o?auth(?:entication|orization)?",
    "homeassistant": r"home[\s-]?assistant",
    "openclaw": r"openclaw",
    "postgres": r"postgres(?:ql)?",
    "sqlite": r"sqlite",
    "lancedb": r"lancedb",
    "api": r"apis?",
    "docker": r"docker",
    "kubernetes": r"kubernetes|k8s",
    "ha": r"HA",
}
"""The built-in topics (S86), each with the words that name it, whatever their case.

But within a text `HA` for Home Assistant is written in capitals, for in small letters it is a laugh.
"""

NAMED = re.compile(
    "|".join(
        rf"(?P<{tag.replace('-', '_')}>(?<![A-Za-z0-9])(?{'' if words.isupper() else 'i'}:{words})(?![A-Za-z0-9]))"
        for tag, words in PATTERNS.items()
    )
)


def extract_tags(text: str, entity: str | None = None) -> list[str]:
    """Return the topics that a text names, in the order of their first appearance, and then those of its entity."""
    found = [match.lastgroup or "" for said in (text, (entity or "").upper()) for match in NAMED.finditer(said)]
    return [tag.replace("_", "-") for tag in dict.fromkeys(found)]
