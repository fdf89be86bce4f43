-- The ledger: the only truth about epochs.
--
--   begin    inserts an epoch (planned) and its participants (pending), or raises its attempt
--   stage    planned -> staged           sets wal and manifest_hash, once
--   prepare  pending -> prepared         one vote a sink, of the current attempt
--   commit   staged -> committed         the decision: this row, durable, decides every sink
--   publish  prepared -> published       and, with the last sink, committed -> published
--   cleanup  published -> cleaned
--
-- Every writer locks the epoch's row first. legal_transition holds the arrows of lockstep.states; the triggers refuse
-- every other one, whoever asks, and write each transition to the history.

CREATE EXTENSION IF NOT EXISTS btree_gist;

CREATE TABLE lockstep.deployment (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id         uuid NOT NULL DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO lockstep.deployment DEFAULT VALUES;

CREATE TABLE lockstep.pipeline (
    name       text PRIMARY KEY,
    identity   text NOT NULL CHECK (identity IN ('interval', 'cursor')),
    last_epoch bigint NOT NULL DEFAULT 0,
    hold       interval NOT NULL DEFAULT '2 hours',
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Every sink that was planned: recovery sweeps those too that no plan has any more.
CREATE TABLE lockstep.planned_sink (
    pipeline   text NOT NULL REFERENCES lockstep.pipeline,
    sink       text NOT NULL,
    spec       jsonb NOT NULL,
    spec_md5   text GENERATED ALWAYS AS (md5(spec::text)) STORED,
    planned_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pipeline, sink, spec_md5)
);

CREATE SEQUENCE lockstep.token AS bigint CACHE 1;

CREATE TABLE lockstep.epoch (
    pipeline      text NOT NULL REFERENCES lockstep.pipeline,
    id            bigint NOT NULL,
    span          tstzrange CHECK (NOT isempty(span) AND lower_inc(span) AND NOT upper_inc(span)),
    state         text NOT NULL,
    attempt       bigint NOT NULL,
    attempted_at  timestamptz NOT NULL DEFAULT now(),
    lease_until   timestamptz,
    owner_dag     text,
    owner_run     text,
    plan          jsonb NOT NULL,
    wal           text,
    manifest_hash text CHECK (manifest_hash ~ '^[0-9a-f]{64}$'),
    code_version  text,
    summary       jsonb,
    reason        text,
    planned_at    timestamptz NOT NULL DEFAULT now(),
    changed_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pipeline, id),
    CHECK ((wal IS NULL) = (manifest_hash IS NULL)),
    CHECK (state IN ('planned', 'void') OR wal IS NOT NULL),
    EXCLUDE USING gist (pipeline WITH =, span WITH &&) WHERE (span IS NOT NULL)
);
CREATE INDEX epoch_unfinished ON lockstep.epoch (pipeline, id) WHERE state NOT IN ('cleaned', 'void');

-- The row of each run's begin: a task asks it for its attempt, never for "the current one".
CREATE TABLE lockstep.run (
    dag_id     text NOT NULL,
    run_id     text NOT NULL,
    pipeline   text NOT NULL,
    epoch      bigint NOT NULL,
    attempt    bigint NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (dag_id, run_id),
    FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch
);
CREATE INDEX run_epoch ON lockstep.run (pipeline, epoch);

CREATE TABLE lockstep.participant (
    pipeline     text NOT NULL,
    epoch        bigint NOT NULL,
    sink         text NOT NULL,
    state        text NOT NULL,
    execution    bigint,
    attempt      bigint,
    token        bigint,
    handle       text,
    target_id    text,
    rows         jsonb,
    publication  text,
    changed_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pipeline, epoch, sink),
    FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch,
    CHECK (state = 'pending' OR (token IS NOT NULL AND attempt IS NOT NULL AND target_id IS NOT NULL)),
    CHECK ((state = 'published') = (publication IS NOT NULL))
);

