"""Erasure: what was purged is in no row, index, statistic, queue, result, log or file, whoever tells it again."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pytest
import redis
from live_api import serving
from live_system import LiveSystem, eventually

from workers.core.text import digest

pytestmark = pytest.mark.acceptance

NAME = "erasure"
SECRET = "Zebulon pays 47110815 for the quokka at Brzeszczot."
LONG = "Zebulon remembers " + " ".join(f"brzeszczot{n} weighs {n * 7919}" for n in range(200))
WORDS = ("zebulon", "Zebulon", "47110815", "quokka", "brzeszczot", "Brzeszczot")
INNOCENT = "The lighthouse keeper counts ships at dawn."
DATABASES = range(4)
BACKGROUND: tuple[tuple[str, dict[str, Any]], ...] = (
    ("memory.consolidate", {"namespace": NAME, "apply": True}),
    ("memory.doctor", {"namespace": NAME, "mend": True}),
    ("decay.backfill", {"namespace": NAME}),
    ("decay.plan", {"now": "2027-01-01T00:00:00Z", "force": True}),
    ("decay.prune", {}),
    ("memory.janitor", {"namespace": NAME}),
    ("relations.decay", {}),
    ("memory.purge", {}),
    ("memory.sweep_outbox", {}),
    ("memory.embed_pending", {}),
    ("memory.settle_tallies", {}),
    ("memory.ann", {}),
)
SILENT = (
    "memory.sweep_outbox", "memory.embed_pending", "memory.settle_tallies", "memory.ann", "memory.clean",
    "memory.lexemes", "memory.regenerate",
)  # fmt: skip


@dataclass(frozen=True)
class Purged:
    """A system in which two facts were purged, told again in every way, and all jobs were run."""

    system: LiveSystem
    ids: list[str]
    traces: dict[str, bytes]
    before: dict[str, set[str]]
    told_again: list[str]
    archive: Path


def found_in(folders: list[Path], traces: dict[str, bytes]) -> dict[str, set[str]]:
    """Return which traces stand in which kind of file, by the name of the folder that it is in."""
    found: dict[str, set[str]] = {}
    for file in (file for folder in folders for file in folder.rglob("*") if file.is_file()):
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            continue
        for name in [name for name, trace in traces.items() if trace in content]:
            found.setdefault(name, set()).add(next((part for part in file.parts if part in KINDS), file.name))
    return found


KINDS = ("pg_wal", "base", "redis")


def traces_of(system: LiveSystem, id_: str, text: str) -> dict[str, bytes]:
    """Return what a file that knows a fact has in it: hash and vector, and the vector's signature."""
    ((vector, signature),) = system.rows(
        "select embedding::text, signature::text from vectors join signatures using (namespace, fact) where fact = %s",
        [UUID(id_)],
    )
    bits = np.packbits([bit == "1" for bit in signature])
    return {
        "hash": digest(text),
        "hash as text": digest(text).hex().encode(),
        "plain hash": hashlib.sha256(text.encode()).digest(),
        "vector": np.array(json.loads(vector), dtype="<f2").tobytes(),
        "signature": bits.tobytes(),
    }


def checkpoint(system: LiveSystem) -> None:
    with psycopg.connect(system.database_url, autocommit=True) as db:
        db.execute("vacuum analyze facts")
        db.execute("checkpoint")


def run(system: LiveSystem, task: str, arguments: dict[str, Any]) -> None:
    result = system.send(task, arguments)
    if task not in SILENT:
        result.get(timeout=60)
    result.forget()


def tell(system: LiveSystem) -> list[str]:
    """Tell both secrets, by different doors; return the facts' ids."""
    about = {"entity": "Zebulon", "key": "quokka", "value": "47110815", "tags": ["brzeszczot"], "summary": SECRET}
    with system.client(NAME) as memory:
        memory.store(INNOCENT)
        one = memory.store(SECRET, metadata={"said": SECRET}, source="Brzeszczot", **about)["id"]
        two = memory.store(LONG, wait=False)["id"]
        system.settle()
        memory.recall("Who is Zebulon?", explain=True)
        memory.pin(one)
        memory.link(one, two, "RELATED_TO")
    return [one, two]


