"""Tasks of the two graphs: links between facts, relations between entities, and the decay of relations."""

import logging
from time import monotonic
from typing import Annotated, Any

from celery import Task
from ebb.contract import graph as contract
from ebb.contract.values import Count, Flag, Name
from pydantic import Field, FiniteFloat

from workers import graph
from workers.storage.relations import START, Place
from workers.tasks.decay import answered, hand_over
from workers.tasks.operation import Facts, going_on, internal, plain, task_of, verb_of, walk
from workers.tasks.task import FOLLOW_UP, WORK_SECONDS, OnceTask, context, instant, uuid_of, write_instant

log = logging.getLogger(__name__)

NamespaceNumber = Annotated[int, Field(strict=True, ge=0, lt=2**31)]
RelationNumber = Annotated[int, Field(strict=True, ge=0, lt=2**63)]

link = verb_of(contract.LINK, graph.link, base=OnceTask)
unlink = verb_of(contract.UNLINK, graph.unlink, base=OnceTask)
relate = verb_of(contract.RELATE, graph.relate, base=OnceTask)
unrelate = verb_of(contract.UNRELATE, graph.unrelate, base=OnceTask)
relations = verb_of(contract.RELATIONS, graph.relations, from_replica=True)


@internal("memory.autolink", Facts, base=OnceTask, ignore_result=True, **FOLLOW_UP)
def autolink(self: Task, asked: Facts) -> dict[str, Any]:
    """Link new facts with similar ones; a successor continues after 30 seconds.

    A late redelivery does not add removed links again.
    """
    at, until, linked = write_instant(self, asked.now, refuse=False), monotonic() + WORK_SECONDS, 0
    for place, fact in enumerate(asked.ids):
        if monotonic() > until:
            left = [str(id_) for id_ in asked.ids[place:]]
            autolink.apply_async(kwargs={"ids": left, "namespace": asked.namespace, "now": at.isoformat()})
            break
        linked += graph.autolink(context, asked.namespace, fact, at)
    return {"linked": linked}


class Decay(contract.DecayRelations):
    """A pass over relations, or the rest of one."""

    after: tuple[NamespaceNumber, RelationNumber] | None = None
    shard: Count = 0
    so_far: contract.RelationsDecayed | None = None
    asked_by: Name | None = None
    scheduled: Flag = False
    spent_ms: FiniteFloat = 0.0


@task_of(contract.DECAY_RELATIONS, Decay, base=OnceTask)
def decay(self: Task, asked: Decay) -> dict[str, Any]:
    """Update the stored weights of relations, of a namespace or with `everywhere` of all.

    The last successor answers and records the run.
    """
    begun = monotonic()
    at = instant(self, asked, writes=not asked.dry_run)
    until = begun + WORK_SECONDS
    done = asked.so_far or graph.NOTHING

    def step(place: Place) -> Place | None:
        nonlocal done
        rest, done = graph.decay(context, asked, at, after=place, so_far=done, until=until)
        return rest

    rest = walk(asked, step, until, everywhere=asked.everywhere, start=START, own=asked.scheduled)
    answer, spent_ms = plain(done), asked.spent_ms + 1000 * (monotonic() - begun)
    if rest is not None:
        going = going_on(rest) | {"so_far": answer, "now": at.isoformat(), "spent_ms": spent_ms}
        hand_over(self, asked, going, f"{done.processed} relations so far")
    run = uuid_of(asked.asked_by or self.request.id or "")
    graph.note(context, asked, done, run, at, spent_ms, scheduled=asked.scheduled)
    if not asked.dry_run:
        log.info(
            "relations: %d/%d decayed, %d below the minimum, %d newly", done.decayed, done.processed,
            done.below_minimum, done.newly_below,
        )  # fmt: skip
    return answered(asked, answer)
