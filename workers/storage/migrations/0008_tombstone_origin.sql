-- Which run forgot a fact, and when its tombstone was written by the database's clock.
alter table facts add column if not exists forgotten_by uuid;
alter table facts add column if not exists tombstone_at timestamptz;
