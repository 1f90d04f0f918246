-- Shards were `ebb_0001` and so on for a system in `public` and for one in `ebb`: each has shards of its own name now.
create or replace function route(namespace text) returns table (home text, shard integer)
    language plpgsql as $$
begin
    home := current_schema();
    select directory.shard into shard from directory where directory.name = namespace;
    if shard > 0 then
        perform set_config('search_path', quote_ident(home || to_char(shard, '"_"FM0000')) || ', public', true);
    end if;
    return next;
end
$$;

do $$
declare
    shard text;
    routine text;
begin
    if current_schema() <> 'public' then
        return;
    end if;
    if to_regclass('ebb.directory') is not null then
        if not exists (select from public.directory where directory.shard > 0) then
            return;
        elsif exists (select from ebb.directory where directory.shard > 0) then
            raise exception 'the systems in the schemas public and ebb share their shards: move all namespaces of one of '
                'them to shard 0 with the version of Ebb that ran until now, then run ebb migrate again';
        end if;
    end if;
    for shard in
        select distinct to_char(directory.shard, '"_"FM0000') from public.directory
        where directory.shard > 0 and to_regclass(format('ebb%s.schema_migrations', to_char(directory.shard, '"_"FM0000'))) is not null
    loop
        execute format('alter schema %I rename to %I', 'ebb' || shard, 'public' || shard);
        for routine in
            select pg_proc.oid::regprocedure from pg_proc
            where pronamespace = ('public' || shard)::regnamespace and proconfig::text like '%search_path=%'
        loop
            execute format('alter function %s set search_path to %I, public', routine, 'public' || shard);
        end loop;
    end loop;
end
$$;
