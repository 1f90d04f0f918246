-- Which shard a namespace is on, where there are several; one that is missing here is on the first, this schema.
create table directory (
    name text primary key,
    shard integer not null check (shard >= 0)
);

-- A process that does not know of the other shards must not begin a second namespace of a name.
create function refuse_second() returns trigger
    language plpgsql set search_path from current as $$
begin
    if exists (select from directory where directory.name = new.name and shard > 0) then
        raise exception 'namespace % is on another shard: restart this process with the EBB_SHARDS of the others', new.name;
    end if;
    return new;
end
$$;

create trigger once before insert on namespaces for each row execute function refuse_second();

-- Continues a transaction on the shard of a namespace, and returns the first shard's schema and the shard, if it has one. A
-- function, as Citus would evaluate a query of the directory on its node, where it would set the search path.
create function route(namespace text) returns table (home text, shard integer)
    language plpgsql as $$
begin
    home := current_schema();
    select directory.shard into shard from directory where directory.name = namespace;
    if shard > 0 then
        perform set_config(
            'search_path',
            quote_ident(case home when 'public' then 'ebb' else home end || to_char(shard, '"_"FM0000')) || ', public', true
        );
    end if;
    return next;
end
$$;
