"""Erasure: purged facts are in no row, index, statistic, queue, result, log or file, even when they are sent again."""

import base64
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import numpy as np
import psycopg
import pytest
import redis
from live_api import serving
from live_system import LiveSystem, eventually

from workers.core.text import digest

# whose files are read, even where a cluster is given
pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("postgres")]

NAME = "erasure"
SECRET = "Zebulon pays 47110815 for the quokka at Brzeszczot."
LONG = "Zebulon remembers " + " ".join(f"brzeszczot{n} weighs {n * 7919}" for n in range(200))
NEARLY = f"{LONG} also"
AGAIN = (SECRET, LONG, NEARLY)
QUOTE = "brzeszczot1 weighs 7919"
UNFETCHED = "Ottokar hides the amphora below the mill."
WORDS = ("zebulon", "Zebulon", "47110815", "quokka", "brzeszczot", "Brzeszczot")
INNOCENT = "The lighthouse keeper counts ships at dawn."
DATABASES = range(4)
BACKGROUND: tuple[tuple[str, dict[str, Any]], ...] = (
    ("memory.consolidate", {"namespace": NAME, "apply": True}),
    ("memory.doctor", {"namespace": NAME, "mend": True}),
    ("decay.backfill", {"namespace": NAME}),
    ("decay.plan", {"now": "2027-01-01T00:00:00Z", "force": True, "everywhere": True}),
    ("decay.prune", {"everywhere": True}),
    ("memory.janitor", {"namespace": NAME}),
    ("relations.decay", {"everywhere": True}),
    ("memory.purge", {"everywhere": True}),
    ("memory.sweep_outbox", {}),
    ("memory.embed_pending", {}),
    ("memory.settle_tallies", {}),
    ("memory.ann", {}),
    ("memory.publish_keys", {}),
    ("memory.thin_course", {}),
    ("memory.rebuild_indexes", {}),
    ("memory.consolidate_all", {}),
    ("memory.prune_by_llm", {"namespace": NAME}),
    ("memory.measure", {}),
    ("memory.lexemes", {}),
    ("memory.analyze", {"namespace": NAME}),
    ("memory.notify_endings", {}),
)
BEAT = "import json; from workers.celery import app; print(json.dumps(sorted(app.conf.beat_schedule)))"
SILENT = (
    "memory.sweep_outbox", "memory.embed_pending", "memory.settle_tallies", "memory.ann", "memory.clean",
    "memory.lexemes", "memory.notify_endings", "memory.regenerate", "memory.consolidate_all",
    "memory.analyze",
)  # fmt: skip


@dataclass(frozen=True)
class Purged:
    """A system in which facts were purged, stored again through every interface, and all jobs were run."""

    system: LiveSystem
    ids: list[str]
    traces: dict[str, bytes]
    before: dict[str, set[str]]
    kept: set[str]
    stored_again: list[str]
    archive: Path


def found_in(folders: list[Path], traces: dict[str, bytes]) -> dict[str, set[str]]:
    """Return which traces occur in which kind of file, by the name of its folder."""
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
KEYED = {"X-Ebb-Namespace": NAME, "Idempotency-Key": "what is alike"}


def traces_of(system: LiveSystem, id_: str, text: str) -> dict[str, bytes]:
    """Return the traces of a fact: hash, vector and signature."""
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


