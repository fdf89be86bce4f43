-- Catalogs and settings only: it works before any migration, and for a role that may read nothing of the ledger.
WITH tables AS (
    SELECT c.relname::text AS name,
           has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AS readable,
           has_table_privilege(c.oid, 'INSERT')
               AND (c.relname = 'transition' OR has_table_privilege(c.oid, 'UPDATE')) AS writable  -- history is added to
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'lockstep' AND c.relkind IN ('r', 'p') AND NOT c.relispartition
), functions AS (  -- that triggers call with the rights of who writes; those of retention are its owner's
    SELECT has_function_privilege(p.oid, 'EXECUTE') AS callable
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = 'lockstep' AND p.proname IN ('require_legal', 'require_verdict', 'require_votes', 'write_transition')
)
SELECT current_setting('server_version_num')::int AS server,
       current_setting('max_connections')::int AS max_connections,
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')::int AS connections,
       ARRAY(SELECT name FROM unnest(ARRAY['fsync', 'full_page_writes']) name
             WHERE current_setting(name) = 'off') AS settings_off,
       EXISTS (SELECT FROM tables WHERE name = 'migration' AND readable) AS migrated,
       ARRAY(SELECT name FROM tables WHERE NOT readable ORDER BY 1) AS unreadable,
       (SELECT coalesce(bool_and(writable), false) FROM tables
        WHERE name IN ('pipeline', 'epoch', 'participant', 'run', 'execution', 'claim', 'transition'))
           AND NOT EXISTS (SELECT FROM functions WHERE NOT callable) AS may_write,
       clock_timestamp() AS at
