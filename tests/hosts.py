"""Network namespaces as hosts: each with an address of its own, a delay, loss, a cable to pull and a clock."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

TOOLS = ("ip", "tc")
PATH = "/usr/sbin:/sbin:/usr/bin:/bin"
CABLE = Path(__file__).with_name("cable.py")
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


def missing() -> str | None:
    """Return why hosts cannot be made here, or None if they can."""
    if lacking := [tool for tool in TOOLS if shutil.which(tool, path=PATH) is None]:
        return f"needs {', '.join(lacking)}: apt-get install iproute2"
    if os.geteuid() != 0:
        return "needs root, to make network namespaces"
    probe = f"ebb-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"network namespaces are not permitted: {made.stderr.strip()}"
    _run("ip", "netns", "delete", probe)
    return None


@dataclass
class Network:
    """Hosts on one bridge, in a namespace without the machine's firewall; the tests themselves are on it as well."""

    delay_ms: float = 5.0
    lost_percent: float = 0.5
    hosts: dict[str, int] = field(default_factory=dict)
    clocks: dict[str, int] = field(default_factory=dict)
    netem: bool = False
    """Whether the kernel delays and loses packets; else `cable.py` does."""
    cables: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def _name(self) -> str:
        return f"e{os.getpid()}"

    def _address(self, number: int) -> str:
        return f"10.{os.getpid() >> 8 & 0xFF}.{os.getpid() & 0xFF}.{number}"

    def open(self) -> None:
        """Make the bridge."""
        space = self._space("bridge")
        _run("ip", "netns", "add", space)
        _run("ip", "-netns", space, "link", "add", "bridge", "type", "bridge")
        _run("ip", "-netns", space, "link", "set", "bridge", "up")
        _run("ip", "link", "add", self._name, "type", "veth", "peer", "name", f"{self._name}o")
        _run("ip", "address", "add", f"{self._address(254)}/24", "dev", self._name)
        _run("ip", "link", "set", self._name, "up")
        self._plug_in(f"{self._name}o")
        self.netem = self._has_netem()

    def _plug_in(self, outer: str) -> None:
        space = self._space("bridge")
        _run("ip", "link", "set", outer, "netns", space)
        _run("ip", "-netns", space, "link", "set", outer, "master", "bridge", "up")

    def _has_netem(self) -> bool:
        """Return whether the kernel has what delays and drops packets."""
        tried = ["tc", *f"qdisc add dev {self._name} root netem delay 1ms".split()]
        able = subprocess.run(tried, check=False, capture_output=True, env={"PATH": PATH}).returncode == 0
        if able:
            _run("tc", "qdisc", "delete", "dev", self._name, "root")
        return able

    def add(self, host: str, clock: int = 0) -> str:
        """Make a host, whose clock is so many seconds ahead; return its address."""
        number = self.hosts[host] = len(self.hosts) + 1
        outer, inner, space = self._cable(host), f"{self._name}i{number}", self._space(host)
        _run("ip", "netns", "add", space)
        self._lay_cable(outer, inner)
        self._plug_in(outer)
        _run("ip", "link", "set", inner, "netns", space)
        for command in (f"address add {self.address(host)}/24 dev {inner}", f"link set {inner} up", "link set lo up"):
            _run("ip", "-netns", space, *command.split())
        if self.netem:
            impairment = f"qdisc add dev {inner} root netem delay {self.delay_ms}ms loss {self.lost_percent}%"
            _run("ip", "netns", "exec", space, "tc", *impairment.split())
        self.clocks[host] = clock
        return self.address(host)

    def _lay_cable(self, outer: str, inner: str) -> None:
        if self.netem:
            _run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner)
            return
        command = [sys.executable, str(CABLE), outer, inner, str(self.delay_ms / 1000), str(self.lost_percent / 100)]
        cable = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.cables.append(cable)
        assert cable.stdout is not None
        if cable.stdout.readline() != "ready\n":
            raise RuntimeError(f"{' '.join(command)} ended")

    def _cable(self, host: str) -> str:
        return f"{self._name}o{self.hosts[host]}"

    def _space(self, host: str) -> str:
        return f"{self._name}-{host}"

    def address(self, host: str) -> str:
        """Return the address of a host."""
        return self._address(self.hosts[host])

    def on(self, host: str, command: list[str]) -> list[str]:
        """Return what to execute so that a command runs on a host, and goes by its clock."""
        clock = self.clocks[host]
        faked = ["env", f"LD_PRELOAD={FAKETIME}", f"FAKETIME={clock:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC=1"]
        return ["ip", "netns", "exec", self._space(host), *(faked if clock else []), *command]

    @contextmanager
    def cut_off(self, host: str) -> Iterator[None]:
        """Have a host reach none and be reached by none while the block runs."""
        cable = ["ip", "-netns", self._space("bridge"), "link", "set", self._cable(host)]
        _run(*cable, "down")
        try:
            yield
        finally:
            _run(*cable, "up")

    def close(self) -> None:
        """Remove everything; processes on the hosts have ended by then."""
        for host in (*self.hosts, "bridge"):
            subprocess.run(["ip", "netns", "delete", self._space(host)], check=False, capture_output=True)
        for cable in self.cables:
            cable.kill()
            cable.communicate()
        subprocess.run(["ip", "link", "delete", self._name], check=False, capture_output=True)


@contextmanager
def network() -> Iterator[Network]:
    """Give a network without hosts, which is removed with the block."""
    made = Network()
    made.open()
    try:
        yield made
    finally:
        made.close()


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": PATH})
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
