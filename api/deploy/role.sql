-- For psql, once, by a superuser in a new database: a role for Ebb that is none, and the extension for vectors.
\set password `cat /run/secrets/ebb_password`
create role ebb login password :'password';
alter database ebb owner to ebb;
create extension vector;
