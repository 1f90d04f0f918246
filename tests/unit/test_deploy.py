"""The Kubernetes manifests against the published schemas, if installed, and against the code."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from workers.coordination.shares import CLASSES
from workers.queues import SEPARATOR, queues
from workers.settings import PREFIX, Settings

FOLDER = Path(__file__).parents[2] / "api" / "deploy"
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))
OBJECTS: list[dict[str, Any]] = [
    made
    for name in KUSTOMIZATION["resources"]
    for made in yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8"))
]


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {made["metadata"]["name"]: made for made in OBJECTS if made["kind"] == kind}


def pods() -> dict[str, dict[str, Any]]:
    """Return the pod templates by the name of their controller."""
    return {name: made["spec"]["template"] for name, made in (of_kind("Deployment") | of_kind("Job")).items()}


def options(name: str) -> str:
    command: list[str] = pods()[name]["spec"]["containers"][0]["command"]
    return " ".join(command)


def test_every_file_is_used() -> None:
    compose = (FOLDER.parents[1] / "compose.yaml").read_text(encoding="utf-8")
    used = {*KUSTOMIZATION["resources"], "kustomization.yaml", "settings.env"}
    used |= set(re.findall(r"api/deploy/(\S+)", compose))
    assert used == {path.name for path in FOLDER.iterdir()}


def test_each_queue_has_a_lane_of_workers_that_is_scaled_by_all_its_lists_and_by_its_age() -> None:
    assert {queue.name for queue in queues()} == set(of_kind("ScaledObject"))
    for queue, scaled in of_kind("ScaledObject").items():
        assert f"--queues={queue}" in options(queue).split()
        assert scaled["spec"]["scaleTargetRef"]["name"] == queue
        found = [one["metadata"] for one in scaled["spec"]["triggers"]]
        lists = {queue if not priority else f"{queue}{SEPARATOR}{priority}" for priority in CLASSES}
        assert {one["listName"] for one in found if "listName" in one} == lists
        assert f'ebb_queue_seconds{{queue="{queue}"}}' in [one.get("valueLocation") for one in found]
        used = {one["authenticationRef"]["name"] for one in scaled["spec"]["triggers"]}
        assert used <= set(of_kind("TriggerAuthentication"))


def test_the_api_believes_its_ingress_that_it_was_asked_by_tls() -> None:
    """Otherwise sessions have cookies for plain HTTP too, and MCP clients are sent to `http://`."""
    settings = (FOLDER / "settings.env").read_text(encoding="utf-8").splitlines()
    assert "FORWARDED_ALLOW_IPS=*" in settings


def test_there_is_one_beat_and_never_two() -> None:
    beat = of_kind("Deployment")["beat"]["spec"]
    assert (beat["replicas"], beat["strategy"]) == (1, {"type": "Recreate"})


def test_each_setting_is_one() -> None:
    names = re.findall(rf"\b{PREFIX}[A-Z_]+", "".join(path.read_text(encoding="utf-8") for path in FOLDER.iterdir()))
    own = {name.removeprefix(PREFIX).removesuffix("_FILE").lower() for name in names}
    assert own <= set(Settings.model_fields)


def test_no_pod_is_root_or_writes_its_image_or_has_a_token_of_the_cluster() -> None:
    for pod in pods().values():
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["automountServiceAccountToken"] is False
        for container in spec["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert "memory" in container["resources"]["limits"]


def test_no_pod_has_variables_of_services_as_flower_takes_one_of_them_for_its_port() -> None:
    assert {pod["spec"].get("enableServiceLinks") for pod in pods().values()} == {False}


def test_every_pod_reaches_the_servers_and_only_the_api_is_reached() -> None:
    assert {pod["metadata"]["labels"]["ebb/reaches"] for pod in pods().values()} == {"servers"}
    policies = {name: made["spec"] for name, made in of_kind("NetworkPolicy").items()}
    assert policies["nothing-comes-in"] == {"podSelector": {}, "policyTypes": ["Ingress"]}
    opened = [one["podSelector"] for one in policies.values() if "Ingress" in one["policyTypes"] and "ingress" in one]
    assert opened == [{"matchLabels": {"app": "api"}}]


def test_secrets_are_files_and_none_is_in_the_environment() -> None:
    settings = (FOLDER / "settings.env").read_text(encoding="utf-8")
    named = dict(re.findall(r"^(\w+_FILE)=/run/secrets/ebb/(\S+)$", settings, re.MULTILINE))
    assert set(named) == {"EBB_DATABASE_URL_FILE", "EBB_REDIS_URL_FILE"}
    for pod in pods().values():
        (container,) = pod["spec"]["containers"]
        assert container["envFrom"] == [{"configMapRef": {"name": "ebb"}}]
        own = [one["value"].rpartition("/")[2] for one in container.get("env", [])]
        (secret,) = [one["secret"] for one in pod["spec"]["volumes"] if one["name"] == "secrets"]
        assert {item["path"] for item in secret["items"]} == {*named.values(), *own}
        assert {"name": "secrets", "mountPath": "/run/secrets/ebb"} in container["volumeMounts"]
        assert secret["defaultMode"] == 0o440
        assert pod["spec"]["securityContext"]["fsGroup"] == pod["spec"]["securityContext"]["runAsUser"]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl: apt-get install kubernetes-client")
def test_the_schemas_of_kubernetes_take_what_kustomize_makes() -> None:
    schemas = pytest.importorskip("kubernetes_validate", reason="needs pip install kubernetes-validate")
    made = subprocess.run(["kubectl", "kustomize", str(FOLDER)], check=True, capture_output=True, text=True)
    objects = [one for one in yaml.safe_load_all(made.stdout) if not one["apiVersion"].startswith("keda.sh")]
    assert len(objects) > len(pods())
    for one in objects:
        assert one["kind"] == "Namespace" or one["metadata"]["namespace"] == KUSTOMIZATION["namespace"]
        schemas.validate(one, "1.33", strict=True)
    with pytest.raises(schemas.ValidationError):
        schemas.validate(objects[0] | {"imagine": True}, "1.33", strict=True)
