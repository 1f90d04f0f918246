-- One task of a pass covers several segments with few due facts.
alter table decay_parts add column if not exists further smallint[] not null default '{}';
