"""The cost of a pass that forgets facts over a namespace's capacity, by the size of the namespace."""

from tests.benchmarks import data
from tests.benchmarks.figures import Answers, seconds
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.passes import WAL_STATES, whole_pass
from tests.benchmarks.scale import Size
from workers.context import Context
from workers.storage.connection import close_pools

UNUSED_FOR_LONG = 1e9

SET_CAPACITY = """
    update namespaces set settings = jsonb_build_object('capacity', jsonb_build_object('facts', %s::bigint))
    where name = %s
"""


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Forget equally many facts in a small and a large namespace, in turn."""
    over = size.small // 10
    contexts = [_copied(machine, facts) for facts in (size.small, size.facts)]
    for state, checkpoint in WAL_STATES.items():
        rounds = [[_crowded_out(context, over, checkpoint) for context in contexts] for _ in range(size.rounds)]
        small, large = zip(*rounds, strict=True)
        for facts, took in ((size.small, small), (size.facts, large)):
            answers.add(f"pass with {over:,} facts over a capacity, {facts:,} facts, {state}", "s", took)
        ratios = [after / before for before, after in rounds]
        what = f"pass at {size.times} times the facts, as many over the capacity, {state}"
        answers.add(what, "times", ratios, most=1.3)
    close_pools()


def _copied(machine: Machine, facts: int) -> Context:
    """Return a copy of a database with one namespace in which nothing is due."""
    layout = data.Layout(f"capacity_{facts}", (facts,), mean_idle_days=UNUSED_FOR_LONG)
    data.prepare(machine, layout)
    changed = f"bench_{layout.name}_changed"
    machine.copy(f"bench_{layout.name}", changed)
    context = machine.context(changed, forget_limit="1", forget_limit_week="1")
    _pass(context)
    return context


def _crowded_out(context: Context, over: int, checkpoint: bool) -> float:
    """Set a capacity `over` facts below the size; return the seconds of the next pass."""
    with session(context) as db:
        (left,) = db.execute("select count(*) from facts where forgotten_at is null").fetchone() or (0,)
        db.execute(SET_CAPACITY, [left - over, data.namespace(0)])
        db.execute("vacuum (analyze)")
        if checkpoint:
            db.execute("checkpoint")
    gone: list[int] = []
    took = seconds(lambda: gone.append(_pass(context)))
    if gone != [over]:
        raise AssertionError(f"The pass let {gone[0]} facts go where {over} were over the capacity.")
    return took


def _pass(context: Context) -> int:
    return whole_pass(context, data.AT, force=True).crowded
