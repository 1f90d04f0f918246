-- Whether the salience of a fact's content was given, and by how many facts that of the others was last estimated.
alter table facts add column if not exists salience_given boolean not null default false;
alter table namespaces add column if not exists estimated_facts bigint not null default 0;
