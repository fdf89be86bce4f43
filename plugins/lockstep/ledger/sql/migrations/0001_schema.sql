-- The ledger's schema: the single source of truth about epochs.
--
--   begin    inserts an epoch (planned) and its participants (pending), or raises its attempt
--   stage    planned -> staged           sets wal and manifest_hash, once
--   prepare  pending -> prepared         one vote per sink, of the current attempt
--   commit   staged -> committed         the decision: this durable row decides for every sink
--   publish  prepared -> published       and, with the last sink, committed -> published
--   cleanup  published -> cleaned
--   commit   cleaned -> replaced         when a later generation of the range is committed
--
-- Every writer locks the epoch's row first. legal_transition lists the transitions of lockstep.states. Triggers reject every
-- other transition, also in manual statements, and record each transition in the history.

CREATE EXTENSION IF NOT EXISTS btree_gist;

-- --- tables ---

CREATE TABLE lockstep.deployment (
    singleton   boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    id         uuid NOT NULL DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO lockstep.deployment DEFAULT VALUES;

-- A pipeline without decided epochs can be forgotten: it is no longer listed. Its rows and its name remain, so that
-- recovery can clean up after old processes of that name.
CREATE TABLE lockstep.pipeline (
    name            text PRIMARY KEY,
    keyed_by        text NOT NULL CHECK (keyed_by IN ('interval', 'cursor')),
    last_epoch      bigint NOT NULL DEFAULT 0,
    recovery_grace  interval NOT NULL DEFAULT '2 hours',
    created_at      timestamptz NOT NULL DEFAULT now(),
    forgotten_at    timestamptz,
    forgotten_by    text,
    forgotten_reason   text,
    swept_until     timestamptz,  -- recovery sweeps a forgotten pipeline until this time
    keep_wal_time   interval CHECK (keep_wal_time > interval '0'),
    keep_wal_epochs integer CHECK (keep_wal_epochs > 0),
    CHECK (num_nulls(forgotten_at, forgotten_by, forgotten_reason, swept_until) IN (0, 4)),
    CONSTRAINT one_retention_rule CHECK (num_nonnulls(keep_wal_time, keep_wal_epochs) <= 1)
);

-- Manual decisions about a whole pipeline: a changed definition, new epoch numbers, a rebuilt ledger.
CREATE TABLE lockstep.pipeline_change (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pipeline text NOT NULL REFERENCES lockstep.pipeline,
    change   text NOT NULL CHECK (change IN ('redefined', 'renumbered', 'rebuilt')),
    details  jsonb NOT NULL,  -- the previous state, or the new one
    actor    text NOT NULL,
    reason   text NOT NULL,
    at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX pipeline_change_last ON lockstep.pipeline_change (pipeline, change, id);

-- The savepoint that a pipeline started from, in place of a predecessor of its first epoch.
CREATE TABLE lockstep.savepoint (
    pipeline   text PRIMARY KEY REFERENCES lockstep.pipeline,
    savepoint  jsonb NOT NULL,  -- positions and files, as its folder describes them
    hash       text NOT NULL,
    actor      text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now()
);

-- Every sink ever planned: recovery also sweeps sinks that were removed from the definition.
CREATE TABLE lockstep.planned_sink (
    pipeline   text NOT NULL REFERENCES lockstep.pipeline,
    sink       text NOT NULL,
    spec       jsonb NOT NULL,
    spec_md5   text GENERATED ALWAYS AS (md5(spec::text)) STORED,
    planned_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pipeline, sink, spec_md5)
);

-- Sources of a cursor pipeline, each with the last epoch whose plan contains it. The end position of a source is then
-- read from a single plan, and a new source needs no lookup in plans.
CREATE TABLE lockstep.planned_source (
    pipeline   text NOT NULL REFERENCES lockstep.pipeline,
    source     text NOT NULL,
    last_epoch bigint NOT NULL,  -- an upper bound: that epoch may have been replanned without the source
    PRIMARY KEY (pipeline, source)
);

-- Operational arguments of sinks (timeouts, shards, retries), as last deployed. Plans don't contain them, so that they can
-- be changed for a decided epoch. Recovery, which has no definition, reads them here.
CREATE TABLE lockstep.deployed_setting (
    pipeline    text NOT NULL REFERENCES lockstep.pipeline,
    sink        text NOT NULL,
    spec        jsonb NOT NULL,
    deployed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pipeline, sink)
);

