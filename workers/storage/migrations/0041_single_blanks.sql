-- Entities and keys have single blanks, as they have in questions; the identity of a statement has never included others. Paths
-- of chunks, and keys and paths of items, keep theirs.
update facts
set entity = regexp_replace(entity, '\s+', ' ', 'g'), key = regexp_replace(key, '\s+', ' ', 'g')
where kind not in ('chunk', 'item') and (entity ~ '\s\s|(?! )\s' or key ~ '\s\s|(?! )\s');
