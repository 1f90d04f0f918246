-- Which questions strengthened a fact lately, so that the same one does not do so again at once.
alter table activity add column asked bytea;
