-- Keys may have an end.
alter table api_keys add column if not exists expires_at timestamptz;
