"""Write `workers/storage/catalogue.json` from the result of `schema.sql`: `python -m tests.write_catalogue`."""

import json
import signal
import tempfile
from pathlib import Path

import workers.storage
from api.up import servers
from tests import server_process
from workers.storage import schema
from workers.storage.connection import connect

TARGET = Path(workers.storage.__file__).with_name("catalogue.json")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ebb-", dir="/tmp") as folder:
        server = servers.Postgres(data=Path(folder) / "postgres", sockets=Path(folder) / "sockets")
        servers.prepare_postgres(server, report=print)
        url = server.url("postgres")
        log = Path(folder) / "log"
        with (
            server_process.running(server.command(), log, lambda: servers.postgres_fault(url), signal.SIGINT),
            connect(servers.ensure_database(server, "snapshot")) as db,
        ):
            db.execute(schema.snapshot().encode())
            lines = json.dumps(schema.live_catalogue(db), indent=1, sort_keys=True, ensure_ascii=False)
            TARGET.write_text(f"{lines}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
