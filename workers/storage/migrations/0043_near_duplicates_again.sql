-- Near-duplicates that were found before a differing word in any language set facts apart are compared again.
update activity set compared = false
where compared and (namespace, fact) in (
    select namespace, fact from likenesses where apart_at is null
    union
    select namespace, other from likenesses where apart_at is null
);

delete from likenesses where apart_at is null;
