"""Questions that an LLM may help with, one module each. Its answers are checked, and none of them is ever needed."""

import importlib.util
from typing import TYPE_CHECKING

from workers.errors import SettingsError
from workers.settings import Settings

if TYPE_CHECKING:
    from workers.llm.chat import Chat

__all__ = ["make_chat"]

PACKAGES = ("httpx2", "tenacity")
"""What comes with the extra `openai`."""


def make_chat(settings: Settings) -> "Chat":
    """Return the LLM of the settings; make one in each process, since it owns connections.

    Raises:
        SettingsError: the extra is not installed, or the settings cannot work.
    """
    missing = [package for package in PACKAGES if importlib.util.find_spec(package) is None]
    if missing:
        raise SettingsError(
            f"Asking an LLM needs {' and '.join(missing)}, not installed here. Run: pip install 'ebb-server[openai]', "
            "or unset EBB_CLASSIFY_BEFORE_WRITE, EBB_EXTRACT and EBB_PRUNE_BY_LLM."
        )
    from workers.llm.chat import Chat  # noqa: PLC0415 - only where an LLM is asked

    return Chat(settings)
