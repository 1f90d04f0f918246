"""What may come in: every door's facts and arguments are checked here, by the same rules, before anything is done."""

from workers.validation.arguments import (
    MOST_DAYS,
    choice,
    days,
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
from workers.validation.hygiene import changed_settings

__all__ = [
    "DERIVED",
    "MOST_DAYS",
    "changed_settings",
    "choice",
    "days",
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
