-- The ledger's schema: the only truth about epochs.
--
--   begin    inserts an epoch (planned) and its participants (pending), or raises its attempt
--   stage    planned -> staged           sets wal and manifest_hash, once
--   prepare  pending -> prepared         one vote per sink, of the current attempt
--   commit   staged -> committed         the decision: this row, durable, decides every sink
--   publish  prepared -> published       and, with the last sink, committed -> published
--   cleanup  published -> cleaned
--   commit   cleaned -> replaced         of a later generation: its decision ends this one
--
-- Every writer locks the epoch's row first. legal_transition holds the arrows of lockstep.states. The triggers refuse
-- every other transition, also of statements by hand, and write each transition to the history.

CREATE EXTENSION IF NOT EXISTS btree_gist;

-- --- tables ---

CREATE TABLE lockstep.deployment (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id         uuid NOT NULL DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO lockstep.deployment DEFAULT VALUES;

-- A pipeline that never decided anything may be forgotten: it is listed no more. Its rows stay, and its name stays taken,
-- so that recovery knows what an old process still leaves under that name.
CREATE TABLE lockstep.pipeline (
    name            text PRIMARY KEY,
    identity        text NOT NULL CHECK (identity IN ('interval', 'cursor')),
    last_epoch      bigint NOT NULL DEFAULT 0,
    recovery_grace  interval NOT NULL DEFAULT '2 hours',
    created_at      timestamptz NOT NULL DEFAULT now(),
    forgotten_at    timestamptz,
    forgotten_by    text,
    forgotten_why   text,
    swept_until     timestamptz,  -- recovery sweeps a forgotten pipeline until then
    keep_wal_time   interval CHECK (keep_wal_time > interval '0'),
    keep_wal_epochs integer CHECK (keep_wal_epochs > 0),
    CHECK (num_nulls(forgotten_at, forgotten_by, forgotten_why, swept_until) IN (0, 4)),
    CONSTRAINT wals_are_kept_in_one_way CHECK (num_nonnulls(keep_wal_time, keep_wal_epochs) <= 1)
);

-- Decisions of a person about a pipeline as a whole: another definition, a new start of its numbers.
CREATE TABLE lockstep.pipeline_change (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pipeline text NOT NULL REFERENCES lockstep.pipeline,
    change   text NOT NULL CHECK (change IN ('redefined', 'renumbered', 'rebuilt')),
    found    jsonb NOT NULL,  -- what was there, or what it is from now on
    actor    text NOT NULL,
    reason   text NOT NULL,
    at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX pipeline_change_last ON lockstep.pipeline_change (pipeline, change, id);

-- What a pipeline starts with, in place of an epoch before its first.
CREATE TABLE lockstep.savepoint (
    pipeline   text PRIMARY KEY REFERENCES lockstep.pipeline,
    savepoint  jsonb NOT NULL,  -- positions and files, as its folder describes them
    hash       text NOT NULL,
    actor      text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now()
);

-- Every sink that was ever planned: recovery also sweeps those that no plan has any more.
CREATE TABLE lockstep.planned_sink (
    pipeline   text NOT NULL REFERENCES lockstep.pipeline,
    sink       text NOT NULL,
    spec       jsonb NOT NULL,
    spec_md5   text GENERATED ALWAYS AS (md5(spec::text)) STORED,
    planned_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pipeline, sink, spec_md5)
);

-- The sources that the plans of a cursor pipeline have named, each with the last epoch that did: where a source ended is
-- looked up in one plan, and a new source in none.
CREATE TABLE lockstep.planned_source (
    pipeline   text NOT NULL REFERENCES lockstep.pipeline,
    source     text NOT NULL,
    last_epoch bigint NOT NULL,  -- at most an epoch that was replanned without it
    PRIMARY KEY (pipeline, source)
);

-- Operational arguments of sinks (timeouts, shards, tries). No plan holds them, so that a decided epoch can be helped.
-- These are of the definition that began last: recovery has no definition.
CREATE TABLE lockstep.deployed_setting (
    pipeline    text NOT NULL REFERENCES lockstep.pipeline,
    sink        text NOT NULL,
    spec        jsonb NOT NULL,
    deployed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pipeline, sink)
);

