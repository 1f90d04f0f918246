"""The shard of a new namespace follows from its name alone, and shards get about equally many."""

from collections import Counter

from workers.storage import routing


def test_the_shard_of_a_name_never_changes() -> None:
    with routing.at(0, 3):
        assert [routing.shard_of_new(name) for name in ("ann", "kim", "zoe", "default")] == [2, 1, 0, 1]


def test_names_are_spread_evenly() -> None:
    with routing.at(0, 4):
        counts = Counter(routing.shard_of_new(f"tenant-{number}") for number in range(4_000))
    assert sorted(counts) == [0, 1, 2, 3]
    assert max(counts.values()) < 1.1 * min(counts.values())


def test_a_system_with_one_shard_routes_nothing() -> None:
    with routing.at("ann", 1):
        assert routing.current() is None
        assert routing.headers() == {}
        assert routing.shard_of_new("ann") == 0


def test_places_of_inner_blocks_end_with_them() -> None:
    with routing.at("ann", 2):
        with routing.at(1, 2):
            assert routing.headers() == {routing.HEADER: 1}
        assert routing.current() == "ann"
    assert routing.current() is None
