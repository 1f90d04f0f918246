-- U+0345 is a letter to the text search parser, and nothing is left of it without accents: no text with it was stored.
create or replace function readable(body text) returns text
    language sql immutable parallel safe
return case when octet_length(body) = length(body)
    then replace(replace(replace(left(body, 65536), '.', ' '), '/', ' '), '-', ' ')
    else in_pairs(replace(translate(normalize(left(body, 65536), nfkc), U&'./-\0345', '    '), 'ß', 'ss'))
end;