-- A person's settings, which take precedence. The last row of a sink is in force; an empty one revokes those before.
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

-- A generation is an epoch that takes the place of another one of its range, with its own decision. Epochs of a cursor
-- without state are replaced singly, aside of the order in which epochs follow one another. With state, all epochs from
-- `replaces` to `replaces_to` are replaced as one, which takes their place in that order. A generation may also show the
-- rows of an earlier generation again, from that one's retained WAL.
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
    based_on         text,  -- manifest hash of the epoch whose state it starts from; '' for none, NULL without state
    restaged_wal     text,  -- where a decided epoch is read from whose WAL was damaged and staged again
    restaged_hash    text CHECK (restaged_hash ~ '^[0-9a-f]{64}$'),
    reordered        boolean NOT NULL DEFAULT false,  -- restaged: the same rows, perhaps in another order
    root             bigint,  -- generation 0 of its range; NULL: this is it
    generation       int NOT NULL DEFAULT 0,
    replaces         bigint,
    restate_reason text,
    restores         bigint,  -- the generation whose rows it shows again; NULL: it has read its range
    replaces_to      bigint,  -- last epoch of those it replaces; NULL: `replaces` alone
    PRIMARY KEY (pipeline, id),
    FOREIGN KEY (pipeline, replaces) REFERENCES lockstep.epoch,
    FOREIGN KEY (pipeline, restores) REFERENCES lockstep.epoch,
    CHECK ((wal IS NULL) = (manifest_hash IS NULL)),
    CHECK (state IN ('planned', 'void') OR wal IS NOT NULL),
    CONSTRAINT what_was_restaged_is_whole CHECK ((restaged_wal IS NULL) = (restaged_hash IS NULL)),
    CONSTRAINT a_generation_is_of_a_root CHECK (
        CASE generation WHEN 0 THEN num_nonnulls(root, replaces, restate_reason) = 0
                        ELSE generation > 0 AND num_nulls(root, replaces, restate_reason) = 0 END),
    CONSTRAINT only_a_generation_restores CHECK (restores IS NULL OR generation > 0),
    CONSTRAINT what_is_replaced_has_an_end CHECK (
        replaces_to IS NULL OR (replaces IS NOT NULL AND replaces_to >= replaces AND span IS NULL AND restores IS NULL)),
    CONSTRAINT an_interval_has_one_root
        EXCLUDE USING gist (pipeline WITH =, span WITH &&) WHERE (span IS NOT NULL AND generation = 0)
);
CREATE INDEX epoch_unfinished ON lockstep.epoch (pipeline, id) WHERE state NOT IN ('cleaned', 'replaced', 'void');
CREATE INDEX epoch_with_state ON lockstep.epoch (pipeline, id) WHERE based_on IS NOT NULL;
CREATE UNIQUE INDEX one_epoch_of_a_generation ON lockstep.epoch (pipeline, root, generation)
    WHERE root IS NOT NULL AND state <> 'void';  -- the next one takes the number of a void one
CREATE INDEX epoch_generations ON lockstep.epoch (pipeline, root) WHERE root IS NOT NULL;
CREATE INDEX epoch_successors ON lockstep.epoch (pipeline, id) WHERE root IS NOT NULL;
CREATE INDEX epoch_replaced ON lockstep.epoch (pipeline, id) WHERE state = 'replaced';
CREATE INDEX epoch_restoring ON lockstep.epoch (pipeline, restores) WHERE restores IS NOT NULL;
CREATE INDEX epoch_of_several ON lockstep.epoch (pipeline, id) WHERE replaces_to IS NOT NULL;

