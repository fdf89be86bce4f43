-- What the audits of a sealed WAL came to. Bound to the manifest: what is staged anew has none.

CREATE TABLE lockstep.verdict (
    pipeline      text NOT NULL,
    epoch         bigint NOT NULL,
    manifest_hash text NOT NULL,
    outcome       text NOT NULL CHECK (outcome IN ('passed', 'held', 'released')),
    results       jsonb NOT NULL,
    actor         text NOT NULL,
    reason        text CHECK ((outcome = 'released') = (reason IS NOT NULL AND reason <> '')),
    at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (pipeline, epoch, manifest_hash),
    FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch
);

CREATE FUNCTION lockstep.watch_verdict() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    acting text := coalesce(current_setting('lockstep.role', true), '');
BEGIN
    IF NOT EXISTS (
        SELECT FROM lockstep.epoch e
        WHERE (e.pipeline, e.id, e.manifest_hash, e.state) = (NEW.pipeline, NEW.epoch, NEW.manifest_hash, 'staged')
    ) THEN
        RAISE EXCEPTION 'a verdict is given of the WAL that is sealed, before the decision' USING ERRCODE = 'LS001';
    END IF;
    IF TG_OP = 'INSERT' AND acting = 'audit' AND NEW.outcome IN ('passed', 'held') THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' AND acting = 'operator' AND OLD.outcome = 'held' AND NEW.outcome = 'released'
       AND (NEW.pipeline, NEW.epoch, NEW.manifest_hash, NEW.results) = (OLD.pipeline, OLD.epoch, OLD.manifest_hash, OLD.results) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION '% may not make a verdict %', coalesce(nullif(acting, ''), 'nobody'), NEW.outcome USING ERRCODE = 'LS001';
END $$;
CREATE TRIGGER watch_verdict BEFORE INSERT OR UPDATE ON lockstep.verdict
    FOR EACH ROW EXECUTE FUNCTION lockstep.watch_verdict();
CREATE TRIGGER keep_verdict BEFORE DELETE OR TRUNCATE ON lockstep.verdict EXECUTE FUNCTION lockstep.refuse();

-- No vote and no decision without a verdict that lets the epoch go on, whoever writes to the tables.
CREATE FUNCTION lockstep.require_verdict(of_epoch lockstep.epoch) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF of_epoch.plan ? 'audits' AND NOT EXISTS (
        SELECT FROM lockstep.verdict v
        WHERE (v.pipeline, v.epoch, v.manifest_hash) = (of_epoch.pipeline, of_epoch.id, of_epoch.manifest_hash)
          AND v.outcome IN ('passed', 'released')
    ) THEN
        RAISE EXCEPTION 'epoch % of % has audits, and no verdict of theirs that lets it go on', of_epoch.id, of_epoch.pipeline
            USING ERRCODE = 'LS001';
    END IF;
END $$;

CREATE FUNCTION lockstep.require_verdict_to_decide() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lockstep.require_verdict(NEW);
    RETURN NEW;
END $$;
CREATE TRIGGER require_verdict_to_decide BEFORE UPDATE ON lockstep.epoch FOR EACH ROW
    WHEN (NEW.state = 'committed' AND OLD.state = 'staged') EXECUTE FUNCTION lockstep.require_verdict_to_decide();

CREATE FUNCTION lockstep.require_verdict_to_vote() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    of_epoch lockstep.epoch;
BEGIN
    SELECT * INTO of_epoch FROM lockstep.epoch e WHERE (e.pipeline, e.id) = (NEW.pipeline, NEW.epoch);
    PERFORM lockstep.require_verdict(of_epoch);
    RETURN NEW;
END $$;
CREATE TRIGGER require_verdict_to_vote BEFORE UPDATE ON lockstep.participant FOR EACH ROW
    WHEN (NEW.state = 'prepared' AND (NEW.state, NEW.token) IS DISTINCT FROM (OLD.state, OLD.token))
    EXECUTE FUNCTION lockstep.require_verdict_to_vote();

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
        EXECUTE format('GRANT %s ON lockstep.verdict TO %s', was.privilege, was.grantee);
    END LOOP;
END $$;