-- Manual settings, which take precedence over deployed ones. The last row of a sink applies; an empty one revokes the
-- earlier ones.
CREATE TABLE lockstep.setting_override (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pipeline text NOT NULL REFERENCES lockstep.pipeline,
    sink     text NOT NULL,
    settings jsonb NOT NULL,
    actor    text NOT NULL,
    reason   text NOT NULL CHECK (reason <> ''),
    at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX setting_override_sink ON lockstep.setting_override (pipeline, sink, id);

CREATE SEQUENCE lockstep.token AS bigint CACHE 1;

-- A generation is an epoch that replaces another epoch of the same range, with its own decision. Without state, epochs of
-- a cursor are replaced one by one, and the generation is outside the sequence of epochs. With state, a single generation
-- replaces all epochs from `replaces` to `replaces_to`, and takes their position in the sequence. A generation can also
-- restore the rows of an earlier generation from that one's retained WAL.
CREATE TABLE lockstep.epoch (
    pipeline         text NOT NULL REFERENCES lockstep.pipeline,
    id               bigint NOT NULL,
    span             tstzrange CHECK (NOT isempty(span) AND lower_inc(span) AND NOT upper_inc(span)),
    state            text NOT NULL,
    attempt          bigint NOT NULL,
    attempted_at     timestamptz NOT NULL DEFAULT now(),
    lease_until      timestamptz,
    owner_dag        text,
    owner_run        text,
    plan             jsonb NOT NULL,
    wal              text,
    manifest_hash    text CHECK (manifest_hash ~ '^[0-9a-f]{64}$'),
    code_version     text,
    summary          jsonb,
    reason           text,
    planned_at       timestamptz NOT NULL DEFAULT now(),
    changed_at       timestamptz NOT NULL DEFAULT now(),
    based_on         text,  -- manifest hash of the epoch with the preceding state; '': none, NULL: no state
    restaged_wal     text,  -- replacement for the damaged WAL of a decided epoch
    restaged_hash    text CHECK (restaged_hash ~ '^[0-9a-f]{64}$'),
    reordered        boolean NOT NULL DEFAULT false,  -- restaged: the same rows, possibly in another order
    root             bigint,  -- generation 0 of the range; NULL: this epoch
    generation       int NOT NULL DEFAULT 0,
    replaces         bigint,
    restate_reason   text,
    restores         bigint,  -- generation whose rows are restored; NULL: the range is read
    replaces_to      bigint,  -- last replaced epoch; NULL: only `replaces`
    PRIMARY KEY (pipeline, id),
    FOREIGN KEY (pipeline, replaces) REFERENCES lockstep.epoch,
    FOREIGN KEY (pipeline, restores) REFERENCES lockstep.epoch,
    CHECK ((wal IS NULL) = (manifest_hash IS NULL)),
    CHECK (state IN ('planned', 'void') OR wal IS NOT NULL),
    CONSTRAINT restaged_wal_has_hash CHECK ((restaged_wal IS NULL) = (restaged_hash IS NULL)),
    CONSTRAINT generation_has_root CHECK (
        CASE generation WHEN 0 THEN num_nonnulls(root, replaces, restate_reason) = 0
                        ELSE generation > 0 AND num_nulls(root, replaces, restate_reason) = 0 END),
    CONSTRAINT only_generation_restores CHECK (restores IS NULL OR generation > 0),
    CONSTRAINT replaced_range_is_valid CHECK (
        replaces_to IS NULL OR (replaces IS NOT NULL AND replaces_to >= replaces AND span IS NULL AND restores IS NULL)),
    CONSTRAINT one_root_per_interval
        EXCLUDE USING gist (pipeline WITH =, span WITH &&) WHERE (span IS NOT NULL AND generation = 0)
);
CREATE INDEX epoch_unfinished ON lockstep.epoch (pipeline, id) WHERE state NOT IN ('cleaned', 'replaced', 'void');
CREATE INDEX epoch_with_state ON lockstep.epoch (pipeline, id) WHERE based_on IS NOT NULL;
CREATE UNIQUE INDEX one_epoch_per_generation ON lockstep.epoch (pipeline, root, generation)
    WHERE root IS NOT NULL AND state <> 'void';  -- the number of a void generation is reused
CREATE INDEX epoch_generations ON lockstep.epoch (pipeline, root) WHERE root IS NOT NULL;
CREATE INDEX epoch_successors ON lockstep.epoch (pipeline, id) WHERE root IS NOT NULL;
CREATE INDEX epoch_replaced ON lockstep.epoch (pipeline, id) WHERE state = 'replaced';
CREATE INDEX epoch_restoring ON lockstep.epoch (pipeline, restores) WHERE restores IS NOT NULL;
CREATE INDEX epoch_replacing_range ON lockstep.epoch (pipeline, id) WHERE replaces_to IS NOT NULL;

-- The epoch and attempt that each run began: its tasks work for this attempt, never for "the current one".
CREATE TABLE lockstep.run (
    dag_id     text NOT NULL,
    run_id     text NOT NULL,
    pipeline   text NOT NULL,
    epoch      bigint NOT NULL,
    attempt    bigint NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    restate_reason text,  -- of this run; another run may have begun the epoch for another reason
    PRIMARY KEY (dag_id, run_id),
    FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch
);
CREATE INDEX run_epoch ON lockstep.run (pipeline, epoch);

CREATE TABLE lockstep.participant (
    pipeline    text NOT NULL,
    epoch       bigint NOT NULL,
    sink        text NOT NULL,
    state       text NOT NULL,
    execution   bigint,
    attempt     bigint,
    token       bigint,
    handle      text,
    target_id   text,
    rows        jsonb,
    publication text,
    changed_at  timestamptz NOT NULL DEFAULT now(),
    turn        boolean NOT NULL DEFAULT false,  -- holds the turn: sinks with unique keys load one epoch at a time
    lease_until timestamptz,  -- of a publisher; informational, no guard reads it
    unproven    text,  -- why it is not proven that the sink contains the published rows
    compared_at timestamptz,  -- last comparison with the sink's rows
    compared_by text,
    PRIMARY KEY (pipeline, epoch, sink),
    FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch,
    CHECK (state = 'pending' OR (token IS NOT NULL AND attempt IS NOT NULL AND target_id IS NOT NULL)),
    CHECK ((state = 'published') = (publication IS NOT NULL)),
    CONSTRAINT one_turn_per_pipeline
        EXCLUDE USING gist (pipeline WITH =, epoch WITH <>) WHERE (turn AND state <> 'published')
);
CREATE INDEX participant_unpublished ON lockstep.participant (pipeline, epoch) WHERE state <> 'published';
CREATE INDEX participant_unproven ON lockstep.participant (pipeline, epoch) WHERE unproven IS NOT NULL;

-- Every issued token of an attempt or execution. Sweeps resolve only tokens recorded here. The insert also makes the
-- advance of the sequence durable, which nextval alone would not.
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

-- Input files of an epoch: a whole file, or a byte range of a growing file.
CREATE TABLE lockstep.claim (
    pipeline text NOT NULL,
    source   text NOT NULL,
    path     text NOT NULL,
    epoch    bigint NOT NULL,
    starts   bigint NOT NULL DEFAULT 0 CHECK (starts >= 0),
    ends     bigint CHECK (ends > starts),  -- exclusive; NULL: the whole file
    size     bigint,
    mtime_ns bigint,
    digest   text,
    head     text,  -- digest of the first bytes of a growing file, which identifies it after a rename
    PRIMARY KEY (pipeline, source, path, starts),
    FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch
);
CREATE INDEX claim_epoch ON lockstep.claim (pipeline, epoch);
CREATE INDEX claim_head ON lockstep.claim (pipeline, source, head) WHERE head IS NOT NULL;

-- Sealed WALs retained after cleanup. A deletion sets expired_at, deletes the files, then the row: the WAL of a row without
-- expired_at is complete.
CREATE TABLE lockstep.retained_wal (
    pipeline   text NOT NULL,
    epoch      bigint NOT NULL,
    wal        text NOT NULL,  -- the folder, relative to staging
    bytes      bigint NOT NULL,
    retained_at    timestamptz NOT NULL DEFAULT now(),
    expired_at timestamptz,  -- from then on files may be missing
    PRIMARY KEY (pipeline, epoch),
    FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch
);

-- The result of the audits of a sealed WAL. Bound to its manifest: a WAL staged again is audited again.
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

-- Outbox of asset events: publications of pipelines run by Airflow. The row is inserted with the publication, and deleted
-- once the event was seen in Airflow's database.
CREATE TABLE lockstep.pending_asset_event (
    pipeline  text NOT NULL,
    epoch     bigint NOT NULL,
    sink      text NOT NULL,
    published_at  timestamptz NOT NULL DEFAULT now(),
    published_by  text NOT NULL,  -- the actor: a task emits the events of its own publications
    missed_at timestamptz,  -- first time that the event was not found in Airflow
    PRIMARY KEY (pipeline, epoch, sink),
    FOREIGN KEY (pipeline, epoch, sink) REFERENCES lockstep.participant
);

-- Per pipeline: counts of cleaned and void epochs below `below_epoch`, and the intervals they cover. Only
-- `lockstep status` reads it; without a row it counts all epochs.
CREATE TABLE lockstep.finished_rollup (
    pipeline text PRIMARY KEY REFERENCES lockstep.pipeline,
    below_epoch bigint NOT NULL,
    cleaned     bigint NOT NULL,
    void        bigint NOT NULL,
    covered     tstzmultirange NOT NULL
);

-- --- history ---

-- Partitioned by time; `lockstep prune` drops old partitions.
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

CREATE FUNCTION lockstep.write_transition(
    pipeline text, epoch bigint, sink text, source_state text, target_state text, attempt bigint, token bigint
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO lockstep.transition (pipeline, epoch, sink, source_state, target_state, attempt, token, role, actor, reason)
    VALUES (pipeline, epoch, sink, source_state, target_state, attempt, token,
            coalesce(nullif(current_setting('lockstep.role', true), ''), 'nobody'),
            coalesce(nullif(current_setting('lockstep.actor', true), ''), session_user),
            nullif(current_setting('lockstep.reason', true), ''))
$$;

CREATE FUNCTION lockstep.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% on lockstep.%: recorded rows of the ledger are immutable', TG_OP, TG_TABLE_NAME USING ERRCODE = 'LS001';
END $$;

-- Adds an empty partition from `starts` to `ends`; NULL: unbounded. Only the owner gets privileges on it: others read and
-- write it through lockstep.transition.
CREATE FUNCTION lockstep.add_history_partition(name text, starts timestamptz, ends timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    default_grantee record;
BEGIN
    EXECUTE format('CREATE TABLE lockstep.%I (LIKE lockstep.transition INCLUDING DEFAULTS)', name);
    FOR default_grantee IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS name
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = to_regclass(format('lockstep.%I', name)) AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON lockstep.%I FROM %s', name, default_grantee.name);
    END LOOP;
    EXECUTE format('CREATE TRIGGER protect_transition BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.%I '
                   'EXECUTE FUNCTION lockstep.refuse_change()', name);
    EXECUTE format('ALTER TABLE lockstep.transition ATTACH PARTITION lockstep.%I FOR VALUES FROM (%s) TO (%s)', name,
                   coalesce(quote_literal(starts), 'MINVALUE'), coalesce(quote_literal(ends), 'MAXVALUE'));
END $$;

-- Ends the current partition at the next midnight (UTC) and adds an unbounded one after it. Returns the name of the new
-- partition, or NULL if the current one starts then or later.
CREATE FUNCTION lockstep.split_history_partition(written text, starts timestamptz) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    midnight       timestamptz;
    next_partition text;
    attach         text := format('ALTER TABLE lockstep.transition ATTACH PARTITION lockstep.%I FOR VALUES FROM (%s) TO ', written,
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
    EXCEPTION WHEN check_violation THEN  -- a writer's clock was ahead
        EXECUTE format('SELECT (date_trunc(''day'', max(at) AT TIME ZONE ''UTC'') + interval ''1 day'') AT TIME ZONE ''UTC'' '
                       'FROM lockstep.%I', written) INTO midnight;
        EXECUTE attach || format('(%L)', midnight);
    END;
    next_partition := 'transition_from_' || to_char(midnight AT TIME ZONE 'UTC', 'YYYYMMDD');
    PERFORM lockstep.add_history_partition(next_partition, midnight, NULL);
    RETURN next_partition;
END $$;

CREATE TRIGGER protect_transition BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.transition EXECUTE FUNCTION lockstep.refuse_change();
SELECT lockstep.add_history_partition('transition_from_the_start', NULL, NULL);
SELECT lockstep.split_history_partition('transition_from_the_start', NULL);

-- --- legal transitions ---

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
    ('epoch', 'cleaned',   'replaced',  'commit'),
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

CREATE FUNCTION lockstep.require_legal_transition(subject text, source_state text, target_state text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    acting_role text := coalesce(nullif(current_setting('lockstep.role', true), ''), 'nobody');
BEGIN
    IF NOT EXISTS (
        SELECT FROM lockstep.legal_transition l
        WHERE l.subject = require_legal_transition.subject
          AND l.source_state IS NOT DISTINCT FROM require_legal_transition.source_state
          AND l.target_state = require_legal_transition.target_state
          AND l.role = acting_role
    ) THEN
        RAISE EXCEPTION 'role % may not move a % from % to %', acting_role, subject, coalesce(source_state, 'nothing'), target_state
            USING ERRCODE = 'LS001';
    END IF;
END $$;

-- --- guards of epochs ---

-- The last guard of the decision, also against manual statements.
CREATE FUNCTION lockstep.require_votes(of_pipeline text, of_epoch bigint, current_attempt bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) = 0 OR bool_or(p.state <> 'prepared' OR p.attempt <> current_attempt OR p.token < p.execution)
        FROM lockstep.participant p WHERE p.pipeline = of_pipeline AND p.epoch = of_epoch) THEN
        RAISE EXCEPTION 'epoch % of % lacks a vote of attempt %', of_epoch, of_pipeline, current_attempt USING ERRCODE = 'LS001';
    END IF;
END $$;

CREATE FUNCTION lockstep.guard_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM lockstep.require_legal_transition('epoch', NULL, NEW.state);
        PERFORM lockstep.write_transition(NEW.pipeline, NEW.id, NULL, NULL, NEW.state, NEW.attempt, NULL);
        RETURN NEW;
    END IF;
    IF (NEW.pipeline, NEW.id, NEW.span, NEW.planned_at) IS DISTINCT FROM (OLD.pipeline, OLD.id, OLD.span, OLD.planned_at) THEN
        RAISE EXCEPTION 'the pipeline, number and interval of an epoch are immutable' USING ERRCODE = 'LS001';
    END IF;
    IF NEW.state IS DISTINCT FROM OLD.state THEN
        PERFORM lockstep.require_legal_transition('epoch', OLD.state, NEW.state);
    END IF;
    IF NEW.attempt < OLD.attempt OR (NEW.attempt <> OLD.attempt AND OLD.state NOT IN ('planned', 'staged')) THEN
        RAISE EXCEPTION 'the attempt of a % epoch can not change from % to %', OLD.state, OLD.attempt, NEW.attempt USING ERRCODE = 'LS001';
    END IF;
    IF OLD.wal IS NOT NULL AND (NEW.wal, NEW.manifest_hash) IS DISTINCT FROM (OLD.wal, OLD.manifest_hash)
       AND NOT (NEW.wal IS NULL AND OLD.state = 'staged' AND NEW.state IN ('planned', 'void')) THEN
        RAISE EXCEPTION 'the WAL of a % epoch can not be changed', NEW.state USING ERRCODE = 'LS001';
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
        RAISE EXCEPTION 'epoch % of % is not published in every sink', NEW.id, NEW.pipeline USING ERRCODE = 'LS001';
    END IF;
    IF NEW.state IS DISTINCT FROM OLD.state OR NEW.attempt IS DISTINCT FROM OLD.attempt THEN
        NEW.changed_at := now();
        PERFORM lockstep.write_transition(NEW.pipeline, NEW.id, NULL, OLD.state, NEW.state, NEW.attempt, NULL);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER guard_epoch BEFORE INSERT OR UPDATE ON lockstep.epoch
    FOR EACH ROW EXECUTE FUNCTION lockstep.guard_epoch();

CREATE FUNCTION lockstep.record_planned_sources() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO lockstep.planned_source AS s (pipeline, source, last_epoch)
    SELECT NEW.pipeline, source, NEW.id FROM jsonb_object_keys(NEW.plan -> 'sources') source ORDER BY source
    ON CONFLICT (pipeline, source) DO UPDATE SET last_epoch = EXCLUDED.last_epoch
    WHERE s.last_epoch < EXCLUDED.last_epoch;
    RETURN NULL;
END $$;
CREATE TRIGGER record_planned_sources AFTER INSERT OR UPDATE OF plan ON lockstep.epoch
    FOR EACH ROW WHEN (NEW.span IS NULL) EXECUTE FUNCTION lockstep.record_planned_sources();

-- `based_on` must be the manifest hash of the predecessor, see the statement find_predecessor.
CREATE FUNCTION lockstep.guard_state() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    predecessor lockstep.epoch;
BEGIN
    IF (NEW.wal IS NULL AND NEW.based_on IS NOT NULL)
       OR (OLD.wal IS NOT NULL AND NEW.wal IS NOT NULL AND NEW.based_on IS DISTINCT FROM OLD.based_on) THEN
        RAISE EXCEPTION 'based_on can only be set with the WAL' USING ERRCODE = 'LS001';
    END IF;
    IF NEW.state = 'committed' AND OLD.state = 'staged' AND NEW.span IS NULL THEN
        IF NEW.generation > 0 AND NEW.replaces_to IS NULL THEN
            IF NEW.based_on IS NOT NULL THEN
                RAISE EXCEPTION 'epoch % of % is outside the sequence of epochs, and can have no state', NEW.id, NEW.pipeline USING ERRCODE = 'LS001';
            END IF;
            RETURN NEW;
        END IF;
        SELECT * INTO predecessor FROM lockstep.epoch e
        WHERE e.pipeline = NEW.pipeline AND e.id < CASE WHEN NEW.replaces_to IS NULL THEN NEW.id ELSE NEW.replaces END
          AND e.state NOT IN ('replaced', 'void') AND (e.generation = 0 OR e.replaces_to IS NOT NULL) ORDER BY e.id DESC LIMIT 1;
        IF (NEW.based_on IS NULL AND predecessor.based_on IS NOT NULL)
           OR (NEW.based_on IS NOT NULL AND NEW.based_on <> coalesce(predecessor.manifest_hash, '')) THEN
            RAISE EXCEPTION 'the state of epoch % of % is not based on that of the preceding epoch', NEW.id, NEW.pipeline
                USING ERRCODE = 'LS001';
        END IF;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER guard_state BEFORE UPDATE ON lockstep.epoch FOR EACH ROW EXECUTE FUNCTION lockstep.guard_state();

CREATE FUNCTION lockstep.guard_restage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT (OLD.state = 'committed' AND NEW.state = 'committed' AND NEW.restaged_wal IS NOT NULL
            AND current_setting('lockstep.role', true) = 'operator') THEN
        RAISE EXCEPTION 'only an operator can restage an epoch, and only a committed one: this one is %', OLD.state USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER guard_restage BEFORE UPDATE ON lockstep.epoch FOR EACH ROW
    WHEN ((NEW.restaged_wal, NEW.restaged_hash, NEW.reordered) IS DISTINCT FROM (OLD.restaged_wal, OLD.restaged_hash, OLD.reordered))
    EXECUTE FUNCTION lockstep.guard_restage();

CREATE FUNCTION lockstep.guard_generation() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    predecessor lockstep.epoch;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF (NEW.root, NEW.generation, NEW.replaces, NEW.replaces_to, NEW.restate_reason)
           IS DISTINCT FROM (OLD.root, OLD.generation, OLD.replaces, OLD.replaces_to, OLD.restate_reason) THEN
            RAISE EXCEPTION 'the generation of an epoch is immutable' USING ERRCODE = 'LS001';
        END IF;
        IF NEW.state = 'replaced' AND OLD.state <> 'replaced' AND NOT EXISTS (
            SELECT FROM lockstep.epoch e
            WHERE e.pipeline = NEW.pipeline AND e.root = coalesce(NEW.root, NEW.id) AND e.replaces = NEW.id AND e.state = 'committed'
        ) AND NOT EXISTS (
            SELECT FROM lockstep.epoch e
            WHERE e.pipeline = NEW.pipeline AND e.id > NEW.id AND e.replaces_to IS NOT NULL AND e.state = 'committed'
              AND NEW.id BETWEEN e.replaces AND e.replaces_to
        ) THEN
            RAISE EXCEPTION 'no committed epoch replaces epoch % of %', NEW.id, NEW.pipeline USING ERRCODE = 'LS001';
        END IF;
        RETURN NEW;
    END IF;
    IF NEW.generation > 0 THEN
        SELECT * INTO predecessor FROM lockstep.epoch e WHERE e.pipeline = NEW.pipeline AND e.id = NEW.replaces;
        IF predecessor.state IS DISTINCT FROM 'cleaned' OR (NEW.root, NEW.generation) <> (coalesce(predecessor.root, predecessor.id), predecessor.generation + 1)
           OR NEW.span IS DISTINCT FROM predecessor.span THEN
            RAISE EXCEPTION 'epoch % of % can not replace epoch %, which is %',
                NEW.id, NEW.pipeline, NEW.replaces, predecessor.state USING ERRCODE = 'LS001';
        END IF;
        IF NEW.replaces_to IS NOT NULL AND EXISTS (
            SELECT FROM lockstep.epoch e
            WHERE e.pipeline = NEW.pipeline AND e.id >= NEW.replaces AND e.id <> NEW.id
              AND (e.generation = 0 OR e.replaces_to IS NOT NULL)
              AND (e.state NOT IN ('cleaned', 'replaced', 'void') OR (e.id > NEW.replaces_to AND e.state = 'cleaned'))
        ) THEN
            RAISE EXCEPTION 'epoch % of % can not replace all epochs from % to %', NEW.id, NEW.pipeline, NEW.replaces, NEW.replaces_to
                USING ERRCODE = 'LS001';
        END IF;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER guard_generation BEFORE INSERT OR UPDATE ON lockstep.epoch
    FOR EACH ROW EXECUTE FUNCTION lockstep.guard_generation();

-- Committing a generation and replacing its predecessor is one transaction.
CREATE FUNCTION lockstep.require_replaced() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    unreplaced bigint;
BEGIN
    SELECT min(e.id) INTO unreplaced FROM lockstep.epoch e
    WHERE e.pipeline = NEW.pipeline AND e.id BETWEEN NEW.replaces AND coalesce(NEW.replaces_to, NEW.replaces)
      AND (NEW.replaces_to IS NULL OR e.generation = 0 OR e.replaces_to IS NOT NULL)
      AND e.state NOT IN ('replaced', 'void');
    IF unreplaced IS NOT NULL THEN
        RAISE EXCEPTION 'epoch % of % was committed, but epoch %, which it replaces, is not marked as replaced', NEW.id, NEW.pipeline, unreplaced
            USING ERRCODE = 'LS001';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER require_replaced AFTER UPDATE ON lockstep.epoch DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.replaces IS NOT NULL AND NEW.state = 'committed' AND OLD.state = 'staged')
    EXECUTE FUNCTION lockstep.require_replaced();

CREATE FUNCTION lockstep.guard_restoring() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        RAISE EXCEPTION 'the restored generation of an epoch is immutable' USING ERRCODE = 'LS001';
    END IF;
    IF NOT EXISTS (
        SELECT FROM lockstep.retained_wal k JOIN lockstep.epoch e ON (e.pipeline, e.id) = (k.pipeline, k.epoch)
        WHERE (k.pipeline, k.epoch) = (NEW.pipeline, NEW.restores) AND k.expired_at IS NULL
          AND e.state = 'replaced' AND coalesce(e.root, e.id) = NEW.root
    ) THEN
        RAISE EXCEPTION 'epoch % of % can not restore the rows of epoch %: its WAL is not retained', NEW.id, NEW.pipeline, NEW.restores
            USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER guard_restoring BEFORE INSERT ON lockstep.epoch FOR EACH ROW
    WHEN (NEW.restores IS NOT NULL) EXECUTE FUNCTION lockstep.guard_restoring();
CREATE TRIGGER guard_restoring_update BEFORE UPDATE ON lockstep.epoch FOR EACH ROW
    WHEN (NEW.restores IS DISTINCT FROM OLD.restores) EXECUTE FUNCTION lockstep.guard_restoring();

CREATE FUNCTION lockstep.protect_referenced_wal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (TG_OP = 'DELETE' OR (NEW.expired_at IS NOT NULL AND OLD.expired_at IS NULL)) AND EXISTS (
        SELECT FROM lockstep.epoch e
        WHERE e.pipeline = OLD.pipeline AND e.restores = OLD.epoch
          AND (e.state IN ('planned', 'staged', 'committed', 'published')
               OR EXISTS (SELECT FROM lockstep.retained_wal k
                          WHERE (k.pipeline, k.epoch) = (e.pipeline, e.id) AND k.expired_at IS NULL))
    ) THEN
        RAISE EXCEPTION 'the WAL of epoch % of % is referenced by another epoch', OLD.epoch, OLD.pipeline USING ERRCODE = 'LS001';
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER protect_referenced_wal BEFORE UPDATE OR DELETE ON lockstep.retained_wal
    FOR EACH ROW EXECUTE FUNCTION lockstep.protect_referenced_wal();

-- --- guards of participants ---

CREATE FUNCTION lockstep.guard_participant() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    acting_role text := coalesce(current_setting('lockstep.role', true), '');
    old_state   text := NULL;
    epoch_row   lockstep.epoch;
    legal       boolean;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF (NEW.pipeline, NEW.epoch, NEW.sink) IS DISTINCT FROM (OLD.pipeline, OLD.epoch, OLD.sink) THEN
            RAISE EXCEPTION 'the epoch and sink of a participant are immutable' USING ERRCODE = 'LS001';
        END IF;
        IF (NEW.state, NEW.token, NEW.attempt, NEW.handle, NEW.rows, NEW.publication)
           IS NOT DISTINCT FROM (OLD.state, OLD.token, OLD.attempt, OLD.handle, OLD.rows, OLD.publication)
           AND (NEW.target_id IS NOT DISTINCT FROM OLD.target_id OR (acting_role = 'operator' AND OLD.state = 'prepared')) THEN
            RETURN NEW;  -- an execution starts, or an operator retargets
        END IF;
        old_state := OLD.state;
    END IF;
    SELECT * INTO epoch_row FROM lockstep.epoch e WHERE (e.pipeline, e.id) = (coalesce(NEW.pipeline, OLD.pipeline), coalesce(NEW.epoch, OLD.epoch));
    IF TG_OP = 'DELETE' THEN
        IF acting_role <> 'operator' OR OLD.state <> 'pending' OR epoch_row.state NOT IN ('planned', 'staged') THEN
            RAISE EXCEPTION 'a participant of a % epoch can not be deleted', epoch_row.state USING ERRCODE = 'LS001';
        END IF;
        RETURN OLD;
    END IF;
    PERFORM lockstep.require_legal_transition('participant', old_state, NEW.state);
    legal := CASE NEW.state
        WHEN 'pending'   THEN epoch_row.state IN ('planned', 'staged')
        WHEN 'prepared'  THEN epoch_row.state = 'staged' AND NEW.attempt = epoch_row.attempt
        WHEN 'published' THEN epoch_row.state = 'committed' AND (NEW.token, NEW.attempt) = (OLD.token, OLD.attempt)
    END;
    IF legal IS NOT TRUE THEN
        RAISE EXCEPTION 'a participant of a % epoch at attempt % can''t become % with attempt %',
            epoch_row.state, epoch_row.attempt, NEW.state, NEW.attempt USING ERRCODE = 'LS001';
    END IF;
    NEW.changed_at := now();
    PERFORM lockstep.write_transition(NEW.pipeline, NEW.epoch, NEW.sink, old_state, NEW.state, NEW.attempt, NEW.token);
    RETURN NEW;
END $$;
CREATE TRIGGER guard_participant BEFORE INSERT OR UPDATE OR DELETE ON lockstep.participant
    FOR EACH ROW EXECUTE FUNCTION lockstep.guard_participant();

-- Only for pipelines of which a DAG began one of the last ten original epochs: others have no assets. The condition is
-- inline, since a function would need a privilege of its own for every writer of the table.
CREATE FUNCTION lockstep.record_pending_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO lockstep.pending_asset_event (pipeline, epoch, sink, published_by)
    SELECT NEW.pipeline, NEW.epoch, NEW.sink, coalesce(nullif(current_setting('lockstep.actor', true), ''), session_user)
    WHERE EXISTS (
        SELECT FROM (SELECT e.id FROM lockstep.epoch e WHERE e.pipeline = NEW.pipeline AND e.root IS NULL
                     ORDER BY e.id DESC LIMIT 10) latest
        JOIN lockstep.run r ON r.pipeline = NEW.pipeline AND r.epoch = latest.id
        WHERE r.dag_id NOT IN ('run_epoch', 'lockstep restate', 'lockstep restore')
    )
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER record_pending_event AFTER UPDATE ON lockstep.participant FOR EACH ROW
    WHEN (NEW.state = 'published' AND OLD.state = 'prepared') EXECUTE FUNCTION lockstep.record_pending_event();

-- --- guards of verdicts: votes and decisions require a verdict that passed or was released ---

CREATE FUNCTION lockstep.guard_verdict() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    acting_role text := coalesce(current_setting('lockstep.role', true), '');
BEGIN
    IF NOT EXISTS (
        SELECT FROM lockstep.epoch e
        WHERE (e.pipeline, e.id, e.manifest_hash, e.state) = (NEW.pipeline, NEW.epoch, NEW.manifest_hash, 'staged')
    ) THEN
        RAISE EXCEPTION 'a verdict requires the sealed WAL of a staged epoch' USING ERRCODE = 'LS001';
    END IF;
    IF TG_OP = 'INSERT' AND acting_role = 'audit' AND NEW.outcome IN ('passed', 'held') THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' AND acting_role = 'operator' AND OLD.outcome = 'held' AND NEW.outcome = 'released'
       AND (NEW.pipeline, NEW.epoch, NEW.manifest_hash, NEW.results) = (OLD.pipeline, OLD.epoch, OLD.manifest_hash, OLD.results) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'role % may not set a verdict to %', coalesce(nullif(acting_role, ''), 'nobody'), NEW.outcome USING ERRCODE = 'LS001';
END $$;
CREATE TRIGGER guard_verdict BEFORE INSERT OR UPDATE ON lockstep.verdict
    FOR EACH ROW EXECUTE FUNCTION lockstep.guard_verdict();

CREATE FUNCTION lockstep.require_verdict(epoch_row lockstep.epoch) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF epoch_row.plan ? 'audits' AND NOT EXISTS (
        SELECT FROM lockstep.verdict v
        WHERE (v.pipeline, v.epoch, v.manifest_hash) = (epoch_row.pipeline, epoch_row.id, epoch_row.manifest_hash)
          AND v.outcome IN ('passed', 'released')
    ) THEN
        RAISE EXCEPTION 'epoch % of % has audits, but no verdict that passed or was released', epoch_row.id, epoch_row.pipeline
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
    epoch_row lockstep.epoch;
BEGIN
    SELECT * INTO epoch_row FROM lockstep.epoch e WHERE (e.pipeline, e.id) = (NEW.pipeline, NEW.epoch);
    PERFORM lockstep.require_verdict(epoch_row);
    RETURN NEW;
END $$;
CREATE TRIGGER require_verdict_to_vote BEFORE UPDATE ON lockstep.participant FOR EACH ROW
    WHEN (NEW.state = 'prepared' AND (NEW.state, NEW.token) IS DISTINCT FROM (OLD.state, OLD.token))
    EXECUTE FUNCTION lockstep.require_verdict_to_vote();

-- --- guards of pipelines, immutable tables ---

CREATE FUNCTION lockstep.guard_pipeline() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.forgotten_at IS NOT NULL THEN
        RAISE EXCEPTION 'pipeline % was forgotten, which can not be undone', OLD.name USING ERRCODE = 'LS001';
    END IF;
    IF NEW.forgotten_at IS NOT NULL AND EXISTS (
        SELECT FROM lockstep.epoch e WHERE e.pipeline = NEW.name AND e.state <> 'void'
    ) THEN
        RAISE EXCEPTION 'pipeline % has epochs that are not void: it can not be forgotten', NEW.name USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER guard_pipeline BEFORE UPDATE ON lockstep.pipeline FOR EACH ROW EXECUTE FUNCTION lockstep.guard_pipeline();

-- A lost ledger is rebuilt in an empty one, under the id by which sinks and staging refer to the old one.
CREATE FUNCTION lockstep.guard_deployment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('lockstep.role', true), '') <> 'operator' OR EXISTS (SELECT FROM lockstep.epoch) THEN
        RAISE EXCEPTION 'the id of a ledger with epochs is immutable' USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER guard_deployment BEFORE UPDATE ON lockstep.deployment
    FOR EACH ROW EXECUTE FUNCTION lockstep.guard_deployment();

CREATE TRIGGER protect_deployment BEFORE DELETE OR TRUNCATE ON lockstep.deployment EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER protect_epoch BEFORE DELETE OR TRUNCATE ON lockstep.epoch EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER protect_participant BEFORE TRUNCATE ON lockstep.participant EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER protect_execution BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.execution EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER protect_verdict BEFORE DELETE OR TRUNCATE ON lockstep.verdict EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER protect_savepoint BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.savepoint EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER protect_pipeline_change BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.pipeline_change
    EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER protect_override BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.setting_override EXECUTE FUNCTION lockstep.refuse_change();
