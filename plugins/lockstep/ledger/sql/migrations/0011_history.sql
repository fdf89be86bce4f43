-- For ledgers of millions of epochs: what is finished is counted once, and the history stands in partitions of time, of
-- which `lockstep prune` drops old ones whole. Nothing of an older ledger is moved or lost.

-- Of each pipeline: how many epochs numbered below `below` are cleaned and void, which they stay, and which intervals
-- they cover. Only `lockstep status` reads it; without a row it counts everything.
CREATE TABLE lockstep.finished (
    pipeline text PRIMARY KEY REFERENCES lockstep.pipeline,
    below    bigint NOT NULL,
    cleaned  bigint NOT NULL,
    void     bigint NOT NULL,
    covered  tstzmultirange NOT NULL
);
INSERT INTO lockstep.finished
SELECT e.pipeline, u.id, count(*) FILTER (WHERE e.state = 'cleaned'), count(*) FILTER (WHERE e.state = 'void'),
       coalesce(range_agg(e.span), '{}')
FROM lockstep.pipeline p
CROSS JOIN LATERAL (
    SELECT coalesce((SELECT min(id) FROM lockstep.epoch WHERE pipeline = p.name AND state NOT IN ('cleaned', 'void')),
                    (SELECT max(id) + 1 FROM lockstep.epoch WHERE pipeline = p.name)) AS id
) u
JOIN lockstep.epoch e ON e.pipeline = p.name AND e.id < u.id
GROUP BY e.pipeline, u.id;

-- From here on nobody else reads or writes the history until this is done: one look at each of its rows.
LOCK TABLE lockstep.transition IN ACCESS EXCLUSIVE MODE;
ALTER TABLE lockstep.transition RENAME TO transition_from_the_start;
ALTER INDEX lockstep.transition_epoch RENAME TO transition_from_the_start_epoch;
CREATE TABLE lockstep.transition (
    id           bigint NOT NULL GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME lockstep.transition_number),
    pipeline     text NOT NULL,
    epoch        bigint NOT NULL,
    sink         text,
    source_state text,
    target_state text NOT NULL,
    attempt      bigint,
    token        bigint,
    role         text NOT NULL,
    actor        text NOT NULL,
    reason       text,
    at           timestamptz NOT NULL DEFAULT clock_timestamp()
) PARTITION BY RANGE (at);
CREATE INDEX transition_epoch ON lockstep.transition (pipeline, epoch, id);
CREATE TRIGGER keep_transition BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.transition
    EXECUTE FUNCTION lockstep.refuse();
SELECT setval('lockstep.transition_number', nextval(pg_get_serial_sequence('lockstep.transition_from_the_start', 'id')));
ALTER TABLE lockstep.transition_from_the_start ALTER COLUMN id DROP IDENTITY;

-- A new, empty partition of the times from `starts` up to `ends`, null: open. Guarded as the history itself; nobody but
-- the owner reaches it other than through the history.
CREATE FUNCTION lockstep.add_history(name text, starts timestamptz, ends timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    of_default record;
BEGIN
    EXECUTE format('CREATE TABLE lockstep.%I (LIKE lockstep.transition INCLUDING DEFAULTS)', name);
    FOR of_default IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS name
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = to_regclass(format('lockstep.%I', name)) AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON lockstep.%I FROM %s', name, of_default.name);
    END LOOP;
    EXECUTE format('CREATE TRIGGER keep_transition BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.%I '
                   'EXECUTE FUNCTION lockstep.refuse()', name);
    EXECUTE format('ALTER TABLE lockstep.transition ATTACH PARTITION lockstep.%I FOR VALUES FROM (%s) TO (%s)', name,
                   coalesce(quote_literal(starts), 'MINVALUE'), coalesce(quote_literal(ends), 'MAXVALUE'));
END $$;

-- End the partition that is written to, at the next midnight (UTC); what comes later goes into a new one. No row of any
-- time is without a partition. Returns the new one's name; null where the old one ends there, or later, already.
CREATE FUNCTION lockstep.split_history(written text, starts timestamptz) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    midnight timestamptz;
    named    text;
    attach   text := format('ALTER TABLE lockstep.transition ATTACH PARTITION lockstep.%I FOR VALUES FROM (%s) TO ', written,
                            coalesce(quote_literal(starts), 'MINVALUE'));
BEGIN
    LOCK TABLE lockstep.transition IN ACCESS EXCLUSIVE MODE;
    midnight := (date_trunc('day', clock_timestamp() AT TIME ZONE 'UTC') + interval '1 day') AT TIME ZONE 'UTC';
    IF starts >= midnight THEN
        RETURN NULL;
    END IF;
    IF EXISTS (SELECT FROM pg_inherits WHERE inhrelid = to_regclass(format('lockstep.%I', written))) THEN
        EXECUTE format('ALTER TABLE lockstep.transition DETACH PARTITION lockstep.%I', written);
    END IF;
    BEGIN
        EXECUTE attach || format('(%L)', midnight);
    EXCEPTION WHEN check_violation THEN  -- a clock was ahead when it wrote
        EXECUTE format('SELECT (date_trunc(''day'', max(at) AT TIME ZONE ''UTC'') + interval ''1 day'') AT TIME ZONE ''UTC'' '
                       'FROM lockstep.%I', written) INTO midnight;
        EXECUTE attach || format('(%L)', midnight);
    END;
    named := 'transition_from_' || to_char(midnight AT TIME ZONE 'UTC', 'YYYYMMDD');
    PERFORM lockstep.add_history(named, midnight, NULL);
    RETURN named;
END $$;
SELECT lockstep.split_history('transition_from_the_start', NULL);

-- The same rights as before on what is called by the old name, none but the owner's on its parts, and on what is new
-- those of a table that tasks write and people read.
DO $$
DECLARE
    was record;
BEGIN
    FOR was IN
        SELECT n.name, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS grantee
        FROM (VALUES ('transition'), ('finished')) n (name)
        JOIN pg_class c ON c.oid = to_regclass('lockstep.' || n.name)
        CROSS JOIN LATERAL aclexplode(c.relacl) a WHERE a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON lockstep.%I FROM %s', was.name, was.grantee);
    END LOOP;
    FOR was IN
        SELECT n.copy, n.name, a.privilege_type AS privilege,
               CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS grantee
        FROM (VALUES ('transition_from_the_start', 'transition'), ('participant', 'finished')) n (name, copy)
        JOIN pg_class c ON c.oid = to_regclass('lockstep.' || n.name)
        CROSS JOIN LATERAL aclexplode(c.relacl) a WHERE a.grantee <> c.relowner
    LOOP
        EXECUTE format('GRANT %s ON lockstep.%I TO %s', was.privilege, was.copy, was.grantee);
        IF was.name = 'transition_from_the_start' THEN
            EXECUTE format('REVOKE %s ON lockstep.%I FROM %s', was.privilege, was.name, was.grantee);
        END IF;
    END LOOP;
END $$;
