-- outside a transaction
-- Who spoke, and how much of what is asked later the text is likely to answer; null where that is not estimated yet.
-- The checks are validated by themselves, so that storing and recalling do not wait while all facts are read.
alter table facts add column if not exists role text, add column if not exists content_salience real;
alter table facts
    drop constraint if exists facts_role_check,
    add constraint facts_role_check check (role in ('user', 'assistant', 'system', 'tool')) not valid,
    drop constraint if exists facts_content_salience_check,
    add constraint facts_content_salience_check check (content_salience between 0 and 1) not valid;
alter table facts validate constraint facts_role_check;
alter table facts validate constraint facts_content_salience_check;
drop index concurrently if exists facts_unestimated;
create index concurrently facts_unestimated on facts (namespace, id) where content_salience is null;
