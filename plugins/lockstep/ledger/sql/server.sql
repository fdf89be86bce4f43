-- Session and transaction settings, locks, properties of the server.

-- name: open_transaction
-- The first statement of every transaction: enforces durability whatever the role's or database's settings, and a primary.
SELECT pg_is_in_recovery() AS replica,
       current_setting('fsync') AS fsync,
       current_setting('full_page_writes') AS full_page_writes,
       set_config('synchronous_commit',
                  CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply'
                                                             ELSE 'on' END, true) AS synchronous_commit,
       CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL -- Postgres 17; statement_timeout is ours
            THEN set_config('transaction_timeout', '0', true) END AS transaction_timeout,
       set_config('lockstep.role', %(role)s, true) AS role,
       set_config('lockstep.actor', %(actor)s, true) AS actor,
       set_config('lockstep.reason', %(reason)s, true) AS reason

-- name: act_as
-- The role that the guards check.
SELECT set_config('lockstep.role', %(role)s, true)

-- name: try_advisory_lock
-- Held until the session ends. Avoids duplicate work; correctness does not depend on it.
SELECT pg_try_advisory_lock(hashtextextended(%(key)s, 0)) AS held

-- name: disable_timeouts
-- A migration may exceed the role's limits. transaction_timeout exists since PostgreSQL 17.
SELECT set_config('statement_timeout', '0', false),
       CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL
            THEN set_config('transaction_timeout', '0', false) END

-- name: find_time
-- The server's clock.
SELECT clock_timestamp() AS now

-- name: find_schema
-- Schema version and durability settings.
SELECT coalesce(max(version), 0) AS version, current_setting('fsync') AS fsync,
       current_setting('full_page_writes') AS full_page_writes
FROM lockstep.migration

-- name: examine_server
-- Catalogs and settings only: works before any migration, and for a role without privileges on the ledger.
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
    WHERE n.nspname = 'lockstep' AND p.proname IN ('require_legal_transition', 'require_verdict', 'require_votes', 'write_transition')
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

-- name: find_deployment
-- The ledger's id, by which sinks and staging refer to it.
SELECT id::text FROM lockstep.deployment

-- name: adopt_deployment
-- A rebuilt ledger gets the id of the lost one.
UPDATE lockstep.deployment SET id = %(deployment)s WHERE id <> %(deployment)s
