"""PgBouncer in transaction mode in front of the tests' PostgreSQL, if it is installed."""

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import server_process

from api.up import servers
from api.up.processes import grant_access, launched, system_user

PROGRAM = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin:/usr/local/sbin")
CONFIGURATION = """
[databases]
* = host={sockets} user=postgres pool_size=4
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 400
server_idle_timeout = 1
ignore_startup_parameters = extra_float_digits
"""


@contextmanager
def pgbouncer(postgres: servers.Postgres, folder: Path) -> Iterator[int]:
    """Run PgBouncer for the duration of the block; yield its port. Four sessions per database serve all clients."""
    assert PROGRAM is not None
    folder.mkdir()
    port, path = servers.free_port(), folder / "pgbouncer.ini"
    path.write_text(CONFIGURATION.format(sockets=postgres.sockets, port=port))
    user = system_user()
    if user is not None:
        grant_access(user, [folder], Path(PROGRAM).parent, lambda _: None)
        shutil.chown(path, user, user)
    log = folder / "pgbouncer.log"

    def fault() -> str | None:
        return servers.postgres_fault(pooled(postgres.url("postgres"), port))

    with server_process.running(launched("INT", [PROGRAM, str(path)], user), log, fault, signal.SIGTERM):
        yield port


def pooled(url: str, port: int) -> str:
    """Return the URL of the same database through PgBouncer."""
    return f"postgresql://postgres@127.0.0.1:{port}{urlsplit(url).path}"
