-- outside a transaction
-- What was superseded long ago may be purged, oldest first.
drop index concurrently if exists facts_superseded;
create index concurrently facts_superseded on facts (superseded_at)
    where superseded_at is not null and forgotten_at is null;
