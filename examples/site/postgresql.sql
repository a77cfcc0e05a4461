-- The accounts of a site's database. Once, as its superuser: createdb cachegraph; psql -d cachegraph -f postgresql.sql
-- Then give each a password (\password cachegraph_writer), or admit them by pg_hba.conf.
-- Writers create the table. Readers name the server with ?write=no.
CREATE ROLE cachegraph_writer LOGIN;
CREATE ROLE cachegraph_reader LOGIN;
GRANT CREATE ON SCHEMA public TO cachegraph_writer;
ALTER DEFAULT PRIVILEGES FOR ROLE cachegraph_writer IN SCHEMA public GRANT SELECT ON TABLES TO cachegraph_reader;