-- The row of each run's begin: a task asks it for its attempt, never for "the current one".
CREATE TABLE lockstep.run (
    dag_id     text NOT NULL,
    run_id     text NOT NULL,
    pipeline   text NOT NULL,
    epoch      bigint NOT NULL,
    attempt    bigint NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    restate    text,  -- why it was to restate; another run may have begun the epoch, for a reason of its own
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
    turn        boolean NOT NULL DEFAULT false,  -- rows that could collide in a unique key go epoch by epoch
    lease_until timestamptz,  -- of a publisher; for messages alone, no guard reads it
    unproven    text,  -- of a published one: why nothing proves that the sink shows the rows
    compared_at timestamptz,  -- when the sink was last read back
    compared_by text,
    PRIMARY KEY (pipeline, epoch, sink),
    FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch,
    CHECK (state = 'pending' OR (token IS NOT NULL AND attempt IS NOT NULL AND target_id IS NOT NULL)),
    CHECK ((state = 'published') = (publication IS NOT NULL)),
    CONSTRAINT one_epoch_has_the_turn
        EXCLUDE USING gist (pipeline WITH =, epoch WITH <>) WHERE (turn AND state <> 'published')
);
CREATE INDEX participant_unpublished ON lockstep.participant (pipeline, epoch) WHERE state <> 'published';
CREATE INDEX participant_unproven ON lockstep.participant (pipeline, epoch) WHERE unproven IS NOT NULL;

-- Every token ever issued: attempts and executions. A sweeper resolves only tokens that are recorded here. Inserting the row
-- also makes the sequence's advance durable, which nextval alone would not.
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

-- What an epoch reads of files: a whole file as it was, or a range of the bytes of a file that grows.
CREATE TABLE lockstep.claim (
    pipeline text NOT NULL,
    source   text NOT NULL,
    path     text NOT NULL,
    epoch    bigint NOT NULL,
    starts   bigint NOT NULL DEFAULT 0 CHECK (starts >= 0),
    ends     bigint CHECK (ends > starts),  -- the byte after the range; NULL: the whole file
    size     bigint,
    mtime_ns bigint,
    digest   text,
    head     text,  -- how a growing file begins, which identifies it under another name
    PRIMARY KEY (pipeline, source, path, starts),
    FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch
);
CREATE INDEX claim_epoch ON lockstep.claim (pipeline, epoch);
CREATE INDEX claim_head ON lockstep.claim (pipeline, source, head) WHERE head IS NOT NULL;

-- Sealed WALs that stay after cleanup. A deletion sets expired_at, deletes, and removes the row last: a row that isn't
-- expired stands for a whole WAL.
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

-- The result of the audits of a sealed WAL. Bound to the manifest: what is staged again has none.
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

-- Publications of pipelines that Airflow runs whose asset events aren't proven to be in Airflow's database. The row is
-- written with the publication, and deleted when the event was seen there.
CREATE TABLE lockstep.pending_asset_event (
    pipeline  text NOT NULL,
    epoch     bigint NOT NULL,
    sink      text NOT NULL,
    shown_at  timestamptz NOT NULL DEFAULT now(),
    shown_by  text NOT NULL,  -- the actor: a task's try emits the events of its own publications
    missed_at timestamptz,  -- since when the event is looked for in Airflow in vain
    PRIMARY KEY (pipeline, epoch, sink),
    FOREIGN KEY (pipeline, epoch, sink) REFERENCES lockstep.participant
);

-- Per pipeline: how many epochs below `below` are cleaned and void, which they stay, and which intervals they cover. Only
-- `lockstep status` reads it; without a row it counts everything.
CREATE TABLE lockstep.finished (
    pipeline text PRIMARY KEY REFERENCES lockstep.pipeline,
    below    bigint NOT NULL,
    cleaned  bigint NOT NULL,
    void     bigint NOT NULL,
    covered  tstzmultirange NOT NULL
);

-- --- history ---

-- In partitions by time, of which `lockstep prune` drops old ones whole.
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

CREATE FUNCTION lockstep.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% on lockstep.%: what the ledger has recorded stays', TG_OP, TG_TABLE_NAME USING ERRCODE = 'LS001';
END $$;

-- A new, empty partition from `starts` to `ends`; NULL: open. It has the history's triggers, and only the owner has rights
-- to it: others read and write it through the history.
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

-- Ends the partition that is written to at the next midnight (UTC), and adds one behind it; every time has a partition.
-- Returns the new one's name; NULL where the old one ends there, or later, already.
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

CREATE TRIGGER keep_transition BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.transition EXECUTE FUNCTION lockstep.refuse();
SELECT lockstep.add_history('transition_from_the_start', NULL, NULL);
SELECT lockstep.split_history('transition_from_the_start', NULL);

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

