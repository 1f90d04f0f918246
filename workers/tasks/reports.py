"""Tasks of reports: facts, statistics, forecasts and contradictions."""

from typing import Any

from celery import Task
from ebb.contract import reports as contract
from ebb.contract.values import Flag

from workers import graph
from workers.admin import stats as counting
from workers.decay import endings
from workers.decay import forecast as forecasting
from workers.memory import curve as curves
from workers.memory import facts as showing
from workers.memory import history, supersede
from workers.tasks import answers
from workers.tasks.operation import task_of, verb_of
from workers.tasks.task import OnceTask, context, write_instant

stats = verb_of(contract.STATS, counting.stats)
time_series = verb_of(contract.TIME_SERIES, counting.counts_over_time)
curve = verb_of(contract.CURVE, curves.curve)
neighbours = verb_of(contract.NEIGHBOURS, graph.neighbours, from_replica=True)
timeline = verb_of(contract.TIMELINE, history.timeline)
contradictions = verb_of(contract.CONTRADICTIONS, supersede.contradicting)


@task_of(contract.NAMESPACES, contract.ListNamespaces, from_replica=True)
def namespaces(_: Task, asked: contract.ListNamespaces) -> dict[str, Any]:
    """Return the names of namespaces that begin with a prefix, in order."""
    return {"namespaces": showing.namespaces(context, asked.prefix, asked.limit)}


class FactPart(contract.ShowFact):
    """A fact, or the `latest` of those that superseded it one after another."""

    latest: Flag = False


@task_of(contract.FACT, FactPart, from_replica=True)
def fact(_: Task, asked: FactPart) -> dict[str, Any]:
    """Return one fact."""
    at = asked.now or context.now()
    return answers.fact(showing.show(context, asked.namespace, asked.id, at, latest=asked.latest))


@task_of(contract.FACTS, contract.ListFacts, from_replica=True)
def facts(_: Task, asked: contract.ListFacts) -> dict[str, Any]:
    """Return the facts of `ids`, or a page of those that match the filters, newest first."""
    at = asked.now or context.now()
    return answers.facts(*showing.page(context, asked, at))


@task_of(contract.FORECAST, contract.ShowForecast)
def forecast(_: Task, asked: contract.ShowForecast) -> contract.Forecast:
    """Return the forecast of the coming days, and on request the facts that end soon."""
    at, namespace, given = asked.now or context.now(), asked.namespace, asked.set or []
    ahead = forecasting.forecast(context, namespace, asked.days, at, asked.shown, given)
    answer = contract.Forecast(days=[day.answer for day in ahead], totals=forecasting.totals(context, namespace, ahead))
    if given:
        unchanged = forecasting.forecast(context, namespace, asked.days, at, 0)
        answer.unchanged = forecasting.totals(context, namespace, unchanged)
    if asked.ending is not None:
        answer.ending = endings.ending(context, namespace, asked.ending, at, by_value=asked.by == "value", given=given)
    return answer


@task_of(contract.RESOLVE, contract.Resolve, base=OnceTask)
def resolve(self: Task, asked: contract.Resolve) -> dict[str, Any]:
    """Resolve a contradiction: one fact supersedes the others, or both are accepted."""
    at = write_instant(self, asked.now)
    if asked.keep is None:
        one, two = asked.others
        supersede.accept(context, asked.namespace, one, two, at)
        return {"accepted": [str(one), str(two)]}
    supersede.keep(context, asked.namespace, asked.keep, asked.others, at)
    return {"kept": str(asked.keep), "superseded": [str(id_) for id_ in asked.others]}
