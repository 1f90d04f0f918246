"""The tasks by which owners decide what stays: reinforce, forget, pin, edit and history."""

from typing import Any

from celery import Task
from ebb.contract import facts
from ebb.contract import retention as contract

from workers.coordination import signals
from workers.errors import InvalidInputError, NotFoundError
from workers.memory import edit as editing
from workers.memory import forget as forgetting
from workers.memory import history as past
from workers.memory import pin as pinning
from workers.memory import touch as touching
from workers.tasks import answers
from workers.tasks.once import OnceTask
from workers.tasks.operation import task_of
from workers.tasks.recall import regenerate_soon, regenerate_used
from workers.tasks.task import context, use_of, write_instant


@task_of(contract.REINFORCE, contract.Reinforce)
def reinforce(self: Task, asked: contract.Reinforce) -> dict[str, Any]:
    """Strengthen one fact and confirm it, once for each task id; return its salience."""
    at = write_instant(self, asked.now)
    done = touching.reinforce(context, asked.namespace, asked.id, asked.boost, at, use_of(self))
    if done is None:
        raise NotFoundError(
            f"id: no live fact {asked.id} is in namespace {asked.namespace!r}; look for it with `recall`."
        )
    regenerate_used(asked.namespace, [asked.id] if done.faded else [])
    return {"id": str(asked.id), "salience": round(done.salience, 6)}


@task_of(contract.USED, contract.Use, base=OnceTask)
def used(self: Task, asked: contract.Use) -> contract.Used:
    """Count that an agent used facts, once for each task id; return which are there and which are not."""
    answer, faded = touching.used(context, asked, write_instant(self, asked.now), use_of(self))
    regenerate_used(asked.namespace, faded)
    return answer


@task_of(contract.FORGET, contract.Forget, base=OnceTask)
def forget(self: Task, asked: contract.Forget) -> dict[str, Any]:
    """Forget facts, or erase them at once; return what became of each, in order."""
    at = write_instant(self, asked.now)
    outcomes = forgetting.forget(context, asked.namespace, asked.ids, at, purge=asked.purge)
    signals.mark_grown(context.redis, asked.namespace)
    return answers.outcomes(asked.ids, outcomes)


@task_of(contract.PIN, contract.Pin, base=OnceTask)
def pin(self: Task, asked: contract.Pin) -> contract.Pinned:
    """Pin a fact for good or until an instant, and have its full vector restored; or end its pin."""
    at = write_instant(self, asked.now)
    if asked.off and asked.until is not None:
        raise InvalidInputError("until: cannot be given together with `off`, which ends the pin now.")
    if asked.off:
        return pinning.unpin(context, asked.namespace, asked.id, at)
    done, faded = pinning.pin(context, asked.namespace, asked.id, asked.until, at)
    regenerate_soon(asked.namespace, [asked.id] if faded else [])
    return done


@task_of(facts.EDIT, facts.Edit, base=OnceTask)
def edit(self: Task, asked: facts.Edit) -> facts.Edited:
    """Change what a fact says beside its text; return which fields changed, and how long it lives since."""
    done = editing.edit(context, asked, write_instant(self, asked.now))
    signals.mark_grown(context.redis, asked.namespace)
    return done


@task_of(contract.HISTORY, contract.ShowHistory)
def history(_: Task, asked: contract.ShowHistory) -> contract.History:
    """Return a fact and everything that happened to it, oldest first."""
    return past.history(context, asked, asked.now or context.now())
