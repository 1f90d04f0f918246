-- Registered folders, whose Markdown files workers keep indexed.
create table folders (
    namespace integer not null references namespaces (id),
    name text not null,
    path text not null,
    read_at timestamptz,
    error text,
    primary key (namespace, name)
);
