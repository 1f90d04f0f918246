-- outside a transaction
-- A build that was killed leaves an invalid index behind.
drop index concurrently if exists events_pruned;
create index concurrently events_pruned on events (namespace, at)
    where what = 'forgotten' and details ->> 'reason' = 'pruned';
