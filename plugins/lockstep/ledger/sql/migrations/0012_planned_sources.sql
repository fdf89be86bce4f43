-- Which sources the plans of a cursor pipeline have named, each with the last epoch that did: no later one has to be looked
-- through for where it ended, and for a source that is new none at all.
CREATE TABLE lockstep.planned_source (
    pipeline   text NOT NULL,
    source     text NOT NULL,
    last_epoch bigint NOT NULL,  -- at most one that was replanned without it stands here
    PRIMARY KEY (pipeline, source)
);

-- The long look at each plan comes first, and locks nobody out.
INSERT INTO lockstep.planned_source
SELECT e.pipeline, named, max(e.id)
FROM lockstep.epoch e CROSS JOIN LATERAL jsonb_object_keys(e.plan -> 'sources') named
WHERE e.span IS NULL GROUP BY e.pipeline, named;

-- Not before: it keeps every pipeline from beginning an epoch.
ALTER TABLE lockstep.planned_source ADD FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline;

CREATE FUNCTION lockstep.remember_sources() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO lockstep.planned_source AS s (pipeline, source, last_epoch)
    SELECT NEW.pipeline, named, NEW.id FROM jsonb_object_keys(NEW.plan -> 'sources') named ORDER BY named
    ON CONFLICT (pipeline, source) DO UPDATE SET last_epoch = EXCLUDED.last_epoch
    WHERE s.last_epoch < EXCLUDED.last_epoch;
    RETURN NULL;
END $$;
CREATE TRIGGER remember_sources AFTER INSERT OR UPDATE OF plan ON lockstep.epoch
    FOR EACH ROW WHEN (NEW.span IS NULL) EXECUTE FUNCTION lockstep.remember_sources();

-- From here on nobody else writes an epoch until this is done: once more those that were planned meanwhile.
INSERT INTO lockstep.planned_source AS s
SELECT e.pipeline, named, max(e.id)
FROM lockstep.pipeline p
CROSS JOIN LATERAL (
    SELECT pipeline, id, plan FROM lockstep.epoch
    WHERE pipeline = p.name AND id >= coalesce((SELECT max(last_epoch) FROM lockstep.planned_source WHERE pipeline = p.name), 0)
    UNION ALL
    SELECT pipeline, id, plan FROM lockstep.epoch WHERE pipeline = p.name AND state NOT IN ('cleaned', 'void')
) e
CROSS JOIN LATERAL jsonb_object_keys(e.plan -> 'sources') named
WHERE p.identity = 'cursor' GROUP BY e.pipeline, named
ON CONFLICT (pipeline, source) DO UPDATE SET last_epoch = EXCLUDED.last_epoch WHERE s.last_epoch < EXCLUDED.last_epoch;

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
        EXECUTE format('GRANT %s ON lockstep.planned_source TO %s', was.privilege, was.grantee);
    END LOOP;
END $$;
