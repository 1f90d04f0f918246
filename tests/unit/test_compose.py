"""The compose file against its published schema and the code, without Docker."""

import json
import re
import shlex
import shutil
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
DOCKERFILE = (ROOT / FILE["x-ebb"]["build"]["dockerfile"]).read_text(encoding="utf-8")
SECRETS = "/run/secrets/"


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
    assert {"EBB_DATABASE_URL_FILE", "EBB_REDIS_URL_FILE", "EBB_HOST", "EBB_PORT"} <= names
    fields = {name.removeprefix(PREFIX).removesuffix("_FILE").lower() for name in names}
    assert fields <= set(Settings.model_fields)


def test_each_secret_is_a_file_that_a_service_mounts_and_reads_and_the_head_says_how_to_make_it() -> None:
    head = TEXT.partition("\nname:")[0]
    for name, secret in FILE["secrets"].items():
        assert secret == {"file": f"secrets/{name}"}
        assert name in head
    for name, service in SERVICES.items():
        environment: dict[str, str] = service.get("environment", {})
        files = {value for variable, value in environment.items() if variable.endswith("_FILE")}
        files |= set(re.findall(SECRETS + r"\w+", yaml.safe_dump([service.get("command"), service.get("healthcheck")])))
        files |= {SECRETS + "ebb_password"} if name == "postgres" else set()  # its role.sql reads that
        files |= {SECRETS + "metrics_key"} if name == "prometheus" else set()  # its configuration reads that
        assert files == {SECRETS + secret for secret in service.get("secrets", [])}, name
        named = [
            variable for variable in environment if re.search("PASSWORD|AUTH|KEY|DATABASE_URL|REDIS_URL", variable)
        ]
        assert all(variable.endswith("_FILE") for variable in named), name
    assert SECRETS + "ebb_password" in (ROOT / "api/deploy/role.sql").read_text(encoding="utf-8")
    assert SECRETS + "metrics_key" in FILE["configs"]["prometheus"]["content"]


def test_hadolint_and_the_shell_find_no_fault() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    subprocess.run([hadolint, ROOT / FILE["x-ebb"]["build"]["dockerfile"]], check=True)
    subprocess.run(["/bin/sh", "-n", ROOT / FILE["configs"]["backup"]["file"]], check=True)


@pytest.mark.skipif(shutil.which("caddy") is None, reason="needs Caddy: apt-get install caddy")
def test_caddy_takes_its_configuration_and_looks_often_enough_for_an_api_that_restarts() -> None:
    file = ROOT / FILE["configs"]["caddy"]["file"]
    command = ["caddy", "adapt", "--validate", "--adapter", "caddyfile", "--config", str(file)]
    adapted = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert '"interval": 5000000000' in json.dumps(adapted)


def test_ports_are_opened_on_this_machine_alone_and_only_those_that_people_need() -> None:
    ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert ports.pop("proxy") == ["${TLS_ADDRESS:-443}:443"]
    assert set(ports) == {"api", "flower", "prometheus", "grafana"}
    assert all(re.match(r"\$\{\w+_ADDRESS:-127\.0\.0\.1:\d+\}:\d+$", port) for (port,) in ports.values())


def test_our_own_run_without_rights_and_are_watched_and_bounded() -> None:
    for name, service in OWN.items():
        assert service["user"] == "10001", name
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
    for name, service in SERVICES.items():
        # a bound of processors above those of the machine stops the start
        assert set(service["deploy"]["resources"]["limits"]) == {"memory", "pids"}, name
        assert "healthcheck" in service or name == "migrate", name


def test_images_are_pinned() -> None:
    images = [service["image"] for service in SERVICES.values()] + re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert all(re.search(r":v?\d+\.\d+", image) for image in images), images
    assert "PIP_CONSTRAINT=constraints.txt" in DOCKERFILE


def test_grafana_has_prometheus_and_the_dashboard() -> None:
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


def test_no_service_that_would_make_tables_starts_before_a_dump_is_restored() -> None:
    assert "migrate" in SERVICES["backup"]["depends_on"]
    manual = (ROOT / "api" / "docs" / "backups.md").read_text(encoding="utf-8")
    restoring = re.findall(r"docker compose (?:[^\n]*\\\n)?[^\n]*pg_restore", manual)
    assert restoring
    assert all("--no-deps" in command for command in restoring)


def test_what_the_image_is_made_of_is_there() -> None:
    copied = [line.split()[1:-1] for line in DOCKERFILE.splitlines() if re.match("COPY (?!--from)", line)]
    names = [name for names in copied for name in names if not name.startswith("--")]
    assert {"schema.sql", "workers", "api"} <= set(names)
    assert [name for name in names if not (ROOT / name).exists()] == []
    assert {".git", "secrets", "ebb.env", ".venv"} <= set((ROOT / ".dockerignore").read_text().splitlines())


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
