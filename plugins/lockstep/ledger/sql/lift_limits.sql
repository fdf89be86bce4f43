-- A migration may take longer than a role's limits; transaction_timeout came with Postgres 17.
SELECT set_config('statement_timeout', '0', false),
       CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL
            THEN set_config('transaction_timeout', '0', false) END