def tell_again(system: LiveSystem, archive: Path, folder: Path) -> list[str]:
    """Tell a secret again by every door; return what each of them answered."""
    (folder / "new.jsonl").write_text(json.dumps({"text": SECRET, "namespace": NAME}) + "\n")
    with system.client(NAME) as memory, serving(system) as api:
        answers = [memory.store(SECRET)["action"], memory.store(LONG)["action"]]
        answers += [one["action"] for one in memory.store_many([{"text": SECRET}, {"text": LONG}])["results"]]
        task = memory.store(SECRET, wait=False)["task"]
        system.settle()
        answers.append(memory.state(task)["result"]["action"])  # type: ignore[index]
        posted = api.post("/memory/facts", json={"text": SECRET}, headers={"X-Ebb-Namespace": NAME})
        answers.append(posted.json()["action"])
    for file in (archive, folder / "new.jsonl"):
        told = system.ebb("import", str(file), "--namespace", NAME, "--json")
        counts = json.loads(told.stdout)
        answers += ["forgotten"] * counts["forgotten"] + ["added"] * counts["added"]
    return answers


@pytest.fixture(scope="module")
def purged(live: LiveSystem, server_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Purged:
    outside = tmp_path_factory.mktemp("outside")
    archive = outside / "archive.jsonl"
    ids = tell(live)
    traces = {word: word.encode() for word in WORDS} | traces_of(live, ids[0], SECRET)
    assert live.ebb("export", str(archive), "--namespace", NAME).returncode == 0
    run(live, "memory.lexemes", {})
    live.settle()
    checkpoint(live)
    before = found_in([server_folder, live.folder], traces)
    with live.client(NAME) as memory:
        assert [one["action"] for one in memory.forget(ids, purge=True)["results"]] == ["purged", "purged"]
    told_again = tell_again(live, archive, outside)
    for task, arguments in (
        *BACKGROUND,
        ("memory.regenerate", {"ids": ids, "namespace": NAME}),
        ("memory.lexemes", {}),
    ):
        run(live, task, arguments)
    live.settle()
    return Purged(live, ids, traces, before, told_again, archive)


def test_before_the_purge_all_of_it_stands_in_many_files(purged: Purged) -> None:
    assert set(purged.traces) - set(purged.before) <= {"plain hash", "hash as text"}
    assert {"pg_wal", "base", "redis"} <= purged.before["47110815"]
    assert {"pg_wal", "base"} <= purged.before["vector"] & purged.before["signature"] & purged.before["hash"]


def test_whoever_tells_it_again_is_answered_that_it_was_forgotten(purged: Purged) -> None:
    assert set(purged.told_again) == {"forgotten"}
    assert len(purged.told_again) >= 9


def test_after_every_job_no_row_of_it_is_left_but_that_it_was_wished_forgotten(purged: Purged) -> None:
    rows = {table: " ".join(found).lower() for table, found in purged.system.state().items()}
    traces = [word.lower() for word in WORDS] + [purged.traces["hash"].hex()]
    assert not [(table, trace) for table, found in rows.items() for trace in traces if trace in found]
    assert {table for table, found in rows.items() if purged.ids[0] in found} == {"forgotten_hashes"}


def test_no_queue_result_outbox_or_signal_in_redis_has_a_word_of_it(purged: Purged) -> None:
    words = [word.encode().lower() for word in WORDS]
    for database in DATABASES:
        with redis.Redis.from_url(purged.system.redis_url, db=database) as keys:
            for key in keys.scan_iter():
                assert not [word for word in words if word in (keys.dump(key) or b"").lower()], key


def test_no_log_of_workers_and_no_later_export_has_a_word_of_it(purged: Purged, tmp_path: Path) -> None:
    later = tmp_path / "later.jsonl"
    assert purged.system.ebb("export", str(later), "--all").returncode == 0
    logs = [*purged.system.folder.glob("*.log"), later]
    assert not [(log.name, word) for log in logs for word in WORDS if word in log.read_text(errors="replace")]
    assert INNOCENT in later.read_text()


def test_cleaning_takes_it_out_of_redis_file_of_the_statistics_and_of_pages(
    purged: Purged, server_folder: Path
) -> None:
    run(purged.system, "memory.clean", {})
    purged.system.settle()
    eventually(lambda: not found_in([server_folder / "redis"], purged.traces), "Redis' file is written anew")
    ((statistics,),) = purged.system.rows("select coalesce(string_agg(one::text, ' '), '') from pg_stats as one")
    assert not [word for word in WORDS if word in statistics]
    dead = purged.system.rows(
        "select relname, n_dead_tup from pg_stat_user_tables where relname in ('facts', 'vectors')"
    )
    assert {count for _, count in dead} == {0}


def test_after_scrubbing_no_file_of_the_servers_has_a_byte_of_it(purged: Purged, server_folder: Path) -> None:
    done = purged.system.ebb_json("purge", "--scrub")
    assert done["scrubbed"]
    assert len(done["out_of_reach"]) == 1
    assert found_in([server_folder, purged.system.folder], purged.traces) == {}
    with purged.system.client(NAME) as memory:
        assert memory.recall("Who counts ships?")["results"][0]["text"] == INNOCENT
        assert memory.store(SECRET)["action"] == "forgotten"
