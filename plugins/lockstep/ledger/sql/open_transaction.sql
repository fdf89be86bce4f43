-- First statement of every transaction: durable whatever the role's or database's settings say, and on a primary.
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
