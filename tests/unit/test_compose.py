"""The compose file against its published schema and the code, without Docker."""

import json
import re
import shlex
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from workers.queues import queues
from workers.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "compose.yaml").read_text(encoding="utf-8")
FILE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, Any] = FILE["services"]
OWN = {name: service for name, service in SERVICES.items() if "build" in service}
DOCKERFILE: str = FILE["x-ebb"]["build"]["dockerfile_inline"]


def schema() -> dict[str, Any]:
    folder = resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    found: dict[str, Any] = json.loads((folder / "compose-spec.json").read_text(encoding="utf-8"))
    return found


def option(service: dict[str, Any], name: str) -> str:
    return next(part.partition("=")[2] for part in service["command"] if part.startswith(f"{name}="))


def test_the_file_fits_the_published_schema_which_knows_a_wrong_one() -> None:
    jsonschema.validate(FILE, schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(FILE | {"services": {"api": {"imagine": "ebb"}}}, schema())


def test_all_queues_have_workers() -> None:
    served = {
        queue
        for service in OWN.values()
        if "worker" in service["command"]
        for queue in re.sub(r"\$\{\w+:-(.*)\}", r"\1", option(service, "--queues")).split(",")
    }
    assert served == {queue.name for queue in queues()}


def test_each_setting_is_one() -> None:
    names = {name for service in OWN.values() for name in service["environment"] if name.startswith(PREFIX)}
    assert {"EBB_DATABASE_URL", "EBB_REDIS_URL", "EBB_HOST", "EBB_PORT"} <= names
    assert {name.removeprefix(PREFIX).lower() for name in names} <= set(Settings.model_fields)


def test_no_secret_stands_in_the_file_and_none_may_be_left_out() -> None:
    for name in ("POSTGRES_PASSWORD", "REDIS_PASSWORD", "FLOWER_BASIC_AUTH"):
        assert re.search(r"\$\{" + name + r":\?", TEXT), name
    values = [f"{name}={value}" for one in SERVICES.values() for name, value in one.get("environment", {}).items()]
    named = [one for one in values if re.match(r"\w*(PASSWORD|AUTH|KEY)\w*=", one)]
    assert named
    assert all("${" in one for one in named)


def test_ports_are_opened_on_this_machine_alone_and_only_those_that_people_need() -> None:
    ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert set(ports) == {"api", "flower", "prometheus", "grafana"}
    assert all(re.match(r"\$\{\w+_ADDRESS:-127\.0\.0\.1:\d+\}:\d+$", port) for (port,) in ports.values())


def test_our_own_run_without_rights_and_are_watched_and_bounded() -> None:
    for name, service in OWN.items():
        assert service["user"] == "10001", name
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
    for name, service in SERVICES.items():
        assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}, name
        assert "healthcheck" in service or name == "migrate", name


def test_images_are_pinned() -> None:
    images = [service["image"] for service in SERVICES.values()] + re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert all(re.search(r":v?\d+\.\d+", image) for image in images), images
    assert "PIP_CONSTRAINT=constraints.txt" in DOCKERFILE


def test_grafana_has_prometheus_and_the_dashboard_and_starts_with_a_password_alone() -> None:
    grafana, configs = SERVICES["grafana"], FILE["configs"]
    mounted = {one["target"]: configs[one["source"]] for one in grafana["configs"]}
    (source,) = yaml.safe_load(mounted["/etc/grafana/provisioning/datasources/ebb.yaml"]["content"])["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (folder,) = yaml.safe_load(mounted["/etc/grafana/provisioning/dashboards/ebb.yaml"]["content"])["providers"]
    (board,) = (one for target, one in mounted.items() if target.startswith(folder["options"]["path"] + "/"))
    assert json.loads((ROOT / board["file"]).read_text(encoding="utf-8"))["title"] == "Ebb"
    scraping = yaml.safe_load(configs["prometheus"]["content"])
    rules = {Path(one["target"]).name: configs[one["source"]].get("file") for one in SERVICES["prometheus"]["configs"]}
    assert [(ROOT / rules[name]).exists() for name in scraping["rule_files"]] == [True]
    (job,) = scraping["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["api:5556"]}]
    shell, option, command = grafana["entrypoint"]
    script = command.replace("$$", "$").replace("exec /run.sh", "echo started")
    for password, code in (("", 1), ("secret", 0)):
        environment = {"GF_SECURITY_ADMIN_PASSWORD": password}
        done = subprocess.run([f"/bin/{shell}", option, script], check=False, env=environment, capture_output=True)
        assert (done.returncode, b"started" in done.stdout) == (code, not code)


def test_what_the_image_is_made_of_is_there() -> None:
    copied = [
        line.split()[1:-1] for line in DOCKERFILE.splitlines() if line.startswith("COPY") and "--from" not in line
    ]
    names = [name for names in copied for name in names]
    assert {"schema.sql", "workers", "api"} <= set(names)
    assert [name for name in names if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("name", sorted(OWN))
def test_each_command_is_one_that_the_code_has(name: str) -> None:
    program, *arguments = OWN[name]["command"]
    assert program == "ebb"
    done = subprocess.run([sys.executable, "-m", "api.cli", *arguments, "--help"], check=False, cwd=ROOT)
    assert done.returncode == 0, shlex.join(arguments)


def test_when_beat_sent_what_outlives_its_container() -> None:
    """Otherwise daily tasks would never be sent if containers are recreated every day."""
    beat = SERVICES["beat"]
    volume, _, folder = beat["volumes"][0].partition(":")
    assert volume in FILE["volumes"]
    assert option(beat, "--schedule").startswith(f"{folder}/")
    assert not any(folder.startswith(temporary) for temporary in beat["tmpfs"])
    assert f"--owner=ebb --group=ebb {folder}" in DOCKERFILE
