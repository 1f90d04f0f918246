-- Branches: copies of a namespace whose instants are older.
alter table namespaces
    add column branch_of text, add column branch_age interval, add column branched_at timestamptz;
