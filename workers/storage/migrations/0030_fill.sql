-- Less free space on each page: every touch changes an indexed column, so that it never spares the indexes.
-- Citus refuses to alter a table that is an argument of functions, so there each node and the shard are altered by themselves.
do $$
begin
    if exists (select from pg_extension where extname = 'citus') then
        perform success from run_command_on_all_nodes(format(
            'set citus.enable_ddl_propagation = off; alter table %I.activity set (fillfactor = 90)', current_schema()
        ));
        perform success from run_command_on_shards('activity', 'alter table %s set (fillfactor = 90)');
    else
        alter table activity set (fillfactor = 90);
    end if;
end
$$;
