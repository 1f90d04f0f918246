"""The alert rules, checked by promtool: each fires on its own series, none on those of a quiet system."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

FILE = Path(__file__).parents[2] / "api" / "http" / "alerts.yaml"
RULES: list[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["groups"][0]["rules"]

DAY = 1440
REQUESTS = 'ebb_http_request_seconds_count{status="200"}'
FIRING = {
    "EbbApiDown": {'up{job="ebb",instance="api:5556"}': "0x200"},
    "EbbPartDown": {'ebb_ok{part="database"}': "0x200", 'ebb_ok{part="redis"}': "1x200"},
    "EbbReplicaNotRead": {'ebb_replica_readable{replica="b:5432"}': "0x200", 'ebb_ok{part="replicas"}': "0x200"},
    "EbbEmbedderDown": {"ebb_embedder_pause_seconds": "30x200"},
    "EbbRerankerDown": {"ebb_reranker_failures": "2x200"},
    "EbbLlmDown": {"ebb_llm_failures": "2x200"},
    "EbbQueueOld": {'ebb_queue_seconds{queue="store"}': "60x200", 'ebb_queue_seconds{queue="maintenance"}': "60x200"},
    "EbbOutboxGrows": {"ebb_outbox_writes": "200+10x200"},
    "EbbPassesLate": {"ebb_oldest_due_seconds": "7200x200"},
    "EbbBeatDown": {"ebb_beat_timestamp_seconds": "0x200"},
    "EbbForgetLimitMet": {"ebb_held_facts": "30x200"},
    "EbbErrors": {REQUESTS: "0+60x200", 'ebb_http_request_seconds_count{status="503"}': "0+3x200"},
    "EbbTasksFail": {'ebb_task_failures_total{task="memory.store"}': "0+1x200"},
    "EbbRecallSlow": {
        'ebb_recall_seconds_bucket{arm="all",le="1"}': "0+1x200",
        'ebb_recall_seconds_bucket{arm="all",le="5"}': "0+60x200",
        'ebb_recall_seconds_bucket{arm="all",le="+Inf"}': "0+60x200",
    },
    "EbbRedisFull": {"ebb_redis_memory_bytes": "90x200", "ebb_redis_memory_limit_bytes": "100x200"},
    "EbbDatabaseGrows": {"ebb_database_bytes": "2000000000+1000000x1700"},
}
"""For each rule series that make it fire, one value a minute."""

FIRST, SECOND = 'instance="a:5556"', 'instance="b:5556"'
OF_GROUPS = {
    "EbbBeatDown": {
        f"ebb_beat_timestamp_seconds{{{FIRST}}}": "0+60x200",
        f"ebb_beat_timestamp_seconds{{{SECOND}}}": "0x200",
    },
    "EbbRedisFull": {
        f"ebb_redis_memory_bytes{{{FIRST}}}": "100x200",
        f"ebb_redis_memory_limit_bytes{{{FIRST}}}": "400x200",
        f"ebb_redis_memory_bytes{{{SECOND}}}": "90x200",
        f"ebb_redis_memory_limit_bytes{{{SECOND}}}": "100x200",
    },
    "EbbRecallSlow": {
        f'ebb_recall_seconds_bucket{{arm="all",le="1",{FIRST}}}': "0+6000x200",
        f'ebb_recall_seconds_bucket{{arm="all",le="+Inf",{FIRST}}}': "0+6000x200",
        f'ebb_recall_seconds_bucket{{arm="all",le="1",{SECOND}}}': "0+1x200",
        f'ebb_recall_seconds_bucket{{arm="all",le="5",{SECOND}}}': "0+60x200",
        f'ebb_recall_seconds_bucket{{arm="all",le="+Inf",{SECOND}}}': "0+60x200",
    },
}
"""The same with two groups of shards, each with an API: the second is at fault, and the first is well."""

QUIET = {
    'up{job="ebb",instance="api:5556"}': "1x1700",
    'ebb_ok{part="database"}': "1x1700",
    'ebb_ok{part="embedder"}': "1x1700",
    'ebb_replica_readable{replica="b:5432"}': "1x1700",
    "ebb_embedder_pause_seconds": "0x1700",
    "ebb_reranker_failures": "0+1x1 0x1700",
    "ebb_llm_failures": "0+1x1 0x1700",
    'ebb_queue_seconds{queue="store"}': "0.1x1700",
    'ebb_queue_seconds{queue="maintenance"}': "60x1700",
    "ebb_outbox_writes": "5x1700",
    "ebb_oldest_due_seconds": "200x1700",
    "ebb_beat_timestamp_seconds": "0+60x1700",
    "ebb_held_facts": "0x1700",
    REQUESTS: "0+60x1700",
    'ebb_task_failures_total{task="memory.store"}': "1x1700",
    'ebb_recall_seconds_bucket{arm="all",le="1"}': "0+60x1700",
    'ebb_recall_seconds_bucket{arm="all",le="+Inf"}': "0+60x1700",
    f"ebb_redis_memory_bytes{{{FIRST}}}": "90x1700",
    f"ebb_redis_memory_limit_bytes{{{FIRST}}}": "0x1700",
    f"ebb_redis_memory_bytes{{{SECOND}}}": "10x1700",
    f"ebb_redis_memory_limit_bytes{{{SECOND}}}": "100x1700",
    "ebb_database_bytes": "2000000000+1000x1700",
}


def test_every_rule_has_figures_that_make_it_fire_a_severity_and_words() -> None:
    assert {rule["alert"] for rule in RULES} == FIRING.keys()
    for rule in RULES:
        promql_parser.parse(rule["expr"])
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}
        assert rule["annotations"]["summary"]
        asked = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
        assert asked <= {"instance", *re.findall(r"by \((\w+)\)", rule["expr"])}, rule["alert"]


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("needs promtool: apt-get install prometheus")
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)


def test_promtool_takes_the_rules() -> None:
    checked = promtool("check", "rules", FILE)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(RULES)} rules found" in checked.stdout


def case(series: dict[str, str], minutes: int, alerts: str, number: int) -> dict[str, Any]:
    """Return promtool's test of how many alerts fire after so many minutes."""
    expression = f'count(ALERTS{{alertstate="firing"{alerts}}}) or vector(0)'
    expected = {"expr": expression, "eval_time": f"{minutes}m", "exp_samples": [{"labels": "{}", "value": number}]}
    given = [{"series": one, "values": values} for one, values in series.items()]
    return {"interval": "1m", "input_series": given, "promql_expr_test": [expected]}


@pytest.mark.slow
def test_each_rule_fires_on_what_it_is_about_and_none_on_a_quiet_system(tmp_path: Path) -> None:
    cases = [case(QUIET, DAY + 60, "", 0)]
    cases.append(case(FIRING["EbbApiDown"], 100, "", 1))  # its metrics are away, too
    cases.append(case(FIRING["EbbReplicaNotRead"] | {"ebb_beat_timestamp_seconds": "0+60x200"}, 100, "", 1))
    cases.append(case({'ebb_ok{part="redis"}': "1x200"}, 100, ',alertname="EbbBeatDown"', 1))  # it never sent a task
    for name, series in [*FIRING.items(), *OF_GROUPS.items()]:
        minutes = DAY + 60 if name == "EbbDatabaseGrows" else 100
        cases.append(case(series, minutes, f',alertname="{name}"', 1))
    file = tmp_path / "alerts_test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(FILE)], "evaluation_interval": "5m", "tests": cases}))
    tested = promtool("test", "rules", file)
    assert tested.returncode == 0, tested.stdout + tested.stderr
