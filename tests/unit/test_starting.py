"""What `ebb up` asks while its processes start."""

from api.up import servers, starting


def test_no_worker_answers_while_redis_is_away() -> None:
    assert not starting.workers_answer(f"redis://:password@127.0.0.1:{servers.free_port()}/0")