-- --- guards of epochs ---

-- The last guard of the decision, also against statements by hand.
CREATE FUNCTION lockstep.require_votes(deciding text, number bigint, current_attempt bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) = 0 OR bool_or(p.state <> 'prepared' OR p.attempt <> current_attempt OR p.token < p.execution)
        FROM lockstep.participant p WHERE p.pipeline = deciding AND p.epoch = number) THEN
        RAISE EXCEPTION 'epoch % of % lacks a vote of attempt %', number, deciding, current_attempt USING ERRCODE = 'LS001';
    END IF;
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
CREATE TRIGGER watch_epoch BEFORE INSERT OR UPDATE ON lockstep.epoch
    FOR EACH ROW EXECUTE FUNCTION lockstep.watch_epoch();

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

-- The epoch before, as `find_predecessor` has it.
CREATE FUNCTION lockstep.watch_state() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before lockstep.epoch;
BEGIN
    IF (NEW.wal IS NULL AND NEW.based_on IS NOT NULL)
       OR (OLD.wal IS NOT NULL AND NEW.wal IS NOT NULL AND NEW.based_on IS DISTINCT FROM OLD.based_on) THEN
        RAISE EXCEPTION 'what the state of an epoch is based on is set with its WAL' USING ERRCODE = 'LS001';
    END IF;
    IF NEW.state = 'committed' AND OLD.state = 'staged' AND NEW.span IS NULL THEN
        IF NEW.generation > 0 AND NEW.replaces_to IS NULL THEN
            IF NEW.based_on IS NOT NULL THEN
                RAISE EXCEPTION 'epoch % of % stands aside of the order, and can have no state', NEW.id, NEW.pipeline USING ERRCODE = 'LS001';
            END IF;
            RETURN NEW;
        END IF;
        SELECT * INTO before FROM lockstep.epoch e
        WHERE e.pipeline = NEW.pipeline AND e.id < CASE WHEN NEW.replaces_to IS NULL THEN NEW.id ELSE NEW.replaces END
          AND e.state NOT IN ('replaced', 'void') AND (e.generation = 0 OR e.replaces_to IS NOT NULL) ORDER BY e.id DESC LIMIT 1;
        IF (NEW.based_on IS NULL AND before.based_on IS NOT NULL)
           OR (NEW.based_on IS NOT NULL AND NEW.based_on <> coalesce(before.manifest_hash, '')) THEN
            RAISE EXCEPTION 'the state of epoch % of % was not made from that of the epoch before', NEW.id, NEW.pipeline
                USING ERRCODE = 'LS001';
        END IF;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER watch_state BEFORE UPDATE ON lockstep.epoch FOR EACH ROW EXECUTE FUNCTION lockstep.watch_state();

CREATE FUNCTION lockstep.watch_restage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT (OLD.state = 'committed' AND NEW.state = 'committed' AND NEW.restaged_wal IS NOT NULL
            AND current_setting('lockstep.role', true) = 'operator') THEN
        RAISE EXCEPTION 'only a person has a committed epoch staged again, this one is %', OLD.state USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER watch_restage BEFORE UPDATE ON lockstep.epoch FOR EACH ROW
    WHEN ((NEW.restaged_wal, NEW.restaged_hash, NEW.reordered) IS DISTINCT FROM (OLD.restaged_wal, OLD.restaged_hash, OLD.reordered))
    EXECUTE FUNCTION lockstep.watch_restage();

