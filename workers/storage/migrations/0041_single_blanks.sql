-- in parts
-- Entities and keys get single blanks, as in what is looked up. Identities of statements stay the same, as they never included
-- further blanks. Those of chunks and items do, so these keep their names.
update facts
set entity = regexp_replace(entity, '\s+', ' ', 'g'), key = regexp_replace(key, '\s+', ' ', 'g')
where kind not in ('chunk', 'item') and (entity ~ '\s\s|(?! )\s' or key ~ '\s\s|(?! )\s');
