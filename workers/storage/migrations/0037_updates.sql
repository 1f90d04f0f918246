-- outside a transaction
-- A fact that withdraws an older one is linked to it.
-- The check is validated by itself, so that linking and recalling do not wait while all links are read.
-- In statements of their own, as Citus adds a constraint only alone.
alter table links drop constraint if exists links_type_check;
alter table links add constraint links_type_check check (
    type in ('SUPERSEDES', 'UPDATES', 'CAUSED_BY', 'PART_OF', 'RELATED_TO', 'DEPENDS_ON')
) not valid;
alter table links validate constraint links_type_check;