-- Every token ever issued: attempts and executions. A sweeper resolves nothing whose token doesn't stand here.
-- Inserting the row also makes the sequence's advance durable, which nextval alone would not.
CREATE TABLE lockstep.execution (
    token      bigint PRIMARY KEY DEFAULT nextval('lockstep.token'),
    pipeline   text NOT NULL,
    epoch      bigint NOT NULL,
    sink       text,
    attempt    bigint,
    role       text NOT NULL,
    actor      text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE lockstep.claim (
    pipeline text NOT NULL,
    source   text NOT NULL,
    path     text NOT NULL,
    epoch    bigint NOT NULL,
    PRIMARY KEY (pipeline, source, path),
    FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch
);
CREATE INDEX claim_epoch ON lockstep.claim (pipeline, epoch);

CREATE TABLE lockstep.transition (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
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
);
CREATE INDEX transition_epoch ON lockstep.transition (pipeline, epoch, id);

CREATE TABLE lockstep.legal_transition (
    subject      text NOT NULL,
    source_state text,
    target_state text NOT NULL,
    role         text NOT NULL
);
CREATE UNIQUE INDEX legal_transition_key  -- PostgreSQL 14 lacks NULLS NOT DISTINCT
    ON lockstep.legal_transition (subject, coalesce(source_state, ''), target_state, role);
INSERT INTO lockstep.legal_transition VALUES
    ('epoch', NULL,        'planned',   'begin'),
    ('epoch', 'planned',   'staged',    'stage'),
    ('epoch', 'staged',    'planned',   'begin'),
    ('epoch', 'staged',    'planned',   'operator'),
    ('epoch', 'staged',    'committed', 'commit'),
    ('epoch', 'committed', 'published', 'publish'),
    ('epoch', 'committed', 'published', 'recover'),
    ('epoch', 'committed', 'published', 'operator'),
    ('epoch', 'published', 'cleaned',   'cleanup'),
    ('epoch', 'published', 'cleaned',   'recover'),
    ('epoch', 'planned',   'void',      'operator'),
    ('epoch', 'staged',    'void',      'operator'),
    ('participant', NULL,        'pending',   'begin'),
    ('participant', NULL,        'pending',   'operator'),
    ('participant', 'pending',   'prepared',  'prepare'),
    ('participant', 'prepared',  'prepared',  'prepare'),
    ('participant', 'prepared',  'pending',   'begin'),
    ('participant', 'prepared',  'pending',   'abort'),
    ('participant', 'prepared',  'pending',   'recover'),
    ('participant', 'prepared',  'pending',   'operator'),
    ('participant', 'prepared',  'published', 'publish'),
    ('participant', 'prepared',  'published', 'recover'),
    ('participant', 'prepared',  'published', 'operator');

CREATE FUNCTION lockstep.require_legal(subject text, source_state text, target_state text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    acting text := coalesce(nullif(current_setting('lockstep.role', true), ''), 'nobody');
BEGIN
    IF NOT EXISTS (
        SELECT FROM lockstep.legal_transition l
        WHERE l.subject = require_legal.subject
          AND l.source_state IS NOT DISTINCT FROM require_legal.source_state
          AND l.target_state = require_legal.target_state
          AND l.role = acting
    ) THEN
        RAISE EXCEPTION '% may not move a % from % to %', acting, subject, coalesce(source_state, 'nothing'), target_state
            USING ERRCODE = 'LS001';
    END IF;
END $$;

CREATE FUNCTION lockstep.write_transition(
    pipeline text, epoch bigint, sink text, source_state text, target_state text, attempt bigint, token bigint
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO lockstep.transition (pipeline, epoch, sink, source_state, target_state, attempt, token, role, actor, reason)
    VALUES (pipeline, epoch, sink, source_state, target_state, attempt, token,
            coalesce(nullif(current_setting('lockstep.role', true), ''), 'nobody'),
            coalesce(nullif(current_setting('lockstep.actor', true), ''), session_user),
            nullif(current_setting('lockstep.reason', true), ''))
$$;

CREATE FUNCTION lockstep.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% on lockstep.%: what the ledger has recorded stays', TG_OP, TG_TABLE_NAME USING ERRCODE = 'LS001';
END $$;

CREATE FUNCTION lockstep.watch_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM lockstep.require_legal('epoch', NULL, NEW.state);
        PERFORM lockstep.write_transition(NEW.pipeline, NEW.id, NULL, NULL, NEW.state, NEW.attempt, NULL);
        RETURN NEW;
    END IF;
    IF (NEW.pipeline, NEW.id, NEW.span, NEW.planned_at) IS DISTINCT FROM (OLD.pipeline, OLD.id, OLD.span, OLD.planned_at) THEN
        RAISE EXCEPTION 'an epoch keeps its pipeline, number and interval' USING ERRCODE = 'LS001';
    END IF;
    IF NEW.state IS DISTINCT FROM OLD.state THEN
        PERFORM lockstep.require_legal('epoch', OLD.state, NEW.state);
    END IF;
    IF NEW.attempt < OLD.attempt OR (NEW.attempt <> OLD.attempt AND OLD.state NOT IN ('planned', 'staged')) THEN
        RAISE EXCEPTION 'the attempt of a % epoch goes from % to %', OLD.state, OLD.attempt, NEW.attempt USING ERRCODE = 'LS001';
    END IF;
    IF OLD.wal IS NOT NULL AND (NEW.wal, NEW.manifest_hash) IS DISTINCT FROM (OLD.wal, OLD.manifest_hash)
       AND NOT (NEW.wal IS NULL AND OLD.state = 'staged' AND NEW.state IN ('planned', 'void')) THEN
        RAISE EXCEPTION 'the WAL of a % epoch is set once', NEW.state USING ERRCODE = 'LS001';
    END IF;
    IF NEW.plan IS DISTINCT FROM OLD.plan
       AND NOT (OLD.state = 'planned' AND NEW.state = 'planned' AND current_setting('lockstep.role', true) = 'operator') THEN
        RAISE EXCEPTION 'the plan of a % epoch is frozen', OLD.state USING ERRCODE = 'LS001';
    END IF;
    IF NEW.state = 'committed' AND OLD.state = 'staged' THEN
        PERFORM lockstep.require_votes(NEW.pipeline, NEW.id, NEW.attempt);
    END IF;
    IF NEW.state = 'published' AND OLD.state = 'committed' AND EXISTS (
        SELECT FROM lockstep.participant p WHERE p.pipeline = NEW.pipeline AND p.epoch = NEW.id AND p.state <> 'published'
    ) THEN
        RAISE EXCEPTION 'a sink has not published epoch % of % yet', NEW.id, NEW.pipeline USING ERRCODE = 'LS001';
    END IF;
    IF NEW.state IS DISTINCT FROM OLD.state OR NEW.attempt IS DISTINCT FROM OLD.attempt THEN
        NEW.changed_at := now();
        PERFORM lockstep.write_transition(NEW.pipeline, NEW.id, NULL, OLD.state, NEW.state, NEW.attempt, NULL);
    END IF;
    RETURN NEW;
END $$;

-- The last line of defence of the decision, for whoever writes to the table by hand.
CREATE FUNCTION lockstep.require_votes(deciding text, number bigint, current_attempt bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) = 0 OR bool_or(p.state <> 'prepared' OR p.attempt <> current_attempt OR p.token < p.execution)
        FROM lockstep.participant p WHERE p.pipeline = deciding AND p.epoch = number) THEN
        RAISE EXCEPTION 'epoch % of % lacks a vote of attempt %', number, deciding, current_attempt USING ERRCODE = 'LS001';
    END IF;
END $$;

CREATE TRIGGER watch_epoch BEFORE INSERT OR UPDATE ON lockstep.epoch
    FOR EACH ROW EXECUTE FUNCTION lockstep.watch_epoch();

CREATE FUNCTION lockstep.watch_participant() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    acting    text := coalesce(current_setting('lockstep.role', true), '');
    was       text := NULL;
    of_epoch  lockstep.epoch;
    legal     boolean;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF (NEW.pipeline, NEW.epoch, NEW.sink) IS DISTINCT FROM (OLD.pipeline, OLD.epoch, OLD.sink) THEN
            RAISE EXCEPTION 'a participant keeps its epoch and sink' USING ERRCODE = 'LS001';
        END IF;
        IF (NEW.state, NEW.token, NEW.attempt, NEW.handle, NEW.rows, NEW.publication)
           IS NOT DISTINCT FROM (OLD.state, OLD.token, OLD.attempt, OLD.handle, OLD.rows, OLD.publication)
           AND (NEW.target_id IS NOT DISTINCT FROM OLD.target_id OR (acting = 'operator' AND OLD.state = 'prepared')) THEN
            RETURN NEW;  -- an execution starts, or a person points to another target
        END IF;
        was := OLD.state;
    END IF;
    SELECT * INTO of_epoch FROM lockstep.epoch e WHERE (e.pipeline, e.id) = (coalesce(NEW.pipeline, OLD.pipeline), coalesce(NEW.epoch, OLD.epoch));
    IF TG_OP = 'DELETE' THEN
        IF acting <> 'operator' OR OLD.state <> 'pending' OR of_epoch.state NOT IN ('planned', 'staged') THEN
            RAISE EXCEPTION 'a participant of a % epoch stays', of_epoch.state USING ERRCODE = 'LS001';
        END IF;
        RETURN OLD;
    END IF;
    PERFORM lockstep.require_legal('participant', was, NEW.state);
    legal := CASE NEW.state
        WHEN 'pending'   THEN of_epoch.state IN ('planned', 'staged')
        WHEN 'prepared'  THEN of_epoch.state = 'staged' AND NEW.attempt = of_epoch.attempt
        WHEN 'published' THEN of_epoch.state = 'committed' AND (NEW.token, NEW.attempt) = (OLD.token, OLD.attempt)
    END;
    IF legal IS NOT TRUE THEN
        RAISE EXCEPTION 'a participant of a % epoch at attempt % can''t become % with attempt %',
            of_epoch.state, of_epoch.attempt, NEW.state, NEW.attempt USING ERRCODE = 'LS001';
    END IF;
    NEW.changed_at := now();
    PERFORM lockstep.write_transition(NEW.pipeline, NEW.epoch, NEW.sink, was, NEW.state, NEW.attempt, NEW.token);
    RETURN NEW;
END $$;
CREATE TRIGGER watch_participant BEFORE INSERT OR UPDATE OR DELETE ON lockstep.participant
    FOR EACH ROW EXECUTE FUNCTION lockstep.watch_participant();

CREATE TRIGGER keep_epoch BEFORE DELETE OR TRUNCATE ON lockstep.epoch EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_participant BEFORE TRUNCATE ON lockstep.participant EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_transition BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.transition EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_execution BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.execution EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_deployment BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.deployment EXECUTE FUNCTION lockstep.refuse();
