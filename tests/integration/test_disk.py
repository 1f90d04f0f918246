"""A disk without room: the start is refused, or its failure explained, with the disk by name."""

import os
import shutil
from pathlib import Path

import pytest

from api.up import disk
from workers.errors import SystemStateError

PANIC = 'PANIC:  could not write to file "pg_wal/xlogtemp.4711": No space left on device\nchild process was terminated'


def test_a_start_on_a_disk_without_room_names_the_disk_what_is_free_and_what_is_needed(tmp_path: Path) -> None:
    needed = shutil.disk_usage(tmp_path).total // disk.MIB + 1
    with pytest.raises(SystemStateError, match=rf"holds {tmp_path}, has \d+ of \d+ MiB free; Ebb needs {needed} MiB"):
        disk.refuse_full(tmp_path, needed)
    disk.refuse_full(tmp_path, 0)


def test_a_server_that_ended_for_want_of_room_is_explained_and_any_other_is_not(tmp_path: Path) -> None:
    said = disk.explain(PANIC, tmp_path)
    assert said is not None
    named = Path(said.split("The disk at ")[1].split(",")[0])
    assert os.path.ismount(named)
    assert tmp_path.is_relative_to(named)
    assert "--home" in said
    assert disk.explain("FATAL: lock file exists", tmp_path) is None
