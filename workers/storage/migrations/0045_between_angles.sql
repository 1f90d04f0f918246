-- in parts
-- Text between '<' and '>', such as an email address, is indexed: the parser took it for an HTML tag. Forms of the same Greek,
-- Hebrew or Arabic word are equal, and invisible characters in words are ignored.
-- Transactions that store by the old functions end first, so that the update reaches their facts too.
lock table facts in share mode;
create or replace function unseen() returns text
    language sql immutable parallel safe
return '\u00ad\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4'
    '\u06e7\u06e8\u06ea-\u06ed\u200d-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff';

create or replace function readable(body text) returns text
    language sql immutable parallel safe
return case when octet_length(body) = length(body)
    then replace(replace(replace(replace(replace(replace(
        left(body, 65536), '.', ' '), '/', ' '), '-', ' '), '_', ' '), '@', ' '), '<', ' ')
    else in_pairs(replace(regexp_replace(
        translate(normalize(left(body, 65536), nfkc), U&'./-_@<\0345', '       '), '[' || unseen() || ']', '', 'g'), 'ß', 'ss'))
end;

create or replace function folded(name text) returns text
    language sql immutable parallel safe
return case when octet_length(name) = length(name) then lower(name)
    else normalize(replace(replace(replace(replace(replace(replace(replace(replace(translate(
        lower(regexp_replace(normalize(name, nfkd), '[\u0300-\u036f' || unseen() || ']', '', 'g')),
        'øØłŁđĐħĦıðÐςىة٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹', 'oollddhhiddσيه01234567890123456789'),
        'ß', 'ss'), 'ẞ', 'ss'), 'æ', 'ae'), 'Æ', 'ae'), 'œ', 'oe'), 'Œ', 'oe'), 'þ', 'th'), 'Þ', 'th'), nfc)
end;

-- Sessions keep an index's expression with the function's body as they first read it. Made to read it again, they go on using
-- these indexes; else a recall would read all facts.
alter index facts_topics reset (fillfactor);
alter index facts_entities reset (fillfactor);
alter index relations_source reset (fillfactor);
alter index relations_target reset (fillfactor);

-- Compatibility forms, such as full-width signs and Hebrew letters with points, are read as what they stand for.
update facts
set text = text
where normalize(
        text || coalesce(category, '') || coalesce(entity, '') || coalesce(key, '') || coalesce(value, ''), nfkc)
        ~ '[<Σς\u00ad\u0591-\u05c7\u0610-\u06ff\u200d-\u200f\u202a-\u202e\u2060-\u2069\ufeff]'
    and search <> search_lexemes(namespace, text, category, entity, key, value, tags);