def in_messages(text: str) -> dict[str, bytes]:
    """Return a text's three possible forms in the base64 body of a message."""
    whole = ((place, text[(3 - place) % 3 :].encode()) for place in range(3))
    return {f"message {place}": base64.b64encode(rest[: len(rest) // 3 * 3]) for place, rest in whole}


def values(keys: redis.Redis, key: bytes) -> bytes:
    """Return all values of a key, which a dump may hold compressed."""
    match keys.type(key):
        case b"string":
            return keys.get(key) or b""
        case b"hash":
            return b" ".join(part for pair in keys.hgetall(key).items() for part in pair)
        case b"list":
            return b" ".join(keys.lrange(key, 0, -1))
        case b"set":
            return b" ".join(keys.smembers(key))
        case b"zset":
            return b" ".join(keys.zrange(key, 0, -1))
        case b"none":  # it expired, as locks do
            return b""
    raise AssertionError(f"{key!r} is of a type that is not looked into")


def held_by_redis(system: LiveSystem, traces: Iterable[bytes]) -> set[str]:
    """Return the keys in Redis that contain one of these traces."""
    found = set()
    assert system.redis_url.endswith("/0")
    for database in DATABASES:
        # The number in the URL takes precedence over `db`.
        with redis.Redis.from_url(f"{system.redis_url.removesuffix('/0')}/{database}") as keys:
            for key in keys.scan_iter():
                held = key + values(keys, key)
                if any(trace in held or trace in held.lower() for trace in traces):
                    found.add(key.decode())
    return found


def kind_of(key: str) -> str:
    """Return the kind of a key, without the task's id at its end."""
    return key[:-37]


def checkpoint(system: LiveSystem) -> None:
    with psycopg.connect(system.database_url, autocommit=True) as db:
        db.execute("vacuum analyze facts")
        db.execute("checkpoint")


def run(system: LiveSystem, task: str, arguments: dict[str, Any]) -> None:
    result = system.send(task, arguments)
    if task not in SILENT:
        result.get()
    result.forget()


def tell(system: LiveSystem, api: httpx2.Client) -> list[str]:
    """Store the secrets through different interfaces, and ask for answers that quote them; return the facts' ids."""
    about = {"entity": "Zebulon", "key": "quokka", "value": "47110815", "tags": ["brzeszczot"], "summary": SECRET}
    with system.client(NAME) as memory:
        memory.store(INNOCENT)
        one = memory.store(SECRET, metadata={"said": SECRET}, source="Brzeszczot", **about)["id"]
        two, three = (memory.store(text, wait=False)["id"] for text in (LONG, NEARLY))
        system.settle()
        memory.recall("Who is Zebulon?", explain=True)
        memory.pin(one)
        memory.link(one, two, "RELATED_TO")
        four = memory.store(UNFETCHED)["id"]
        memory.send("memory.recall", {"query": "Where is the amphora?", "limit": 1, "namespace": NAME})
    answer = api.post("/memory/consolidate", headers=KEYED)
    assert [QUOTE in group["keep"]["text"] for group in answer.json()["groups"]] == [True], answer.text
    return [one, two, three, four]


def store_again(system: LiveSystem, api: httpx2.Client, archive: Path, folder: Path) -> list[str]:
    """Store a secret again through every interface; return their answers."""
    (folder / "new.jsonl").write_text(json.dumps({"text": SECRET, "namespace": NAME}) + "\n")
    with system.client(NAME) as memory:
        answers = [memory.store(text)["action"] for text in AGAIN]
        answers += [one["action"] for one in memory.store_many([{"text": text} for text in AGAIN])["results"]]
        task = memory.store(SECRET, wait=False)["task"]
        system.settle()
        answers.append(memory.state(task)["result"]["action"])  # type: ignore[index]
        posted = api.post("/memory/facts", json={"text": SECRET}, headers={"X-Ebb-Namespace": NAME})
        answers.append(posted.json()["action"])
    for file in (archive, folder / "new.jsonl"):
        done = system.ebb("import", str(file), "--namespace", NAME, "--json")
        counts = json.loads(done.stdout)
        answers += ["forgotten"] * counts["forgotten"] + ["added"] * counts["added"]
    return answers


@pytest.fixture(scope="module")
def purged(alone: LiveSystem, server_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Purged]:
    outside = tmp_path_factory.mktemp("outside")
    archive = outside / "archive.jsonl"
    with serving(alone) as api:
        ids = tell(alone, api)
        traces = {word: word.encode() for word in WORDS} | traces_of(alone, ids[0], SECRET) | in_messages(SECRET)
        assert alone.ebb("export", str(archive), "--namespace", NAME).returncode == 0
        run(alone, "memory.lexemes", {})
        alone.settle()
        logged = found_in([server_folder], traces)  # a checkpoint may remove the log
        checkpoint(alone)
        before = found_in([server_folder, alone.folder], traces)
        for name, places in logged.items():
            before.setdefault(name, set()).update(places)
        kept = held_by_redis(alone, [QUOTE.encode(), UNFETCHED.encode()])
        with alone.client(NAME) as memory:
            assert [one["action"] for one in memory.forget(ids, purge=True)["results"]] == ["purged"] * len(ids)
        stored_again = store_again(alone, api, archive, outside)
        for task, arguments in (*BACKGROUND, ("memory.regenerate", {"ids": ids, "namespace": NAME})):
            run(alone, task, arguments)
        alone.settle()
        yield Purged(alone, ids, traces, before, kept, stored_again, archive)


@pytest.mark.slow
def test_before_the_purge_the_secrets_are_in_many_files(purged: Purged) -> None:
    messages = set(in_messages(SECRET))
    assert set(purged.traces) - set(purged.before) <= {"plain hash", "hash as text"} | messages
    assert any("redis" in purged.before.get(message, ()) for message in messages)
    assert {"pg_wal", "base", "redis"} <= purged.before["47110815"]
    derived = [purged.before[name] for name in ("vector", "signature", "hash")]
    assert all("base" in places for places in derived)
    # A page header of the log may split one of them.
    assert any("pg_wal" in places for places in derived)


def test_storing_a_purged_fact_again_is_answered_with_forgotten(purged: Purged) -> None:
    assert set(purged.stored_again) == {"forgotten"}
    assert len(purged.stored_again) >= 9


def test_after_every_job_only_the_deletion_requests_are_left(purged: Purged) -> None:
    rows = {table: " ".join(found).lower() for table, found in purged.system.state().items()}
    traces = [word.lower() for word in WORDS] + [purged.traces["hash"].hex()]
    assert not [(table, trace) for table, found in rows.items() for trace in traces if trace in found]
    assert {table for table, found in rows.items() if purged.ids[0] in found} == {"forgotten_hashes"}


def test_before_the_purge_redis_keeps_answers_that_quote_the_secrets(purged: Purged) -> None:
    assert sorted(kind_of(key) for key in purged.kept) == ["celery-task-meta"] * 2 + ["ebb:answer", "ebb:done"]


def test_every_job_that_beat_sends_was_run(purged: Purged) -> None:
    environment = os.environ | purged.system.environment()
    sent = subprocess.run([sys.executable, "-c", BEAT], env=environment, capture_output=True, text=True, check=True)
    assert set(json.loads(sent.stdout)) - {"memory.clean"} <= {task for task, _ in BACKGROUND}


def test_no_log_of_workers_and_no_later_export_quotes_the_secrets(purged: Purged, tmp_path: Path) -> None:
    later = tmp_path / "later.jsonl"
    assert purged.system.ebb("export", str(later), "--all").returncode == 0
    logs = [*purged.system.folder.glob("*.log"), later]
    assert not [(log.name, word) for log in logs for word in WORDS if word in log.read_text(errors="replace")]
    assert INNOCENT in later.read_text()


def test_cleaning_removes_the_secrets_from_redis_file_statistics_and_pages(purged: Purged, server_folder: Path) -> None:
    def cleaned() -> bool:
        """Clean; return whether all erased rows were vacuumed."""
        run(purged.system, "memory.clean", {})
        return purged.system.rows("select id from erasures") == []

    ((began,),) = purged.system.rows("select clock_timestamp()")
    eventually(cleaned, "what was erased is cleaned")
    vacuumed = purged.system.rows("select last_vacuum from pg_stat_user_tables where relname in ('facts', 'vectors')")
    assert [at is not None and at > began for (at,) in vacuumed] == [True, True]
    purged.system.settle()
    assert held_by_redis(purged.system, purged.traces.values()) == set()
    assert {kind_of(key) for key in held_by_redis(purged.system, [UNFETCHED.encode()])} == {"celery-task-meta"}
    eventually(lambda: not found_in([server_folder / "redis"], purged.traces), "Redis' file is rewritten")
    ((statistics,),) = purged.system.rows("select coalesce(string_agg(one::text, ' '), '') from pg_stats as one")
    assert not [word for word in WORDS if word in statistics]


@pytest.mark.slow
def test_after_scrubbing_no_file_of_the_servers_contains_the_secrets(purged: Purged, server_folder: Path) -> None:
    done = purged.system.ebb_json("purge", "--scrub")
    assert done["scrubbed"]
    assert len(done["out_of_reach"]) == 1
    assert held_by_redis(purged.system, [UNFETCHED.encode()]) == set()
    assert found_in([server_folder, purged.system.folder], purged.traces | {"unfetched": UNFETCHED.encode()}) == {}
    with purged.system.client(NAME) as memory:
        assert memory.recall("Who counts ships?")["results"][0]["text"] == INNOCENT
        assert memory.store(SECRET)["action"] == "forgotten"
