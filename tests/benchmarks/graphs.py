"""The cost of links and relations in a recall: the same questions with and without the graphs."""

from collections.abc import Sequence
from dataclasses import replace

from tests.benchmarks import data, recalls
from tests.benchmarks.data import Layout
from tests.benchmarks.figures import Answers, quantile, seconds
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.recalls import Asked
from tests.benchmarks.scale import Size
from workers.context import Context
from workers.storage.connection import close_pools

ENTITIES = 200

# Every fifth fact is about one of 200 entities of its namespace, every third is linked with two others, and each entity
# is related to three more.
FILL = """
    update facts set entity = 'Person ' || abs(hashtext(id::text)) % 200
    where abs(hashtext(id::text || 'entity')) % 5 = 0;

    insert into links (namespace, source, target, type, strength, created_at)
    select namespace, id, other, 'RELATED_TO', random(), now()
    from (
        select namespace, id, row_number() over numbered as place,
            array[lead(id, 7) over numbered, lead(id, 1009) over numbered] as others
        from facts
        window numbered as (partition by namespace order by id)
    ) as facts
    cross join lateral unnest(others) as other
    where place % 3 = 0 and other is not null;

    insert into relations (namespace, source, target, type, weight, last_observed, created_at)
    select namespaces.id, 'Person ' || i, 'Person ' || (i * step + 1) % 200, 'knows', 1, now(), now()
    from namespaces, generate_series(0, 199) as i, unnest(array[3, 7, 11]) as step
    where i <> (i * step + 1) % 200
    on conflict do nothing;
"""


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Measure recall with the graphs against recall without, on facts without and with links.

    The latter is also measured on ten times as many facts, with equally large namespaces.
    """
    small, large = (data.even("recalls", size.small, 10), data.even("recalls", size.facts, size.facts // size.each))
    bare = data.prepare(machine, small)
    where = "where there is neither link nor entity"
    _compare(answers, bare, recalls.questions(bare, size.queries), size, where, most=1.05)
    for layout, most in ((small, 1.5), (large, 2.0)):
        _linked(answers, machine, layout, size, most)


def _linked(answers: Answers, machine: Machine, layout: Layout, size: Size, most: float) -> None:
    """Measure a copy of a database in which facts have links and entities."""
    bare = data.prepare(machine, layout)
    asked = recalls.questions(bare, size.queries)
    name = "bench_graphs"
    linked = machine.copy(f"bench_{layout.name}", name)
    with session(linked) as db:
        db.execute(FILL)
        db.execute("vacuum analyze")
    naming = [replace(one, text=f"{one.text} Person {i % ENTITIES}") for i, one in enumerate(asked)]
    where = f"of {layout.facts:,} facts with links, entities and relations"
    _compare(answers, linked, naming, size, where, most=most)
    close_pools()
    machine.drop(name)


def _compare(answers: Answers, context: Context, asked: Sequence[Asked], size: Size, where: str, most: float) -> None:
    """Send each question with and without the graphs, in turn, so that both have the same noise."""
    without = Context(context.settings.model_copy(update={"graph_in_recall": False}))
    ratios, p50 = [], []
    for round_ in range(size.rounds + 1):
        spent: tuple[list[float], list[float]] = ([], [])
        for one in asked:
            for place, own in enumerate((context, without)):
                spent[place].append(seconds(lambda one=one, own=own: recalls.ask(own, one)))  # type: ignore[misc]
        if round_:  # the first one warms up
            p50.append(quantile(spent[0], 0.5) * 1000)
            ratios.append(p50[-1] / (quantile(spent[1], 0.5) * 1000))
    answers.add(f"recall p50 {where}", "ms", p50, note=f"{size.each:,} facts a namespace")
    answers.add(f"recall with graphs ÷ without, {where}", "times", ratios, most=most)
