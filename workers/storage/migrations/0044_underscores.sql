-- The text search parser took minutes for a long run of words that '_' or '@' joins. It ends words at both, except in what it
-- took for paths (`a~b_c`), entities and tags of HTML: where such words are found now, facts get them.
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
