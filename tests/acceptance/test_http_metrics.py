"""Metrics for Prometheus, and that Grafana's dashboard and the alert rules use existing ones only."""

import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from live_api import serving
from live_system import LiveSystem, eventually
from prometheus_client.parser import text_string_to_metric_families

from api.up import servers
from workers.coordination import signals, timings

pytestmark = pytest.mark.acceptance

FOLDER = Path(__file__).parents[2] / "api" / "http"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
RULES = yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
ASKED = [(panel["title"], target) for panel in PANELS for target in panel["targets"]]


@pytest.fixture(scope="module")
def alone(
    module_database: str, redis_server: servers.Redis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveSystem]:
    """Return a system with a replica that does not answer."""
    settings = {"EBB_READ_DATABASE_URL": f"postgresql://127.0.0.1:{servers.free_port()}/ebb"}
    system = LiveSystem(module_database, redis_server.url(), tmp_path_factory.mktemp("alone"), settings)
    try:
        system.start("all")
        yield system
    finally:
        system.stop()


@pytest.fixture(scope="module")
def metrics(alone: LiveSystem) -> str:
    """Return the metrics of a system in which each event has happened once."""
    with serving(alone) as api:
        made = api.post("/memory/facts", json={"text": "The spare key hangs behind the kitchen clock."})
        api.post("/memory/recall", json={"query": "Where is the key?"}).raise_for_status()
        alone.settle()
        api.delete(f"/memory/facts/{made.json()['id']}").raise_for_status()
        api.post("/memory/decay?everywhere=true", json={}).raise_for_status()
        signals.count(alone.own_keys, signals.FAILURES, "memory.store")
        signals.note_beat(alone.own_keys, 1.0)
        eventually(lambda: timings.read_usage(alone.own_keys, time.time()), "the worker has noted what it uses")
        alone.own_keys.delete("ebb:measured")
        answer = api.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain")
        return answer.text


def test_the_metrics_cover_facts_queues_workers_and_how_long_things_take(alone: LiveSystem, metrics: str) -> None:
    figures = {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in metrics.splitlines()
        if not line.startswith("#")
    }
    ((facts,),) = alone.rows("select count(*) from activity where not retired")
    assert sum(figures[f'ebb_facts_by_tier{{tier="{tier}"}}'] for tier in ("hot", "warm", "cold")) == facts
    assert figures['ebb_queue_tasks{queue="recall"}'] == figures['ebb_queue_seconds{queue="recall"}'] == 0
    assert figures['ebb_workers{queue="maintenance"}'] == 1
    assert figures["ebb_outbox_writes"] == 0
    assert figures['ebb_ok{part="database"}'] == figures['ebb_ok{part="redis"}'] == 1
    assert figures["ebb_database_bytes"] > 1e6
    assert figures["process_resident_memory_bytes"] > 1e7
    assert figures['ebb_worker_memory_bytes{worker="all@tests"}'] > 1e7
    assert figures['ebb_worker_cpu_seconds_total{worker="all@tests"}'] > 0
    assert figures["ebb_held_facts"] == 0
    assert [value for name, value in figures.items() if name.startswith("ebb_replica_readable")] == [0]
    assert figures["ebb_due_facts"] >= 0
    assert figures['ebb_forgotten_facts{reason="asked"}'] >= 1
    for arm in ("all", "embed", "search", "weigh"):
        assert figures[f'ebb_recall_seconds_count{{arm="{arm}"}}'] >= 1
    assert figures["ebb_write_to_readable_seconds_count"] >= 1
    assert figures["ebb_write_to_readable_seconds_sum"] > 0
    assert figures['ebb_http_request_seconds_count{method="POST",route="/memory/recall",status="200"}'] >= 1


@pytest.fixture(scope="module")
def exposed(metrics: str) -> dict[str, set[str]]:
    """Return each series' name with its labels."""
    labels: dict[str, set[str]] = defaultdict(set)
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples:
            labels[sample.name] |= set(sample.labels)
    return labels


OF_PROMETHEUS = {"job", "instance"}
"""Labels that Prometheus adds to what it scrapes."""


