-- `remembered` also says who chose the decay class, and which tags a fact has.
create or replace view remembered as
select facts.namespace, id, kind, text, category, entity, key, value, importance, created_at, decay_class,
    case when held then 'infinity' else ends_at end as ends_at, pinned_until, decay_class_source, tags
from facts
join activity on activity.namespace = facts.namespace and activity.fact = facts.id
where coalesce(forgotten_at, superseded_at) is null;
