"""The start of the HTTP API."""

import asyncio

import pytest

from api.http import make_app


def test_the_celery_apps_of_all_groups_of_shards_are_made_before_the_first_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EBB_REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("EBB_BROKERS", "redis://127.0.0.1:1/0,redis://127.0.0.1:1/3")
    monkeypatch.setenv("EBB_SHARDS", "2")
    api = make_app()

    async def started() -> list[bool]:
        async with api.router.lifespan_context(api):
            door = api.state.door
            return ["_app" in vars(one.client) for one in (door, *door._others.values())]

    assert asyncio.run(started()) == [True, True]
