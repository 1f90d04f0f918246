-- Names and words are compared without accents and other special letters.
create or replace function readable(body text) returns text
    language sql immutable parallel safe
return case when octet_length(body) = length(body)
    then replace(replace(replace(left(body, 65536), '.', ' '), '/', ' '), '-', ' ')
    else in_pairs(replace(translate(normalize(left(body, 65536), nfkc), './-', '   '), 'ß', 'ss'))
end;

create or replace function folded(name text) returns text
    language sql immutable parallel safe
return case when octet_length(name) = length(name) then lower(name)
    else normalize(replace(replace(replace(replace(replace(replace(replace(replace(translate(
        lower(regexp_replace(normalize(name, nfkd), '[\u0300-\u036f]', '', 'g')), 'øØłŁđĐħĦıðÐ', 'oollddhhidd'),
        'ß', 'ss'), 'ẞ', 'ss'), 'æ', 'ae'), 'Æ', 'ae'), 'œ', 'oe'), 'Œ', 'oe'), 'þ', 'th'), 'Þ', 'th'), nfc)
end;

create or replace function without_accents(lexemes tsvector) returns tsvector
    language sql immutable parallel safe
return case when octet_length(lexemes::text) = length(lexemes::text) then lexemes
    else folded(lexemes::text)::tsvector
end;

create or replace function stems(body text) returns tsvector
    language sql immutable parallel safe
return without_accents(stemmed(readable(body)));

create or replace function as_written(readable text, stems tsvector) returns tsvector
    language sql immutable parallel safe
return ts_delete(
    case when octet_length(readable) = length(readable) then to_tsvector('ebb_written', readable)
        else folded(to_tsvector('ebb_written', readable)::text)::tsvector
    end,
    tsvector_to_array(stems)
);

create or replace function words(body text) returns tsvector
    language plpgsql immutable parallel safe set search_path from current as $$
declare
    plain constant text := readable(body);
    stems constant tsvector := without_accents(stemmed(plain));
begin
    return stems || as_written(plain, stems);
end $$;
