-- outside a transaction
-- A fact that withdraws an older one is linked to it.
-- The check is validated by itself, so that linking and recalling do not wait while all links are read.
alter table links
    drop constraint if exists links_type_check,
    add constraint links_type_check check (
        type in ('SUPERSEDES', 'UPDATES', 'CAUSED_BY', 'PART_OF', 'RELATED_TO', 'DEPENDS_ON')
    ) not valid;
alter table links validate constraint links_type_check;
