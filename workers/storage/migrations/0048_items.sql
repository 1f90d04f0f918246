-- Items with a lifetime of their own expire by it, no longer by their decay class; the next pass computes when each ends.
update activity
set decay_class = case decay_class when 'permanent' then 'durable' else decay_class end,
    last_confirmed_at = greatest(last_confirmed_at, last_seen_at),
    expires_at = case
        when pinned_until = 'infinity' then 'infinity'
        else to_timestamp(
            date_part('epoch', greatest(last_confirmed_at, last_seen_at, pinned_until) - timestamptz 'epoch')
            + 60 * (metadata ->> 'minutes')::float8
        )
    end,
    kept_lifetime = case when pinned_until = 'infinity' then 60 * (metadata ->> 'minutes')::float8 end,
    due_at = case when retired or held then due_at else least(due_at, last_seen_at) end
from facts
where facts.namespace = activity.namespace and facts.id = fact and kind = 'item' and entity like '"%"/'
    and metadata -> 'document' is not null and metadata ->> 'minutes' is not null;
