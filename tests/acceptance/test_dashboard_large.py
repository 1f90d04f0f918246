"""Pages stay short and fast with thousands of links of one fact, relations, runs and namespaces."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from databases import ON_ONE_SHARD
from live_browser import NARROW, check_width, looking
from live_system import LiveSystem
from playwright.sync_api import Browser

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, ON_ONE_SHARD]

MANY, LINKED = 10_000, 4_000
MOST_BYTES = 400_000
USES = 20

FACTS = """
    with added as (
        insert into facts (namespace, id, text, hash, created_at, valid_from)
        select %(tenant)s, gen_random_uuid(), 'Boat number ' || n, decode(lpad(to_hex(n), 64, '0'), 'hex'), now(), now()
        from generate_series(1, %(linked)s) as n
        returning id
    ),
    active as (
        insert into activity (namespace, fact, segment, base, last_seen_at, last_confirmed_at, tier, fidelity, due_at)
        select %(tenant)s, id, 0, 0.5, now(), now(), 1, 32767, now() + interval '30 days' from added
        returning fact
    ),
    linked as (
        insert into links (namespace, source, target, type, strength, created_at)
        select %(tenant)s, %(middle)s, fact, 'PART_OF', 0.5, now() from active
        returning 1
    )
    select count(*) from linked
"""
RELATIONS = """
    insert into relations (namespace, source, target, type, initial_weight, weight, last_observed, created_at)
    select %(tenant)s, 'Person ' || n %% 300, 'Boat ' || n, 'sails', 0.5, 0.5, now(), now()
    from generate_series(1, %(many)s) as n
    returning id
"""
RUNS = """
    insert into decay_runs (id, planned_for, started_at, finished_at, asked_by)
    select gen_random_uuid(), at, at, at, 'test'
    from (select now() - n * interval '5 minutes' as at from generate_series(1, %(many)s) as n) as instants
    returning id
"""
NAMESPACES = """
    insert into namespaces (name) select %(prefix)s || n from generate_series(1, %(many)s) as n returning id
"""


@pytest.fixture(scope="module")
def middle(live: LiveSystem) -> Iterator[tuple[str, str]]:
    """Return a namespace with many rows of every kind, and the fact that all others are linked with."""
    name = f"much-{uuid4()}"
    with live.client(name) as memory:
        fact = memory.store("The harbour has many boats.")["id"]
        for _ in range(USES):
            memory.reinforce(fact, 0.01)
    ((tenant,),) = live.rows("select id from namespaces where name = %s", [name])
    given = {"tenant": tenant, "many": MANY, "linked": LINKED, "middle": fact, "prefix": f"{name}-"}
    for statement in (FACTS, RELATIONS, RUNS, NAMESPACES):
        live.rows(statement, given)
    yield name, fact
    live.settle()  # a task that still runs locks activity before facts
    live.rows("delete from facts where namespace = %s", [tenant])
    live.rows("delete from relations where namespace = %s", [tenant])
    live.rows("delete from decay_runs where asked_by = 'test'", [])
    live.rows("delete from namespaces where starts_with(name, %s)", [f"{name}-"])


@pytest.mark.parametrize(
    "path",
    [
        "/?days=366", "/dashboard/facts", "/dashboard/facts/{fact}", "/dashboard/recall?query=boat&limit=100",
        "/dashboard/forecast?days=366", "/dashboard/relations", "/dashboard/relations?entity=Person+7",
        "/dashboard/runs", "/dashboard/namespaces",
    ],
)  # fmt: skip
def test_a_page_is_bounded_and_quick(browser: Browser, url: str, middle: tuple[str, str], path: str) -> None:
    name, fact = middle
    with looking(browser, url, width=NARROW, headers={"X-Ebb-Namespace": name}) as tab:
        answer = tab.goto(path.format(fact=fact), timeout=0)
        assert answer is not None
        assert answer.status == 200
        assert len(answer.body()) < MOST_BYTES
        check_width(tab)


def test_a_fact_with_many_links_and_uses_shows_the_strongest_and_the_newest(
    browser: Browser, url: str, middle: tuple[str, str]
) -> None:
    name, fact = middle
    with looking(browser, url, headers={"X-Ebb-Namespace": name}) as tab:
        tab.goto(f"/dashboard/facts/{fact}")
        assert tab.locator(".linked li").count() == 20
        assert tab.get_by_text(f"{LINKED - 20:,} more are not shown").count() == 1
        assert tab.locator("figure canvas").count() == 2
        tab.get_by_text("Its newest 16 uses").press("Enter")
        assert tab.get_by_role("region", name="Uses of this fact").locator("tbody tr").count() == 16
        assert tab.get_by_text("linked").count() == 0


def test_all_facts_are_reached_page_by_page_by_the_keyboard(
    browser: Browser, url: str, middle: tuple[str, str]
) -> None:
    with looking(browser, url, headers={"X-Ebb-Namespace": middle[0]}) as tab:
        tab.goto("/dashboard/facts")
        seen = set()
        for _ in range(4):
            seen |= set(tab.locator(".facts a").evaluate_all("links => links.map(link => link.pathname)"))
            tab.get_by_role("link", name="Earlier").press("Enter")
            tab.wait_for_url("**cursor=**")
            tab.wait_for_load_state()
        assert len(seen) >= 150
