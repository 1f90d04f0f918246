"""What may come in: every door's facts and arguments are checked here, by the same rules, before anything is done."""

from workers.validation.arguments import fact_id, instant, namespace_name, optional_name
from workers.validation.facts import DERIVED, new_fact

__all__ = ["DERIVED", "fact_id", "instant", "namespace_name", "new_fact", "optional_name"]
