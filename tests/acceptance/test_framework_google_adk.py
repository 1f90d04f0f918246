"""Google ADK on a real system: sessions are stored per user and app, and searched."""

import asyncio
from collections.abc import Iterator

import pytest
from ebb import InvalidInputError, Memory
from frameworks import need
from live_api import serving
from live_system import LiveSystem

need("google.adk.memory", "google.adk.sessions")

from ebb.google_adk import EbbMemoryService, namespace_of
from google.adk.events import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai import types

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


def test_a_query_may_be_whatever_a_model_asks(memory: Memory, namespace: str) -> None:
    service = EbbMemoryService(memory, namespace=lambda *_: namespace)
    memory.namespace(namespace).store("Mira moved to Leipzig")

    async def found(query: str) -> int:
        return len((await service.search_memory(app_name="trips", user_id="mira", query=query)).memories)

    queries = ("", " ", "Who \ud83d moved\0 to Leipzig?", "Look at this. " * 10_000 + "Who moved to Leipzig?")
    assert [asyncio.run(found(query)) for query in queries] == [0, 0, 1, 1]


def test_no_two_users_have_one_namespace() -> None:
    pairs = [
        ("a/b", "c"),
        ("a", "b/c"),
        ("a", "b+2Fc"),
        ("a", "b c"),
        ("a", "b|c"),
        ("_a", "b"),
        ("a", "Zoë"),
        ("a", "+49"),
        ("a", "b-older-365d"),
        ("a", "b+2Dolder-365d"),
        ("a", "b c-older-365d"),
    ]

    assert namespace_of("trips", "mira@example.org") == "trips/mira@example.org"
    assert namespace_of("a", "b/c") == "adk//a/b+2Fc"
    assert len({namespace_of(*pair) for pair in pairs}) == len(pairs)
    assert not any(namespace_of(*pair).endswith("-older-365d") for pair in pairs)  # as of a branch


def test_a_user_may_have_any_name(memory: Memory, namespace: str) -> None:
    service = EbbMemoryService(memory)

    async def use(user: str) -> int:
        await service.add_events_to_memory(app_name=namespace, user_id=user, events=[event("user", "I bake bread.")])
        return len((await service.search_memory(app_name=namespace, user_id=user, query="bread")).memories)

    assert [asyncio.run(use(user)) for user in ("auth0|1", "Zoë Müller", "a/b")] == [1, 1, 1]


def test_a_statement_comes_back_with_its_author_time_and_metadata(memory: Memory, namespace: str) -> None:
    service = EbbMemoryService(memory, namespace=lambda *_: namespace)
    content = types.Content(parts=[types.Part(text="Mira is allergic to peanuts")])
    stated = MemoryEntry(
        content=content, author="user", timestamp="2025-01-31T12:00:00+00:00", custom_metadata={"seen": 1}
    )

    async def use() -> MemoryEntry:
        await service.add_memory(app_name="trips", user_id="mira", memories=[stated])
        return (await service.search_memory(app_name="trips", user_id="mira", query="allergic?")).memories[0]

    found = asyncio.run(use())
    assert (found.author, found.timestamp, found.custom_metadata) == ("user", stated.timestamp, {"seen": 1})


def test_statements_that_cannot_be_stored_are_an_error(memory: Memory, namespace: str) -> None:
    service = EbbMemoryService(memory, namespace=lambda *_: namespace)
    texts = ("Mira sails", "word " * 20_000)
    memories = [MemoryEntry(content=types.Content(parts=[types.Part(text=text)])) for text in texts]
    with pytest.raises(InvalidInputError, match=r"1 of 2 memories.*EBB_MAX_TEXT"):
        asyncio.run(service.add_memory(app_name="trips", user_id="mira", memories=memories))


def test_a_session_with_more_events_than_fit_into_a_call_is_remembered(memory: Memory, namespace: str) -> None:
    service = EbbMemoryService(memory, namespace=lambda *_: namespace)
    events = [event("user", f"On day {number} it rained.", id=f"e{number}") for number in range(1_001)]
    session = Session(id="s", app_name="trips", user_id="mira", events=events)
    asyncio.run(service.add_session_to_memory(session))

    assert memory.namespace(namespace).stats().facts == 1_001
