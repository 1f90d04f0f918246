"""A relay in front of PostgreSQL, which counts the trips to it and delays them, as a distant server would."""

import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

NAME = ".s.PGSQL.5432"


@dataclass
class Relay:
    """The server behind it, the number of trips, how many seconds each takes, and whether anything passes at all."""

    server: str
    trips: int = 0
    delay: float = 0.0
    passes: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Let everything pass."""
        self.passes.set()

    def carry(self, client: socket.socket) -> None:
        """Carry what a client and the server send to each other until one of them ends."""
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self.server)
            answered = threading.Event()
            answered.set()
            threading.Thread(target=self._carry_answers, args=(server, client, answered), daemon=True).start()
            with suppress(OSError):
                while said := client.recv(65_536):
                    self.passes.wait()
                    if answered.is_set():
                        answered.clear()
                        self.trips += 1
                        time.sleep(self.delay)
                    server.sendall(said)

    @staticmethod
    def _carry_answers(server: socket.socket, client: socket.socket, answered: threading.Event) -> None:
        with suppress(OSError):
            while said := server.recv(65_536):
                answered.set()
                client.sendall(said)


@contextmanager
def relayed(url: str) -> Iterator[tuple[str, Relay]]:
    """Yield the URL of a database on the embedded server by way of a relay, and the relay."""
    relay = Relay(str(Path(str(conninfo_to_dict(url)["host"])) / NAME))
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(Path(folder) / NAME))
        listening.listen()

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=relay.carry, args=(listening.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield make_conninfo(url, host=folder), relay
        finally:
            relay.passes.set()
            listening.shutdown(socket.SHUT_RDWR)
