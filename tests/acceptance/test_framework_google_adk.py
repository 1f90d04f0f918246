"""Google ADK on a real system: sessions are stored per user and app, and searched."""

import asyncio
from collections.abc import Iterator

import pytest
from ebb import Memory
from frameworks import need
from live_api import serving
from live_system import LiveSystem

need("google.adk.memory", "google.adk.sessions")

from ebb.google_adk import EbbMemoryService  # noqa: E402 - only where the framework is
from google.adk.events import Event  # noqa: E402
from google.adk.memory.memory_entry import MemoryEntry  # noqa: E402
from google.adk.sessions import Session  # noqa: E402
from google.genai import types  # noqa: E402

pytestmark = [pytest.mark.acceptance, pytest.mark.filterwarnings("ignore")]


def event(author: str, text: str, **fields: str) -> Event:
    return Event(
        author=author, content=types.Content(role=author, parts=[types.Part(text=text)]), timestamp=1.7e9, **fields
    )


@pytest.fixture
def memory(live: LiveSystem) -> Iterator[Memory]:
    with serving(live) as client, Memory(str(client.base_url)) as memory:
        yield memory


def test_a_session_is_remembered_once_and_found_by_its_user_alone(memory: Memory, namespace: str) -> None:
    service = EbbMemoryService(memory, namespace=lambda app, user: f"{namespace}.{app}.{user}")
    events = [event("user", "I moved to Leipzig.", id="e1"), event("guide", "Since when?", id="e2")]
    session = Session(id="s", app_name="trips", user_id="mira", events=events)

    async def use() -> None:
        await service.add_session_to_memory(session)
        await service.add_session_to_memory(session)
        found = await service.search_memory(app_name="trips", user_id="mira", query="Who moved to Leipzig?")
        entry = found.memories[0]
        assert [part.text for part in entry.content.parts or []] == ["I moved to Leipzig."]
        assert (entry.author, (entry.timestamp or "")[:10]) == ("user", "2023-11-14")
        other = await service.search_memory(app_name="trips", user_id="anselm", query="Who moved to Leipzig?")
        assert other.memories == []

        await service.delete_memory(app_name="trips", user_id="mira", memory_id=entry.id)
        left = await service.search_memory(app_name="trips", user_id="mira", query="Who moved to Leipzig?")
        assert entry.id not in [one.id for one in left.memories]

    asyncio.run(use())


def test_statements_and_single_events_are_remembered_too(memory: Memory, namespace: str) -> None:
    service = EbbMemoryService(memory, namespace=lambda app, user: f"{namespace}.{app}.{user}")
    stated = MemoryEntry(content=types.Content(parts=[types.Part(text="Mira is allergic to peanuts")]))

    async def use() -> list[str | None]:
        await service.add_memory(app_name="trips", user_id="mira", memories=[stated])
        await service.add_events_to_memory(
            app_name="trips", user_id="mira", events=[event("user", "I bake rye bread.")]
        )
        found = [
            (await service.search_memory(app_name="trips", user_id="mira", query=query)).memories[0].content.parts[0]
            for query in ("allergic to peanuts?", "Who bakes rye bread?")
        ]
        return [part.text for part in found]

    assert asyncio.run(use()) == ["Mira is allergic to peanuts", "I bake rye bread."]
