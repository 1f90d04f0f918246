-- in parts
-- Tags get their composed form (NFC), as in the filters that look for them.
update facts
set tags = (
    select array_agg(tag order by place) from (
        select normalize(given) as tag, min(place) as place
        from unnest(tags) with ordinality as one (given, place)
        group by normalize(given)
    ) as composed
)
where exists (select from unnest(tags) as given where given is not normalized);
