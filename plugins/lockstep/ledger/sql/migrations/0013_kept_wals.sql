-- Sealed WALs that stay after cleanup: how long a pipeline keeps them, and which ones there are. Whoever deletes one says
-- so first, deletes, and takes the row away last: what has none is not there, what is not expired is there whole.

ALTER TABLE lockstep.pipeline
    ADD COLUMN keep_wal_time   interval CHECK (keep_wal_time > interval '0'),
    ADD COLUMN keep_wal_epochs integer CHECK (keep_wal_epochs > 0),
    ADD CONSTRAINT wals_are_kept_in_one_way CHECK (num_nonnulls(keep_wal_time, keep_wal_epochs) <= 1);

CREATE TABLE lockstep.kept_wal (
    pipeline   text NOT NULL,
    epoch      bigint NOT NULL,
    wal        text NOT NULL,  -- the folder, relative to staging
    bytes      bigint NOT NULL,
    kept_at    timestamptz NOT NULL DEFAULT now(),
    expired_at timestamptz,  -- from then on it may be gone, in part or as a whole
    PRIMARY KEY (pipeline, epoch),
    FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch
);

-- The rights of a table that tasks write and people read.
DO $$
DECLARE
    was record;
BEGIN
    FOR was IN
        SELECT a.privilege_type AS privilege,
               CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS grantee
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'lockstep.participant'::regclass AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('GRANT %s ON lockstep.kept_wal TO %s', was.privilege, was.grantee);
    END LOOP;
END $$;
