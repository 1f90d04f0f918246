-- in parts
-- Words of facts with other letters than ASCII are indexed again. Blanks around an entity or a key are removed: the identity
-- of a statement has never included them; that of chunks and items has.
update facts
set text = text,
    entity = case when kind in ('chunk', 'item') then entity else nullif(regexp_replace(entity, '^\s+|\s+$', '', 'g'), '') end,
    key = case when kind in ('chunk', 'item') then key else nullif(regexp_replace(key, '^\s+|\s+$', '', 'g'), '') end
where (octet_length(text || coalesce(category, '') || coalesce(entity, '') || coalesce(key, '') || coalesce(value, ''))
        > length(text || coalesce(category, '') || coalesce(entity, '') || coalesce(key, '') || coalesce(value, ''))
    or kind not in ('chunk', 'item') and (entity ~ '^\s|\s$' or key ~ '^\s|\s$'));
