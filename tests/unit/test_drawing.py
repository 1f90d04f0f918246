"""The drawing of a graph: deterministic, within the picture, and without overlapping names."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from made_up import examples

from api.http.dashboard.drawing import (
    FEW,
    HEIGHT,
    LETTER,
    LINE,
    MARGIN,
    SMALL_HEIGHT,
    SMALL_WIDTH,
    WIDTH,
    Point,
    arranged,
)

names = st.lists(st.text("abcdefgh ", min_size=1, max_size=20), min_size=1, max_size=60)
calm = examples(12)


def ring(count: int) -> list[tuple[int, int]]:
    return [(one, (one + 1) % count) for one in range(count)]


@calm
@given(names, st.data())
def test_every_node_is_within_the_picture_and_always_at_the_same_place(names: list[str], data: st.DataObject) -> None:
    number = st.integers(0, len(names) - 1)
    edges = data.draw(st.lists(st.tuples(number, number), max_size=30))
    weights = data.draw(st.lists(st.floats(0, 1), min_size=len(edges), max_size=len(edges)))
    places = arranged(names, edges, weights)
    assert places == arranged(names, edges, weights)
    assert len(places) == len(names)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in places)


@calm
@given(st.integers(1, 24), st.integers(1, 14))
def test_names_of_a_small_graph_do_not_overlap(count: int, length: int) -> None:
    places = arranged(["x" * length] * count, ring(count) if count > 1 else [], [0.5] * count if count > 1 else [])
    wide = max(length, 3) * LETTER
    for one, two in combinations(places, 2):
        assert abs(one.x - two.x) >= wide - 2 or abs(one.y - two.y) >= LINE - 2


def test_the_picture_of_few_nodes_fits_a_telephone() -> None:
    few = arranged(["x" * 20] * FEW, ring(FEW), [0.5] * FEW)
    assert all(0 <= x <= SMALL_WIDTH and 0 <= y <= SMALL_HEIGHT for x, y in few)


def test_a_name_of_wide_letters_is_within_the_picture() -> None:
    for name in ("W" * 19 + "…", "上" * 20):
        for place in arranged(["Mira", name, "Atlas"], ring(3), [0.5] * 3)[1:2]:
            half = 20 * 1.4 * LETTER / 2
            assert half + MARGIN / 2 <= place.x <= SMALL_WIDTH - half - MARGIN / 2, name


def test_a_single_node_is_in_the_middle_and_related_nodes_are_near() -> None:
    assert arranged(["Mira"], [], [])[0].x == SMALL_WIDTH / 2
    places = arranged(["a", "b", "c", "d"], [(0, 1), (2, 3)], [1.0, 1.0])

    def apart(one: Point, two: Point) -> float:
        return float(((one.x - two.x) ** 2 + (one.y - two.y) ** 2) ** 0.5)

    assert apart(places[0], places[1]) < apart(places[0], places[2])
    assert apart(places[2], places[3]) < apart(places[1], places[3])