CREATE FUNCTION lockstep.watch_generation() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before lockstep.epoch;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF (NEW.root, NEW.generation, NEW.replaces, NEW.replaces_to, NEW.restate_reason)
           IS DISTINCT FROM (OLD.root, OLD.generation, OLD.replaces, OLD.replaces_to, OLD.restate_reason) THEN
            RAISE EXCEPTION 'an epoch keeps its generation' USING ERRCODE = 'LS001';
        END IF;
        IF NEW.state = 'replaced' AND OLD.state <> 'replaced' AND NOT EXISTS (
            SELECT FROM lockstep.epoch e
            WHERE e.pipeline = NEW.pipeline AND e.root = coalesce(NEW.root, NEW.id) AND e.replaces = NEW.id AND e.state = 'committed'
        ) AND NOT EXISTS (
            SELECT FROM lockstep.epoch e
            WHERE e.pipeline = NEW.pipeline AND e.id > NEW.id AND e.replaces_to IS NOT NULL AND e.state = 'committed'
              AND NEW.id BETWEEN e.replaces AND e.replaces_to
        ) THEN
            RAISE EXCEPTION 'nothing takes the place of epoch % of %', NEW.id, NEW.pipeline USING ERRCODE = 'LS001';
        END IF;
        RETURN NEW;
    END IF;
    IF NEW.generation > 0 THEN
        SELECT * INTO before FROM lockstep.epoch e WHERE e.pipeline = NEW.pipeline AND e.id = NEW.replaces;
        IF before.state IS DISTINCT FROM 'cleaned' OR (NEW.root, NEW.generation) <> (coalesce(before.root, before.id), before.generation + 1)
           OR NEW.span IS DISTINCT FROM before.span THEN
            RAISE EXCEPTION 'epoch % of % can not take the place of epoch %, which is %',
                NEW.id, NEW.pipeline, NEW.replaces, before.state USING ERRCODE = 'LS001';
        END IF;
        IF NEW.replaces_to IS NOT NULL AND EXISTS (
            SELECT FROM lockstep.epoch e
            WHERE e.pipeline = NEW.pipeline AND e.id >= NEW.replaces AND e.id <> NEW.id
              AND (e.generation = 0 OR e.replaces_to IS NOT NULL)
              AND (e.state NOT IN ('cleaned', 'replaced', 'void') OR (e.id > NEW.replaces_to AND e.state = 'cleaned'))
        ) THEN
            RAISE EXCEPTION 'epoch % of % can not take the place of all from % to %', NEW.id, NEW.pipeline, NEW.replaces, NEW.replaces_to
                USING ERRCODE = 'LS001';
        END IF;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER watch_generation BEFORE INSERT OR UPDATE ON lockstep.epoch
    FOR EACH ROW EXECUTE FUNCTION lockstep.watch_generation();

-- One decision ends one generation and begins the next.
CREATE FUNCTION lockstep.require_replaced() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    standing bigint;
BEGIN
    SELECT min(e.id) INTO standing FROM lockstep.epoch e
    WHERE e.pipeline = NEW.pipeline AND e.id BETWEEN NEW.replaces AND coalesce(NEW.replaces_to, NEW.replaces)
      AND (NEW.replaces_to IS NULL OR e.generation = 0 OR e.replaces_to IS NOT NULL)
      AND e.state NOT IN ('replaced', 'void');
    IF standing IS NOT NULL THEN
        RAISE EXCEPTION 'epoch % of % was decided, and epoch %, whose place it takes, is not replaced', NEW.id, NEW.pipeline, standing
            USING ERRCODE = 'LS001';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER require_replaced AFTER UPDATE ON lockstep.epoch DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.replaces IS NOT NULL AND NEW.state = 'committed' AND OLD.state = 'staged')
    EXECUTE FUNCTION lockstep.require_replaced();

CREATE FUNCTION lockstep.watch_restoring() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        RAISE EXCEPTION 'an epoch keeps its generation, and whose rows it shows' USING ERRCODE = 'LS001';
    END IF;
    IF NOT EXISTS (
        SELECT FROM lockstep.kept_wal k JOIN lockstep.epoch e ON (e.pipeline, e.id) = (k.pipeline, k.epoch)
        WHERE (k.pipeline, k.epoch) = (NEW.pipeline, NEW.restores) AND k.expired_at IS NULL
          AND e.state = 'replaced' AND coalesce(e.root, e.id) = NEW.root
    ) THEN
        RAISE EXCEPTION 'epoch % of % can not show the rows of epoch % again: its WAL is not kept', NEW.id, NEW.pipeline, NEW.restores
            USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER watch_restoring BEFORE INSERT ON lockstep.epoch FOR EACH ROW
    WHEN (NEW.restores IS NOT NULL) EXECUTE FUNCTION lockstep.watch_restoring();
CREATE TRIGGER keep_restoring BEFORE UPDATE ON lockstep.epoch FOR EACH ROW
    WHEN (NEW.restores IS DISTINCT FROM OLD.restores) EXECUTE FUNCTION lockstep.watch_restoring();

