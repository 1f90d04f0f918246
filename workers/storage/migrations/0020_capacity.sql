-- outside a transaction
-- What is let go where a namespace has more than its capacity, the least valuable first, and how many of them a pass did.
-- The check is validated by itself, so that storing and recalling do not wait while all facts are read.
alter table decay_parts add column if not exists crowded bigint not null default 0;
alter table facts
    drop constraint if exists facts_forgotten_reason_check,
    add constraint facts_forgotten_reason_check check (
        forgotten_reason in ('expired', 'faded', 'culled', 'aged', 'crowded', 'asked', 'retracted', 'merged', 'pruned')
    ) not valid;
alter table facts validate constraint facts_forgotten_reason_check;
drop index concurrently if exists activity_by_value;
create index concurrently activity_by_value on activity (
    namespace, value_rank(worth, base, coactivations, last_seen_at, pinned_until, recall_count, confirmations)
) where not retired;