def selectors(expression: Any) -> Iterator[Any]:
    """Yield the selectors in a PromQL expression."""
    if isinstance(expression, promql_parser.VectorSelector):
        yield expression
    below = [getattr(expression, name, None) for name in ("lhs", "rhs", "expr", "vector_selector")]
    for one in [*below, *(getattr(expression, "args", None) or [])]:
        if one is not None:
            yield from selectors(one)


def parsed(target: dict[str, Any]) -> Any:
    return promql_parser.parse(target["expr"].replace("$__rate_interval", "1m"))


def test_every_way_to_store_a_text_is_measured_until_it_can_be_read(alone: LiveSystem) -> None:
    requests = {
        "POST /memory/facts": {"text": "The ferry leaves at noon."},
        "POST /memory/facts/batch": {"facts": [{"text": "The ferry is late."}]},
        "POST /memory/remember": {"messages": [{"role": "user", "content": "I missed the ferry."}]},
        "POST /memory/import": {"records": [{"text": "The ferry is full."}]},
        "POST /memory/documents": {"path": "notes/ferry.md", "text": "The ferry is blue."},
        "PUT /memory/items": {"path": ["ferry"], "key": "colour", "document": "{}", "text": "blue"},
        "PUT /memory/items/batch": {"items": [{"path": ["ferry"], "key": "size", "document": "{}", "text": "large"}]},
    }

    def measured() -> int:
        alone.settle()
        return timings.read(alone.own_keys).get(timings.WRITE, ([0], 0.0))[0][-1]

    before = measured()
    with serving(alone) as api:
        for request, body in requests.items():
            method, path = request.split()
            api.request(method, path, json=body).raise_for_status()
    assert measured() == before + len(requests)


def test_methods_that_clients_invent_are_counted_together(alone: LiveSystem) -> None:
    with serving(alone) as api:
        for method in ("GET", "BREW", "BREW2"):
            api.request(method, "/health/live")
        counted = set(re.findall(r'method="(\w+)",route="/health/live"', api.get("/metrics").text))
    assert counted == {"GET", "other"}


def test_the_dashboard_asks_for_metrics_and_labels_that_are_there(exposed: dict[str, set[str]]) -> None:
    for title, target in ASKED:
        found = list(selectors(parsed(target)))
        assert found, title
        for selector in found:
            assert selector.name in exposed, title
            matched = {matcher.name for matcher in selector.matchers.matchers}
            grouped = {name for names in re.findall(r"by \((.*?)\)", target["expr"]) for name in names.split(", ")}
            legend = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            assert matched | grouped | legend <= exposed[selector.name] | OF_PROMETHEUS, title
            assert legend <= grouped, title


def test_the_alert_rules_ask_for_metrics_and_labels_that_are_there(exposed: dict[str, set[str]]) -> None:
    for rule in RULES:
        found = list(selectors(promql_parser.parse(rule["expr"])))
        assert found, rule["alert"]
        for selector in found:
            assert selector.name in exposed or selector.name == "up", rule["alert"]
            matched = {matcher.name for matcher in selector.matchers.matchers}
            grouped = set(re.findall(r"by \((\w+)\)", rule["expr"]))
            assert matched | grouped <= exposed[selector.name] | OF_PROMETHEUS, rule["alert"]


def test_the_dashboard_leaves_out_no_metric(exposed: dict[str, set[str]]) -> None:
    shown = {selector.name for _, target in ASKED for selector in selectors(parsed(target))}
    families = {re.sub(r"_(bucket|count|sum|created)$", "", name) for name in exposed if name.startswith("ebb_")}
    shown = {name for name in shown if name.startswith("ebb_")}
    assert families == {re.sub(r"_(bucket|count)$", "", name) for name in shown}


def test_a_dashboard_with_an_unknown_metric_is_detected(exposed: dict[str, set[str]]) -> None:
    (wrong,) = selectors(promql_parser.parse("rate(ebb_dreams_total[1m])"))
    assert wrong.name not in exposed


def test_panels_do_not_overlap_and_each_has_a_description() -> None:
    places = set()
    for panel in DASHBOARD["panels"]:
        grid = panel["gridPos"]
        own = {(grid["x"] + x, grid["y"] + y) for x in range(grid["w"]) for y in range(grid["h"])}
        assert not own & places, panel["title"]
        assert max(x for x, _ in own) < 24
        places |= own
    assert all(panel["description"].endswith(".") for panel in PANELS)
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
