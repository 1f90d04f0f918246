"""Brokers other than a single plain Redis: Sentinels that fail over under load, and TLS."""

import asyncio
import gc
import signal
import ssl
import subprocess
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest
import redis
import server_process
import trustme
from databases import WITHOUT_FSYNC
from live_system import LiveSystem, eventually
from load import Load, forget_connections, stored, swept

from api.up import processes, redis_programs, servers

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

NAME = "ebb"
SENTINELS = 3
OF_SENTINELS = "p@:/%#? &+w"
"""Their own password."""

SENTINEL = """
port {port}
bind 127.0.0.1
dir {folder}
sentinel monitor ebb 127.0.0.1 {primary} 2
sentinel auth-pass ebb {password}
sentinel down-after-milliseconds ebb 1000
sentinel failover-timeout ebb 5000
requirepass "{own}"
"""


@dataclass
class Group:
    """A primary, its replica, and their Sentinels."""

    folder: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    password: str = ""

    def start(self) -> None:
        """Start all, and return when the replica is in sync and the Sentinels know each other."""
        first = self._server("first")
        self._server("second", "--replicaof", "127.0.0.1", str(first.port))
        eventually(lambda: self.answer("first", "role")[2], "the replica is connected")
        for number in range(SENTINELS):
            self._sentinel(f"sentinel-{number}", first.port)
        for number in range(SENTINELS):
            eventually(lambda number=number: self._knows_all(f"sentinel-{number}"), "the Sentinels know each other")  # type: ignore[misc]

    def _server(self, name: str, *options: str) -> servers.Redis:
        server = servers.Redis(data=self.folder / name, port=servers.free_port(), fsync=WITHOUT_FSYNC)
        if self.password:
            server.data.mkdir()
            (server.data / "password").write_text(self.password)
        servers.prepare_redis(server)
        self.password = (server.data / "password").read_text()
        program = str(redis_programs.choose(server.data).path)
        self._run(name, server.port, [program, str(server.configuration), "--masterauth", self.password, *options])
        eventually(lambda: servers.redis_fault(server.url()) is None, f"{name} answers")
        return server

    def _sentinel(self, name: str, primary: int) -> None:
        folder = self.folder / name
        folder.mkdir()
        port, path = servers.free_port(), folder / "sentinel.conf"
        path.write_text(
            SENTINEL.format(port=port, folder=folder, primary=primary, password=self.password, own=OF_SENTINELS)
        )
        self._run(name, port, [str(redis_programs.choose(folder).path), str(path), "--sentinel"])
        eventually(lambda: processes.port_is_free(port) is False, f"{name} listens")

    def _run(self, name: str, port: int, command: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.ports[name] = port

    def _knows_all(self, sentinel: str) -> bool:
        with redis.Redis(port=self.ports[sentinel], password=OF_SENTINELS, decode_responses=True) as asked:
            (state,) = asked.sentinel_masters().values()
        return int(state["num-other-sentinels"]) == SENTINELS - 1 and int(state["num-slaves"]) == 1

    def answer(self, name: str, command: str) -> list[object]:
        with redis.Redis(port=self.ports[name], password=self.password) as asked:
            return list(asked.execute_command(command))

    def url(self) -> str:
        """Return the URL for Ebb."""
        hosts = ",".join(f"127.0.0.1:{self.ports[f'sentinel-{number}']}" for number in range(SENTINELS))
        own = quote(OF_SENTINELS, safe="")
        return f"sentinel://:{quote(self.password)}@{hosts}/0?master_name={NAME}&sentinel_password={own}"

    def kill(self, name: str) -> None:
        """Send SIGKILL to a server."""
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def stop(self) -> None:
        for name in list(self.running):
            self.kill(name)


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    group = Group(tmp_path)
    try:
        group.start()
        yield group
    finally:
        group.stop()
        with warnings.catch_warnings(action="ignore", category=ResourceWarning):
            gc.collect()  # redis-py leaves what it asked Sentinels by to the garbage collector


@contextmanager
def system_at(database: str, redis_url: str, folder: Path) -> Iterator[LiveSystem]:
    system = LiveSystem(database, redis_url, folder)
    try:
        system.start("all")
        yield system
    finally:
        system.stop()


def test_acknowledged_writes_survive_a_failover_under_load(database_url: str, group: Group, tmp_path: Path) -> None:
    with system_at(database_url, group.url(), tmp_path) as system:
        stats = str(system.ask("stats"))
        assert NAME in stats
        assert OF_SENTINELS not in stats
        with Load(system, wait=True) as answered, Load(system, wait=False) as accepted:
            eventually(lambda: min(len(answered.acknowledged), len(accepted.acknowledged)) > 20, "load")
            replicated = set(accepted.acknowledged)
            with redis.Redis(port=group.ports["first"], password=group.password) as primary:
                assert primary.wait(1, 0) == 1
            group.kill("first")
            before = len(answered.acknowledged), len(accepted.acknowledged)
            eventually(lambda: len(answered.acknowledged) > before[0] + 20, "tasks are answered again")
            eventually(lambda: len(accepted.acknowledged) > before[1] + 20, "writes are accepted again")
        forget_connections(system)
        eventually(lambda: swept(system), "what was accepted is stored")
        system.settle()
        found = stored(system)
        assert len(found) == len(set(found))
        assert answered.acknowledged <= set(found)
        assert replicated <= set(found)
        assert set(found) <= {*answered.sent, *accepted.sent}
        with system.client() as client:
            assert client.recall(f"Fact {found[0]} stands in the book.")["results"][0]["id"] == found[0]


# TLS --------------------------------------------------------------------------------------------------------------


@contextmanager
def behind_tls(port: int, folder: Path) -> Iterator[tuple[int, Path]]:
    """Run a TLS proxy in front of a server; return its port and the CA certificates."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    certificates = folder / "authority.pem"
    authority.cert_pem.write_to_path(str(certificates))
    opened: list[int] = []
    stopping = asyncio.Event()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):
                while data := await reader.read(65_536):
                    writer.write(data)
                    await writer.drain()
        finally:
            writer.transport.abort()

    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))

    async def serve() -> None:
        server = await asyncio.start_server(visit, "127.0.0.1", 0, ssl=context)
        opened.append(server.sockets[0].getsockname()[1])
        await stopping.wait()
        server.close()

    with asyncio.Runner() as runner:
        thread = threading.Thread(target=runner.run, args=(serve(),))
        thread.start()
        try:
            eventually(lambda: opened, "the door is open")
            yield opened[0], certificates
        finally:
            runner.get_loop().call_soon_threadsafe(stopping.set)
            thread.join()


def test_messages_answers_and_own_keys_travel_by_tls(
    database_url: str, redis_server: servers.Redis, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        port, certificates = stack.enter_context(behind_tls(redis_server.port, tmp_path))
        address = redis_server.url().replace("redis://", "rediss://").replace(str(redis_server.port), str(port))
        assert "certificate" in str(servers.redis_fault(address))
        system = stack.enter_context(
            system_at(database_url, f"{address}?ssl_ca_certs={quote(str(certificates), safe='')}", tmp_path)
        )
        with system.client() as client:
            fact = client.store("The key is under the stone.")["id"]
            client.store("The stone is behind the shed.", wait=False)
            assert client.recall("Where is the key?")["results"][0]["id"] == fact
            eventually(lambda: len(stored(system)) == 2, "the accepted write is stored")


def test_a_cluster_is_refused_with_the_reason(tmp_path: Path) -> None:
    server = servers.Redis(data=tmp_path / "cluster", port=servers.free_port(), fsync=WITHOUT_FSYNC)
    servers.prepare_redis(server)
    program = str(redis_programs.choose(server.data).path)
    # By default the bus is ten thousand above the port, where another server may listen.
    bus = next(port for port in iter(servers.free_port, None) if port != server.port)
    command = [program, str(server.configuration), "--cluster-enabled", "yes", "--cluster-port", str(bus)]
    fault: Callable[[], str | None] = lambda: None if "Cluster" in str(servers.redis_fault(server.url())) else "wait"  # noqa: E731 - a short one
    with server_process.running(command, tmp_path / "cluster.log", fault, signal.SIGTERM):
        assert "a Redis Cluster, which Celery's transport cannot use" in str(servers.redis_fault(server.url()))
