-- What a sink shows of a pipeline that Airflow runs, and of which nothing proves that Airflow's assets know it. Told they are
-- with the end of a task, in Airflow's database and not in this one: so the row is written with the publication, and taken
-- away when the event was found there. What was published before this migration counts as told.

CREATE TABLE lockstep.untold (
    pipeline text NOT NULL,
    epoch    bigint NOT NULL,
    sink     text NOT NULL,
    shown_at timestamptz NOT NULL DEFAULT now(),
    shown_by text NOT NULL,  -- the actor: a try of a task tells what it has shown itself
    PRIMARY KEY (pipeline, epoch, sink),
    FOREIGN KEY (pipeline, epoch, sink) REFERENCES lockstep.participant
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
        EXECUTE format('GRANT %s ON lockstep.untold TO %s', was.privilege, was.grantee);
    END LOOP;
END $$;