CREATE FUNCTION lockstep.keep_what_is_referred_to() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (TG_OP = 'DELETE' OR (NEW.expired_at IS NOT NULL AND OLD.expired_at IS NULL)) AND EXISTS (
        SELECT FROM lockstep.epoch e
        WHERE e.pipeline = OLD.pipeline AND e.restores = OLD.epoch
          AND (e.state IN ('planned', 'staged', 'committed', 'published')
               OR EXISTS (SELECT FROM lockstep.kept_wal k
                          WHERE (k.pipeline, k.epoch) = (e.pipeline, e.id) AND k.expired_at IS NULL))
    ) THEN
        RAISE EXCEPTION 'the WAL of epoch % of % is referred to: it stays', OLD.epoch, OLD.pipeline USING ERRCODE = 'LS001';
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER keep_what_is_referred_to BEFORE UPDATE OR DELETE ON lockstep.kept_wal
    FOR EACH ROW EXECUTE FUNCTION lockstep.keep_what_is_referred_to();

-- --- guards of participants ---

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

-- A pipeline that no DAG has begun one of the youngest original epochs of has no assets. The condition stands here rather
-- than in a function: who updates the table would need a right to that.
CREATE FUNCTION lockstep.note_untold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO lockstep.pending_asset_event (pipeline, epoch, sink, shown_by)
    SELECT NEW.pipeline, NEW.epoch, NEW.sink, coalesce(nullif(current_setting('lockstep.actor', true), ''), session_user)
    WHERE EXISTS (
        SELECT FROM (SELECT e.id FROM lockstep.epoch e WHERE e.pipeline = NEW.pipeline AND e.root IS NULL
                     ORDER BY e.id DESC LIMIT 10) young
        JOIN lockstep.run r ON r.pipeline = NEW.pipeline AND r.epoch = young.id
        WHERE r.dag_id NOT IN ('run_epoch', 'lockstep restate', 'lockstep restore')
    )
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER note_untold AFTER UPDATE ON lockstep.participant FOR EACH ROW
    WHEN (NEW.state = 'published' AND OLD.state = 'prepared') EXECUTE FUNCTION lockstep.note_untold();

-- --- guards of verdicts: no vote and no decision without one that lets the epoch go on ---

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

-- --- guards of pipelines, and what is never changed ---

CREATE FUNCTION lockstep.watch_pipeline() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.forgotten_at IS NOT NULL THEN
        RAISE EXCEPTION 'pipeline % was forgotten, and stays so', OLD.name USING ERRCODE = 'LS001';
    END IF;
    IF NEW.forgotten_at IS NOT NULL AND EXISTS (
        SELECT FROM lockstep.epoch e WHERE e.pipeline = NEW.name AND e.state <> 'void'
    ) THEN
        RAISE EXCEPTION 'pipeline % has epochs that are not void: it can not be forgotten', NEW.name USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER watch_pipeline BEFORE UPDATE ON lockstep.pipeline FOR EACH ROW EXECUTE FUNCTION lockstep.watch_pipeline();

-- A ledger that was lost is made anew in an empty one: it takes the old one's id, by which sinks and staging know it.
CREATE FUNCTION lockstep.watch_deployment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('lockstep.role', true), '') <> 'operator' OR EXISTS (SELECT FROM lockstep.epoch) THEN
        RAISE EXCEPTION 'the id of a ledger that has epochs stays' USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER watch_deployment BEFORE UPDATE ON lockstep.deployment
    FOR EACH ROW EXECUTE FUNCTION lockstep.watch_deployment();

CREATE TRIGGER keep_deployment BEFORE DELETE OR TRUNCATE ON lockstep.deployment EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_epoch BEFORE DELETE OR TRUNCATE ON lockstep.epoch EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_participant BEFORE TRUNCATE ON lockstep.participant EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_execution BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.execution EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_verdict BEFORE DELETE OR TRUNCATE ON lockstep.verdict EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_savepoint BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.savepoint EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_pipeline_change BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.pipeline_change
    EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_override BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.setting_override EXECUTE FUNCTION lockstep.refuse();
