"""URLs of the broker: a single Redis, Redis with TLS, or Sentinels, as Celery and redis-py parse them."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from ebb import broker
from ebb.celery import PRIORITIES, SEPARATOR, VARIABLES, configure
from kombu.transport.redis import Channel

from api.client import Client
from api.http.door import Door
from api.transport import HANGS_SECONDS, refusal
from workers import queues
from workers.coordination import shares
from workers.coordination.transport import App
from workers.errors import InvalidInputError
from workers.settings import Settings

SENTINELS = "sentinel://:p%40ss@a:1,b,[::1]:3/2?master_name=main&sentinel_password=other"


def configuration(address: str) -> dict[str, Any]:
    return broker.celery_configuration(address)


def test_results_are_in_the_database_behind_that_of_the_messages() -> None:
    found = configuration("redis://:secret@host:6379/3")
    assert (found["broker_url"], found["result_backend"]) == (
        "redis://:secret@host:6379/3",
        "redis://:secret@host:6379/4",
    )
    assert configuration("redis:///3")["result_backend"] == "redis://localhost/4"


def test_a_redis_that_hangs_keeps_no_connection_of_a_client_or_of_the_api_longer_than_documented() -> None:
    client, door = Client("redis://host/0"), Door(Settings(redis_url="redis://host/0"))
    pools = [one.connection_pool for one in (client._own_keys, door.redis, door.broker)]
    app = client._app
    waits = [pool.connection_kwargs["socket_timeout"] for pool in pools]
    waits += [app.conf.broker_transport_options["socket_timeout"], app.backend.connparams["socket_timeout"]]
    assert waits == [HANGS_SECONDS] * 5
    manual = (Path(__file__).parents[2] / "api" / "docs" / "http.md").read_text(encoding="utf-8")
    assert f"503 after {HANGS_SECONDS:g} s" in manual


@pytest.mark.parametrize("address", ["redis://host/0", "rediss://host/0", SENTINELS])
def test_no_idle_connection_to_redis_is_forgotten_by_a_firewall(address: str) -> None:
    door, app = Door(Settings(redis_url=address)), Client(address)._app
    pools = [one.connection_pool for one in (door.redis, door.broker, app.backend.client)]
    options = [pool.connection_kwargs for pool in pools] + [app.conf.broker_transport_options]
    kept = [(one["socket_keepalive"], one["socket_keepalive_options"].values()) for one in options]
    assert [(is_kept, max(seconds)) for is_kept, seconds in kept] == [(True, 10)] * 4


def test_certificates_are_checked_by_default() -> None:
    assert configuration("rediss://host/0")["broker_url"] == "rediss://host/0?ssl_cert_reqs=required"
    assert configuration("rediss:///0")["broker_url"] == "rediss://localhost/0?ssl_cert_reqs=required"
    unchecked = "rediss://host/0?ssl_cert_reqs=none"
    assert configuration(unchecked)["broker_url"] == unchecked
    assert configuration("rediss://host/0?ssl_ca_certs=/a b.pem")["result_backend"] == (
        "rediss://host/1?ssl_cert_reqs=required&ssl_ca_certs=%2Fa%20b.pem"
    )


def test_celery_gets_each_sentinel_with_the_login_and_the_database() -> None:
    found = configuration(SENTINELS)
    assert found["broker_url"] == ("sentinel://:p%40ss@a:1/2;sentinel://:p%40ss@b:26379/2;sentinel://:p%40ss@[::1]:3/2")
    assert found["result_backend"].count("/3") == 3
    asked = {"password": "other", "socket_connect_timeout": 2.0, "socket_timeout": 2.0}
    assert found["broker_transport_options"] == {"master_name": "main", "sentinel_kwargs": asked, **broker.KEEPALIVE}


def test_own_connections_get_the_same() -> None:
    named = broker.sentinels(broker.database_after(SENTINELS, 2))
    assert named == broker.Sentinels(
        (("a", 1), ("b", 26379), ("::1", 3)), "main", 4, None, "p@ss", {"password": "other"}
    )


@pytest.mark.parametrize("address", ["redis://:secret@host:6379/3", SENTINELS])
def test_no_process_waits_for_minutes_for_a_server_of_results_that_hangs(address: str) -> None:
    app = Celery(set_as_current=False)
    app.conf.update(queues.configuration(address))
    found = app.backend.connparams
    assert (found["socket_timeout"], found["socket_connect_timeout"]) == (10.0, 5.0)


def test_a_celery_program_keeps_its_own_transport_options() -> None:
    app = Celery(set_as_current=False)
    app.conf.broker_transport_options = {"visibility_timeout": 7, "socket_connect_timeout": 2}
    configure(app, SENTINELS)
    assert app.conf.broker_transport_options == {
        "visibility_timeout": 7, "socket_connect_timeout": 2, "socket_timeout": 10,
        **configuration(SENTINELS)["broker_transport_options"],
    }  # fmt: skip
    assert app.conf.broker_url.startswith("sentinel://")


def test_a_celery_program_does_not_wait_for_ever_for_a_broker_that_hangs() -> None:
    app = Celery(set_as_current=False)
    configure(app, "redis://host/0")
    found = app.conf.broker_transport_options
    assert (found["socket_timeout"], found["socket_connect_timeout"]) == (10, 5)


@pytest.mark.parametrize("address", ["redis://:secret@host:6379/3", SENTINELS])
@pytest.mark.parametrize(("own", "waits"), [({}, (10.0, 5.0)), ({"redis_socket_timeout": 30.0}, (30.0, 5.0))])
def test_a_celery_program_does_not_wait_for_an_hour_for_a_server_of_results_that_hangs(
    address: str, own: dict[str, float], waits: tuple[float, float]
) -> None:
    app = Celery(set_as_current=False)
    app.conf.update(own)
    configure(app, address)
    found = app.backend.connparams
    assert (found["socket_timeout"], found["socket_connect_timeout"]) == waits


def test_an_app_that_has_sent_a_task_before_gets_the_routes_too() -> None:
    app = Celery(set_as_current=False, broker="redis://localhost/0")
    assert app.amqp.router.route({}, "memory.store")["queue"].name == "celery"
    configure(app)
    assert app.amqp.router.route({}, "memory.store")["queue"].name == "store"


@pytest.mark.parametrize("broker", [None, ["redis://host/0", "redis://other/0"]])
def test_a_celery_program_whose_messages_do_not_reach_ebb_is_told_so(broker: list[str] | None) -> None:
    with pytest.raises(ValueError, match="no broker, or several; give Ebb's"):
        configure(Celery(set_as_current=False, broker=broker))


@pytest.mark.parametrize("options", ["broker_transport_options", "result_backend_transport_options"])
def test_a_celery_program_with_a_prefix_for_its_keys_is_refused(options: str) -> None:
    app = Celery(set_as_current=False, broker="redis://host/0")
    app.conf[options] = {"global_keyprefix": "mine:"}
    with pytest.raises(ValueError, match="global_keyprefix"):
        configure(app)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("CELERY_BROKER_URL", "redis://other/0"),
        ("CELERY_BROKER_URL", "redis://host/1"),
        ("CELERY_BROKER_URL", "redis://host:6380/0"),
        ("CELERY_BROKER_URL", "redis://:secret@host/0"),
        ("CELERY_BROKER_URL", "rediss://host/0"),
        ("CELERY_BROKER_URL", "amqp://host/own"),
        ("CELERY_BROKER_WRITE_URL", "redis://other/0"),
        ("CELERY_RESULT_BACKEND", "redis://host/0"),
    ],
)
def test_an_environment_that_leads_every_app_away_from_ebb_is_refused(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ValueError, match=f"^{variable} is set, .*, or rename the variable"):
        configure(Celery(set_as_current=False), "redis://host/0")


def test_an_environment_that_names_the_servers_of_ebb_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELERY_BROKER_URL", "redis://host/0")
    monkeypatch.setenv("CELERY_RESULT_BACKEND", "redis://host/1")
    app = Celery(set_as_current=False, broker_write_url="redis://other/0")
    configure(app)
    assert (app.conf.broker_write_url, app.conf.result_backend) == ("redis://host/0", "redis://host/1")


@pytest.mark.parametrize("given", ["redis://:p%40@host/0", "redis://:p%40@Host:6379", "redis://:%70%40@host:6379/"])
def test_an_environment_that_writes_the_server_of_ebb_otherwise_is_accepted(
    monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("CELERY_BROKER_URL", "redis://:p%40@host:6379/0")
    monkeypatch.setenv("CELERY_RESULT_BACKEND", "redis://:p%40@host:6379/1")
    configure(app := Celery(set_as_current=False), given)
    assert app.conf.result_backend == "redis://:p%40@host:6379/1"


def test_an_app_of_ebb_is_led_nowhere_by_the_environment_of_another_program(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.setenv(variable, "redis://other/5")
    monkeypatch.setenv("CELERY_CONFIG_MODULE", "project.celeryconfig")
    monkeypatch.setenv("CELERY_LOADER", "project.loader")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "project.settings")
    app = App(set_as_current=False)
    app.conf.update(configuration("redis://host/0"))
    assert {app.conf.broker_url, app.conf.broker_read_url, app.conf.broker_write_url} == {"redis://host/0"}
    assert app.conf.result_backend == "redis://host/1"
    assert app.connection_for_write().hostname == "host"


def test_an_app_of_ebb_is_unpickled_as_it_was() -> None:
    app = App("own", set_as_current=False)
    app.conf.update(configuration("redis://host/0"))
    copy = pickle.loads(pickle.dumps(app))
    assert (type(copy), copy.main, copy.conf.broker_url) == (App, "own", "redis://host/0")


@pytest.mark.parametrize("options", [{"priority_steps": list(range(10))}, {"sep": ":"}])
def test_a_celery_program_with_other_lists_for_priorities_is_refused(options: dict[str, Any]) -> None:
    app = Celery(set_as_current=False, broker="redis://host/0", broker_transport_options=options)
    with pytest.raises(ValueError, match="lists that Ebb's workers do not read; make a second app"):
        configure(app)


def test_the_priorities_of_celery_programs_are_those_of_ebb() -> None:
    assert set(shares.CLASSES) == PRIORITIES == set(Channel.priority_steps)
    assert queues.SEPARATOR == SEPARATOR == Channel.sep


def test_a_celery_program_that_reads_no_results_as_json_is_refused() -> None:
    app = Celery(set_as_current=False, broker="redis://host/0", result_serializer="pickle")
    with pytest.raises(ValueError, match="reads results as pickle, and Ebb writes JSON; make a second app"):
        configure(app)


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        ("redis+cluster://a:1/0", "Redis Cluster"),
        ("redis://a:1,b:2/0", "no single host"),
        ("redis://a:70000/0", "no single host"),
        ("sentinel://a:1/0", "master_name"),
        ("sentinel:///0?master_name=main", "needs hosts"),
        ("sentinel://a/0?master_name=main&pasword=x", "unknown option pasword"),
        ("sentinel://:p?ss@a:1/0?master_name=main", "has an unknown option;"),
        ("amqp://a/0", "no address of a Redis"),
        ("redis://a/first", "no address of a Redis"),
        ("redis://:p#ss@a:1/0", "has '#', which is %23"),
        ("sentinel://:p#ss@a:1/0?master_name=main", "has '#', which is %23"),
        ("redis://:p;ss@a:1/0", "has ';', which is %3B"),
        ("redis://:p[ss@a:1/0", r"has '\[', which is %5B"),
        ("sentinel://:p]ss@[::1]:1/0?master_name=main", "has ']', which is %5D"),
        ("sentinel://:p\tss@a:1/0?master_name=main", r"has '\\t', which is %09"),
    ],
)
def test_unsupported_addresses_are_refused_with_the_supported_ones(address: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault) as raised:
        broker.check(address)
    assert "give redis://" in str(raised.value)


def test_a_message_of_workers_with_a_long_word_is_read_in_one_pass() -> None:
    """In the square of its length, a million letters would take hours."""
    assert refusal(InvalidInputError(f"query: {'x' * 1_000_000!r} is too long")) is None
    said = refusal(InvalidInputError("valid_until: is no argument of memory.store; leave it out"))
    assert said is not None
    assert "do not know the argument 'valid_until'" in str(said)
