"""What may come in: every door's facts and arguments are checked here, by the same rules, before anything is done."""

from workers.validation.arguments import (
    choice,
    fact_id,
    fact_ids,
    flag,
    instant,
    names,
    namespace_name,
    optional_name,
    optional_tag,
    query_text,
    required_name,
    run_id,
    share,
    whole,
)
from workers.validation.facts import DERIVED, new_fact

__all__ = [
    "DERIVED",
    "choice",
    "fact_id",
    "fact_ids",
    "flag",
    "instant",
    "names",
    "namespace_name",
    "new_fact",
    "optional_name",
    "optional_tag",
    "query_text",
    "required_name",
    "run_id",
    "share",
    "whole",
]
