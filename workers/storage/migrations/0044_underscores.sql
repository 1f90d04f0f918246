-- in parts
-- The text search parser took minutes for a long run of words joined by '_' or '@', so these become blanks. Nothing else changes in
-- most texts. Only in a path (`a~b_c`), an entity or a tag of HTML are there more words now: such facts are indexed again.
-- Transactions that store by the old functions end first, so that the update reaches their facts too.
lock table facts in share mode;
create or replace function readable(body text) returns text
    language sql immutable parallel safe
return case when octet_length(body) = length(body)
    then replace(replace(replace(replace(replace(left(body, 65536), '.', ' '), '/', ' '), '-', ' '), '_', ' '), '@', ' ')
    else in_pairs(replace(translate(normalize(left(body, 65536), nfkc), U&'./-_@\0345', '      '), 'ß', 'ss'))
end;

update facts
set text = text
where (text || coalesce(category, '') || coalesce(entity, '') || coalesce(key, '') || coalesce(value, '')) ~ '[_@]'
    and search <> search_lexemes(namespace, text, category, entity, key, value, tags);
