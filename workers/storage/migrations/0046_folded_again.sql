-- outside a transaction
-- Forms of the same Greek, Hebrew or Arabic name are equal. Each index is there until the new one is built, which may wait for
-- long: without it, some reads take longer than their time limit.
drop index concurrently if exists facts_topics_again;
create index concurrently facts_topics_again on facts (namespace, left(folded(entity), 200), left(folded(key), 200), created_at)
    where entity is not null and forgotten_at is null and superseded_at is null;
drop index concurrently if exists facts_topics;
alter index facts_topics_again rename to facts_topics;
drop index concurrently if exists facts_entities_again;
create index concurrently facts_entities_again on facts (namespace, left(folded(entity), 200), created_at)
    where entity is not null and forgotten_at is null and superseded_at is null;
drop index concurrently if exists facts_entities;
alter index facts_entities_again rename to facts_entities;
drop index concurrently if exists relations_source_again;
create index concurrently relations_source_again on relations (namespace, folded(source));
drop index concurrently if exists relations_source;
alter index relations_source_again rename to relations_source;
drop index concurrently if exists relations_target_again;
create index concurrently relations_target_again on relations (namespace, folded(target));
drop index concurrently if exists relations_target;
alter index relations_target_again rename to relations_target;
