SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA lockstep;
CREATE EXTENSION IF NOT EXISTS btree_gist WITH SCHEMA public;
CREATE FUNCTION lockstep.add_history_partition(name text, starts timestamp with time zone, ends timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.guard_deployment() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF coalesce(current_setting('lockstep.role', true), '') <> 'operator' OR EXISTS (SELECT FROM lockstep.epoch) THEN
        RAISE EXCEPTION 'the id of a ledger with epochs is immutable' USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION lockstep.guard_epoch() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.guard_generation() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.guard_participant() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.guard_pipeline() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.guard_restage() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT (OLD.state = 'committed' AND NEW.state = 'committed' AND NEW.restaged_wal IS NOT NULL
            AND current_setting('lockstep.role', true) = 'operator') THEN
        RAISE EXCEPTION 'only an operator can restage an epoch, and only a committed one: this one is %', OLD.state USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION lockstep.guard_restoring() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.guard_state() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.guard_verdict() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.protect_referenced_wal() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.record_pending_event() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.record_planned_sources() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO lockstep.planned_source AS s (pipeline, source, last_epoch)
    SELECT NEW.pipeline, source, NEW.id FROM jsonb_object_keys(NEW.plan -> 'sources') source ORDER BY source
    ON CONFLICT (pipeline, source) DO UPDATE SET last_epoch = EXCLUDED.last_epoch
    WHERE s.last_epoch < EXCLUDED.last_epoch;
    RETURN NULL;
END $$;
CREATE FUNCTION lockstep.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION '% on lockstep.%: recorded rows of the ledger are immutable', TG_OP, TG_TABLE_NAME USING ERRCODE = 'LS001';
END $$;
CREATE FUNCTION lockstep.require_legal_transition(subject text, source_state text, target_state text) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.require_replaced() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE lockstep.epoch (
    pipeline text NOT NULL,
    id bigint NOT NULL,
    span tstzrange,
    state text NOT NULL,
    attempt bigint NOT NULL,
    attempted_at timestamp with time zone DEFAULT now() NOT NULL,
    lease_until timestamp with time zone,
    owner_dag text,
    owner_run text,
    plan jsonb NOT NULL,
    wal text,
    manifest_hash text,
    code_version text,
    summary jsonb,
    reason text,
    planned_at timestamp with time zone DEFAULT now() NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    based_on text,
    restaged_wal text,
    restaged_hash text,
    reordered boolean DEFAULT false NOT NULL,
    root bigint,
    generation integer DEFAULT 0 NOT NULL,
    replaces bigint,
    restate_reason text,
    restores bigint,
    replaces_to bigint,
    CONSTRAINT epoch_check CHECK (((wal IS NULL) = (manifest_hash IS NULL))),
    CONSTRAINT epoch_check1 CHECK (((state = ANY (ARRAY['planned'::text, 'void'::text])) OR (wal IS NOT NULL))),
    CONSTRAINT epoch_manifest_hash_check CHECK ((manifest_hash ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT epoch_restaged_hash_check CHECK ((restaged_hash ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT epoch_span_check CHECK (((NOT isempty(span)) AND lower_inc(span) AND (NOT upper_inc(span)))),
    CONSTRAINT generation_has_root CHECK (
CASE generation
    WHEN 0 THEN (num_nonnulls(root, replaces, restate_reason) = 0)
    ELSE ((generation > 0) AND (num_nulls(root, replaces, restate_reason) = 0))
END),
    CONSTRAINT only_generation_restores CHECK (((restores IS NULL) OR (generation > 0))),
    CONSTRAINT replaced_range_is_valid CHECK (((replaces_to IS NULL) OR ((replaces IS NOT NULL) AND (replaces_to >= replaces) AND (span IS NULL) AND (restores IS NULL)))),
    CONSTRAINT restaged_wal_has_hash CHECK (((restaged_wal IS NULL) = (restaged_hash IS NULL)))
);
CREATE FUNCTION lockstep.require_verdict(epoch_row lockstep.epoch) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.require_verdict_to_decide() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM lockstep.require_verdict(NEW);
    RETURN NEW;
END $$;
CREATE FUNCTION lockstep.require_verdict_to_vote() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    epoch_row lockstep.epoch;
BEGIN
    SELECT * INTO epoch_row FROM lockstep.epoch e WHERE (e.pipeline, e.id) = (NEW.pipeline, NEW.epoch);
    PERFORM lockstep.require_verdict(epoch_row);
    RETURN NEW;
END $$;
CREATE FUNCTION lockstep.require_votes(of_pipeline text, of_epoch bigint, current_attempt bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF (SELECT count(*) = 0 OR bool_or(p.state <> 'prepared' OR p.attempt <> current_attempt OR p.token < p.execution)
        FROM lockstep.participant p WHERE p.pipeline = of_pipeline AND p.epoch = of_epoch) THEN
        RAISE EXCEPTION 'epoch % of % lacks a vote of attempt %', of_epoch, of_pipeline, current_attempt USING ERRCODE = 'LS001';
    END IF;
END $$;
CREATE FUNCTION lockstep.split_history_partition(written text, starts timestamp with time zone) RETURNS text
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.write_transition(pipeline text, epoch bigint, sink text, source_state text, target_state text, attempt bigint, token bigint) RETURNS void
    LANGUAGE sql
    AS $$
    INSERT INTO lockstep.transition (pipeline, epoch, sink, source_state, target_state, attempt, token, role, actor, reason)
    VALUES (pipeline, epoch, sink, source_state, target_state, attempt, token,
            coalesce(nullif(current_setting('lockstep.role', true), ''), 'nobody'),
            coalesce(nullif(current_setting('lockstep.actor', true), ''), session_user),
            nullif(current_setting('lockstep.reason', true), ''))
$$;
CREATE TABLE lockstep.claim (
    pipeline text NOT NULL,
    source text NOT NULL,
    path text NOT NULL,
    epoch bigint NOT NULL,
    starts bigint DEFAULT 0 NOT NULL,
    ends bigint,
    size bigint,
    mtime_ns bigint,
    digest text,
    head text,
    CONSTRAINT claim_check CHECK ((ends > starts)),
    CONSTRAINT claim_starts_check CHECK ((starts >= 0))
);
CREATE TABLE lockstep.deployed_setting (
    pipeline text NOT NULL,
    sink text NOT NULL,
    spec jsonb NOT NULL,
    deployed_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE lockstep.deployment (
    singleton boolean DEFAULT true NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT deployment_singleton_check CHECK (singleton)
);
CREATE SEQUENCE lockstep.token
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE lockstep.execution (
    token bigint DEFAULT nextval('lockstep.token'::regclass) NOT NULL,
    pipeline text NOT NULL,
    epoch bigint NOT NULL,
    sink text,
    attempt bigint,
    role text NOT NULL,
    actor text NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE lockstep.finished_rollup (
    pipeline text NOT NULL,
    below_epoch bigint NOT NULL,
    cleaned bigint NOT NULL,
    void bigint NOT NULL,
    covered tstzmultirange NOT NULL
);
CREATE TABLE lockstep.legal_transition (
    subject text NOT NULL,
    source_state text,
    target_state text NOT NULL,
    role text NOT NULL
);
CREATE TABLE lockstep.migration (
    version integer NOT NULL,
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE lockstep.participant (
    pipeline text NOT NULL,
    epoch bigint NOT NULL,
    sink text NOT NULL,
    state text NOT NULL,
    execution bigint,
    attempt bigint,
    token bigint,
    handle text,
    target_id text,
    rows jsonb,
    publication text,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    turn boolean DEFAULT false NOT NULL,
    lease_until timestamp with time zone,
    unproven text,
    compared_at timestamp with time zone,
    compared_by text,
    CONSTRAINT participant_check CHECK (((state = 'pending'::text) OR ((token IS NOT NULL) AND (attempt IS NOT NULL) AND (target_id IS NOT NULL)))),
    CONSTRAINT participant_check1 CHECK (((state = 'published'::text) = (publication IS NOT NULL)))
);
CREATE TABLE lockstep.pending_asset_event (
    pipeline text NOT NULL,
    epoch bigint NOT NULL,
    sink text NOT NULL,
    published_at timestamp with time zone DEFAULT now() NOT NULL,
    published_by text NOT NULL,
    missed_at timestamp with time zone
);
CREATE TABLE lockstep.pipeline (
    name text NOT NULL,
    keyed_by text NOT NULL,
    last_epoch bigint DEFAULT 0 NOT NULL,
    recovery_grace interval DEFAULT '02:00:00'::interval NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    forgotten_at timestamp with time zone,
    forgotten_by text,
    forgotten_reason text,
    swept_until timestamp with time zone,
    keep_wal_time interval,
    keep_wal_epochs integer,
    CONSTRAINT one_retention_rule CHECK ((num_nonnulls(keep_wal_time, keep_wal_epochs) <= 1)),
    CONSTRAINT pipeline_check CHECK ((num_nulls(forgotten_at, forgotten_by, forgotten_reason, swept_until) = ANY (ARRAY[0, 4]))),
    CONSTRAINT pipeline_keep_wal_epochs_check CHECK ((keep_wal_epochs > 0)),
    CONSTRAINT pipeline_keep_wal_time_check CHECK ((keep_wal_time > '00:00:00'::interval)),
    CONSTRAINT pipeline_keyed_by_check CHECK ((keyed_by = ANY (ARRAY['interval'::text, 'cursor'::text])))
);
CREATE TABLE lockstep.pipeline_change (
    id bigint NOT NULL,
    pipeline text NOT NULL,
    change text NOT NULL,
    details jsonb NOT NULL,
    actor text NOT NULL,
    reason text NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pipeline_change_change_check CHECK ((change = ANY (ARRAY['redefined'::text, 'renumbered'::text, 'rebuilt'::text])))
);
ALTER TABLE lockstep.pipeline_change ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME lockstep.pipeline_change_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE lockstep.planned_sink (
    pipeline text NOT NULL,
    sink text NOT NULL,
    spec jsonb NOT NULL,
    spec_md5 text GENERATED ALWAYS AS (md5((spec)::text)) STORED NOT NULL,
    planned_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE lockstep.planned_source (
    pipeline text NOT NULL,
    source text NOT NULL,
    last_epoch bigint NOT NULL
);
CREATE TABLE lockstep.retained_wal (
    pipeline text NOT NULL,
    epoch bigint NOT NULL,
    wal text NOT NULL,
    bytes bigint NOT NULL,
    retained_at timestamp with time zone DEFAULT now() NOT NULL,
    expired_at timestamp with time zone
);
CREATE TABLE lockstep.run (
    dag_id text NOT NULL,
    run_id text NOT NULL,
    pipeline text NOT NULL,
    epoch bigint NOT NULL,
    attempt bigint NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    restate_reason text
);
CREATE TABLE lockstep.savepoint (
    pipeline text NOT NULL,
    savepoint jsonb NOT NULL,
    hash text NOT NULL,
    actor text NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE lockstep.setting_override (
    id bigint NOT NULL,
    pipeline text NOT NULL,
    sink text NOT NULL,
    settings jsonb NOT NULL,
    actor text NOT NULL,
    reason text NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT setting_override_reason_check CHECK ((reason <> ''::text))
);
ALTER TABLE lockstep.setting_override ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME lockstep.setting_override_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE lockstep.transition (
    id bigint NOT NULL,
    pipeline text NOT NULL,
    epoch bigint NOT NULL,
    sink text,
    source_state text,
    target_state text NOT NULL,
    attempt bigint,
    token bigint,
    role text NOT NULL,
    actor text NOT NULL,
    reason text,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
)
PARTITION BY RANGE (at);
CREATE TABLE lockstep.transition_from_20261130 (
    id bigint CONSTRAINT transition_id_not_null NOT NULL,
    pipeline text CONSTRAINT transition_pipeline_not_null NOT NULL,
    epoch bigint CONSTRAINT transition_epoch_not_null NOT NULL,
    sink text,
    source_state text,
    target_state text CONSTRAINT transition_target_state_not_null NOT NULL,
    attempt bigint,
    token bigint,
    role text CONSTRAINT transition_role_not_null NOT NULL,
    actor text CONSTRAINT transition_actor_not_null NOT NULL,
    reason text,
    at timestamp with time zone DEFAULT clock_timestamp() CONSTRAINT transition_at_not_null NOT NULL
);
CREATE TABLE lockstep.transition_from_the_start (
    id bigint CONSTRAINT transition_id_not_null NOT NULL,
    pipeline text CONSTRAINT transition_pipeline_not_null NOT NULL,
    epoch bigint CONSTRAINT transition_epoch_not_null NOT NULL,
    sink text,
    source_state text,
    target_state text CONSTRAINT transition_target_state_not_null NOT NULL,
    attempt bigint,
    token bigint,
    role text CONSTRAINT transition_role_not_null NOT NULL,
    actor text CONSTRAINT transition_actor_not_null NOT NULL,
    reason text,
    at timestamp with time zone DEFAULT clock_timestamp() CONSTRAINT transition_at_not_null NOT NULL
);
ALTER TABLE lockstep.transition ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME lockstep.transition_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE lockstep.verdict (
    pipeline text NOT NULL,
    epoch bigint NOT NULL,
    manifest_hash text NOT NULL,
    outcome text NOT NULL,
    results jsonb NOT NULL,
    actor text NOT NULL,
    reason text,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT verdict_check CHECK (((outcome = 'released'::text) = ((reason IS NOT NULL) AND (reason <> ''::text)))),
    CONSTRAINT verdict_outcome_check CHECK ((outcome = ANY (ARRAY['passed'::text, 'held'::text, 'released'::text])))
);
ALTER TABLE ONLY lockstep.transition ATTACH PARTITION lockstep.transition_from_20261130 FOR VALUES FROM ('2026-11-30 00:00:00+00') TO (MAXVALUE);
ALTER TABLE ONLY lockstep.transition ATTACH PARTITION lockstep.transition_from_the_start FOR VALUES FROM (MINVALUE) TO ('2026-11-30 00:00:00+00');
INSERT INTO lockstep.claim VALUES ('orders', 'orders', '@HOME@/landing/orders/2013-01-01.csv', 1, 0, NULL, 384, 1600000002000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('orders', 'orders', '@HOME@/landing/orders/2013-01-02.csv', 2, 0, NULL, 389, 1600000003000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('orders', 'orders', '@HOME@/landing/orders/2013-01-03.csv', 3, 0, NULL, 389, 1600000004000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('orders', 'orders', '@HOME@/landing/orders/2013-01-04.csv', 4, 0, NULL, 389, 1600000005000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('orders', 'orders', '@HOME@/landing/orders/2013-01-05.csv', 5, 0, NULL, 389, 1600000006000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('orders', 'orders', '@HOME@/landing/orders/2013-01-06.csv', 6, 0, NULL, 389, 1600000007000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('orders', 'orders', '@HOME@/landing/orders/2013-01-07.csv', 7, 0, NULL, 389, 1600000008000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('orders', 'orders', '@HOME@/landing/orders/2013-01-08.csv', 8, 0, NULL, 389, 1600000009000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('orders', 'orders', '@HOME@/landing/orders/2013-01-09.csv', 9, 0, NULL, 389, 1600000010000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('orders', 'orders', '@HOME@/landing/orders/2013-01-10.csv', 10, 0, NULL, 389, 1600000011000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('orders', 'orders', '@HOME@/landing/orders/2013-01-11.csv', 11, 0, NULL, 394, 1600000012000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('customers', 'payments', '@HOME@/landing/payments/1.json', 1, 0, NULL, 145, 1600000014000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('customers', 'payments', '@HOME@/landing/payments/2.json', 2, 0, NULL, 99, 1600000015000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('customers', 'payments', '@HOME@/landing/payments/3.json', 3, 0, NULL, 96, 1600000016000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('customers', 'payments', '@HOME@/landing/payments/4.json', 4, 0, NULL, 99, 1600000017000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('customers', 'payments', '@HOME@/landing/payments/5.json', 5, 0, NULL, 51, 1600000018000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('lines', 'lines', '@HOME@/landing/lines/a.csv', 1, 0, 20, 20, 1600000021000000000, 'f3f9bfcf27a8d79a357777f5eb73733fd86e4761dc044146bd7d99431d38ef5c', NULL);
INSERT INTO lockstep.claim VALUES ('lines', 'lines', '@HOME@/landing/lines/b.csv', 1, 0, 18, 18, 1600000022000000000, '30b0c7f27491dffebad22638b3c9be39d0e6a91771485012bb901203c7acc761', NULL);
INSERT INTO lockstep.claim VALUES ('lines', 'lines', '@HOME@/landing/lines/a.csv', 2, 20, 28, 28, 1600000022000000000, 'cd5407940540c80ee55816f4159489507415dcf291b5206426fbe99271b5eab4', NULL);
INSERT INTO lockstep.claim VALUES ('lines', 'lines', '@HOME@/landing/lines/b.csv', 3, 18, 40, 40, 1600000022000000000, '38714403b783b19817193ae314067554041506d2441b56b6fbbb6c944cfba4cd', NULL);
INSERT INTO lockstep.claim VALUES ('clicks', 'clicks', '@HOME@/landing/clicks/1.csv', 1, 0, NULL, 100, 1600000024000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('clicks', 'clicks', '@HOME@/landing/clicks/2.csv', 2, 0, NULL, 73, 1600000025000000000, NULL, NULL);
INSERT INTO lockstep.claim VALUES ('clicks', 'clicks', '@HOME@/landing/clicks/3.csv', 3, 0, NULL, 72, 1600000026000000000, NULL, NULL);
INSERT INTO lockstep.deployed_setting VALUES ('tables', 'accounts', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-29 10:33:22.13709+00');
INSERT INTO lockstep.deployed_setting VALUES ('tables', 'entries', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-29 10:33:22.13709+00');
INSERT INTO lockstep.deployed_setting VALUES ('tables', 'http', '{"type": "lockstep.sinks:HttpSink", "arguments": {"tries": 6, "timeout": 30.0, "requests_at_once": 4, "bytes_per_request": 1048576, "records_per_request": 2}}', '2026-11-29 10:33:22.13709+00');
INSERT INTO lockstep.deployed_setting VALUES ('orders', 'warehouse', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-29 10:33:40.108199+00');
INSERT INTO lockstep.deployed_setting VALUES ('customers', 'totals', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"on_missing": "refuse", "lock_timeout": 10.0}}', '2026-11-29 10:34:22.021858+00');
INSERT INTO lockstep.deployed_setting VALUES ('lines', 'stdout', '{"type": "lockstep.sinks:StdoutSink", "arguments": {}}', '2026-11-29 10:34:59.099207+00');
INSERT INTO lockstep.deployed_setting VALUES ('lines', 'tcp', '{"type": "lockstep.sinks:TcpSink", "arguments": {"timeout": 60.0}}', '2026-11-29 10:34:59.099207+00');
INSERT INTO lockstep.deployed_setting VALUES ('numbers', 'shared', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-29 10:35:10.411328+00');
INSERT INTO lockstep.deployed_setting VALUES ('numbers', 'newest', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"on_missing": "refuse", "lock_timeout": 10.0}}', '2026-11-29 10:35:10.411328+00');
INSERT INTO lockstep.deployed_setting VALUES ('resumed', 'shared', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-29 10:36:23.922644+00');
INSERT INTO lockstep.deployed_setting VALUES ('resumed', 'newest', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"on_missing": "refuse", "lock_timeout": 10.0}}', '2026-11-29 10:36:23.922644+00');
INSERT INTO lockstep.deployed_setting VALUES ('maria_again', 'repeated', '{"type": "lockstep.sinks:MariaDbSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-29 10:37:06.695556+00');
INSERT INTO lockstep.deployed_setting VALUES ('maria', 'prepared', '{"type": "lockstep.sinks:MariaDbSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-29 10:37:14.319879+00');
INSERT INTO lockstep.deployed_setting VALUES ('maria', 'newest', '{"type": "lockstep.sinks:MariaDbSink", "arguments": {"on_missing": "refuse", "lock_timeout": 10.0}}', '2026-11-29 10:37:14.319879+00');
INSERT INTO lockstep.deployed_setting VALUES ('events', 'once', '{"type": "lockstep.sinks:KafkaSink", "arguments": {"shards": 2, "register": false, "on_restate": "refuse", "transaction_timeout": 300.0}}', '2026-11-29 10:37:29.353159+00');
INSERT INTO lockstep.deployed_setting VALUES ('events', 'repeated', '{"type": "lockstep.sinks:KafkaSink", "arguments": {"shards": 1, "register": false, "on_restate": "refuse", "transaction_timeout": 300.0}}', '2026-11-29 10:37:29.353159+00');
INSERT INTO lockstep.deployment VALUES (true, 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c', '2026-11-29 10:33:21.534312+00');
INSERT INTO lockstep.epoch VALUES ('numbers', 2, NULL, 'cleaned', 122, '2026-11-29 10:35:33.038056+00', NULL, 'kept', 'numbers-2', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.numbers_sums"}, "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/numbers", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 20}, "start": {"next": 10}}, "spec": {"type": "lockstep.sources:SequenceSource", "arguments": {"first": 0, "partitions": 2, "rows_per_epoch": 10}}, "start": {"end": {"next": 10}, "start": {"next": 0}}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/numbers/epoch=2/123', '69959e9b3ad02f30a3b8ee70c0950520b228018ea0c35691382010d58602f5ce', 'kept', '{"state": {"sums": {"rows": 2, "bytes": 299, "buckets": 2}}, "outputs": {"sums": {"rows": 2, "bytes": 299, "files": 1, "digest": "309441ea088488bb5710a518612f05f2", "columns": "db3b0806f2150575"}, "words": {"rows": 10, "bytes": 898, "files": 2, "digest": "0a315c2392149038e1c6b67aa6efb6b0", "columns": "533cc8e2e0dd8bba"}, "numbers": {"rows": 10, "bytes": 1276, "files": 2, "digest": "f19ad56657ccf8222752f03e58a88692", "columns": "a1cda762d8e7e38e"}}, "sources": {"numbers": {"rows": 10, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:35:33.038056+00', '2026-11-29 10:36:04.829609+00', 'a60a1a10c433c9429d30044d46aeab8a91c37c16503f12023853a211d854fa92', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('maria', 3, NULL, 'committed', 181, '2026-11-29 10:37:27.373406+00', NULL, 'kept', 'maria-3', '{"reads": {"moves": "table moves of connection maria"}, "sinks": {"newest": {"type": "lockstep.sinks:MariaDbSink", "arguments": {"key": {"moves": ["piece"]}, "mode": "upsert", "name": "newest", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_newest"}, "protocol": "write_ahead", "connection": "maria", "epoch_column": "lockstep_epoch"}}, "prepared": {"type": "lockstep.sinks:MariaDbSink", "arguments": {"name": "prepared", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_prepared"}, "protocol": "two_phase", "connection": "maria", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"moves": {"end": {"rows": 2, "upto": "6", "after": "4", "server": "server 1 (AUzaBDXMoNyQyquYK3nEH5mTjEI=), database kept, table moves", "order_by": "id"}, "spec": {"type": "lockstep.sources:MariaDbTableSource", "arguments": {"table": "moves", "accept": [], "settle": 0.0, "columns": [], "order_by": "id", "connection": "maria", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": {"rows": 2, "upto": "4", "after": "2", "server": "server 1 (AUzaBDXMoNyQyquYK3nEH5mTjEI=), database kept, table moves", "order_by": "id"}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/maria/epoch=3/182', '6af54148cf7841b733e2a61ccdbafefb442e023f079a1e2fe6523063e383a82c', 'kept', '{"outputs": {"moves": {"rows": 2, "bytes": 426, "files": 1, "digest": "8c851f495cd6d7efd285aa3d7aca17f2", "columns": "5d1c0e39e4340e8b"}}, "sources": {"moves": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:37:27.373406+00', '2026-11-29 10:37:28.504401+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('tables', 1, NULL, 'cleaned', 1, '2026-11-29 10:33:22.13709+00', NULL, 'kept', 'tables-1', '{"reads": {"entries": "table public.entries of connection warehouse", "accounts": "table public.accounts of connection warehouse"}, "sinks": {"http": {"type": "lockstep.sinks:HttpSink", "arguments": {"name": "http", "output": "entries", "committer": "postgres:warehouse", "connection": "http", "key_header": "Authorization"}}, "entries": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "entries", "create": true, "schema": "proofs", "shared": false, "tables": {"entries": "public.entries_copy"}, "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "accounts": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "accounts", "create": true, "schema": "public", "shared": false, "tables": {"accounts": "public.accounts_copy"}, "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"entries": {"end": {"rows": 3, "upto": "3", "after": null, "server": "system 7713539388167923856, timeline 00000001, database 16384, table 16394", "order_by": "id"}, "spec": {"type": "lockstep.sources:PostgresTableSource", "arguments": {"table": "public.entries", "accept": [], "settle": 0.0, "columns": [], "order_by": "id", "connection": "warehouse", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": null}, "accounts": {"end": {"rows": 3, "upto": "761", "after": null, "server": "system 7713539388167923856, timeline 00000001, database 16384, table 16385", "order_by": "xid"}, "spec": {"type": "lockstep.sources:PostgresTableSource", "arguments": {"table": "public.accounts", "accept": [], "settle": null, "columns": ["id", "owner"], "order_by": "xid", "connection": "warehouse", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": null}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/tables/epoch=1/2', 'd7f63a2a0c5f6f3c7005e4803661d8bf1a55f48c1df47f51af90b2cb36a118da', 'kept', '{"outputs": {"entries": {"rows": 3, "bytes": 443, "files": 1, "digest": "04933906e98dccadcda5e9c4da26081b", "columns": "39a9cfc71963f5cf"}, "accounts": {"rows": 3, "bytes": 316, "files": 1, "digest": "fa8a5564931e64f7cd5c60c6f5249a1f", "columns": "2eec007ad4b74b3a"}}, "sources": {"entries": {"rows": 3, "quarantined": 0}, "accounts": {"rows": 3, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:33:22.13709+00', '2026-11-29 10:33:35.232618+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('numbers', 3, NULL, 'committed', 132, '2026-11-29 10:36:05.29454+00', NULL, 'kept', 'numbers-3', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.numbers_sums"}, "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/numbers", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 30}, "start": {"next": 20}}, "spec": {"type": "lockstep.sources:SequenceSource", "arguments": {"first": 0, "partitions": 2, "rows_per_epoch": 10}}, "start": {"end": {"next": 20}, "start": {"next": 10}}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/numbers/epoch=3/133', '588f9ea7065eb6c052c9246be37f086664a961b51ae3275cd720b74debd09c4e', 'kept', '{"state": {"sums": {"rows": 2, "bytes": 299, "buckets": 2}}, "outputs": {"sums": {"rows": 2, "bytes": 299, "files": 1, "digest": "e6e5a0fd902d01b67860338a24880934", "columns": "db3b0806f2150575"}, "words": {"rows": 10, "bytes": 897, "files": 2, "digest": "237199a4b985a098d4d42b21c9e6b125", "columns": "533cc8e2e0dd8bba"}, "numbers": {"rows": 10, "bytes": 1276, "files": 2, "digest": "2f3d5d09d7ae5acb2b054d8d1e9fa06c", "columns": "a1cda762d8e7e38e"}}, "sources": {"numbers": {"rows": 10, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:36:05.29454+00', '2026-11-29 10:36:23.612326+00', '69959e9b3ad02f30a3b8ee70c0950520b228018ea0c35691382010d58602f5ce', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('tables', 2, NULL, 'committed', 9, '2026-11-29 10:33:35.627135+00', NULL, 'kept', 'tables-2', '{"reads": {"entries": "table public.entries of connection warehouse", "accounts": "table public.accounts of connection warehouse"}, "sinks": {"http": {"type": "lockstep.sinks:HttpSink", "arguments": {"name": "http", "output": "entries", "committer": "postgres:warehouse", "connection": "http", "key_header": "Authorization"}}, "entries": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "entries", "create": true, "schema": "proofs", "shared": false, "tables": {"entries": "public.entries_copy"}, "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "accounts": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "accounts", "create": true, "schema": "public", "shared": false, "tables": {"accounts": "public.accounts_copy"}, "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"entries": {"end": {"rows": 3, "upto": "6", "after": "3", "server": "system 7713539388167923856, timeline 00000001, database 16384, table 16394", "order_by": "id"}, "spec": {"type": "lockstep.sources:PostgresTableSource", "arguments": {"table": "public.entries", "accept": [], "settle": 0.0, "columns": [], "order_by": "id", "connection": "warehouse", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": {"rows": 3, "upto": "3", "after": null, "server": "system 7713539388167923856, timeline 00000001, database 16384, table 16394", "order_by": "id"}}, "accounts": {"end": {"rows": 3, "upto": "777", "after": "761", "server": "system 7713539388167923856, timeline 00000001, database 16384, table 16385", "order_by": "xid"}, "spec": {"type": "lockstep.sources:PostgresTableSource", "arguments": {"table": "public.accounts", "accept": [], "settle": null, "columns": ["id", "owner"], "order_by": "xid", "connection": "warehouse", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": {"rows": 3, "upto": "761", "after": null, "server": "system 7713539388167923856, timeline 00000001, database 16384, table 16385", "order_by": "xid"}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/tables/epoch=2/10', 'a0cc3b2c4e9fff56df26fab93fecb701384145e5490a7501115e2c1a09fec51b', 'kept', '{"outputs": {"entries": {"rows": 3, "bytes": 444, "files": 1, "digest": "15ed6f8853b587837485d463ef56c989", "columns": "39a9cfc71963f5cf"}, "accounts": {"rows": 3, "bytes": 316, "files": 1, "digest": "81aacbf88f0f5fa56b790cb6f4762b28", "columns": "2eec007ad4b74b3a"}}, "sources": {"entries": {"rows": 3, "quarantined": 0}, "accounts": {"rows": 3, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:33:35.627135+00', '2026-11-29 10:33:37.609914+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('numbers', 4, NULL, 'planned', 138, '2026-11-29 10:36:23.846905+00', '2026-11-29 10:36:53.846905+00', 'kept', 'numbers-4', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.numbers_sums"}, "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/numbers", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 40}, "start": {"next": 30}}, "spec": {"type": "lockstep.sources:SequenceSource", "arguments": {"first": 0, "partitions": 2, "rows_per_epoch": 10}}, "start": {"end": {"next": 30}, "start": {"next": 20}}}}}', NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:36:23.846905+00', '2026-11-29 10:36:23.846905+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('events', 1, NULL, 'cleaned', 185, '2026-11-29 10:37:29.353159+00', NULL, 'kept', 'events-1', '{"reads": {"events": "topics kept.events of connection kafka"}, "sinks": {"once": {"type": "lockstep.sinks:KafkaSink", "arguments": {"key": "key", "name": "once", "topic": "kept.once", "output": "events", "guarantee": "exactly_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "kept.markers"}}, "repeated": {"type": "lockstep.sinks:KafkaSink", "arguments": {"key": "key", "name": "repeated", "topic": "kept.repeated", "output": "events", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "lockstep.markers"}}}, "format": 1, "sources": {"events": {"end": {"topics": {"kept.events": {"id": "JmKwRpJ/R0C4DNunrR00VA", "leaders": {"0": 0, "1": 0}, "partitions": {"0": [0, 2], "1": [0, 2]}}}, "cluster": "x7_335kjQ2WCTd7_njv3ag"}, "spec": {"type": "lockstep.sources:KafkaSource", "arguments": {"end": null, "key": "string", "group": "kept", "start": "earliest", "value": "string", "settle": 60.0, "topics": ["kept.events"], "headers": false, "pattern": null, "registry": null, "subjects": [], "connection": "kafka", "key_schema": null, "accept_loss": [], "by_interval": false, "offset_reset": "none", "value_schema": null, "on_bad_records": "fail", "max_rows_per_epoch": null}}, "start": null}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/events/epoch=1/186', '2e8149bf67ae8b78c1e28dff173a04c7d8b2d0b9ee16739835c17fd799cfa233', 'kept', '{"outputs": {"events": {"rows": 4, "bytes": 338, "files": 1, "digest": "6d35e9d675913dd82ccbcf1dfa1c6c5d", "columns": "26ca518de9c156b5"}}, "sources": {"events": {"rows": 4, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:37:29.353159+00', '2026-11-29 10:37:41.710132+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('tables', 3, NULL, 'committed', 15, '2026-11-29 10:33:37.943979+00', NULL, 'kept', 'tables-3', '{"reads": {"entries": "table public.entries of connection warehouse", "accounts": "table public.accounts of connection warehouse"}, "sinks": {"http": {"type": "lockstep.sinks:HttpSink", "arguments": {"name": "http", "output": "entries", "committer": "postgres:warehouse", "connection": "http", "key_header": "Authorization"}}, "entries": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "entries", "create": true, "schema": "proofs", "shared": false, "tables": {"entries": "public.entries_copy"}, "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "accounts": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "accounts", "create": true, "schema": "public", "shared": false, "tables": {"accounts": "public.accounts_copy"}, "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"entries": {"end": {"rows": 3, "upto": "9", "after": "6", "server": "system 7713539388167923856, timeline 00000001, database 16384, table 16394", "order_by": "id"}, "spec": {"type": "lockstep.sources:PostgresTableSource", "arguments": {"table": "public.entries", "accept": [], "settle": 0.0, "columns": [], "order_by": "id", "connection": "warehouse", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": {"rows": 3, "upto": "6", "after": "3", "server": "system 7713539388167923856, timeline 00000001, database 16384, table 16394", "order_by": "id"}}, "accounts": {"end": {"rows": 3, "upto": "786", "after": "777", "server": "system 7713539388167923856, timeline 00000001, database 16384, table 16385", "order_by": "xid"}, "spec": {"type": "lockstep.sources:PostgresTableSource", "arguments": {"table": "public.accounts", "accept": [], "settle": null, "columns": ["id", "owner"], "order_by": "xid", "connection": "warehouse", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": {"rows": 3, "upto": "777", "after": "761", "server": "system 7713539388167923856, timeline 00000001, database 16384, table 16385", "order_by": "xid"}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/tables/epoch=3/16', '966a58afa1695ba649f361c6f17003b99c0fa1b3284d99aa4f78bf22374371e0', 'kept', '{"outputs": {"entries": {"rows": 3, "bytes": 444, "files": 1, "digest": "438d3e6db27112088cc2644333e70e3c", "columns": "39a9cfc71963f5cf"}, "accounts": {"rows": 3, "bytes": 316, "files": 1, "digest": "45a40ecf88052e7823ae8d536dc371b7", "columns": "2eec007ad4b74b3a"}}, "sources": {"entries": {"rows": 3, "quarantined": 0}, "accounts": {"rows": 3, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:33:37.943979+00', '2026-11-29 10:33:39.813323+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 1, '["2013-01-01 00:00:00+00","2013-01-02 00:00:00+00")', 'cleaned', 20, '2026-11-29 10:33:40.108199+00', NULL, 'kept', 'orders-0', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-01.csv", "size": 384, "mtime_ns": 1600000002000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-01.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/orders/epoch=1/21', '55d0a6bd1b50b53923121a2217c2dc19db731ef7517ab5c3169358ea5d2d898f', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1018, "files": 1, "digest": "7850533f1ff18742c08f41cc98e526bb", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "2c2503174758e382f51b36541a024ba1", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:33:40.108199+00', '2026-11-29 10:33:50.082319+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 8, '["2013-01-08 00:00:00+00","2013-01-09 00:00:00+00")', 'staged', 66, '2026-11-29 10:34:14.797473+00', '2026-11-29 10:34:48.043933+00', 'kept', 'orders-7', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-08.csv", "size": 389, "mtime_ns": 1600000009000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-08.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/orders/epoch=8/67', '89cfeb5f9aa7bd66362b1f2a7758a572ffd14da67619ad0c30a8b1cae02e752c', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1027, "files": 1, "digest": "48b2c6777aa0e032805d3ad25accd0e6", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "72601ba3475da230b3ab3718bc542ece", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:34:14.797473+00', '2026-11-29 10:34:17.940636+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 2, '["2013-01-02 00:00:00+00","2013-01-03 00:00:00+00")', 'published', 28, '2026-11-29 10:33:50.162441+00', NULL, 'kept', 'orders-1', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-02.csv", "size": 389, "mtime_ns": 1600000003000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-02.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/orders/epoch=2/29', '55c92072172bde239f89e12604e50af1f9fadc4e0c4ba6582c66ea647d91dddd', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1027, "files": 1, "digest": "1a1a955df76f6bce56b6afe13d2b7812", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "a820947971945152ee2f90ff11c36dbe", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:33:50.162441+00', '2026-11-29 10:33:53.601667+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('resumed', 1, NULL, 'committed', 139, '2026-11-29 10:36:24.349216+00', NULL, 'kept', 'resumed-1', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.resumed_sums"}, "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/resumed", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 30}, "start": {"next": 20}}, "spec": {"type": "lockstep.sources:DataSourceSource", "arguments": {"schema": null, "options": {"first": "0"}, "data_source": "lockstep.compute.sequence:SequenceDataSource", "connection_options": {}, "max_rows_per_epoch": 10, "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": {"end": {"next": 20}, "start": {"next": 10}}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/resumed/epoch=1/140', '4bdeae2936ba3d787147173aaa9af8e5e56c956a456f211f07f51617cb13a3c9', 'kept', '{"state": {"sums": {"rows": 2, "bytes": 299, "buckets": 2}}, "outputs": {"sums": {"rows": 2, "bytes": 299, "files": 1, "digest": "e6e5a0fd902d01b67860338a24880934", "columns": "db3b0806f2150575"}, "words": {"rows": 10, "bytes": 897, "files": 2, "digest": "237199a4b985a098d4d42b21c9e6b125", "columns": "533cc8e2e0dd8bba"}, "numbers": {"rows": 10, "bytes": 1276, "files": 2, "digest": "2f3d5d09d7ae5acb2b054d8d1e9fa06c", "columns": "a1cda762d8e7e38e"}}, "sources": {"numbers": {"rows": 10, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:36:24.349216+00', '2026-11-29 10:36:53.964777+00', '', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 3, '["2013-01-03 00:00:00+00","2013-01-04 00:00:00+00")', 'committed', 36, '2026-11-29 10:33:53.778981+00', NULL, 'kept', 'orders-2', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-03.csv", "size": 389, "mtime_ns": 1600000004000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-03.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/orders/epoch=3/37', 'dacf7332d5dd96d660ec5fa571ea23176a9fff9cb2fdc2222830212b44509a3c', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1020, "files": 1, "digest": "dd1d1a8c48977235e3a6ef5ab1e5c40f", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "d7ffd2b1f81b7aa4fc256656adf330aa", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:33:53.778981+00', '2026-11-29 10:33:57.05386+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 4, '["2013-01-04 00:00:00+00","2013-01-05 00:00:00+00")', 'committed', 43, '2026-11-29 10:33:57.531642+00', NULL, 'kept', 'orders-3', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-04.csv", "size": 389, "mtime_ns": 1600000005000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-04.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/orders/epoch=4/44', '491dc2aa49ba9b66fc4144841cc002502c0429e036730ef1b0387469cdc16eb8', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1027, "files": 1, "digest": "b06f1896b00b6feec88c1c918b856a67", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "0a48b58c56cb258748195a92200f120b", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:33:57.531642+00', '2026-11-29 10:34:01.999199+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 5, '["2013-01-05 00:00:00+00","2013-01-06 00:00:00+00")', 'committed', 48, '2026-11-29 10:34:02.267307+00', NULL, 'kept', 'orders-4', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-05.csv", "size": 389, "mtime_ns": 1600000006000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-05.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/orders/epoch=5/49', '5a5b5621ec4a7b8e1b329e4a3ce59cceee8b71dc79dc06cd1490def705c018e5', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1027, "files": 1, "digest": "6cf6c82e8c36bd444584b56783d411fa", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "e85666fe00bf38a262fd075b8a6b7a72", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:34:02.267307+00', '2026-11-29 10:34:05.851313+00', NULL, 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/orders/epoch=5/53', '8ad24b290d3fe7d3b0c93ffcdc4a47e8eb8858413a458999fd90d8ce749c8560', false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 6, '["2013-01-06 00:00:00+00","2013-01-07 00:00:00+00")', 'committed', 54, '2026-11-29 10:34:08.588674+00', NULL, 'kept', 'orders-5', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-06.csv", "size": 389, "mtime_ns": 1600000007000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-06.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/orders/epoch=6/55', '4d451fb6105b558bce14922a74cc1e167305eb2943d5dfa6cd2dcacc882d5cc5', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1027, "files": 1, "digest": "aeaa4bfc17eee22184531627d339c4c9", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "68c5874ddbf69fdc9a2b05788ff8bbe7", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:34:08.588674+00', '2026-11-29 10:34:11.284969+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 7, '["2013-01-07 00:00:00+00","2013-01-08 00:00:00+00")', 'staged', 61, '2026-11-29 10:34:11.587976+00', '2026-11-29 10:34:44.529798+00', 'kept', 'orders-6', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-07.csv", "size": 389, "mtime_ns": 1600000008000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-07.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/orders/epoch=7/62', 'cd08bbeb24562213219477cd3bb724dcbb4b72344548590373a2f7b0b476346e', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1033, "files": 1, "digest": "6c465f20697e6e5b22ee705903d2f7ff", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "749ef507c1d7c7afc00b58c11d154725", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:34:11.587976+00', '2026-11-29 10:34:14.112813+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 9, '["2013-01-09 00:00:00+00","2013-01-10 00:00:00+00")', 'staged', 69, '2026-11-29 10:34:18.431003+00', '2026-11-29 10:34:48.594353+00', 'kept', 'orders-8', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-09.csv", "size": 389, "mtime_ns": 1600000010000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-09.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/orders/epoch=9/70', '0abaf92266f4b57cb0f69e4cfb5b7b87d9384befb443f3d8e8b303e4950bda15', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1018, "files": 1, "digest": "1561a3bc4bbf786bcf3ebba777c81ca4", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "29e9d9a11fa1d408c28d0e7f00916682", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:34:18.431003+00', '2026-11-29 10:34:21.090562+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 10, '["2013-01-10 00:00:00+00","2013-01-11 00:00:00+00")', 'planned', 71, '2026-11-29 10:34:21.332386+00', '2026-11-29 10:34:51.332386+00', 'kept', 'orders-9', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-10.csv", "size": 389, "mtime_ns": 1600000011000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-10.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:34:21.332386+00', '2026-11-29 10:34:21.332386+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('resumed', 2, NULL, 'planned', 145, '2026-11-29 10:36:54.150216+00', '2026-11-29 10:37:24.150216+00', 'kept', 'resumed-2', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.resumed_sums"}, "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/resumed", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 40}, "start": {"next": 30}}, "spec": {"type": "lockstep.sources:DataSourceSource", "arguments": {"schema": null, "options": {"first": "0"}, "data_source": "lockstep.compute.sequence:SequenceDataSource", "connection_options": {}, "max_rows_per_epoch": 10, "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": {"end": {"next": 30}, "start": {"next": 20}}}}}', NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:36:54.150216+00', '2026-11-29 10:36:54.150216+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 11, '["2013-01-11 00:00:00+00","2013-01-12 00:00:00+00")', 'void', 73, '2026-11-29 10:34:21.741861+00', NULL, NULL, NULL, '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-11.csv", "size": 394, "mtime_ns": 1600000012000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-11.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', NULL, NULL, NULL, NULL, 'nobody wants that day', '2026-11-29 10:34:21.647898+00', '2026-11-29 10:34:21.741861+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('events', 2, NULL, 'committed', 191, '2026-11-29 10:37:42.073182+00', NULL, 'kept', 'events-2', '{"reads": {"events": "topics kept.events of connection kafka"}, "sinks": {"once": {"type": "lockstep.sinks:KafkaSink", "arguments": {"key": "key", "name": "once", "topic": "kept.once", "output": "events", "guarantee": "exactly_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "kept.markers"}}, "repeated": {"type": "lockstep.sinks:KafkaSink", "arguments": {"key": "key", "name": "repeated", "topic": "kept.repeated", "output": "events", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "lockstep.markers"}}}, "format": 1, "sources": {"events": {"end": {"topics": {"kept.events": {"id": "JmKwRpJ/R0C4DNunrR00VA", "leaders": {"0": 0, "1": 0}, "partitions": {"0": [2, 4], "1": [2, 4]}}}, "cluster": "x7_335kjQ2WCTd7_njv3ag"}, "spec": {"type": "lockstep.sources:KafkaSource", "arguments": {"end": null, "key": "string", "group": "kept", "start": "earliest", "value": "string", "settle": 60.0, "topics": ["kept.events"], "headers": false, "pattern": null, "registry": null, "subjects": [], "connection": "kafka", "key_schema": null, "accept_loss": [], "by_interval": false, "offset_reset": "none", "value_schema": null, "on_bad_records": "fail", "max_rows_per_epoch": null}}, "start": {"topics": {"kept.events": {"id": "JmKwRpJ/R0C4DNunrR00VA", "leaders": {"0": 0, "1": 0}, "partitions": {"0": [0, 2], "1": [0, 2]}}}, "cluster": "x7_335kjQ2WCTd7_njv3ag"}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/events/epoch=2/192', '26aba9ebb7e7eb7c56f363a937fff19d00812b2e429f1a4d766ad884d9598f48', 'kept', '{"outputs": {"events": {"rows": 4, "bytes": 338, "files": 1, "digest": "d9e7913bd755b636351d00cc56a44ce4", "columns": "26ca518de9c156b5"}}, "sources": {"events": {"rows": 4, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:37:42.073182+00', '2026-11-29 10:37:43.312868+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('customers', 1, NULL, 'cleaned', 74, '2026-11-29 10:34:22.021858+00', NULL, 'kept', 'customers-1', '{"reads": {"payments": "files @HOME@/landing/payments"}, "sinks": {"totals": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "changes": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_0_1_0.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}}, "format": 1, "sources": {"payments": {"end": {"files": [{"path": "@HOME@/landing/payments/1.json", "size": 145, "mtime_ns": 1600000014000000000}], "roots": ["@HOME@/landing/payments"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/payments", "spans": null, "watch": false, "format": "json", "schema": "customer STRING, amount BIGINT, gone BOOLEAN", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/customers/epoch=1/75', '19dbb40e75968a8a990db57a463ba36fada9884fde53fd01fb977c36a173d226', 'kept', '{"state": {"totals": {"rows": 3, "bytes": 329, "buckets": 2}}, "outputs": {"totals": {"rows": 3, "bytes": 830, "files": 1, "digest": "a20b052d35cf010792cb9535646d697d", "columns": "2f732987f0e6a07a"}}, "sources": {"payments": {"rows": 3, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:34:22.021858+00', '2026-11-29 10:34:34.225085+00', '', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('clicks', 1, NULL, 'cleaned', 146, '2026-11-29 10:36:54.309013+00', NULL, 'kept', 'clicks-1', '{"reads": {"clicks": "files @HOME@/landing/clicks"}, "sinks": {"late": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "late", "path": "@HOME@/out/late", "format": "parquet", "output": "late", "shared": false}}, "hourly": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "hourly", "path": "@HOME@/out/hourly", "format": "json", "output": "hourly", "shared": false}}}, "format": 1, "sources": {"clicks": {"end": {"files": [{"path": "@HOME@/landing/clicks/1.csv", "size": 100, "mtime_ns": 1600000024000000000}], "roots": ["@HOME@/landing/clicks"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/clicks", "spans": null, "watch": false, "format": "csv", "schema": "page STRING, seconds INT, at TIMESTAMP", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": 1}}, "start": null}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/clicks/epoch=1/147', '3ecc2d6b0d1918597314ac0191d28076033256960be58daf0d0755bcfd73b8e1', 'kept', '{"state": {"windows": {"rows": 2, "bytes": 1740, "buckets": 2}, "windows_watermark": {"rows": 1, "bytes": 842, "buckets": 1}}, "outputs": {"late": {"rows": 0, "bytes": 229, "files": 1, "digest": "00000000000000000000000000000000", "columns": "069d529342443a86"}, "hourly": {"rows": 1, "bytes": 761, "files": 1, "digest": "f52abe6317157087c3d597df20c58d6e", "columns": "5008f56cba072801"}}, "sources": {"clicks": {"rows": 3, "quarantined": 0}}, "balances": {"windows": {"in": 3, "late": 0, "folded": 3, "filtered": 0, "corrected": 0, "partly_late": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:36:54.309013+00', '2026-11-29 10:36:58.709847+00', '', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('events', 3, NULL, 'committed', 196, '2026-11-29 10:37:43.675826+00', NULL, 'kept', 'events-3', '{"reads": {"events": "topics kept.events of connection kafka"}, "sinks": {"once": {"type": "lockstep.sinks:KafkaSink", "arguments": {"key": "key", "name": "once", "topic": "kept.once", "output": "events", "guarantee": "exactly_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "kept.markers"}}, "repeated": {"type": "lockstep.sinks:KafkaSink", "arguments": {"key": "key", "name": "repeated", "topic": "kept.repeated", "output": "events", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "lockstep.markers"}}}, "format": 1, "sources": {"events": {"end": {"topics": {"kept.events": {"id": "JmKwRpJ/R0C4DNunrR00VA", "leaders": {"0": 0, "1": 0}, "partitions": {"0": [4, 6], "1": [4, 6]}}}, "cluster": "x7_335kjQ2WCTd7_njv3ag"}, "spec": {"type": "lockstep.sources:KafkaSource", "arguments": {"end": null, "key": "string", "group": "kept", "start": "earliest", "value": "string", "settle": 60.0, "topics": ["kept.events"], "headers": false, "pattern": null, "registry": null, "subjects": [], "connection": "kafka", "key_schema": null, "accept_loss": [], "by_interval": false, "offset_reset": "none", "value_schema": null, "on_bad_records": "fail", "max_rows_per_epoch": null}}, "start": {"topics": {"kept.events": {"id": "JmKwRpJ/R0C4DNunrR00VA", "leaders": {"0": 0, "1": 0}, "partitions": {"0": [2, 4], "1": [2, 4]}}}, "cluster": "x7_335kjQ2WCTd7_njv3ag"}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/events/epoch=3/197', '5bae8f3aa20210f893469d6630785c0bcd41ba16915931bf155ae4f1e7802b70', 'kept', '{"outputs": {"events": {"rows": 4, "bytes": 343, "files": 1, "digest": "aea589ed57b989ba5b2ebad0b0f8568f", "columns": "26ca518de9c156b5"}}, "sources": {"events": {"rows": 4, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:37:43.675826+00', '2026-11-29 10:37:44.565147+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('customers', 2, NULL, 'published', 80, '2026-11-29 10:34:34.526977+00', NULL, 'kept', 'customers-2', '{"reads": {"payments": "files @HOME@/landing/payments"}, "sinks": {"totals": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "changes": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_0_1_0.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}}, "format": 1, "sources": {"payments": {"end": {"files": [{"path": "@HOME@/landing/payments/2.json", "size": 99, "mtime_ns": 1600000015000000000}], "roots": ["@HOME@/landing/payments"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/payments", "spans": null, "watch": false, "format": "json", "schema": "customer STRING, amount BIGINT, gone BOOLEAN", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": {"files": [{"path": "@HOME@/landing/payments/1.json", "size": 145, "mtime_ns": 1600000014000000000}], "roots": ["@HOME@/landing/payments"]}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/customers/epoch=2/81', 'b2448e9a61eb85caa38b16e564422b46210229eea246ef57e41b32e5e2099c2e', 'kept', '{"state": {"totals": {"rows": 4, "bytes": 341, "buckets": 2}}, "outputs": {"totals": {"rows": 2, "bytes": 817, "files": 1, "digest": "914f228fce3da144f87c181a430031e7", "columns": "2f732987f0e6a07a"}}, "sources": {"payments": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:34:34.526977+00', '2026-11-29 10:34:42.157167+00', '19dbb40e75968a8a990db57a463ba36fada9884fde53fd01fb977c36a173d226', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('clicks', 2, NULL, 'published', 152, '2026-11-29 10:36:58.773848+00', NULL, 'kept', 'clicks-2', '{"reads": {"clicks": "files @HOME@/landing/clicks"}, "sinks": {"late": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "late", "path": "@HOME@/out/late", "format": "parquet", "output": "late", "shared": false}}, "hourly": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "hourly", "path": "@HOME@/out/hourly", "format": "json", "output": "hourly", "shared": false}}}, "format": 1, "sources": {"clicks": {"end": {"files": [{"path": "@HOME@/landing/clicks/2.csv", "size": 73, "mtime_ns": 1600000025000000000}], "roots": ["@HOME@/landing/clicks"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/clicks", "spans": null, "watch": false, "format": "csv", "schema": "page STRING, seconds INT, at TIMESTAMP", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": 1}}, "start": {"files": [{"path": "@HOME@/landing/clicks/1.csv", "size": 100, "mtime_ns": 1600000024000000000}], "roots": ["@HOME@/landing/clicks"]}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/clicks/epoch=2/153', '9993c83517163466359f004965f9a69a6db007a7c472f10008afb4026488f356', 'kept', '{"state": {"windows": {"rows": 1, "bytes": 870, "buckets": 2}, "windows_watermark": {"rows": 1, "bytes": 842, "buckets": 1}}, "outputs": {"late": {"rows": 0, "bytes": 229, "files": 1, "digest": "00000000000000000000000000000000", "columns": "069d529342443a86"}, "hourly": {"rows": 2, "bytes": 801, "files": 1, "digest": "9149a0190227004d1bf18386c39f394d", "columns": "5008f56cba072801"}}, "sources": {"clicks": {"rows": 2, "quarantined": 0}}, "balances": {"windows": {"in": 2, "late": 0, "folded": 2, "filtered": 0, "corrected": 1, "partly_late": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:36:58.773848+00', '2026-11-29 10:37:01.98145+00', '3ecc2d6b0d1918597314ac0191d28076033256960be58daf0d0755bcfd73b8e1', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('customers', 3, NULL, 'committed', 86, '2026-11-29 10:34:42.338976+00', NULL, 'kept', 'customers-3', '{"reads": {"payments": "files @HOME@/landing/payments"}, "sinks": {"totals": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "changes": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_0_1_0.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}}, "format": 1, "sources": {"payments": {"end": {"files": [{"path": "@HOME@/landing/payments/3.json", "size": 96, "mtime_ns": 1600000016000000000}], "roots": ["@HOME@/landing/payments"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/payments", "spans": null, "watch": false, "format": "json", "schema": "customer STRING, amount BIGINT, gone BOOLEAN", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": {"files": [{"path": "@HOME@/landing/payments/2.json", "size": 99, "mtime_ns": 1600000015000000000}], "roots": ["@HOME@/landing/payments"]}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/customers/epoch=3/87', 'b4057ad9465133f1b45c36f385d0e17c24da2b4e2d02fcfe12e7ebc1d223552c', 'kept', '{"state": {"totals": {"rows": 4, "bytes": 341, "buckets": 2}}, "outputs": {"totals": {"rows": 2, "bytes": 817, "files": 1, "digest": "1bdb3fd5e7c6f071aef8dac9a174a317", "columns": "2f732987f0e6a07a"}}, "sources": {"payments": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:34:42.338976+00', '2026-11-29 10:34:49.081854+00', 'b2448e9a61eb85caa38b16e564422b46210229eea246ef57e41b32e5e2099c2e', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('customers', 4, NULL, 'committed', 91, '2026-11-29 10:34:49.646747+00', NULL, 'kept', 'customers-4', '{"reads": {"payments": "files @HOME@/landing/payments"}, "sinks": {"totals": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "changes": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_0_1_0.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}}, "format": 1, "sources": {"payments": {"end": {"files": [{"path": "@HOME@/landing/payments/4.json", "size": 99, "mtime_ns": 1600000017000000000}], "roots": ["@HOME@/landing/payments"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/payments", "spans": null, "watch": false, "format": "json", "schema": "customer STRING, amount BIGINT, gone BOOLEAN", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": {"files": [{"path": "@HOME@/landing/payments/3.json", "size": 96, "mtime_ns": 1600000016000000000}], "roots": ["@HOME@/landing/payments"]}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/customers/epoch=4/92', '9a3d98084c94bf6545d7ae94a50eb10a2bd6d4d1bfc120de37817868f19948de', 'kept', '{"state": {"totals": {"rows": 5, "bytes": 644, "buckets": 2}}, "outputs": {"totals": {"rows": 2, "bytes": 817, "files": 1, "digest": "0fda1f7ef202accf112ee671e6803b06", "columns": "2f732987f0e6a07a"}}, "sources": {"payments": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:34:49.646747+00', '2026-11-29 10:34:54.461844+00', 'b4057ad9465133f1b45c36f385d0e17c24da2b4e2d02fcfe12e7ebc1d223552c', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('clicks', 3, NULL, 'committed', 158, '2026-11-29 10:37:02.060858+00', NULL, 'kept', 'clicks-3', '{"reads": {"clicks": "files @HOME@/landing/clicks"}, "sinks": {"late": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "late", "path": "@HOME@/out/late", "format": "parquet", "output": "late", "shared": false}}, "hourly": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "hourly", "path": "@HOME@/out/hourly", "format": "json", "output": "hourly", "shared": false}}}, "format": 1, "sources": {"clicks": {"end": {"files": [{"path": "@HOME@/landing/clicks/3.csv", "size": 72, "mtime_ns": 1600000026000000000}], "roots": ["@HOME@/landing/clicks"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/clicks", "spans": null, "watch": false, "format": "csv", "schema": "page STRING, seconds INT, at TIMESTAMP", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": 1}}, "start": {"files": [{"path": "@HOME@/landing/clicks/2.csv", "size": 73, "mtime_ns": 1600000025000000000}], "roots": ["@HOME@/landing/clicks"]}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/clicks/epoch=3/159', '80ee0da66034c10b459624a35f1db4de7ba134a84650b1f559ca117321587268', 'kept', '{"state": {"windows": {"rows": 2, "bytes": 1740, "buckets": 2}, "windows_watermark": {"rows": 1, "bytes": 842, "buckets": 1}}, "outputs": {"late": {"rows": 1, "bytes": 809, "files": 1, "digest": "89709ee118eb50c04ce97b482ab18bce", "columns": "069d529342443a86"}, "hourly": {"rows": 1, "bytes": 761, "files": 1, "digest": "6c7aeb943f92a95655b60bef618cec25", "columns": "5008f56cba072801"}}, "sources": {"clicks": {"rows": 2, "quarantined": 0}}, "balances": {"windows": {"in": 2, "late": 1, "folded": 1, "filtered": 0, "corrected": 0, "partly_late": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:37:02.060858+00', '2026-11-29 10:37:06.370389+00', '9993c83517163466359f004965f9a69a6db007a7c472f10008afb4026488f356', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('customers', 5, NULL, 'staged', 95, '2026-11-29 10:34:54.703033+00', '2026-11-29 10:35:24.80217+00', 'kept', 'customers-5', '{"reads": {"payments": "files @HOME@/landing/payments"}, "sinks": {"totals": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "changes": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_0_1_0.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}}, "format": 1, "sources": {"payments": {"end": {"files": [{"path": "@HOME@/landing/payments/5.json", "size": 51, "mtime_ns": 1600000018000000000}], "roots": ["@HOME@/landing/payments"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/payments", "spans": null, "watch": false, "format": "json", "schema": "customer STRING, amount BIGINT, gone BOOLEAN", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": {"files": [{"path": "@HOME@/landing/payments/4.json", "size": 99, "mtime_ns": 1600000017000000000}], "roots": ["@HOME@/landing/payments"]}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/customers/epoch=5/96', '56c20c777882dfb1322d41dba795f114111345223f175ac849691e3537a5aa8d', 'kept', '{"state": {"totals": {"rows": 5, "bytes": 644, "buckets": 2}}, "outputs": {"totals": {"rows": 1, "bytes": 801, "files": 1, "digest": "105234b6fc4170e45215335ffabce80a", "columns": "2f732987f0e6a07a"}}, "sources": {"payments": {"rows": 1, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:34:54.703033+00', '2026-11-29 10:34:58.918289+00', '9a3d98084c94bf6545d7ae94a50eb10a2bd6d4d1bfc120de37817868f19948de', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('maria_again', 1, NULL, 'cleaned', 162, '2026-11-29 10:37:06.695556+00', NULL, 'kept', 'maria_again-1', '{"reads": {"moves": "table moves of connection maria"}, "sinks": {"repeated": {"type": "lockstep.sinks:MariaDbSink", "arguments": {"name": "repeated", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_repeated"}, "protocol": "write_ahead", "connection": "maria", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"moves": {"end": {"rows": 2, "upto": "2", "after": null, "server": "server 1 (AUzaBDXMoNyQyquYK3nEH5mTjEI=), database kept, table moves", "order_by": "id"}, "spec": {"type": "lockstep.sources:MariaDbTableSource", "arguments": {"table": "moves", "accept": [], "settle": 0.0, "columns": ["id", "piece"], "order_by": "id", "connection": "maria", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": null}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/maria_again/epoch=1/163', 'ac4d69bd199db0fd5d946f27757f694bea9bc9e3b481f25aae1fef5d0505fa15', 'kept', '{"outputs": {"moves": {"rows": 2, "bytes": 307, "files": 1, "digest": "df65e822f9a1f9a9d12e843bd01a4cff", "columns": "ad9dc2711a7a23a1"}}, "sources": {"moves": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:37:06.695556+00', '2026-11-29 10:37:14.14239+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('lines', 1, NULL, 'cleaned', 97, '2026-11-29 10:34:59.099207+00', NULL, 'kept', 'lines-1', '{"reads": {"lines": "files @HOME@/landing/lines/*.csv"}, "sinks": {"tcp": {"type": "lockstep.sinks:TcpSink", "arguments": {"name": "tcp", "output": "lines", "committer": "@HOME@/sent", "connection": "tcp"}}, "stdout": {"type": "lockstep.sinks:StdoutSink", "arguments": {"name": "stdout", "output": "lines", "committer": "@HOME@/sent"}}}, "format": 1, "sources": {"lines": {"end": {"files": [{"to": 20, "from": 0, "path": "@HOME@/landing/lines/a.csv", "size": 20, "digest": "f3f9bfcf27a8d79a357777f5eb73733fd86e4761dc044146bd7d99431d38ef5c", "sha256": "9ff1b76384a0bd03d8fe51a09bff6bda908cc865152e51472acfed4e72fd2570", "mtime_ns": 1600000021000000000}, {"to": 18, "from": 0, "path": "@HOME@/landing/lines/b.csv", "size": 18, "digest": "30b0c7f27491dffebad22638b3c9be39d0e6a91771485012bb901203c7acc761", "sha256": "cdd3b2112e917fe5998df16d247f315d690783a2d1c394fe6590300b2caebe4e", "mtime_ns": 1600000022000000000}], "roots": ["@HOME@/landing/lines"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": true, "hash": true, "once": false, "path": "@HOME@/landing/lines/*.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, word STRING", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/lines/epoch=1/98', '2de2d3322a2d658632e84b4e3a9abeec6a3ab0b37c1347a97e9aa95afd8a9524', 'kept', '{"outputs": {"lines": {"rows": 3, "bytes": 317, "files": 1, "digest": "1d917c36f2d48dec8a815763f3dc54be", "columns": "ca1b5abf660de8e3"}}, "sources": {"lines": {"rows": 3, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:34:59.099207+00', '2026-11-29 10:35:06.889121+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('lines', 2, NULL, 'committed', 103, '2026-11-29 10:35:07.017856+00', NULL, 'kept', 'lines-2', '{"reads": {"lines": "files @HOME@/landing/lines/*.csv"}, "sinks": {"tcp": {"type": "lockstep.sinks:TcpSink", "arguments": {"name": "tcp", "output": "lines", "committer": "@HOME@/sent", "connection": "tcp"}}, "stdout": {"type": "lockstep.sinks:StdoutSink", "arguments": {"name": "stdout", "output": "lines", "committer": "@HOME@/sent"}}}, "format": 1, "sources": {"lines": {"end": {"files": [{"to": 28, "from": 20, "path": "@HOME@/landing/lines/a.csv", "size": 28, "digest": "cd5407940540c80ee55816f4159489507415dcf291b5206426fbe99271b5eab4", "sha256": "5a3d85b61ff36bef74ef7a6a342e64c0c14e96af6631b7968d3ed2c8eb261bd6", "mtime_ns": 1600000022000000000}], "roots": ["@HOME@/landing/lines"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": true, "hash": true, "once": false, "path": "@HOME@/landing/lines/*.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, word STRING", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": {"files": [{"to": 20, "from": 0, "path": "@HOME@/landing/lines/a.csv", "size": 20, "digest": "f3f9bfcf27a8d79a357777f5eb73733fd86e4761dc044146bd7d99431d38ef5c", "sha256": "9ff1b76384a0bd03d8fe51a09bff6bda908cc865152e51472acfed4e72fd2570", "mtime_ns": 1600000021000000000}, {"to": 18, "from": 0, "path": "@HOME@/landing/lines/b.csv", "size": 18, "digest": "30b0c7f27491dffebad22638b3c9be39d0e6a91771485012bb901203c7acc761", "sha256": "cdd3b2112e917fe5998df16d247f315d690783a2d1c394fe6590300b2caebe4e", "mtime_ns": 1600000022000000000}], "roots": ["@HOME@/landing/lines"]}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/lines/epoch=2/104', 'f0b85fc80bd02fe331a98496ef4f6abdb5fdeaf1bc2548ffd21e5f33eb2f0981', 'kept', '{"outputs": {"lines": {"rows": 1, "bytes": 290, "files": 1, "digest": "3723ad80331979c56c668dca34cd57c9", "columns": "ca1b5abf660de8e3"}}, "sources": {"lines": {"rows": 1, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:35:07.017856+00', '2026-11-29 10:35:08.091242+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('maria', 1, NULL, 'cleaned', 166, '2026-11-29 10:37:14.319879+00', NULL, 'kept', 'maria-1', '{"reads": {"moves": "table moves of connection maria"}, "sinks": {"newest": {"type": "lockstep.sinks:MariaDbSink", "arguments": {"key": {"moves": ["piece"]}, "mode": "upsert", "name": "newest", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_newest"}, "protocol": "write_ahead", "connection": "maria", "epoch_column": "lockstep_epoch"}}, "prepared": {"type": "lockstep.sinks:MariaDbSink", "arguments": {"name": "prepared", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_prepared"}, "protocol": "two_phase", "connection": "maria", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"moves": {"end": {"rows": 2, "upto": "2", "after": null, "server": "server 1 (AUzaBDXMoNyQyquYK3nEH5mTjEI=), database kept, table moves", "order_by": "id"}, "spec": {"type": "lockstep.sources:MariaDbTableSource", "arguments": {"table": "moves", "accept": [], "settle": 0.0, "columns": [], "order_by": "id", "connection": "maria", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": null}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/maria/epoch=1/167', '02f8ab5d3c30e02cef0efbfa54fc47f966979d7e9fac9426a7ba34d46fbc81bf', 'kept', '{"outputs": {"moves": {"rows": 2, "bytes": 425, "files": 1, "digest": "99e6359fe96e2a953f3437d06569a5fe", "columns": "5d1c0e39e4340e8b"}}, "sources": {"moves": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:37:14.319879+00', '2026-11-29 10:37:23.048706+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('lines', 3, NULL, 'committed', 108, '2026-11-29 10:35:08.270929+00', NULL, 'kept', 'lines-3', '{"reads": {"lines": "files @HOME@/landing/lines/*.csv"}, "sinks": {"tcp": {"type": "lockstep.sinks:TcpSink", "arguments": {"name": "tcp", "output": "lines", "committer": "@HOME@/sent", "connection": "tcp"}}, "stdout": {"type": "lockstep.sinks:StdoutSink", "arguments": {"name": "stdout", "output": "lines", "committer": "@HOME@/sent"}}}, "format": 1, "sources": {"lines": {"end": {"files": [{"to": 40, "from": 18, "path": "@HOME@/landing/lines/b.csv", "size": 40, "digest": "38714403b783b19817193ae314067554041506d2441b56b6fbbb6c944cfba4cd", "sha256": "8ecc757b2ae2ecd08a0d120f63fa8a12acec6724869ea7f12b23448c087f3574", "mtime_ns": 1600000022000000000}], "roots": ["@HOME@/landing/lines"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": true, "hash": true, "once": false, "path": "@HOME@/landing/lines/*.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, word STRING", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": {"files": [{"to": 28, "from": 20, "path": "@HOME@/landing/lines/a.csv", "size": 28, "digest": "cd5407940540c80ee55816f4159489507415dcf291b5206426fbe99271b5eab4", "sha256": "5a3d85b61ff36bef74ef7a6a342e64c0c14e96af6631b7968d3ed2c8eb261bd6", "mtime_ns": 1600000022000000000}], "roots": ["@HOME@/landing/lines"]}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/lines/epoch=3/109', 'cd1498752d36fc0d3c595dc2d5bf87fe172aa2f1276ba98476bf8c0b29dc3346', 'kept', '{"outputs": {"lines": {"rows": 2, "bytes": 311, "files": 1, "digest": "b12e1c9fae17fc7478d163d59e39b7e0", "columns": "ca1b5abf660de8e3"}}, "sources": {"lines": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:35:08.270929+00', '2026-11-29 10:35:09.849849+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('maria_again', 2, NULL, 'committed', 172, '2026-11-29 10:37:23.31727+00', NULL, 'kept', 'maria_again-2', '{"reads": {"moves": "table moves of connection maria"}, "sinks": {"repeated": {"type": "lockstep.sinks:MariaDbSink", "arguments": {"name": "repeated", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_repeated"}, "protocol": "write_ahead", "connection": "maria", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"moves": {"end": {"rows": 2, "upto": "4", "after": "2", "server": "server 1 (AUzaBDXMoNyQyquYK3nEH5mTjEI=), database kept, table moves", "order_by": "id"}, "spec": {"type": "lockstep.sources:MariaDbTableSource", "arguments": {"table": "moves", "accept": [], "settle": 0.0, "columns": ["id", "piece"], "order_by": "id", "connection": "maria", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": {"rows": 2, "upto": "2", "after": null, "server": "server 1 (AUzaBDXMoNyQyquYK3nEH5mTjEI=), database kept, table moves", "order_by": "id"}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/maria_again/epoch=2/173', '5de5b6a3b065bfd18385b182d34c64889e1fbd5e38372862cd264274c7eaf2f6', 'kept', '{"outputs": {"moves": {"rows": 2, "bytes": 307, "files": 1, "digest": "f5b55bdc84df1a3bbf487dac86efeae3", "columns": "ad9dc2711a7a23a1"}}, "sources": {"moves": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:37:23.31727+00', '2026-11-29 10:37:25.084521+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('numbers', 1, NULL, 'cleaned', 112, '2026-11-29 10:35:10.411328+00', NULL, 'kept', 'numbers-1', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.numbers_sums"}, "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/numbers", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 10}, "start": {"next": 0}}, "spec": {"type": "lockstep.sources:SequenceSource", "arguments": {"first": 0, "partitions": 2, "rows_per_epoch": 10}}, "start": null}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/numbers/epoch=1/113', 'a60a1a10c433c9429d30044d46aeab8a91c37c16503f12023853a211d854fa92', 'kept', '{"state": {"sums": {"rows": 2, "bytes": 299, "buckets": 2}}, "outputs": {"sums": {"rows": 2, "bytes": 299, "files": 1, "digest": "e6efd430c230bc026c40a60ce5821bf8", "columns": "db3b0806f2150575"}, "words": {"rows": 10, "bytes": 899, "files": 2, "digest": "7833deb34a337f276c820cd5d4813763", "columns": "533cc8e2e0dd8bba"}, "numbers": {"rows": 10, "bytes": 1276, "files": 2, "digest": "69a53f6519b25c9585b89b60dac9389a", "columns": "a1cda762d8e7e38e"}}, "sources": {"numbers": {"rows": 10, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:35:10.411328+00', '2026-11-29 10:35:32.563769+00', '', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('maria', 2, NULL, 'published', 175, '2026-11-29 10:37:25.382351+00', NULL, 'kept', 'maria-2', '{"reads": {"moves": "table moves of connection maria"}, "sinks": {"newest": {"type": "lockstep.sinks:MariaDbSink", "arguments": {"key": {"moves": ["piece"]}, "mode": "upsert", "name": "newest", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_newest"}, "protocol": "write_ahead", "connection": "maria", "epoch_column": "lockstep_epoch"}}, "prepared": {"type": "lockstep.sinks:MariaDbSink", "arguments": {"name": "prepared", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_prepared"}, "protocol": "two_phase", "connection": "maria", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"moves": {"end": {"rows": 2, "upto": "4", "after": "2", "server": "server 1 (AUzaBDXMoNyQyquYK3nEH5mTjEI=), database kept, table moves", "order_by": "id"}, "spec": {"type": "lockstep.sources:MariaDbTableSource", "arguments": {"table": "moves", "accept": [], "settle": 0.0, "columns": [], "order_by": "id", "connection": "maria", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": {"rows": 2, "upto": "2", "after": null, "server": "server 1 (AUzaBDXMoNyQyquYK3nEH5mTjEI=), database kept, table moves", "order_by": "id"}}}}', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c/maria/epoch=2/176', '01d65d37fed11960899c171e6b02f6aa8e47a8f8aa6cff5bcc26b1a31e5c714e', 'kept', '{"outputs": {"moves": {"rows": 2, "bytes": 425, "files": 1, "digest": "a4b9d8ce503c3d4cbc7dffc603fd7145", "columns": "5d1c0e39e4340e8b"}}, "sources": {"moves": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 10:37:25.382351+00', '2026-11-29 10:37:27.164175+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.execution VALUES (1, 'tables', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 10:33:22.13709+00');
INSERT INTO lockstep.execution VALUES (2, 'tables', 1, NULL, 1, 'stage', 'kept', '2026-11-29 10:33:22.214132+00');
INSERT INTO lockstep.execution VALUES (3, 'tables', 1, 'accounts', 1, 'prepare', 'kept', '2026-11-29 10:33:34.46142+00');
INSERT INTO lockstep.execution VALUES (4, 'tables', 1, 'entries', 1, 'prepare', 'kept', '2026-11-29 10:33:34.561841+00');
INSERT INTO lockstep.execution VALUES (5, 'tables', 1, 'http', 1, 'prepare', 'kept', '2026-11-29 10:33:34.713169+00');
INSERT INTO lockstep.execution VALUES (6, 'tables', 1, 'accounts', 1, 'publish', 'kept', '2026-11-29 10:33:34.84214+00');
INSERT INTO lockstep.execution VALUES (7, 'tables', 1, 'entries', 1, 'publish', 'kept', '2026-11-29 10:33:34.943578+00');
INSERT INTO lockstep.execution VALUES (8, 'tables', 1, 'http', 1, 'publish', 'kept', '2026-11-29 10:33:35.062148+00');
INSERT INTO lockstep.execution VALUES (9, 'tables', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 10:33:35.627135+00');
INSERT INTO lockstep.execution VALUES (10, 'tables', 2, NULL, 9, 'stage', 'kept', '2026-11-29 10:33:35.690116+00');
INSERT INTO lockstep.execution VALUES (11, 'tables', 2, 'accounts', 9, 'prepare', 'kept', '2026-11-29 10:33:37.372045+00');
INSERT INTO lockstep.execution VALUES (12, 'tables', 2, 'entries', 9, 'prepare', 'kept', '2026-11-29 10:33:37.484238+00');
INSERT INTO lockstep.execution VALUES (13, 'tables', 2, 'http', 9, 'prepare', 'kept', '2026-11-29 10:33:37.571192+00');
INSERT INTO lockstep.execution VALUES (14, 'tables', 2, 'accounts', 9, 'publish', 'kept', '2026-11-29 10:33:37.660409+00');
INSERT INTO lockstep.execution VALUES (15, 'tables', 3, NULL, NULL, 'begin', 'kept', '2026-11-29 10:33:37.943979+00');
INSERT INTO lockstep.execution VALUES (16, 'tables', 3, NULL, 15, 'stage', 'kept', '2026-11-29 10:33:38.003618+00');
INSERT INTO lockstep.execution VALUES (17, 'tables', 3, 'accounts', 15, 'prepare', 'kept', '2026-11-29 10:33:39.492843+00');
INSERT INTO lockstep.execution VALUES (18, 'tables', 3, 'entries', 15, 'prepare', 'kept', '2026-11-29 10:33:39.620552+00');
INSERT INTO lockstep.execution VALUES (19, 'tables', 3, 'http', 15, 'prepare', 'kept', '2026-11-29 10:33:39.762897+00');
INSERT INTO lockstep.execution VALUES (20, 'orders', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 10:33:40.108199+00');
INSERT INTO lockstep.execution VALUES (21, 'orders', 1, NULL, 20, 'stage', 'kept', '2026-11-29 10:33:40.186373+00');
INSERT INTO lockstep.execution VALUES (22, 'orders', 1, 'warehouse', 20, 'prepare', 'kept', '2026-11-29 10:33:49.617349+00');
INSERT INTO lockstep.execution VALUES (23, 'orders', 1, 'by_hour', 20, 'prepare', 'kept', '2026-11-29 10:33:49.753278+00');
INSERT INTO lockstep.execution VALUES (24, 'orders', 1, 'refunds', 20, 'prepare', 'kept', '2026-11-29 10:33:49.837854+00');
INSERT INTO lockstep.execution VALUES (25, 'orders', 1, 'warehouse', 20, 'publish', 'kept', '2026-11-29 10:33:49.915749+00');
INSERT INTO lockstep.execution VALUES (26, 'orders', 1, 'by_hour', 20, 'publish', 'kept', '2026-11-29 10:33:49.970089+00');
INSERT INTO lockstep.execution VALUES (27, 'orders', 1, 'refunds', 20, 'publish', 'kept', '2026-11-29 10:33:50.002129+00');
INSERT INTO lockstep.execution VALUES (28, 'orders', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 10:33:50.162441+00');
INSERT INTO lockstep.execution VALUES (29, 'orders', 2, NULL, 28, 'stage', 'kept', '2026-11-29 10:33:50.208547+00');
INSERT INTO lockstep.execution VALUES (30, 'orders', 2, 'warehouse', 28, 'prepare', 'kept', '2026-11-29 10:33:53.160457+00');
INSERT INTO lockstep.execution VALUES (31, 'orders', 2, 'by_hour', 28, 'prepare', 'kept', '2026-11-29 10:33:53.24931+00');
INSERT INTO lockstep.execution VALUES (32, 'orders', 2, 'refunds', 28, 'prepare', 'kept', '2026-11-29 10:33:53.293857+00');
INSERT INTO lockstep.execution VALUES (33, 'orders', 2, 'warehouse', 28, 'publish', 'kept', '2026-11-29 10:33:53.471307+00');
INSERT INTO lockstep.execution VALUES (34, 'orders', 2, 'by_hour', 28, 'publish', 'kept', '2026-11-29 10:33:53.520183+00');
INSERT INTO lockstep.execution VALUES (35, 'orders', 2, 'refunds', 28, 'publish', 'kept', '2026-11-29 10:33:53.561135+00');
INSERT INTO lockstep.execution VALUES (36, 'orders', 3, NULL, NULL, 'begin', 'kept', '2026-11-29 10:33:53.778981+00');
INSERT INTO lockstep.execution VALUES (37, 'orders', 3, NULL, 36, 'stage', 'kept', '2026-11-29 10:33:53.853446+00');
INSERT INTO lockstep.execution VALUES (38, 'orders', 3, 'warehouse', 36, 'prepare', 'kept', '2026-11-29 10:33:56.680843+00');
INSERT INTO lockstep.execution VALUES (39, 'orders', 3, 'by_hour', 36, 'prepare', 'kept', '2026-11-29 10:33:56.860991+00');
INSERT INTO lockstep.execution VALUES (40, 'orders', 3, 'refunds', 36, 'prepare', 'kept', '2026-11-29 10:33:56.969531+00');
INSERT INTO lockstep.execution VALUES (41, 'orders', 3, 'warehouse', 36, 'publish', 'kept', '2026-11-29 10:33:57.167821+00');
INSERT INTO lockstep.execution VALUES (42, 'orders', 3, 'refunds', 36, 'publish', 'kept', '2026-11-29 10:33:57.306064+00');
INSERT INTO lockstep.execution VALUES (43, 'orders', 4, NULL, NULL, 'begin', 'kept', '2026-11-29 10:33:57.531642+00');
INSERT INTO lockstep.execution VALUES (44, 'orders', 4, NULL, 43, 'stage', 'kept', '2026-11-29 10:33:57.630656+00');
INSERT INTO lockstep.execution VALUES (45, 'orders', 4, 'warehouse', 43, 'prepare', 'kept', '2026-11-29 10:34:01.640202+00');
INSERT INTO lockstep.execution VALUES (46, 'orders', 4, 'by_hour', 43, 'prepare', 'kept', '2026-11-29 10:34:01.794495+00');
INSERT INTO lockstep.execution VALUES (47, 'orders', 4, 'refunds', 43, 'prepare', 'kept', '2026-11-29 10:34:01.88995+00');
INSERT INTO lockstep.execution VALUES (48, 'orders', 5, NULL, NULL, 'begin', 'kept', '2026-11-29 10:34:02.267307+00');
INSERT INTO lockstep.execution VALUES (49, 'orders', 5, NULL, 48, 'stage', 'kept', '2026-11-29 10:34:02.367227+00');
INSERT INTO lockstep.execution VALUES (50, 'orders', 5, 'warehouse', 48, 'prepare', 'kept', '2026-11-29 10:34:05.437861+00');
INSERT INTO lockstep.execution VALUES (51, 'orders', 5, 'by_hour', 48, 'prepare', 'kept', '2026-11-29 10:34:05.626437+00');
INSERT INTO lockstep.execution VALUES (52, 'orders', 5, 'refunds', 48, 'prepare', 'kept', '2026-11-29 10:34:05.723683+00');
INSERT INTO lockstep.execution VALUES (53, 'orders', 5, NULL, 48, 'operator', 'kept', '2026-11-29 10:34:05.925708+00');
INSERT INTO lockstep.execution VALUES (54, 'orders', 6, NULL, NULL, 'begin', 'kept', '2026-11-29 10:34:08.588674+00');
INSERT INTO lockstep.execution VALUES (55, 'orders', 6, NULL, 54, 'stage', 'kept', '2026-11-29 10:34:08.654489+00');
INSERT INTO lockstep.execution VALUES (56, 'orders', 6, 'warehouse', 54, 'prepare', 'kept', '2026-11-29 10:34:10.973027+00');
INSERT INTO lockstep.execution VALUES (57, 'orders', 6, 'by_hour', 54, 'prepare', 'kept', '2026-11-29 10:34:11.113661+00');
INSERT INTO lockstep.execution VALUES (58, 'orders', 6, 'refunds', 54, 'prepare', 'kept', '2026-11-29 10:34:11.204654+00');
INSERT INTO lockstep.execution VALUES (59, 'orders', 6, 'warehouse', 54, 'publish', 'kept', '2026-11-29 10:34:11.345321+00');
INSERT INTO lockstep.execution VALUES (60, 'orders', 6, 'by_hour', 54, 'publish', 'kept', '2026-11-29 10:34:11.40366+00');
INSERT INTO lockstep.execution VALUES (61, 'orders', 7, NULL, NULL, 'begin', 'kept', '2026-11-29 10:34:11.587976+00');
INSERT INTO lockstep.execution VALUES (62, 'orders', 7, NULL, 61, 'stage', 'kept', '2026-11-29 10:34:11.683863+00');
INSERT INTO lockstep.execution VALUES (63, 'orders', 7, 'warehouse', 61, 'prepare', 'kept', '2026-11-29 10:34:14.224377+00');
INSERT INTO lockstep.execution VALUES (64, 'orders', 7, 'by_hour', 61, 'prepare', 'kept', '2026-11-29 10:34:14.458145+00');
INSERT INTO lockstep.execution VALUES (65, 'orders', 7, 'refunds', 61, 'prepare', 'kept', '2026-11-29 10:34:14.549857+00');
INSERT INTO lockstep.execution VALUES (66, 'orders', 8, NULL, NULL, 'begin', 'kept', '2026-11-29 10:34:14.797473+00');
INSERT INTO lockstep.execution VALUES (67, 'orders', 8, NULL, 66, 'stage', 'kept', '2026-11-29 10:34:14.937848+00');
INSERT INTO lockstep.execution VALUES (68, 'orders', 8, 'warehouse', 66, 'prepare', 'kept', '2026-11-29 10:34:18.103281+00');
INSERT INTO lockstep.execution VALUES (69, 'orders', 9, NULL, NULL, 'begin', 'kept', '2026-11-29 10:34:18.431003+00');
INSERT INTO lockstep.execution VALUES (70, 'orders', 9, NULL, 69, 'stage', 'kept', '2026-11-29 10:34:18.586604+00');
INSERT INTO lockstep.execution VALUES (71, 'orders', 10, NULL, NULL, 'begin', 'kept', '2026-11-29 10:34:21.332386+00');
INSERT INTO lockstep.execution VALUES (72, 'orders', 11, NULL, NULL, 'begin', 'kept', '2026-11-29 10:34:21.647898+00');
INSERT INTO lockstep.execution VALUES (73, 'orders', 11, NULL, NULL, 'operator', 'kept', '2026-11-29 10:34:21.741861+00');
INSERT INTO lockstep.execution VALUES (74, 'customers', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 10:34:22.021858+00');
INSERT INTO lockstep.execution VALUES (75, 'customers', 1, NULL, 74, 'stage', 'kept', '2026-11-29 10:34:22.143659+00');
INSERT INTO lockstep.execution VALUES (76, 'customers', 1, 'totals', 74, 'prepare', 'kept', '2026-11-29 10:34:33.545846+00');
INSERT INTO lockstep.execution VALUES (77, 'customers', 1, 'changes', 74, 'prepare', 'kept', '2026-11-29 10:34:33.773847+00');
INSERT INTO lockstep.execution VALUES (78, 'customers', 1, 'totals', 74, 'publish', 'kept', '2026-11-29 10:34:33.867128+00');
INSERT INTO lockstep.execution VALUES (79, 'customers', 1, 'changes', 74, 'publish', 'kept', '2026-11-29 10:34:33.998335+00');
INSERT INTO lockstep.execution VALUES (80, 'customers', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 10:34:34.526977+00');
INSERT INTO lockstep.execution VALUES (81, 'customers', 2, NULL, 80, 'stage', 'kept', '2026-11-29 10:34:34.808299+00');
INSERT INTO lockstep.execution VALUES (82, 'customers', 2, 'totals', 80, 'prepare', 'kept', '2026-11-29 10:34:41.592727+00');
INSERT INTO lockstep.execution VALUES (83, 'customers', 2, 'changes', 80, 'prepare', 'kept', '2026-11-29 10:34:41.757875+00');
INSERT INTO lockstep.execution VALUES (84, 'customers', 2, 'totals', 80, 'publish', 'kept', '2026-11-29 10:34:41.956138+00');
INSERT INTO lockstep.execution VALUES (85, 'customers', 2, 'changes', 80, 'publish', 'kept', '2026-11-29 10:34:42.096109+00');
INSERT INTO lockstep.execution VALUES (86, 'customers', 3, NULL, NULL, 'begin', 'kept', '2026-11-29 10:34:42.338976+00');
INSERT INTO lockstep.execution VALUES (87, 'customers', 3, NULL, 86, 'stage', 'kept', '2026-11-29 10:34:42.43495+00');
INSERT INTO lockstep.execution VALUES (88, 'customers', 3, 'totals', 86, 'prepare', 'kept', '2026-11-29 10:34:48.746634+00');
INSERT INTO lockstep.execution VALUES (89, 'customers', 3, 'changes', 86, 'prepare', 'kept', '2026-11-29 10:34:48.94186+00');
INSERT INTO lockstep.execution VALUES (90, 'customers', 3, 'totals', 86, 'publish', 'kept', '2026-11-29 10:34:49.265853+00');
INSERT INTO lockstep.execution VALUES (91, 'customers', 4, NULL, NULL, 'begin', 'kept', '2026-11-29 10:34:49.646747+00');
INSERT INTO lockstep.execution VALUES (92, 'customers', 4, NULL, 91, 'stage', 'kept', '2026-11-29 10:34:49.851975+00');
INSERT INTO lockstep.execution VALUES (93, 'customers', 4, 'totals', 91, 'prepare', 'kept', '2026-11-29 10:34:54.247082+00');
INSERT INTO lockstep.execution VALUES (94, 'customers', 4, 'changes', 91, 'prepare', 'kept', '2026-11-29 10:34:54.373868+00');
INSERT INTO lockstep.execution VALUES (95, 'customers', 5, NULL, NULL, 'begin', 'kept', '2026-11-29 10:34:54.703033+00');
INSERT INTO lockstep.execution VALUES (96, 'customers', 5, NULL, 95, 'stage', 'kept', '2026-11-29 10:34:54.787215+00');
INSERT INTO lockstep.execution VALUES (97, 'lines', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 10:34:59.099207+00');
INSERT INTO lockstep.execution VALUES (98, 'lines', 1, NULL, 97, 'stage', 'kept', '2026-11-29 10:34:59.197036+00');
INSERT INTO lockstep.execution VALUES (99, 'lines', 1, 'stdout', 97, 'prepare', 'kept', '2026-11-29 10:35:06.313754+00');
INSERT INTO lockstep.execution VALUES (100, 'lines', 1, 'tcp', 97, 'prepare', 'kept', '2026-11-29 10:35:06.547553+00');
INSERT INTO lockstep.execution VALUES (101, 'lines', 1, 'stdout', 97, 'publish', 'kept', '2026-11-29 10:35:06.650734+00');
INSERT INTO lockstep.execution VALUES (102, 'lines', 1, 'tcp', 97, 'publish', 'kept', '2026-11-29 10:35:06.707437+00');
INSERT INTO lockstep.execution VALUES (103, 'lines', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 10:35:07.017856+00');
INSERT INTO lockstep.execution VALUES (104, 'lines', 2, NULL, 103, 'stage', 'kept', '2026-11-29 10:35:07.125146+00');
INSERT INTO lockstep.execution VALUES (105, 'lines', 2, 'stdout', 103, 'prepare', 'kept', '2026-11-29 10:35:08.027379+00');
INSERT INTO lockstep.execution VALUES (106, 'lines', 2, 'tcp', 103, 'prepare', 'kept', '2026-11-29 10:35:08.065937+00');
INSERT INTO lockstep.execution VALUES (107, 'lines', 2, 'stdout', 103, 'publish', 'kept', '2026-11-29 10:35:08.144929+00');
INSERT INTO lockstep.execution VALUES (108, 'lines', 3, NULL, NULL, 'begin', 'kept', '2026-11-29 10:35:08.270929+00');
INSERT INTO lockstep.execution VALUES (109, 'lines', 3, NULL, 108, 'stage', 'kept', '2026-11-29 10:35:08.358037+00');
INSERT INTO lockstep.execution VALUES (110, 'lines', 3, 'stdout', 108, 'prepare', 'kept', '2026-11-29 10:35:09.529583+00');
INSERT INTO lockstep.execution VALUES (111, 'lines', 3, 'tcp', 108, 'prepare', 'kept', '2026-11-29 10:35:09.722834+00');
INSERT INTO lockstep.execution VALUES (112, 'numbers', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 10:35:10.411328+00');
INSERT INTO lockstep.execution VALUES (113, 'numbers', 1, NULL, 112, 'stage', 'kept', '2026-11-29 10:35:10.64829+00');
INSERT INTO lockstep.execution VALUES (114, 'numbers', 1, 'shared', 112, 'prepare', 'kept', '2026-11-29 10:35:31.291879+00');
INSERT INTO lockstep.execution VALUES (115, 'numbers', 1, 'newest', 112, 'prepare', 'kept', '2026-11-29 10:35:31.441874+00');
INSERT INTO lockstep.execution VALUES (116, 'numbers', 1, 'by_parity', 112, 'prepare', 'kept', '2026-11-29 10:35:31.597514+00');
INSERT INTO lockstep.execution VALUES (117, 'numbers', 1, 'words', 112, 'prepare', 'kept', '2026-11-29 10:35:31.721559+00');
INSERT INTO lockstep.execution VALUES (118, 'numbers', 1, 'shared', 112, 'publish', 'kept', '2026-11-29 10:35:31.929761+00');
INSERT INTO lockstep.execution VALUES (119, 'numbers', 1, 'newest', 112, 'publish', 'kept', '2026-11-29 10:35:32.050103+00');
INSERT INTO lockstep.execution VALUES (120, 'numbers', 1, 'by_parity', 112, 'publish', 'kept', '2026-11-29 10:35:32.235255+00');
INSERT INTO lockstep.execution VALUES (121, 'numbers', 1, 'words', 112, 'publish', 'kept', '2026-11-29 10:35:32.298637+00');
INSERT INTO lockstep.execution VALUES (122, 'numbers', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 10:35:33.038056+00');
INSERT INTO lockstep.execution VALUES (123, 'numbers', 2, NULL, 122, 'stage', 'kept', '2026-11-29 10:35:33.252101+00');
INSERT INTO lockstep.execution VALUES (124, 'numbers', 2, 'shared', 122, 'prepare', 'kept', '2026-11-29 10:36:01.514742+00');
INSERT INTO lockstep.execution VALUES (125, 'numbers', 2, 'newest', 122, 'prepare', 'kept', '2026-11-29 10:36:02.516904+00');
INSERT INTO lockstep.execution VALUES (126, 'numbers', 2, 'by_parity', 122, 'prepare', 'kept', '2026-11-29 10:36:03.469852+00');
INSERT INTO lockstep.execution VALUES (127, 'numbers', 2, 'words', 122, 'prepare', 'kept', '2026-11-29 10:36:03.651041+00');
INSERT INTO lockstep.execution VALUES (128, 'numbers', 2, 'shared', 122, 'publish', 'kept', '2026-11-29 10:36:04.073846+00');
INSERT INTO lockstep.execution VALUES (129, 'numbers', 2, 'newest', 122, 'publish', 'kept', '2026-11-29 10:36:04.213986+00');
INSERT INTO lockstep.execution VALUES (130, 'numbers', 2, 'by_parity', 122, 'publish', 'kept', '2026-11-29 10:36:04.420726+00');
INSERT INTO lockstep.execution VALUES (131, 'numbers', 2, 'words', 122, 'publish', 'kept', '2026-11-29 10:36:04.48771+00');
INSERT INTO lockstep.execution VALUES (132, 'numbers', 3, NULL, NULL, 'begin', 'kept', '2026-11-29 10:36:05.29454+00');
INSERT INTO lockstep.execution VALUES (133, 'numbers', 3, NULL, 132, 'stage', 'kept', '2026-11-29 10:36:05.554948+00');
INSERT INTO lockstep.execution VALUES (134, 'numbers', 3, 'shared', 132, 'prepare', 'kept', '2026-11-29 10:36:23.197854+00');
INSERT INTO lockstep.execution VALUES (135, 'numbers', 3, 'newest', 132, 'prepare', 'kept', '2026-11-29 10:36:23.349209+00');
INSERT INTO lockstep.execution VALUES (136, 'numbers', 3, 'by_parity', 132, 'prepare', 'kept', '2026-11-29 10:36:23.440541+00');
INSERT INTO lockstep.execution VALUES (137, 'numbers', 3, 'words', 132, 'prepare', 'kept', '2026-11-29 10:36:23.521845+00');
INSERT INTO lockstep.execution VALUES (138, 'numbers', 4, NULL, NULL, 'begin', 'kept', '2026-11-29 10:36:23.846905+00');
INSERT INTO lockstep.execution VALUES (139, 'resumed', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 10:36:24.349216+00');
INSERT INTO lockstep.execution VALUES (140, 'resumed', 1, NULL, 139, 'stage', 'kept', '2026-11-29 10:36:24.491256+00');
INSERT INTO lockstep.execution VALUES (141, 'resumed', 1, 'shared', 139, 'prepare', 'kept', '2026-11-29 10:36:53.41385+00');
INSERT INTO lockstep.execution VALUES (142, 'resumed', 1, 'newest', 139, 'prepare', 'kept', '2026-11-29 10:36:53.552867+00');
INSERT INTO lockstep.execution VALUES (143, 'resumed', 1, 'by_parity', 139, 'prepare', 'kept', '2026-11-29 10:36:53.733846+00');
INSERT INTO lockstep.execution VALUES (144, 'resumed', 1, 'words', 139, 'prepare', 'kept', '2026-11-29 10:36:53.856631+00');
INSERT INTO lockstep.execution VALUES (145, 'resumed', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 10:36:54.150216+00');
INSERT INTO lockstep.execution VALUES (146, 'clicks', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 10:36:54.309013+00');
INSERT INTO lockstep.execution VALUES (147, 'clicks', 1, NULL, 146, 'stage', 'kept', '2026-11-29 10:36:54.359205+00');
INSERT INTO lockstep.execution VALUES (148, 'clicks', 1, 'hourly', 146, 'prepare', 'kept', '2026-11-29 10:36:58.209841+00');
INSERT INTO lockstep.execution VALUES (149, 'clicks', 1, 'late', 146, 'prepare', 'kept', '2026-11-29 10:36:58.334903+00');
INSERT INTO lockstep.execution VALUES (150, 'clicks', 1, 'hourly', 146, 'publish', 'kept', '2026-11-29 10:36:58.510975+00');
INSERT INTO lockstep.execution VALUES (151, 'clicks', 1, 'late', 146, 'publish', 'kept', '2026-11-29 10:36:58.574728+00');
INSERT INTO lockstep.execution VALUES (152, 'clicks', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 10:36:58.773848+00');
INSERT INTO lockstep.execution VALUES (153, 'clicks', 2, NULL, 152, 'stage', 'kept', '2026-11-29 10:36:58.846134+00');
INSERT INTO lockstep.execution VALUES (154, 'clicks', 2, 'hourly', 152, 'prepare', 'kept', '2026-11-29 10:37:01.543057+00');
INSERT INTO lockstep.execution VALUES (155, 'clicks', 2, 'late', 152, 'prepare', 'kept', '2026-11-29 10:37:01.593894+00');
INSERT INTO lockstep.execution VALUES (156, 'clicks', 2, 'hourly', 152, 'publish', 'kept', '2026-11-29 10:37:01.68882+00');
INSERT INTO lockstep.execution VALUES (157, 'clicks', 2, 'late', 152, 'publish', 'kept', '2026-11-29 10:37:01.731932+00');
INSERT INTO lockstep.execution VALUES (158, 'clicks', 3, NULL, NULL, 'begin', 'kept', '2026-11-29 10:37:02.060858+00');
INSERT INTO lockstep.execution VALUES (159, 'clicks', 3, NULL, 158, 'stage', 'kept', '2026-11-29 10:37:02.150547+00');
INSERT INTO lockstep.execution VALUES (160, 'clicks', 3, 'hourly', 158, 'prepare', 'kept', '2026-11-29 10:37:06.194158+00');
INSERT INTO lockstep.execution VALUES (161, 'clicks', 3, 'late', 158, 'prepare', 'kept', '2026-11-29 10:37:06.26554+00');
INSERT INTO lockstep.execution VALUES (162, 'maria_again', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 10:37:06.695556+00');
INSERT INTO lockstep.execution VALUES (163, 'maria_again', 1, NULL, 162, 'stage', 'kept', '2026-11-29 10:37:06.830008+00');
INSERT INTO lockstep.execution VALUES (164, 'maria_again', 1, 'repeated', 162, 'prepare', 'kept', '2026-11-29 10:37:13.315871+00');
INSERT INTO lockstep.execution VALUES (165, 'maria_again', 1, 'repeated', 162, 'publish', 'kept', '2026-11-29 10:37:13.75322+00');
INSERT INTO lockstep.execution VALUES (166, 'maria', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 10:37:14.319879+00');
INSERT INTO lockstep.execution VALUES (167, 'maria', 1, NULL, 166, 'stage', 'kept', '2026-11-29 10:37:14.434229+00');
INSERT INTO lockstep.execution VALUES (168, 'maria', 1, 'prepared', 166, 'prepare', 'kept', '2026-11-29 10:37:22.125511+00');
INSERT INTO lockstep.execution VALUES (169, 'maria', 1, 'newest', 166, 'prepare', 'kept', '2026-11-29 10:37:22.300231+00');
INSERT INTO lockstep.execution VALUES (170, 'maria', 1, 'prepared', 166, 'publish', 'kept', '2026-11-29 10:37:22.758181+00');
INSERT INTO lockstep.execution VALUES (171, 'maria', 1, 'newest', 166, 'publish', 'kept', '2026-11-29 10:37:22.798064+00');
INSERT INTO lockstep.execution VALUES (172, 'maria_again', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 10:37:23.31727+00');
INSERT INTO lockstep.execution VALUES (173, 'maria_again', 2, NULL, 172, 'stage', 'kept', '2026-11-29 10:37:23.470098+00');
INSERT INTO lockstep.execution VALUES (174, 'maria_again', 2, 'repeated', 172, 'prepare', 'kept', '2026-11-29 10:37:24.831053+00');
INSERT INTO lockstep.execution VALUES (175, 'maria', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 10:37:25.382351+00');
INSERT INTO lockstep.execution VALUES (176, 'maria', 2, NULL, 175, 'stage', 'kept', '2026-11-29 10:37:25.48466+00');
INSERT INTO lockstep.execution VALUES (177, 'maria', 2, 'prepared', 175, 'prepare', 'kept', '2026-11-29 10:37:26.666469+00');
INSERT INTO lockstep.execution VALUES (178, 'maria', 2, 'newest', 175, 'prepare', 'kept', '2026-11-29 10:37:26.839883+00');
INSERT INTO lockstep.execution VALUES (179, 'maria', 2, 'prepared', 175, 'publish', 'kept', '2026-11-29 10:37:27.111109+00');
INSERT INTO lockstep.execution VALUES (180, 'maria', 2, 'newest', 175, 'publish', 'kept', '2026-11-29 10:37:27.148314+00');
INSERT INTO lockstep.execution VALUES (181, 'maria', 3, NULL, NULL, 'begin', 'kept', '2026-11-29 10:37:27.373406+00');
INSERT INTO lockstep.execution VALUES (182, 'maria', 3, NULL, 181, 'stage', 'kept', '2026-11-29 10:37:27.460572+00');
INSERT INTO lockstep.execution VALUES (183, 'maria', 3, 'prepared', 181, 'prepare', 'kept', '2026-11-29 10:37:28.173863+00');
INSERT INTO lockstep.execution VALUES (184, 'maria', 3, 'newest', 181, 'prepare', 'kept', '2026-11-29 10:37:28.382729+00');
INSERT INTO lockstep.execution VALUES (185, 'events', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 10:37:29.353159+00');
INSERT INTO lockstep.execution VALUES (186, 'events', 1, NULL, 185, 'stage', 'kept', '2026-11-29 10:37:29.444161+00');
INSERT INTO lockstep.execution VALUES (187, 'events', 1, 'once', 185, 'prepare', 'kept', '2026-11-29 10:37:39.447269+00');
INSERT INTO lockstep.execution VALUES (188, 'events', 1, 'repeated', 185, 'prepare', 'kept', '2026-11-29 10:37:39.636586+00');
INSERT INTO lockstep.execution VALUES (189, 'events', 1, 'once', 185, 'publish', 'kept', '2026-11-29 10:37:39.859169+00');
INSERT INTO lockstep.execution VALUES (190, 'events', 1, 'repeated', 185, 'publish', 'kept', '2026-11-29 10:37:41.30733+00');
INSERT INTO lockstep.execution VALUES (191, 'events', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 10:37:42.073182+00');
INSERT INTO lockstep.execution VALUES (192, 'events', 2, NULL, 191, 'stage', 'kept', '2026-11-29 10:37:42.245854+00');
INSERT INTO lockstep.execution VALUES (193, 'events', 2, 'once', 191, 'prepare', 'kept', '2026-11-29 10:37:43.214559+00');
INSERT INTO lockstep.execution VALUES (194, 'events', 2, 'repeated', 191, 'prepare', 'kept', '2026-11-29 10:37:43.276271+00');
INSERT INTO lockstep.execution VALUES (195, 'events', 2, 'once', 191, 'publish', 'kept', '2026-11-29 10:37:43.413236+00');
INSERT INTO lockstep.execution VALUES (196, 'events', 3, NULL, NULL, 'begin', 'kept', '2026-11-29 10:37:43.675826+00');
INSERT INTO lockstep.execution VALUES (197, 'events', 3, NULL, 196, 'stage', 'kept', '2026-11-29 10:37:43.808795+00');
INSERT INTO lockstep.execution VALUES (198, 'events', 3, 'once', 196, 'prepare', 'kept', '2026-11-29 10:37:44.460965+00');
INSERT INTO lockstep.execution VALUES (199, 'events', 3, 'repeated', 196, 'prepare', 'kept', '2026-11-29 10:37:44.518649+00');
INSERT INTO lockstep.legal_transition VALUES ('epoch', NULL, 'planned', 'begin');
INSERT INTO lockstep.legal_transition VALUES ('epoch', 'planned', 'staged', 'stage');
INSERT INTO lockstep.legal_transition VALUES ('epoch', 'staged', 'planned', 'begin');
INSERT INTO lockstep.legal_transition VALUES ('epoch', 'staged', 'planned', 'operator');
INSERT INTO lockstep.legal_transition VALUES ('epoch', 'staged', 'committed', 'commit');
INSERT INTO lockstep.legal_transition VALUES ('epoch', 'committed', 'published', 'publish');
INSERT INTO lockstep.legal_transition VALUES ('epoch', 'committed', 'published', 'recover');
INSERT INTO lockstep.legal_transition VALUES ('epoch', 'committed', 'published', 'operator');
INSERT INTO lockstep.legal_transition VALUES ('epoch', 'published', 'cleaned', 'cleanup');
INSERT INTO lockstep.legal_transition VALUES ('epoch', 'published', 'cleaned', 'recover');
INSERT INTO lockstep.legal_transition VALUES ('epoch', 'cleaned', 'replaced', 'commit');
INSERT INTO lockstep.legal_transition VALUES ('epoch', 'planned', 'void', 'operator');
INSERT INTO lockstep.legal_transition VALUES ('epoch', 'staged', 'void', 'operator');
INSERT INTO lockstep.legal_transition VALUES ('participant', NULL, 'pending', 'begin');
INSERT INTO lockstep.legal_transition VALUES ('participant', NULL, 'pending', 'operator');
INSERT INTO lockstep.legal_transition VALUES ('participant', 'pending', 'prepared', 'prepare');
INSERT INTO lockstep.legal_transition VALUES ('participant', 'prepared', 'prepared', 'prepare');
INSERT INTO lockstep.legal_transition VALUES ('participant', 'prepared', 'pending', 'begin');
INSERT INTO lockstep.legal_transition VALUES ('participant', 'prepared', 'pending', 'abort');
INSERT INTO lockstep.legal_transition VALUES ('participant', 'prepared', 'pending', 'recover');
INSERT INTO lockstep.legal_transition VALUES ('participant', 'prepared', 'pending', 'operator');
INSERT INTO lockstep.legal_transition VALUES ('participant', 'prepared', 'published', 'publish');
INSERT INTO lockstep.legal_transition VALUES ('participant', 'prepared', 'published', 'recover');
INSERT INTO lockstep.legal_transition VALUES ('participant', 'prepared', 'published', 'operator');
INSERT INTO lockstep.migration VALUES (1, '0001_schema', '2026-11-29 10:33:21.534312+00');
INSERT INTO lockstep.participant VALUES ('customers', 5, 'totals', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:34:54.703033+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 2, 'warehouse', 'published', 30, 28, 30, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:warehouse:2:30:55c92072172b', '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"orders": 4, "refunds": 1}', 'committed', '2026-11-29 10:33:53.502366+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 5, 'changes', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:34:54.703033+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 2, 'by_hour', 'published', 31, 28, 31, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:by_hour:2:31:55c92072172b', '327a45c3-62e5-4b47-96f9-be518e05eae7', '{"orders": 4}', 'committed', '2026-11-29 10:33:53.551432+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 1, 'accounts', 'published', 3, 1, 3, NULL, '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"accounts": 3}', 'sent', '2026-11-29 10:33:34.909486+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 1, 'entries', 'published', 4, 1, 4, NULL, 'dea8b93c-70cf-4f50-82f2-53f6ad62fa6e', '{"entries": 3}', 'sent', '2026-11-29 10:33:35.026581+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 1, 'http', 'published', 5, 1, 5, NULL, '3c48e509-afc3-4bba-a265-50851266d55a', '{"entries": 3}', 'sent', '2026-11-29 10:33:35.118497+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 2, 'refunds', 'published', 32, 28, 32, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:refunds:2:32:55c92072172b', '58af732a-b05b-478c-8c97-41bdd1227989', '{"refunds": 1}', 'committed', '2026-11-29 10:33:53.601667+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 2, 'entries', 'prepared', 12, 9, 12, NULL, 'dea8b93c-70cf-4f50-82f2-53f6ad62fa6e', '{"entries": 3}', NULL, '2026-11-29 10:33:37.538295+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 2, 'http', 'prepared', 13, 9, 13, NULL, '3c48e509-afc3-4bba-a265-50851266d55a', '{"entries": 3}', NULL, '2026-11-29 10:33:37.586238+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 2, 'accounts', 'published', 11, 9, 11, NULL, '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"accounts": 3}', 'sent', '2026-11-29 10:33:37.698188+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 3, 'accounts', 'prepared', 17, 15, 17, NULL, '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"accounts": 3}', NULL, '2026-11-29 10:33:39.570888+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 4, 'refunds', 'prepared', 47, 43, 47, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:refunds:4:47:491dc2aa49ba', '58af732a-b05b-478c-8c97-41bdd1227989', '{"refunds": 1}', NULL, '2026-11-29 10:34:01.948148+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 3, 'entries', 'prepared', 18, 15, 18, NULL, 'dea8b93c-70cf-4f50-82f2-53f6ad62fa6e', '{"entries": 3}', NULL, '2026-11-29 10:33:39.709343+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 3, 'http', 'prepared', 19, 15, 19, NULL, '3c48e509-afc3-4bba-a265-50851266d55a', '{"entries": 3}', NULL, '2026-11-29 10:33:39.774906+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 3, 'by_hour', 'prepared', 39, 36, 39, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:by_hour:3:39:dacf7332d5dd', '327a45c3-62e5-4b47-96f9-be518e05eae7', '{"orders": 4}', NULL, '2026-11-29 10:33:56.942333+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 1, 'warehouse', 'published', 22, 20, 22, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:warehouse:1:22:55d0a6bd1b50', '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"orders": 4, "refunds": 1}', 'committed', '2026-11-29 10:33:49.95572+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 1, 'by_hour', 'published', 23, 20, 23, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:by_hour:1:23:55d0a6bd1b50', '327a45c3-62e5-4b47-96f9-be518e05eae7', '{"orders": 4}', 'committed', '2026-11-29 10:33:49.990291+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 1, 'refunds', 'published', 24, 20, 24, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:refunds:1:24:55d0a6bd1b50', '58af732a-b05b-478c-8c97-41bdd1227989', '{"refunds": 1}', 'committed', '2026-11-29 10:33:50.023794+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 3, 'warehouse', 'published', 38, 36, 38, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:warehouse:3:38:dacf7332d5dd', '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"orders": 4, "refunds": 1}', 'committed', '2026-11-29 10:33:57.22587+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 3, 'refunds', 'published', 40, 36, 40, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:refunds:3:40:dacf7332d5dd', '58af732a-b05b-478c-8c97-41bdd1227989', '{"refunds": 1}', 'committed', '2026-11-29 10:33:57.379421+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 6, 'by_hour', 'prepared', 57, 54, 57, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:by_hour:6:57:4d451fb6105b', '327a45c3-62e5-4b47-96f9-be518e05eae7', '{"orders": 4}', NULL, '2026-11-29 10:34:11.174332+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 4, 'warehouse', 'prepared', 45, 43, 45, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:warehouse:4:45:491dc2aa49ba', '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"orders": 4, "refunds": 1}', NULL, '2026-11-29 10:34:01.778963+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 5, 'warehouse', 'prepared', 50, 48, 50, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:warehouse:5:50:5a5b5621ec4a', '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"orders": 4, "refunds": 1}', NULL, '2026-11-29 10:34:05.589863+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 4, 'by_hour', 'prepared', 46, 43, 46, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:by_hour:4:46:491dc2aa49ba', '327a45c3-62e5-4b47-96f9-be518e05eae7', '{"orders": 4}', NULL, '2026-11-29 10:34:01.846453+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 6, 'refunds', 'prepared', 58, 54, 58, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:refunds:6:58:4d451fb6105b', '58af732a-b05b-478c-8c97-41bdd1227989', '{"refunds": 1}', NULL, '2026-11-29 10:34:11.243216+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 5, 'by_hour', 'prepared', 51, 48, 51, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:by_hour:5:51:5a5b5621ec4a', '327a45c3-62e5-4b47-96f9-be518e05eae7', '{"orders": 4}', NULL, '2026-11-29 10:34:05.647151+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 5, 'refunds', 'prepared', 52, 48, 52, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:refunds:5:52:5a5b5621ec4a', '58af732a-b05b-478c-8c97-41bdd1227989', '{"refunds": 1}', NULL, '2026-11-29 10:34:05.795166+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 6, 'warehouse', 'prepared', 56, 54, 56, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:warehouse:6:56:4d451fb6105b', '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"orders": 4, "refunds": 1}', NULL, '2026-11-29 10:34:11.084932+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 7, 'warehouse', 'prepared', 63, 61, 63, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:warehouse:7:63:cd08bbeb2456', '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"orders": 4, "refunds": 1}', NULL, '2026-11-29 10:34:14.41401+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 7, 'by_hour', 'prepared', 64, 61, 64, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:by_hour:7:64:cd08bbeb2456', '327a45c3-62e5-4b47-96f9-be518e05eae7', '{"orders": 4}', NULL, '2026-11-29 10:34:14.514332+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 7, 'refunds', 'prepared', 65, 61, 65, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:refunds:7:65:cd08bbeb2456', '58af732a-b05b-478c-8c97-41bdd1227989', '{"refunds": 1}', NULL, '2026-11-29 10:34:14.606165+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 8, 'by_hour', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:34:14.797473+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 8, 'refunds', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:34:14.797473+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 8, 'warehouse', 'prepared', 68, 66, 68, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:orders:warehouse:8:68:89cfeb5f9aa7', '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"orders": 4, "refunds": 1}', NULL, '2026-11-29 10:34:18.246204+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 9, 'warehouse', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:34:18.431003+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 9, 'by_hour', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:34:18.431003+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 9, 'refunds', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:34:18.431003+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 10, 'warehouse', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:34:21.332386+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 10, 'by_hour', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:34:21.332386+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 10, 'refunds', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:34:21.332386+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 11, 'warehouse', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:34:21.647898+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 11, 'by_hour', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:34:21.647898+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 11, 'refunds', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:34:21.647898+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 2, 'totals', 'published', 82, 80, 82, NULL, '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"totals": 2}', 'sent', '2026-11-29 10:34:42.051324+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 2, 'changes', 'published', 83, 80, 83, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:customers:changes:2:83:b2448e9a61eb', 'c30feb10-d7df-4050-800d-4882d5ae11ff', '{"totals": 2}', 'committed', '2026-11-29 10:34:42.157167+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 1, 'totals', 'published', 76, 74, 76, NULL, '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"totals": 3}', 'sent', '2026-11-29 10:34:33.960464+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 1, 'changes', 'published', 77, 74, 77, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:customers:changes:1:77:19dbb40e7596', 'c30feb10-d7df-4050-800d-4882d5ae11ff', '{"totals": 3}', 'committed', '2026-11-29 10:34:34.038444+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 3, 'changes', 'prepared', 89, 86, 89, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:customers:changes:3:89:b4057ad94651', 'c30feb10-d7df-4050-800d-4882d5ae11ff', '{"totals": 2}', NULL, '2026-11-29 10:34:49.021862+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 3, 'totals', 'published', 88, 86, 88, NULL, '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"totals": 2}', 'sent', '2026-11-29 10:34:49.364559+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 4, 'totals', 'prepared', 93, 91, 93, NULL, '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"totals": 2}', NULL, '2026-11-29 10:34:54.325886+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 4, 'changes', 'prepared', 94, 91, 94, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:customers:changes:4:94:9a3d98084c94', 'c30feb10-d7df-4050-800d-4882d5ae11ff', '{"totals": 2}', NULL, '2026-11-29 10:34:54.431081+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('lines', 1, 'stdout', 'published', 99, 97, 99, NULL, '44d65a39-4a63-4e4a-8585-0b38df2e8df1', '{"lines": 3}', 'sent', '2026-11-29 10:35:06.681946+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('lines', 1, 'tcp', 'published', 100, 97, 100, NULL, '44d65a39-4a63-4e4a-8585-0b38df2e8df1', '{"lines": 3}', 'sent', '2026-11-29 10:35:06.770437+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('lines', 2, 'tcp', 'prepared', 106, 103, 106, NULL, '44d65a39-4a63-4e4a-8585-0b38df2e8df1', '{"lines": 1}', NULL, '2026-11-29 10:35:08.075184+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('lines', 2, 'stdout', 'published', 105, 103, 105, NULL, '44d65a39-4a63-4e4a-8585-0b38df2e8df1', '{"lines": 1}', 'sent', '2026-11-29 10:35:08.169464+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 1, 'shared', 'published', 114, 112, 114, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:numbers:shared:1:114:a60a1a10c433', '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"numbers": 10}', 'committed', '2026-11-29 10:35:31.993848+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('lines', 3, 'stdout', 'prepared', 110, 108, 110, NULL, '44d65a39-4a63-4e4a-8585-0b38df2e8df1', '{"lines": 2}', NULL, '2026-11-29 10:35:09.639549+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 1, 'newest', 'published', 115, 112, 115, NULL, '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"sums": 2}', 'sent', '2026-11-29 10:35:32.159662+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('lines', 3, 'tcp', 'prepared', 111, 108, 111, NULL, '44d65a39-4a63-4e4a-8585-0b38df2e8df1', '{"lines": 2}', NULL, '2026-11-29 10:35:09.766705+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 1, 'by_parity', 'published', 116, 112, 116, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:numbers:by_parity:1:116:a60a1a10c433', '8ec09f1d-b8aa-4163-b45a-75cb07b111a8', '{"numbers": 10}', 'committed', '2026-11-29 10:35:32.266757+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 1, 'words', 'published', 117, 112, 117, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:numbers:words:1:117:a60a1a10c433', 'd17dadeb-e521-44ae-a615-9e4ef064737c', '{"words": 10}', 'committed', '2026-11-29 10:35:32.331571+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 2, 'shared', 'published', 124, 122, 124, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:numbers:shared:2:124:69959e9b3ad0', '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"numbers": 10}', 'committed', '2026-11-29 10:36:04.123789+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 2, 'newest', 'published', 125, 122, 125, NULL, '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"sums": 2}', 'sent', '2026-11-29 10:36:04.397857+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 2, 'by_parity', 'published', 126, 122, 126, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:numbers:by_parity:2:126:69959e9b3ad0', '8ec09f1d-b8aa-4163-b45a-75cb07b111a8', '{"numbers": 10}', 'committed', '2026-11-29 10:36:04.458914+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 2, 'words', 'published', 127, 122, 127, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:numbers:words:2:127:69959e9b3ad0', 'd17dadeb-e521-44ae-a615-9e4ef064737c', '{"words": 10}', 'committed', '2026-11-29 10:36:04.52186+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 4, 'shared', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:36:23.846905+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 3, 'shared', 'prepared', 134, 132, 134, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:numbers:shared:3:134:588f9ea7065e', '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"numbers": 10}', NULL, '2026-11-29 10:36:23.292388+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 3, 'by_parity', 'prepared', 136, 132, 136, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:numbers:by_parity:3:136:588f9ea7065e', '8ec09f1d-b8aa-4163-b45a-75cb07b111a8', '{"numbers": 10}', NULL, '2026-11-29 10:36:23.487945+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 3, 'newest', 'prepared', 135, 132, 135, NULL, '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"sums": 2}', NULL, '2026-11-29 10:36:23.419559+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 4, 'newest', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:36:23.846905+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 3, 'words', 'prepared', 137, 132, 137, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:numbers:words:3:137:588f9ea7065e', 'd17dadeb-e521-44ae-a615-9e4ef064737c', '{"words": 10}', NULL, '2026-11-29 10:36:23.569185+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 4, 'by_parity', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:36:23.846905+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 4, 'words', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:36:23.846905+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('resumed', 2, 'shared', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:36:54.150216+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('resumed', 1, 'shared', 'prepared', 141, 139, 141, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:resumed:shared:1:141:4bdeae2936ba', '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"numbers": 10}', NULL, '2026-11-29 10:36:53.518846+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('resumed', 1, 'words', 'prepared', 144, 139, 144, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:resumed:words:1:144:4bdeae2936ba', 'd17dadeb-e521-44ae-a615-9e4ef064737c', '{"words": 10}', NULL, '2026-11-29 10:36:53.92591+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('resumed', 1, 'newest', 'prepared', 142, 139, 142, NULL, '4321bb65-34c9-4d8d-a447-7f90258b1527', '{"sums": 2}', NULL, '2026-11-29 10:36:53.684805+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('resumed', 1, 'by_parity', 'prepared', 143, 139, 143, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:resumed:by_parity:1:143:4bdeae2936ba', '82f2e96f-1d2b-4741-a030-930faf3870c7', '{"numbers": 10}', NULL, '2026-11-29 10:36:53.804718+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('events', 2, 'repeated', 'prepared', 194, 191, 194, NULL, 'ZB6AgOZoTxmpKsABzf9PMQ', '{"events": 4}', NULL, '2026-11-29 10:37:43.297853+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('events', 3, 'once', 'prepared', 198, 196, 198, 'shards=2', 'dqUf3V65QyCwHnwRPq/8hQ 3qKnwvRUQieD0amaFSkhpg', '{"events": 4}', NULL, '2026-11-29 10:37:44.492879+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('events', 3, 'repeated', 'prepared', 199, 196, 199, NULL, 'ZB6AgOZoTxmpKsABzf9PMQ', '{"events": 4}', NULL, '2026-11-29 10:37:44.542264+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('resumed', 2, 'newest', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:36:54.150216+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('resumed', 2, 'by_parity', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:36:54.150216+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('resumed', 2, 'words', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 10:36:54.150216+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('events', 1, 'once', 'published', 187, 185, 187, 'shards=2', 'dqUf3V65QyCwHnwRPq/8hQ 3qKnwvRUQieD0amaFSkhpg', '{"events": 4}', 'sent', '2026-11-29 10:37:41.2805+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('events', 1, 'repeated', 'published', 188, 185, 188, NULL, 'ZB6AgOZoTxmpKsABzf9PMQ', '{"events": 4}', 'sent', '2026-11-29 10:37:41.429987+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('events', 2, 'once', 'published', 193, 191, 193, 'shards=2', 'dqUf3V65QyCwHnwRPq/8hQ 3qKnwvRUQieD0amaFSkhpg', '{"events": 4}', 'sent', '2026-11-29 10:37:43.491895+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('clicks', 1, 'hourly', 'published', 148, 146, 148, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:clicks:hourly:1:148:3ecc2d6b0d19', 'aaa1df10-e24e-462d-82d5-f35b687f7f43', '{"hourly": 1}', 'committed', '2026-11-29 10:36:58.546439+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('clicks', 1, 'late', 'published', 149, 146, 149, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:clicks:late:1:149:3ecc2d6b0d19', 'b3e8eb84-fa06-4955-845c-41f8cfe36ebb', '{"late": 0}', 'committed', '2026-11-29 10:36:58.60903+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('maria', 3, 'prepared', 'prepared', 183, 181, 183, 'lockstep:ebe04a6b6a0f34a6f1a1dcb10e4c323a:3:183:6af54148cf78:maria.prepared', '91dd882e-f156-45ba-b17a-569ca083c700', '{"moves": 2}', NULL, '2026-11-29 10:37:28.299781+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('clicks', 2, 'hourly', 'published', 154, 152, 154, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:clicks:hourly:2:154:9993c8351716', 'aaa1df10-e24e-462d-82d5-f35b687f7f43', '{"hourly": 2}', 'committed', '2026-11-29 10:37:01.695616+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('clicks', 2, 'late', 'published', 155, 152, 155, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:clicks:late:2:155:9993c8351716', 'b3e8eb84-fa06-4955-845c-41f8cfe36ebb', '{"late": 0}', 'committed', '2026-11-29 10:37:01.98145+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('clicks', 3, 'hourly', 'prepared', 160, 158, 160, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:clicks:hourly:3:160:80ee0da66034', 'aaa1df10-e24e-462d-82d5-f35b687f7f43', '{"hourly": 1}', NULL, '2026-11-29 10:37:06.23022+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('maria', 3, 'newest', 'prepared', 184, 181, 184, NULL, '91dd882e-f156-45ba-b17a-569ca083c700', '{"moves": 2}', NULL, '2026-11-29 10:37:28.45973+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('clicks', 3, 'late', 'prepared', 161, 158, 161, 'lockstep:dd26b102-bcf7-4f98-8bc1-33d55654ea6c:clicks:late:3:161:80ee0da66034', 'b3e8eb84-fa06-4955-845c-41f8cfe36ebb', '{"late": 1}', NULL, '2026-11-29 10:37:06.317721+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('maria_again', 1, 'repeated', 'published', 164, 162, 164, NULL, '91dd882e-f156-45ba-b17a-569ca083c700', '{"moves": 2}', 'sent', '2026-11-29 10:37:13.885859+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('maria', 1, 'prepared', 'published', 168, 166, 168, 'lockstep:ebe04a6b6a0f34a6f1a1dcb10e4c323a:1:168:02f8ab5d3c30:maria.prepared', '91dd882e-f156-45ba-b17a-569ca083c700', '{"moves": 2}', 'committed', '2026-11-29 10:37:22.766985+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('maria', 1, 'newest', 'published', 169, 166, 169, NULL, '91dd882e-f156-45ba-b17a-569ca083c700', '{"moves": 2}', 'sent', '2026-11-29 10:37:22.837329+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('maria_again', 2, 'repeated', 'prepared', 174, 172, 174, NULL, '91dd882e-f156-45ba-b17a-569ca083c700', '{"moves": 2}', NULL, '2026-11-29 10:37:24.997043+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('maria', 2, 'prepared', 'published', 177, 175, 177, 'lockstep:ebe04a6b6a0f34a6f1a1dcb10e4c323a:2:177:01d65d37fed1:maria.prepared', '91dd882e-f156-45ba-b17a-569ca083c700', '{"moves": 2}', 'committed', '2026-11-29 10:37:27.123069+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('maria', 2, 'newest', 'published', 178, 175, 178, NULL, '91dd882e-f156-45ba-b17a-569ca083c700', '{"moves": 2}', 'sent', '2026-11-29 10:37:27.164175+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('tables', 1, 'accounts', '2026-11-29 10:33:34.909486+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('tables', 1, 'entries', '2026-11-29 10:33:35.026581+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('tables', 1, 'http', '2026-11-29 10:33:35.118497+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('tables', 2, 'accounts', '2026-11-29 10:33:37.698188+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('orders', 1, 'warehouse', '2026-11-29 10:33:49.95572+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('orders', 1, 'by_hour', '2026-11-29 10:33:49.990291+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('orders', 1, 'refunds', '2026-11-29 10:33:50.023794+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('orders', 2, 'warehouse', '2026-11-29 10:33:53.502366+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('orders', 2, 'by_hour', '2026-11-29 10:33:53.551432+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('orders', 2, 'refunds', '2026-11-29 10:33:53.601667+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('orders', 3, 'warehouse', '2026-11-29 10:33:57.22587+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('orders', 3, 'refunds', '2026-11-29 10:33:57.379421+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('customers', 1, 'totals', '2026-11-29 10:34:33.960464+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('customers', 1, 'changes', '2026-11-29 10:34:34.038444+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('customers', 2, 'totals', '2026-11-29 10:34:42.051324+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('customers', 2, 'changes', '2026-11-29 10:34:42.157167+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('customers', 3, 'totals', '2026-11-29 10:34:49.364559+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('lines', 1, 'stdout', '2026-11-29 10:35:06.681946+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('lines', 1, 'tcp', '2026-11-29 10:35:06.770437+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('lines', 2, 'stdout', '2026-11-29 10:35:08.169464+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('numbers', 1, 'shared', '2026-11-29 10:35:31.993848+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('numbers', 1, 'newest', '2026-11-29 10:35:32.159662+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('numbers', 1, 'by_parity', '2026-11-29 10:35:32.266757+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('numbers', 1, 'words', '2026-11-29 10:35:32.331571+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('numbers', 2, 'shared', '2026-11-29 10:36:04.123789+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('numbers', 2, 'newest', '2026-11-29 10:36:04.397857+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('numbers', 2, 'by_parity', '2026-11-29 10:36:04.458914+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('numbers', 2, 'words', '2026-11-29 10:36:04.52186+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('clicks', 1, 'hourly', '2026-11-29 10:36:58.546439+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('clicks', 1, 'late', '2026-11-29 10:36:58.60903+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('clicks', 2, 'hourly', '2026-11-29 10:37:01.695616+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('clicks', 2, 'late', '2026-11-29 10:37:01.98145+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('maria_again', 1, 'repeated', '2026-11-29 10:37:13.885859+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('maria', 1, 'prepared', '2026-11-29 10:37:22.766985+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('maria', 1, 'newest', '2026-11-29 10:37:22.837329+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('maria', 2, 'prepared', '2026-11-29 10:37:27.123069+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('maria', 2, 'newest', '2026-11-29 10:37:27.164175+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('events', 1, 'once', '2026-11-29 10:37:41.2805+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('events', 1, 'repeated', '2026-11-29 10:37:41.429987+00', 'kept', NULL);
INSERT INTO lockstep.pending_asset_event VALUES ('events', 2, 'once', '2026-11-29 10:37:43.491895+00', 'kept', NULL);
INSERT INTO lockstep.pipeline VALUES ('tables', 'cursor', 3, '02:00:00', '2026-11-29 10:33:22.13709+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('orders', 'interval', 11, '02:00:00', '2026-11-29 10:33:40.108199+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('customers', 'cursor', 5, '02:00:00', '2026-11-29 10:34:22.021858+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('lines', 'cursor', 3, '02:00:00', '2026-11-29 10:34:59.099207+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('numbers', 'cursor', 4, '02:00:00', '2026-11-29 10:35:10.411328+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('resumed', 'cursor', 2, '02:00:00', '2026-11-29 10:36:23.922644+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('clicks', 'cursor', 3, '02:00:00', '2026-11-29 10:36:54.309013+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('maria_again', 'cursor', 2, '02:00:00', '2026-11-29 10:37:06.695556+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('maria', 'cursor', 3, '02:00:00', '2026-11-29 10:37:14.319879+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('events', 'cursor', 3, '02:00:00', '2026-11-29 10:37:29.353159+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.planned_sink VALUES ('customers', 'totals', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 10:34:54.703033+00');
INSERT INTO lockstep.planned_sink VALUES ('customers', 'changes', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_0_1_0.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}', DEFAULT, '2026-11-29 10:34:54.703033+00');
INSERT INTO lockstep.planned_sink VALUES ('tables', 'accounts', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "accounts", "create": true, "schema": "public", "shared": false, "tables": {"accounts": "public.accounts_copy"}, "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 10:33:37.943979+00');
INSERT INTO lockstep.planned_sink VALUES ('tables', 'entries', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "entries", "create": true, "schema": "proofs", "shared": false, "tables": {"entries": "public.entries_copy"}, "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 10:33:37.943979+00');
INSERT INTO lockstep.planned_sink VALUES ('tables', 'http', '{"type": "lockstep.sinks:HttpSink", "arguments": {"name": "http", "output": "entries", "committer": "postgres:warehouse", "connection": "http", "key_header": "Authorization"}}', DEFAULT, '2026-11-29 10:33:37.943979+00');
INSERT INTO lockstep.planned_sink VALUES ('orders', 'warehouse', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 10:34:21.647898+00');
INSERT INTO lockstep.planned_sink VALUES ('orders', 'by_hour', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}', DEFAULT, '2026-11-29 10:34:21.647898+00');
INSERT INTO lockstep.planned_sink VALUES ('orders', 'refunds', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}', DEFAULT, '2026-11-29 10:34:21.647898+00');
INSERT INTO lockstep.planned_sink VALUES ('numbers', 'words', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}', DEFAULT, '2026-11-29 10:36:23.846905+00');
INSERT INTO lockstep.planned_sink VALUES ('lines', 'stdout', '{"type": "lockstep.sinks:StdoutSink", "arguments": {"name": "stdout", "output": "lines", "committer": "@HOME@/sent"}}', DEFAULT, '2026-11-29 10:35:08.270929+00');
INSERT INTO lockstep.planned_sink VALUES ('resumed', 'shared', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 10:36:54.150216+00');
INSERT INTO lockstep.planned_sink VALUES ('resumed', 'newest', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.resumed_sums"}, "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 10:36:54.150216+00');
INSERT INTO lockstep.planned_sink VALUES ('lines', 'tcp', '{"type": "lockstep.sinks:TcpSink", "arguments": {"name": "tcp", "output": "lines", "committer": "@HOME@/sent", "connection": "tcp"}}', DEFAULT, '2026-11-29 10:35:08.270929+00');
INSERT INTO lockstep.planned_sink VALUES ('resumed', 'by_parity', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/resumed", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}', DEFAULT, '2026-11-29 10:36:54.150216+00');
INSERT INTO lockstep.planned_sink VALUES ('resumed', 'words', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}', DEFAULT, '2026-11-29 10:36:54.150216+00');
INSERT INTO lockstep.planned_sink VALUES ('numbers', 'shared', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 10:36:23.846905+00');
INSERT INTO lockstep.planned_sink VALUES ('numbers', 'newest', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.numbers_sums"}, "protocol": "write_ahead", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 10:36:23.846905+00');
INSERT INTO lockstep.planned_sink VALUES ('numbers', 'by_parity', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/numbers", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}', DEFAULT, '2026-11-29 10:36:23.846905+00');
INSERT INTO lockstep.planned_sink VALUES ('clicks', 'hourly', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "hourly", "path": "@HOME@/out/hourly", "format": "json", "output": "hourly", "shared": false}}', DEFAULT, '2026-11-29 10:37:02.060858+00');
INSERT INTO lockstep.planned_sink VALUES ('clicks', 'late', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "late", "path": "@HOME@/out/late", "format": "parquet", "output": "late", "shared": false}}', DEFAULT, '2026-11-29 10:37:02.060858+00');
INSERT INTO lockstep.planned_sink VALUES ('maria', 'prepared', '{"type": "lockstep.sinks:MariaDbSink", "arguments": {"name": "prepared", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_prepared"}, "protocol": "two_phase", "connection": "maria", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 10:37:27.373406+00');
INSERT INTO lockstep.planned_sink VALUES ('maria_again', 'repeated', '{"type": "lockstep.sinks:MariaDbSink", "arguments": {"name": "repeated", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_repeated"}, "protocol": "write_ahead", "connection": "maria", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 10:37:23.31727+00');
INSERT INTO lockstep.planned_sink VALUES ('maria', 'newest', '{"type": "lockstep.sinks:MariaDbSink", "arguments": {"key": {"moves": ["piece"]}, "mode": "upsert", "name": "newest", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_newest"}, "protocol": "write_ahead", "connection": "maria", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 10:37:27.373406+00');
INSERT INTO lockstep.planned_sink VALUES ('events', 'once', '{"type": "lockstep.sinks:KafkaSink", "arguments": {"key": "key", "name": "once", "topic": "kept.once", "output": "events", "guarantee": "exactly_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "kept.markers"}}', DEFAULT, '2026-11-29 10:37:43.675826+00');
INSERT INTO lockstep.planned_sink VALUES ('events', 'repeated', '{"type": "lockstep.sinks:KafkaSink", "arguments": {"key": "key", "name": "repeated", "topic": "kept.repeated", "output": "events", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "lockstep.markers"}}', DEFAULT, '2026-11-29 10:37:43.675826+00');
INSERT INTO lockstep.planned_source VALUES ('tables', 'accounts', 3);
INSERT INTO lockstep.planned_source VALUES ('tables', 'entries', 3);
INSERT INTO lockstep.planned_source VALUES ('customers', 'payments', 5);
INSERT INTO lockstep.planned_source VALUES ('lines', 'lines', 3);
INSERT INTO lockstep.planned_source VALUES ('numbers', 'numbers', 4);
INSERT INTO lockstep.planned_source VALUES ('resumed', 'numbers', 2);
INSERT INTO lockstep.planned_source VALUES ('clicks', 'clicks', 3);
INSERT INTO lockstep.planned_source VALUES ('maria_again', 'moves', 2);
INSERT INTO lockstep.planned_source VALUES ('maria', 'moves', 3);
INSERT INTO lockstep.planned_source VALUES ('events', 'events', 3);
INSERT INTO lockstep.run VALUES ('kept', 'tables-1', 'tables', 1, 1, '2026-11-29 10:33:22.13709+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'tables-2', 'tables', 2, 9, '2026-11-29 10:33:35.627135+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'tables-3', 'tables', 3, 15, '2026-11-29 10:33:37.943979+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-0', 'orders', 1, 20, '2026-11-29 10:33:40.108199+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-1', 'orders', 2, 28, '2026-11-29 10:33:50.162441+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-2', 'orders', 3, 36, '2026-11-29 10:33:53.778981+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-3', 'orders', 4, 43, '2026-11-29 10:33:57.531642+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-4', 'orders', 5, 48, '2026-11-29 10:34:02.267307+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-5', 'orders', 6, 54, '2026-11-29 10:34:08.588674+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-6', 'orders', 7, 61, '2026-11-29 10:34:11.587976+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-7', 'orders', 8, 66, '2026-11-29 10:34:14.797473+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-8', 'orders', 9, 69, '2026-11-29 10:34:18.431003+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-9', 'orders', 10, 71, '2026-11-29 10:34:21.332386+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-10', 'orders', 11, 72, '2026-11-29 10:34:21.647898+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'customers-1', 'customers', 1, 74, '2026-11-29 10:34:22.021858+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'customers-2', 'customers', 2, 80, '2026-11-29 10:34:34.526977+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'customers-3', 'customers', 3, 86, '2026-11-29 10:34:42.338976+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'customers-4', 'customers', 4, 91, '2026-11-29 10:34:49.646747+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'customers-5', 'customers', 5, 95, '2026-11-29 10:34:54.703033+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'lines-1', 'lines', 1, 97, '2026-11-29 10:34:59.099207+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'lines-2', 'lines', 2, 103, '2026-11-29 10:35:07.017856+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'lines-3', 'lines', 3, 108, '2026-11-29 10:35:08.270929+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'numbers-1', 'numbers', 1, 112, '2026-11-29 10:35:10.411328+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'numbers-2', 'numbers', 2, 122, '2026-11-29 10:35:33.038056+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'numbers-3', 'numbers', 3, 132, '2026-11-29 10:36:05.29454+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'numbers-4', 'numbers', 4, 138, '2026-11-29 10:36:23.846905+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'resumed-1', 'resumed', 1, 139, '2026-11-29 10:36:24.349216+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'resumed-2', 'resumed', 2, 145, '2026-11-29 10:36:54.150216+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'clicks-1', 'clicks', 1, 146, '2026-11-29 10:36:54.309013+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'clicks-2', 'clicks', 2, 152, '2026-11-29 10:36:58.773848+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'clicks-3', 'clicks', 3, 158, '2026-11-29 10:37:02.060858+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'maria_again-1', 'maria_again', 1, 162, '2026-11-29 10:37:06.695556+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'maria-1', 'maria', 1, 166, '2026-11-29 10:37:14.319879+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'maria_again-2', 'maria_again', 2, 172, '2026-11-29 10:37:23.31727+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'maria-2', 'maria', 2, 175, '2026-11-29 10:37:25.382351+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'maria-3', 'maria', 3, 181, '2026-11-29 10:37:27.373406+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'events-1', 'events', 1, 185, '2026-11-29 10:37:29.353159+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'events-2', 'events', 2, 191, '2026-11-29 10:37:42.073182+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'events-3', 'events', 3, 196, '2026-11-29 10:37:43.675826+00', NULL);
INSERT INTO lockstep.savepoint VALUES ('resumed', '{"epoch": 2, "format": 1, "pipeline": "numbers", "versions": {"sums": {"key": ["parity"], "files": [{"path": "2-123-part-00000-e6421f48-c740-459a-91cd-718ac28024dd.zstd.parquet", "rows": 2, "bytes": 299, "epoch": 0, "token": 0, "bucket": 1, "digest": "309441ea088488bb5710a518612f05f2", "sha256": "c81a23de876c83438da5295abaa2c6031340af6495af3a32214ebd20c9ce9e5c", "earliest": null}], "schema": "parity INT, total BIGINT", "buckets": 2, "expires": null}}, "positions": {"numbers": {"end": {"next": 20}, "start": {"next": 10}}}, "deployment": "dd26b102-bcf7-4f98-8bc1-33d55654ea6c", "manifest_hash": "69959e9b3ad02f30a3b8ee70c0950520b228018ea0c35691382010d58602f5ce"}', '40e815d9cedf68ccb7efbe385c53444e821b348cecbaf5a5f0fcfb3d20611a2d', 'kept', '2026-11-29 10:36:23.993864+00');
INSERT INTO lockstep.setting_override OVERRIDING SYSTEM VALUE VALUES (1, 'orders', 'warehouse', '{"lock_timeout": 7.0}', 'kept', 'a slow day', '2026-11-29 10:34:21.85672+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (1, 'tables', 1, NULL, NULL, 'planned', 1, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:22.156963+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (2, 'tables', 1, 'accounts', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:22.165378+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (3, 'tables', 1, 'entries', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:22.170661+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (4, 'tables', 1, 'http', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:22.174578+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (5, 'tables', 1, NULL, 'planned', 'staged', 1, NULL, 'stage', 'kept', NULL, '2026-11-29 10:33:34.413225+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (6, 'tables', 1, 'accounts', 'pending', 'prepared', 1, 3, 'prepare', 'kept', NULL, '2026-11-29 10:33:34.539098+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (7, 'tables', 1, 'entries', 'pending', 'prepared', 1, 4, 'prepare', 'kept', NULL, '2026-11-29 10:33:34.685229+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (8, 'tables', 1, 'http', 'pending', 'prepared', 1, 5, 'prepare', 'kept', NULL, '2026-11-29 10:33:34.758037+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (9, 'tables', 1, NULL, 'staged', 'committed', 1, NULL, 'commit', 'kept', NULL, '2026-11-29 10:33:34.795989+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (10, 'tables', 1, 'accounts', 'prepared', 'published', 1, 3, 'publish', 'kept', NULL, '2026-11-29 10:33:34.916322+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (11, 'tables', 1, 'entries', 'prepared', 'published', 1, 4, 'publish', 'kept', NULL, '2026-11-29 10:33:35.03077+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (12, 'tables', 1, 'http', 'prepared', 'published', 1, 5, 'publish', 'kept', NULL, '2026-11-29 10:33:35.120256+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (13, 'tables', 1, NULL, 'committed', 'published', 1, NULL, 'publish', 'kept', NULL, '2026-11-29 10:33:35.132905+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (14, 'tables', 1, NULL, 'published', 'cleaned', 1, NULL, 'cleanup', 'kept', NULL, '2026-11-29 10:33:35.245348+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (15, 'tables', 2, NULL, NULL, 'planned', 9, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:35.633396+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (16, 'tables', 2, 'accounts', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:35.639743+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (17, 'tables', 2, 'entries', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:35.642513+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (18, 'tables', 2, 'http', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:35.646208+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (19, 'tables', 2, NULL, 'planned', 'staged', 9, NULL, 'stage', 'kept', NULL, '2026-11-29 10:33:37.274209+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (20, 'tables', 2, 'accounts', 'pending', 'prepared', 9, 11, 'prepare', 'kept', NULL, '2026-11-29 10:33:37.451998+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (21, 'tables', 2, 'entries', 'pending', 'prepared', 9, 12, 'prepare', 'kept', NULL, '2026-11-29 10:33:37.540794+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (22, 'tables', 2, 'http', 'pending', 'prepared', 9, 13, 'prepare', 'kept', NULL, '2026-11-29 10:33:37.588252+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (23, 'tables', 2, NULL, 'staged', 'committed', 9, NULL, 'commit', 'kept', NULL, '2026-11-29 10:33:37.617081+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (24, 'tables', 2, 'accounts', 'prepared', 'published', 9, 11, 'publish', 'kept', NULL, '2026-11-29 10:33:37.703424+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (25, 'tables', 3, NULL, NULL, 'planned', 15, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:37.953478+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (26, 'tables', 3, 'accounts', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:37.959986+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (27, 'tables', 3, 'entries', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:37.963963+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (28, 'tables', 3, 'http', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:37.965325+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (29, 'tables', 3, NULL, 'planned', 'staged', 15, NULL, 'stage', 'kept', NULL, '2026-11-29 10:33:39.369194+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (30, 'tables', 3, 'accounts', 'pending', 'prepared', 15, 17, 'prepare', 'kept', NULL, '2026-11-29 10:33:39.581398+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (31, 'tables', 3, 'entries', 'pending', 'prepared', 15, 18, 'prepare', 'kept', NULL, '2026-11-29 10:33:39.714521+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (32, 'tables', 3, 'http', 'pending', 'prepared', 15, 19, 'prepare', 'kept', NULL, '2026-11-29 10:33:39.776414+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (33, 'tables', 3, NULL, 'staged', 'committed', 15, NULL, 'commit', 'kept', NULL, '2026-11-29 10:33:39.828746+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (34, 'orders', 1, NULL, NULL, 'planned', 20, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:40.127113+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (35, 'orders', 1, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:40.131613+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (36, 'orders', 1, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:40.138202+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (37, 'orders', 1, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:40.139261+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (38, 'orders', 1, NULL, 'planned', 'staged', 20, NULL, 'stage', 'kept', NULL, '2026-11-29 10:33:49.576446+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (39, 'orders', 1, 'warehouse', 'pending', 'prepared', 20, 22, 'prepare', 'kept', NULL, '2026-11-29 10:33:49.736788+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (40, 'orders', 1, 'by_hour', 'pending', 'prepared', 20, 23, 'prepare', 'kept', NULL, '2026-11-29 10:33:49.819831+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (41, 'orders', 1, 'refunds', 'pending', 'prepared', 20, 24, 'prepare', 'kept', NULL, '2026-11-29 10:33:49.865746+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (42, 'orders', 1, NULL, 'staged', 'committed', 20, NULL, 'commit', 'kept', NULL, '2026-11-29 10:33:49.888929+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (43, 'orders', 1, 'warehouse', 'prepared', 'published', 20, 22, 'publish', 'kept', NULL, '2026-11-29 10:33:49.963237+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (44, 'orders', 1, 'by_hour', 'prepared', 'published', 20, 23, 'publish', 'kept', NULL, '2026-11-29 10:33:49.991596+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (45, 'orders', 1, 'refunds', 'prepared', 'published', 20, 24, 'publish', 'kept', NULL, '2026-11-29 10:33:50.027172+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (46, 'orders', 1, NULL, 'committed', 'published', 20, NULL, 'publish', 'kept', NULL, '2026-11-29 10:33:50.034745+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (47, 'orders', 1, NULL, 'published', 'cleaned', 20, NULL, 'cleanup', 'kept', NULL, '2026-11-29 10:33:50.087819+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (48, 'orders', 2, NULL, NULL, 'planned', 28, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:50.170575+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (49, 'orders', 2, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:50.174611+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (50, 'orders', 2, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:50.175535+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (51, 'orders', 2, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:50.1762+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (52, 'orders', 2, NULL, 'planned', 'staged', 28, NULL, 'stage', 'kept', NULL, '2026-11-29 10:33:53.112451+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (53, 'orders', 2, 'warehouse', 'pending', 'prepared', 28, 30, 'prepare', 'kept', NULL, '2026-11-29 10:33:53.23067+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (54, 'orders', 2, 'by_hour', 'pending', 'prepared', 28, 31, 'prepare', 'kept', NULL, '2026-11-29 10:33:53.272909+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (55, 'orders', 2, 'refunds', 'pending', 'prepared', 28, 32, 'prepare', 'kept', NULL, '2026-11-29 10:33:53.338881+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (56, 'orders', 2, NULL, 'staged', 'committed', 28, NULL, 'commit', 'kept', NULL, '2026-11-29 10:33:53.405128+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (57, 'orders', 2, 'warehouse', 'prepared', 'published', 28, 30, 'publish', 'kept', NULL, '2026-11-29 10:33:53.505333+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (58, 'orders', 2, 'by_hour', 'prepared', 'published', 28, 31, 'publish', 'kept', NULL, '2026-11-29 10:33:53.552741+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (59, 'orders', 2, 'refunds', 'prepared', 'published', 28, 32, 'publish', 'kept', NULL, '2026-11-29 10:33:53.603186+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (60, 'orders', 2, NULL, 'committed', 'published', 28, NULL, 'publish', 'kept', NULL, '2026-11-29 10:33:53.612035+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (61, 'orders', 3, NULL, NULL, 'planned', 36, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:53.783067+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (62, 'orders', 3, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:53.795017+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (63, 'orders', 3, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:53.80037+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (64, 'orders', 3, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:53.802453+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (65, 'orders', 3, NULL, 'planned', 'staged', 36, NULL, 'stage', 'kept', NULL, '2026-11-29 10:33:56.599763+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (66, 'orders', 3, 'warehouse', 'pending', 'prepared', 36, 38, 'prepare', 'kept', NULL, '2026-11-29 10:33:56.805948+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (67, 'orders', 3, 'by_hour', 'pending', 'prepared', 36, 39, 'prepare', 'kept', NULL, '2026-11-29 10:33:56.943803+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (68, 'orders', 3, 'refunds', 'pending', 'prepared', 36, 40, 'prepare', 'kept', NULL, '2026-11-29 10:33:57.010342+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (69, 'orders', 3, NULL, 'staged', 'committed', 36, NULL, 'commit', 'kept', NULL, '2026-11-29 10:33:57.061288+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (70, 'orders', 3, 'warehouse', 'prepared', 'published', 36, 38, 'publish', 'kept', NULL, '2026-11-29 10:33:57.229036+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (71, 'orders', 3, 'refunds', 'prepared', 'published', 36, 40, 'publish', 'kept', NULL, '2026-11-29 10:33:57.384654+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (72, 'orders', 4, NULL, NULL, 'planned', 43, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:57.544954+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (73, 'orders', 4, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:57.553998+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (74, 'orders', 4, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:57.554769+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (75, 'orders', 4, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:33:57.560414+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (76, 'orders', 4, NULL, 'planned', 'staged', 43, NULL, 'stage', 'kept', NULL, '2026-11-29 10:34:01.513657+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (77, 'orders', 4, 'warehouse', 'pending', 'prepared', 43, 45, 'prepare', 'kept', NULL, '2026-11-29 10:34:01.781186+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (78, 'orders', 4, 'by_hour', 'pending', 'prepared', 43, 46, 'prepare', 'kept', NULL, '2026-11-29 10:34:01.847924+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (79, 'orders', 4, 'refunds', 'pending', 'prepared', 43, 47, 'prepare', 'kept', NULL, '2026-11-29 10:34:01.950232+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (80, 'orders', 4, NULL, 'staged', 'committed', 43, NULL, 'commit', 'kept', NULL, '2026-11-29 10:34:02.003099+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (81, 'orders', 5, NULL, NULL, 'planned', 48, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:02.275531+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (82, 'orders', 5, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:02.286724+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (83, 'orders', 5, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:02.302323+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (84, 'orders', 5, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:02.306768+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (85, 'orders', 5, NULL, 'planned', 'staged', 48, NULL, 'stage', 'kept', NULL, '2026-11-29 10:34:05.308247+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (86, 'orders', 5, 'warehouse', 'pending', 'prepared', 48, 50, 'prepare', 'kept', NULL, '2026-11-29 10:34:05.592751+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (87, 'orders', 5, 'by_hour', 'pending', 'prepared', 48, 51, 'prepare', 'kept', NULL, '2026-11-29 10:34:05.650899+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (88, 'orders', 5, 'refunds', 'pending', 'prepared', 48, 52, 'prepare', 'kept', NULL, '2026-11-29 10:34:05.822547+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (89, 'orders', 5, NULL, 'staged', 'committed', 48, NULL, 'commit', 'kept', NULL, '2026-11-29 10:34:05.866055+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (90, 'orders', 5, NULL, 'committed', 'committed', 48, 53, 'operator', 'kept', 'a disk was lost', '2026-11-29 10:34:08.419542+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (91, 'orders', 6, NULL, NULL, 'planned', 54, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:08.595158+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (92, 'orders', 6, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:08.59858+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (93, 'orders', 6, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:08.602479+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (94, 'orders', 6, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:08.603084+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (95, 'orders', 6, NULL, 'planned', 'staged', 54, NULL, 'stage', 'kept', NULL, '2026-11-29 10:34:10.840377+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (96, 'orders', 6, 'warehouse', 'pending', 'prepared', 54, 56, 'prepare', 'kept', NULL, '2026-11-29 10:34:11.088294+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (97, 'orders', 6, 'by_hour', 'pending', 'prepared', 54, 57, 'prepare', 'kept', NULL, '2026-11-29 10:34:11.182825+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (98, 'orders', 6, 'refunds', 'pending', 'prepared', 54, 58, 'prepare', 'kept', NULL, '2026-11-29 10:34:11.250403+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (99, 'orders', 6, NULL, 'staged', 'committed', 54, NULL, 'commit', 'kept', NULL, '2026-11-29 10:34:11.295826+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (100, 'orders', 7, NULL, NULL, 'planned', 61, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:11.603585+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (101, 'orders', 7, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:11.610958+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (102, 'orders', 7, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:11.614299+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (103, 'orders', 7, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:11.614975+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (104, 'orders', 7, NULL, 'planned', 'staged', 61, NULL, 'stage', 'kept', NULL, '2026-11-29 10:34:14.120081+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (105, 'orders', 7, 'warehouse', 'pending', 'prepared', 61, 63, 'prepare', 'kept', NULL, '2026-11-29 10:34:14.423237+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (106, 'orders', 7, 'by_hour', 'pending', 'prepared', 61, 64, 'prepare', 'kept', NULL, '2026-11-29 10:34:14.515943+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (107, 'orders', 7, 'refunds', 'pending', 'prepared', 61, 65, 'prepare', 'kept', NULL, '2026-11-29 10:34:14.614465+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (108, 'orders', 8, NULL, NULL, 'planned', 66, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:14.811416+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (109, 'orders', 8, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:14.821871+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (110, 'orders', 8, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:14.826+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (111, 'orders', 8, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:14.826785+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (112, 'orders', 8, NULL, 'planned', 'staged', 66, NULL, 'stage', 'kept', NULL, '2026-11-29 10:34:17.94286+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (113, 'orders', 8, 'warehouse', 'pending', 'prepared', 66, 68, 'prepare', 'kept', NULL, '2026-11-29 10:34:18.248505+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (114, 'orders', 9, NULL, NULL, 'planned', 69, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:18.446277+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (115, 'orders', 9, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:18.454762+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (116, 'orders', 9, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:18.458614+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (117, 'orders', 9, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:18.459233+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (118, 'orders', 9, NULL, 'planned', 'staged', 69, NULL, 'stage', 'kept', NULL, '2026-11-29 10:34:21.09572+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (119, 'orders', 10, NULL, NULL, 'planned', 71, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:21.347162+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (120, 'orders', 10, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:21.354739+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (121, 'orders', 10, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:21.362618+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (122, 'orders', 10, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:21.363269+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (123, 'orders', 11, NULL, NULL, 'planned', 72, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:21.660821+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (124, 'orders', 11, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:21.667502+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (125, 'orders', 11, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:21.668753+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (126, 'orders', 11, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:21.674554+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (127, 'orders', 11, NULL, 'planned', 'planned', 73, NULL, 'operator', 'kept', 'nobody wants that day', '2026-11-29 10:34:21.749013+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (128, 'orders', 11, NULL, 'planned', 'void', 73, NULL, 'operator', 'kept', 'nobody wants that day', '2026-11-29 10:34:21.758212+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (129, 'customers', 1, NULL, NULL, 'planned', 74, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:22.055093+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (130, 'customers', 1, 'totals', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:22.058646+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (131, 'customers', 1, 'changes', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:22.069906+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (132, 'customers', 1, NULL, 'planned', 'staged', 74, NULL, 'stage', 'kept', NULL, '2026-11-29 10:34:33.414281+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (133, 'customers', 1, 'totals', 'pending', 'prepared', 74, 76, 'prepare', 'kept', NULL, '2026-11-29 10:34:33.726343+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (134, 'customers', 1, 'changes', 'pending', 'prepared', 74, 77, 'prepare', 'kept', NULL, '2026-11-29 10:34:33.799633+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (135, 'customers', 1, NULL, 'staged', 'committed', 74, NULL, 'commit', 'kept', NULL, '2026-11-29 10:34:33.836129+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (136, 'customers', 1, 'totals', 'prepared', 'published', 74, 76, 'publish', 'kept', NULL, '2026-11-29 10:34:33.963585+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (137, 'customers', 1, 'changes', 'prepared', 'published', 74, 77, 'publish', 'kept', NULL, '2026-11-29 10:34:34.04254+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (138, 'customers', 1, NULL, 'committed', 'published', 74, NULL, 'publish', 'kept', NULL, '2026-11-29 10:34:34.044218+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (139, 'customers', 1, NULL, 'published', 'cleaned', 74, NULL, 'cleanup', 'kept', NULL, '2026-11-29 10:34:34.242745+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (140, 'customers', 2, NULL, NULL, 'planned', 80, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:34.60563+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (141, 'customers', 2, 'totals', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:34.614754+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (142, 'customers', 2, 'changes', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:34.630337+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (143, 'customers', 2, NULL, 'planned', 'staged', 80, NULL, 'stage', 'kept', NULL, '2026-11-29 10:34:41.482796+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (144, 'customers', 2, 'totals', 'pending', 'prepared', 80, 82, 'prepare', 'kept', NULL, '2026-11-29 10:34:41.719492+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (145, 'customers', 2, 'changes', 'pending', 'prepared', 80, 83, 'prepare', 'kept', NULL, '2026-11-29 10:34:41.81232+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (146, 'customers', 2, NULL, 'staged', 'committed', 80, NULL, 'commit', 'kept', NULL, '2026-11-29 10:34:41.874597+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (147, 'customers', 2, 'totals', 'prepared', 'published', 80, 82, 'publish', 'kept', NULL, '2026-11-29 10:34:42.059455+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (148, 'customers', 2, 'changes', 'prepared', 'published', 80, 83, 'publish', 'kept', NULL, '2026-11-29 10:34:42.167123+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (149, 'customers', 2, NULL, 'committed', 'published', 80, NULL, 'publish', 'kept', NULL, '2026-11-29 10:34:42.168797+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (150, 'customers', 3, NULL, NULL, 'planned', 86, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:42.351925+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (151, 'customers', 3, 'totals', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:42.356499+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (152, 'customers', 3, 'changes', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:42.362223+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (153, 'customers', 3, NULL, 'planned', 'staged', 86, NULL, 'stage', 'kept', NULL, '2026-11-29 10:34:48.54361+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (154, 'customers', 3, 'totals', 'pending', 'prepared', 86, 88, 'prepare', 'kept', NULL, '2026-11-29 10:34:48.88039+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (155, 'customers', 3, 'changes', 'pending', 'prepared', 86, 89, 'prepare', 'kept', NULL, '2026-11-29 10:34:49.023907+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (156, 'customers', 3, NULL, 'staged', 'committed', 86, NULL, 'commit', 'kept', NULL, '2026-11-29 10:34:49.132678+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (157, 'customers', 3, 'totals', 'prepared', 'published', 86, 88, 'publish', 'kept', NULL, '2026-11-29 10:34:49.382619+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (158, 'customers', 4, NULL, NULL, 'planned', 91, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:49.724528+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (159, 'customers', 4, 'totals', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:49.72955+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (160, 'customers', 4, 'changes', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:49.742248+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (161, 'customers', 4, NULL, 'planned', 'staged', 91, NULL, 'stage', 'kept', NULL, '2026-11-29 10:34:54.14645+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (162, 'customers', 4, 'totals', 'pending', 'prepared', 91, 93, 'prepare', 'kept', NULL, '2026-11-29 10:34:54.328197+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (163, 'customers', 4, 'changes', 'pending', 'prepared', 91, 94, 'prepare', 'kept', NULL, '2026-11-29 10:34:54.432673+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (164, 'customers', 4, NULL, 'staged', 'committed', 91, NULL, 'commit', 'kept', NULL, '2026-11-29 10:34:54.495949+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (165, 'customers', 5, NULL, NULL, 'planned', 95, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:54.721482+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (166, 'customers', 5, 'totals', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:54.72725+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (167, 'customers', 5, 'changes', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:54.730507+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (168, 'customers', 5, NULL, 'planned', 'staged', 95, NULL, 'stage', 'kept', NULL, '2026-11-29 10:34:58.920441+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (169, 'lines', 1, NULL, NULL, 'planned', 97, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:59.12125+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (170, 'lines', 1, 'stdout', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:59.129153+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (171, 'lines', 1, 'tcp', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:34:59.133064+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (172, 'lines', 1, NULL, 'planned', 'staged', 97, NULL, 'stage', 'kept', NULL, '2026-11-29 10:35:05.910154+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (173, 'lines', 1, 'stdout', 'pending', 'prepared', 97, 99, 'prepare', 'kept', NULL, '2026-11-29 10:35:06.350191+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (174, 'lines', 1, 'tcp', 'pending', 'prepared', 97, 100, 'prepare', 'kept', NULL, '2026-11-29 10:35:06.55765+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (175, 'lines', 1, NULL, 'staged', 'committed', 97, NULL, 'commit', 'kept', NULL, '2026-11-29 10:35:06.604325+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (176, 'lines', 1, 'stdout', 'prepared', 'published', 97, 99, 'publish', 'kept', NULL, '2026-11-29 10:35:06.684629+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (177, 'lines', 1, 'tcp', 'prepared', 'published', 97, 100, 'publish', 'kept', NULL, '2026-11-29 10:35:06.771675+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (178, 'lines', 1, NULL, 'committed', 'published', 97, NULL, 'publish', 'kept', NULL, '2026-11-29 10:35:06.776294+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (179, 'lines', 1, NULL, 'published', 'cleaned', 97, NULL, 'cleanup', 'kept', NULL, '2026-11-29 10:35:06.898756+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (180, 'lines', 2, NULL, NULL, 'planned', 103, NULL, 'begin', 'kept', NULL, '2026-11-29 10:35:07.030205+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (181, 'lines', 2, 'stdout', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:35:07.034818+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (182, 'lines', 2, 'tcp', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:35:07.038549+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (183, 'lines', 2, NULL, 'planned', 'staged', 103, NULL, 'stage', 'kept', NULL, '2026-11-29 10:35:07.831023+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (184, 'lines', 2, 'stdout', 'pending', 'prepared', 103, 105, 'prepare', 'kept', NULL, '2026-11-29 10:35:08.045365+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (185, 'lines', 2, 'tcp', 'pending', 'prepared', 103, 106, 'prepare', 'kept', NULL, '2026-11-29 10:35:08.07652+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (186, 'lines', 2, NULL, 'staged', 'committed', 103, NULL, 'commit', 'kept', NULL, '2026-11-29 10:35:08.103666+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (187, 'lines', 2, 'stdout', 'prepared', 'published', 103, 105, 'publish', 'kept', NULL, '2026-11-29 10:35:08.178986+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (188, 'lines', 3, NULL, NULL, 'planned', 108, NULL, 'begin', 'kept', NULL, '2026-11-29 10:35:08.289225+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (189, 'lines', 3, 'stdout', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:35:08.296699+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (190, 'lines', 3, 'tcp', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:35:08.301413+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (191, 'lines', 3, NULL, 'planned', 'staged', 108, NULL, 'stage', 'kept', NULL, '2026-11-29 10:35:09.346083+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (192, 'lines', 3, 'stdout', 'pending', 'prepared', 108, 110, 'prepare', 'kept', NULL, '2026-11-29 10:35:09.647429+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (193, 'lines', 3, 'tcp', 'pending', 'prepared', 108, 111, 'prepare', 'kept', NULL, '2026-11-29 10:35:09.783424+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (194, 'lines', 3, NULL, 'staged', 'committed', 108, NULL, 'commit', 'kept', NULL, '2026-11-29 10:35:09.890918+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (195, 'numbers', 1, NULL, NULL, 'planned', 112, NULL, 'begin', 'kept', NULL, '2026-11-29 10:35:10.447274+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (196, 'numbers', 1, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:35:10.454524+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (197, 'numbers', 1, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:35:10.458224+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (198, 'numbers', 1, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:35:10.462143+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (199, 'numbers', 1, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:35:10.469238+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (200, 'numbers', 1, NULL, 'planned', 'staged', 112, NULL, 'stage', 'kept', NULL, '2026-11-29 10:35:31.223486+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (201, 'numbers', 1, 'shared', 'pending', 'prepared', 112, 114, 'prepare', 'kept', NULL, '2026-11-29 10:35:31.39936+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (202, 'numbers', 1, 'newest', 'pending', 'prepared', 112, 115, 'prepare', 'kept', NULL, '2026-11-29 10:35:31.546398+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (203, 'numbers', 1, 'by_parity', 'pending', 'prepared', 112, 116, 'prepare', 'kept', NULL, '2026-11-29 10:35:31.679848+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (204, 'numbers', 1, 'words', 'pending', 'prepared', 112, 117, 'prepare', 'kept', NULL, '2026-11-29 10:35:31.793048+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (205, 'numbers', 1, NULL, 'staged', 'committed', 112, NULL, 'commit', 'kept', NULL, '2026-11-29 10:35:31.85644+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (206, 'numbers', 1, 'shared', 'prepared', 'published', 112, 114, 'publish', 'kept', NULL, '2026-11-29 10:35:32.001475+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (207, 'numbers', 1, 'newest', 'prepared', 'published', 112, 115, 'publish', 'kept', NULL, '2026-11-29 10:35:32.162963+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (208, 'numbers', 1, 'by_parity', 'prepared', 'published', 112, 116, 'publish', 'kept', NULL, '2026-11-29 10:35:32.27104+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (209, 'numbers', 1, 'words', 'prepared', 'published', 112, 117, 'publish', 'kept', NULL, '2026-11-29 10:35:32.335289+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (210, 'numbers', 1, NULL, 'committed', 'published', 112, NULL, 'publish', 'kept', NULL, '2026-11-29 10:35:32.34059+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (211, 'numbers', 1, NULL, 'published', 'cleaned', 112, NULL, 'cleanup', 'kept', NULL, '2026-11-29 10:35:32.590438+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (212, 'numbers', 2, NULL, NULL, 'planned', 122, NULL, 'begin', 'kept', NULL, '2026-11-29 10:35:33.07224+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (213, 'numbers', 2, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:35:33.084392+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (214, 'numbers', 2, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:35:33.101766+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (215, 'numbers', 2, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:35:33.106875+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (216, 'numbers', 2, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:35:33.11024+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (217, 'numbers', 2, NULL, 'planned', 'staged', 122, NULL, 'stage', 'kept', NULL, '2026-11-29 10:36:01.187927+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (218, 'numbers', 2, 'shared', 'pending', 'prepared', 122, 124, 'prepare', 'kept', NULL, '2026-11-29 10:36:02.275855+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (219, 'numbers', 2, 'newest', 'pending', 'prepared', 122, 125, 'prepare', 'kept', NULL, '2026-11-29 10:36:03.195682+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (220, 'numbers', 2, 'by_parity', 'pending', 'prepared', 122, 126, 'prepare', 'kept', NULL, '2026-11-29 10:36:03.581138+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (221, 'numbers', 2, 'words', 'pending', 'prepared', 122, 127, 'prepare', 'kept', NULL, '2026-11-29 10:36:03.758284+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (222, 'numbers', 2, NULL, 'staged', 'committed', 122, NULL, 'commit', 'kept', NULL, '2026-11-29 10:36:03.83677+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (223, 'numbers', 2, 'shared', 'prepared', 'published', 122, 124, 'publish', 'kept', NULL, '2026-11-29 10:36:04.128522+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (224, 'numbers', 2, 'newest', 'prepared', 'published', 122, 125, 'publish', 'kept', NULL, '2026-11-29 10:36:04.403442+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (225, 'numbers', 2, 'by_parity', 'prepared', 'published', 122, 126, 'publish', 'kept', NULL, '2026-11-29 10:36:04.460798+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (226, 'numbers', 2, 'words', 'prepared', 'published', 122, 127, 'publish', 'kept', NULL, '2026-11-29 10:36:04.538928+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (227, 'numbers', 2, NULL, 'committed', 'published', 122, NULL, 'publish', 'kept', NULL, '2026-11-29 10:36:04.550855+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (228, 'numbers', 2, NULL, 'published', 'cleaned', 122, NULL, 'cleanup', 'kept', NULL, '2026-11-29 10:36:04.846543+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (229, 'numbers', 3, NULL, NULL, 'planned', 132, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:05.321053+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (230, 'numbers', 3, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:05.324928+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (231, 'numbers', 3, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:05.325688+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (232, 'numbers', 3, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:05.336449+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (233, 'numbers', 3, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:05.34217+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (234, 'numbers', 3, NULL, 'planned', 'staged', 132, NULL, 'stage', 'kept', NULL, '2026-11-29 10:36:23.033499+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (235, 'numbers', 3, 'shared', 'pending', 'prepared', 132, 134, 'prepare', 'kept', NULL, '2026-11-29 10:36:23.29471+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (236, 'numbers', 3, 'newest', 'pending', 'prepared', 132, 135, 'prepare', 'kept', NULL, '2026-11-29 10:36:23.422521+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (237, 'numbers', 3, 'by_parity', 'pending', 'prepared', 132, 136, 'prepare', 'kept', NULL, '2026-11-29 10:36:23.489477+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (238, 'numbers', 3, 'words', 'pending', 'prepared', 132, 137, 'prepare', 'kept', NULL, '2026-11-29 10:36:23.570695+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (239, 'numbers', 3, NULL, 'staged', 'committed', 132, NULL, 'commit', 'kept', NULL, '2026-11-29 10:36:23.623225+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (240, 'numbers', 4, NULL, NULL, 'planned', 138, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:23.857606+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (241, 'numbers', 4, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:23.86249+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (242, 'numbers', 4, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:23.870321+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (243, 'numbers', 4, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:23.870856+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (244, 'numbers', 4, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:23.871306+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (245, 'resumed', 1, NULL, NULL, 'planned', 139, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:24.371057+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (246, 'resumed', 1, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:24.374828+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (247, 'resumed', 1, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:24.377434+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (248, 'resumed', 1, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:24.38268+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (249, 'resumed', 1, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:24.385215+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (250, 'resumed', 1, NULL, 'planned', 'staged', 139, NULL, 'stage', 'kept', NULL, '2026-11-29 10:36:53.307807+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (251, 'resumed', 1, 'shared', 'pending', 'prepared', 139, 141, 'prepare', 'kept', NULL, '2026-11-29 10:36:53.523673+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (252, 'resumed', 1, 'newest', 'pending', 'prepared', 139, 142, 'prepare', 'kept', NULL, '2026-11-29 10:36:53.686333+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (253, 'resumed', 1, 'by_parity', 'pending', 'prepared', 139, 143, 'prepare', 'kept', NULL, '2026-11-29 10:36:53.811114+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (254, 'resumed', 1, 'words', 'pending', 'prepared', 139, 144, 'prepare', 'kept', NULL, '2026-11-29 10:36:53.927672+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (255, 'resumed', 1, NULL, 'staged', 'committed', 139, NULL, 'commit', 'kept', NULL, '2026-11-29 10:36:53.986025+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (256, 'resumed', 2, NULL, NULL, 'planned', 145, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:54.167066+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (257, 'resumed', 2, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:54.170869+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (258, 'resumed', 2, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:54.173397+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (259, 'resumed', 2, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:54.175801+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (260, 'resumed', 2, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:54.180301+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (261, 'clicks', 1, NULL, NULL, 'planned', 146, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:54.326882+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (262, 'clicks', 1, 'hourly', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:54.32851+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (263, 'clicks', 1, 'late', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:54.329463+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (264, 'clicks', 1, NULL, 'planned', 'staged', 146, NULL, 'stage', 'kept', NULL, '2026-11-29 10:36:58.134622+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (265, 'clicks', 1, 'hourly', 'pending', 'prepared', 146, 148, 'prepare', 'kept', NULL, '2026-11-29 10:36:58.287215+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (266, 'clicks', 1, 'late', 'pending', 'prepared', 146, 149, 'prepare', 'kept', NULL, '2026-11-29 10:36:58.40538+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (267, 'clicks', 1, NULL, 'staged', 'committed', 146, NULL, 'commit', 'kept', NULL, '2026-11-29 10:36:58.452237+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (268, 'clicks', 1, 'hourly', 'prepared', 'published', 146, 148, 'publish', 'kept', NULL, '2026-11-29 10:36:58.552104+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (269, 'clicks', 1, 'late', 'prepared', 'published', 146, 149, 'publish', 'kept', NULL, '2026-11-29 10:36:58.616165+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (270, 'clicks', 1, NULL, 'committed', 'published', 146, NULL, 'publish', 'kept', NULL, '2026-11-29 10:36:58.620625+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (271, 'clicks', 1, NULL, 'published', 'cleaned', 146, NULL, 'cleanup', 'kept', NULL, '2026-11-29 10:36:58.71591+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (272, 'clicks', 2, NULL, NULL, 'planned', 152, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:58.779805+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (273, 'clicks', 2, 'hourly', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:58.784441+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (274, 'clicks', 2, 'late', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:36:58.79042+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (275, 'clicks', 2, NULL, 'planned', 'staged', 152, NULL, 'stage', 'kept', NULL, '2026-11-29 10:37:01.485267+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (276, 'clicks', 2, 'hourly', 'pending', 'prepared', 152, 154, 'prepare', 'kept', NULL, '2026-11-29 10:37:01.57276+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (277, 'clicks', 2, 'late', 'pending', 'prepared', 152, 155, 'prepare', 'kept', NULL, '2026-11-29 10:37:01.605803+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (278, 'clicks', 2, NULL, 'staged', 'committed', 152, NULL, 'commit', 'kept', NULL, '2026-11-29 10:37:01.637555+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (279, 'clicks', 2, 'hourly', 'prepared', 'published', 152, 154, 'publish', 'kept', NULL, '2026-11-29 10:37:01.711722+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (280, 'clicks', 2, 'late', 'prepared', 'published', 152, 155, 'publish', 'kept', NULL, '2026-11-29 10:37:01.984781+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (281, 'clicks', 2, NULL, 'committed', 'published', 152, NULL, 'publish', 'kept', NULL, '2026-11-29 10:37:01.987532+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (282, 'clicks', 3, NULL, NULL, 'planned', 158, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:02.070651+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (283, 'clicks', 3, 'hourly', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:02.074715+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (284, 'clicks', 3, 'late', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:02.078474+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (285, 'clicks', 3, NULL, 'planned', 'staged', 158, NULL, 'stage', 'kept', NULL, '2026-11-29 10:37:06.12805+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (286, 'clicks', 3, 'hourly', 'pending', 'prepared', 158, 160, 'prepare', 'kept', NULL, '2026-11-29 10:37:06.235491+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (287, 'clicks', 3, 'late', 'pending', 'prepared', 158, 161, 'prepare', 'kept', NULL, '2026-11-29 10:37:06.327376+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (288, 'clicks', 3, NULL, 'staged', 'committed', 158, NULL, 'commit', 'kept', NULL, '2026-11-29 10:37:06.401762+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (289, 'maria_again', 1, NULL, NULL, 'planned', 162, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:06.715416+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (290, 'maria_again', 1, 'repeated', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:06.720826+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (291, 'maria_again', 1, NULL, 'planned', 'staged', 162, NULL, 'stage', 'kept', NULL, '2026-11-29 10:37:13.244188+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (292, 'maria_again', 1, 'repeated', 'pending', 'prepared', 162, 164, 'prepare', 'kept', NULL, '2026-11-29 10:37:13.535721+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (293, 'maria_again', 1, NULL, 'staged', 'committed', 162, NULL, 'commit', 'kept', NULL, '2026-11-29 10:37:13.653253+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (294, 'maria_again', 1, 'repeated', 'prepared', 'published', 162, 164, 'publish', 'kept', NULL, '2026-11-29 10:37:13.896992+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (295, 'maria_again', 1, NULL, 'committed', 'published', 162, NULL, 'publish', 'kept', NULL, '2026-11-29 10:37:13.907637+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (296, 'maria_again', 1, NULL, 'published', 'cleaned', 162, NULL, 'cleanup', 'kept', NULL, '2026-11-29 10:37:14.150991+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (297, 'maria', 1, NULL, NULL, 'planned', 166, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:14.344239+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (298, 'maria', 1, 'prepared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:14.351422+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (299, 'maria', 1, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:14.357493+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (300, 'maria', 1, NULL, 'planned', 'staged', 166, NULL, 'stage', 'kept', NULL, '2026-11-29 10:37:22.043622+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (301, 'maria', 1, 'prepared', 'pending', 'prepared', 166, 168, 'prepare', 'kept', NULL, '2026-11-29 10:37:22.283975+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (302, 'maria', 1, 'newest', 'pending', 'prepared', 166, 169, 'prepare', 'kept', NULL, '2026-11-29 10:37:22.698832+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (303, 'maria', 1, NULL, 'staged', 'committed', 166, NULL, 'commit', 'kept', NULL, '2026-11-29 10:37:22.724933+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (304, 'maria', 1, 'prepared', 'prepared', 'published', 166, 168, 'publish', 'kept', NULL, '2026-11-29 10:37:22.769511+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (305, 'maria', 1, 'newest', 'prepared', 'published', 166, 169, 'publish', 'kept', NULL, '2026-11-29 10:37:22.842802+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (306, 'maria', 1, NULL, 'committed', 'published', 166, NULL, 'publish', 'kept', NULL, '2026-11-29 10:37:22.846115+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (307, 'maria', 1, NULL, 'published', 'cleaned', 166, NULL, 'cleanup', 'kept', NULL, '2026-11-29 10:37:23.063105+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (308, 'maria_again', 2, NULL, NULL, 'planned', 172, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:23.34821+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (309, 'maria_again', 2, 'repeated', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:23.364242+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (310, 'maria_again', 2, NULL, 'planned', 'staged', 172, NULL, 'stage', 'kept', NULL, '2026-11-29 10:37:24.534338+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (311, 'maria_again', 2, 'repeated', 'pending', 'prepared', 172, 174, 'prepare', 'kept', NULL, '2026-11-29 10:37:25.042637+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (312, 'maria_again', 2, NULL, 'staged', 'committed', 172, NULL, 'commit', 'kept', NULL, '2026-11-29 10:37:25.102582+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (313, 'maria', 2, NULL, NULL, 'planned', 175, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:25.396187+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (314, 'maria', 2, 'prepared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:25.39757+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (315, 'maria', 2, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:25.398255+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (316, 'maria', 2, NULL, 'planned', 'staged', 175, NULL, 'stage', 'kept', NULL, '2026-11-29 10:37:26.469905+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (317, 'maria', 2, 'prepared', 'pending', 'prepared', 175, 177, 'prepare', 'kept', NULL, '2026-11-29 10:37:26.750085+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (318, 'maria', 2, 'newest', 'pending', 'prepared', 175, 178, 'prepare', 'kept', NULL, '2026-11-29 10:37:26.93592+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (319, 'maria', 2, NULL, 'staged', 'committed', 175, NULL, 'commit', 'kept', NULL, '2026-11-29 10:37:26.965463+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (320, 'maria', 2, 'prepared', 'prepared', 'published', 175, 177, 'publish', 'kept', NULL, '2026-11-29 10:37:27.12564+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (321, 'maria', 2, 'newest', 'prepared', 'published', 175, 178, 'publish', 'kept', NULL, '2026-11-29 10:37:27.16672+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (322, 'maria', 2, NULL, 'committed', 'published', 175, NULL, 'publish', 'kept', NULL, '2026-11-29 10:37:27.168857+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (323, 'maria', 3, NULL, NULL, 'planned', 181, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:27.399058+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (324, 'maria', 3, 'prepared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:27.402602+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (325, 'maria', 3, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:27.403366+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (326, 'maria', 3, NULL, 'planned', 'staged', 181, NULL, 'stage', 'kept', NULL, '2026-11-29 10:37:28.015366+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (327, 'maria', 3, 'prepared', 'pending', 'prepared', 181, 183, 'prepare', 'kept', NULL, '2026-11-29 10:37:28.307209+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (328, 'maria', 3, 'newest', 'pending', 'prepared', 181, 184, 'prepare', 'kept', NULL, '2026-11-29 10:37:28.464786+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (329, 'maria', 3, NULL, 'staged', 'committed', 181, NULL, 'commit', 'kept', NULL, '2026-11-29 10:37:28.535604+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (330, 'events', 1, NULL, NULL, 'planned', 185, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:29.370597+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (331, 'events', 1, 'once', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:29.375729+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (332, 'events', 1, 'repeated', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:29.386691+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (333, 'events', 1, NULL, 'planned', 'staged', 185, NULL, 'stage', 'kept', NULL, '2026-11-29 10:37:39.224548+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (334, 'events', 1, 'once', 'pending', 'prepared', 185, 187, 'prepare', 'kept', NULL, '2026-11-29 10:37:39.58599+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (335, 'events', 1, 'repeated', 'pending', 'prepared', 185, 188, 'prepare', 'kept', NULL, '2026-11-29 10:37:39.697978+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (336, 'events', 1, NULL, 'staged', 'committed', 185, NULL, 'commit', 'kept', NULL, '2026-11-29 10:37:39.747067+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (337, 'events', 1, 'once', 'prepared', 'published', 185, 187, 'publish', 'kept', NULL, '2026-11-29 10:37:41.293253+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (338, 'events', 1, 'repeated', 'prepared', 'published', 185, 188, 'publish', 'kept', NULL, '2026-11-29 10:37:41.432938+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (339, 'events', 1, NULL, 'committed', 'published', 185, NULL, 'publish', 'kept', NULL, '2026-11-29 10:37:41.435073+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (340, 'events', 1, NULL, 'published', 'cleaned', 185, NULL, 'cleanup', 'kept', NULL, '2026-11-29 10:37:41.713682+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (341, 'events', 2, NULL, NULL, 'planned', 191, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:42.128685+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (342, 'events', 2, 'once', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:42.131093+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (343, 'events', 2, 'repeated', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:42.136248+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (344, 'events', 2, NULL, 'planned', 'staged', 191, NULL, 'stage', 'kept', NULL, '2026-11-29 10:37:43.124038+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (345, 'events', 2, 'once', 'pending', 'prepared', 191, 193, 'prepare', 'kept', NULL, '2026-11-29 10:37:43.248587+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (346, 'events', 2, 'repeated', 'pending', 'prepared', 191, 194, 'prepare', 'kept', NULL, '2026-11-29 10:37:43.29939+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (347, 'events', 2, NULL, 'staged', 'committed', 191, NULL, 'commit', 'kept', NULL, '2026-11-29 10:37:43.328512+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (348, 'events', 2, 'once', 'prepared', 'published', 191, 193, 'publish', 'kept', NULL, '2026-11-29 10:37:43.495326+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (349, 'events', 3, NULL, NULL, 'planned', 196, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:43.683645+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (350, 'events', 3, 'once', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:43.685226+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (351, 'events', 3, 'repeated', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 10:37:43.690315+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (352, 'events', 3, NULL, 'planned', 'staged', 196, NULL, 'stage', 'kept', NULL, '2026-11-29 10:37:44.352232+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (353, 'events', 3, 'once', 'pending', 'prepared', 196, 198, 'prepare', 'kept', NULL, '2026-11-29 10:37:44.494937+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (354, 'events', 3, 'repeated', 'pending', 'prepared', 196, 199, 'prepare', 'kept', NULL, '2026-11-29 10:37:44.543655+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (355, 'events', 3, NULL, 'staged', 'committed', 196, NULL, 'commit', 'kept', NULL, '2026-11-29 10:37:44.57518+00');
SELECT pg_catalog.setval('lockstep.pipeline_change_id_seq', 1, false);
SELECT pg_catalog.setval('lockstep.setting_override_id_seq', 1, true);
SELECT pg_catalog.setval('lockstep.token', 199, true);
SELECT pg_catalog.setval('lockstep.transition_number', 355, true);
ALTER TABLE ONLY lockstep.claim
    ADD CONSTRAINT claim_pkey PRIMARY KEY (pipeline, source, path, starts);
ALTER TABLE ONLY lockstep.deployed_setting
    ADD CONSTRAINT deployed_setting_pkey PRIMARY KEY (pipeline, sink);
ALTER TABLE ONLY lockstep.deployment
    ADD CONSTRAINT deployment_pkey PRIMARY KEY (singleton);
ALTER TABLE ONLY lockstep.epoch
    ADD CONSTRAINT epoch_pkey PRIMARY KEY (pipeline, id);
ALTER TABLE ONLY lockstep.execution
    ADD CONSTRAINT execution_pkey PRIMARY KEY (token);
ALTER TABLE ONLY lockstep.finished_rollup
    ADD CONSTRAINT finished_rollup_pkey PRIMARY KEY (pipeline);
ALTER TABLE ONLY lockstep.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (version);
ALTER TABLE ONLY lockstep.epoch
    ADD CONSTRAINT one_root_per_interval EXCLUDE USING gist (pipeline WITH =, span WITH &&) WHERE (((span IS NOT NULL) AND (generation = 0)));
ALTER TABLE ONLY lockstep.participant
    ADD CONSTRAINT one_turn_per_pipeline EXCLUDE USING gist (pipeline WITH =, epoch WITH <>) WHERE ((turn AND (state <> 'published'::text)));
ALTER TABLE ONLY lockstep.participant
    ADD CONSTRAINT participant_pkey PRIMARY KEY (pipeline, epoch, sink);
ALTER TABLE ONLY lockstep.pending_asset_event
    ADD CONSTRAINT pending_asset_event_pkey PRIMARY KEY (pipeline, epoch, sink);
ALTER TABLE ONLY lockstep.pipeline_change
    ADD CONSTRAINT pipeline_change_pkey PRIMARY KEY (id);
ALTER TABLE ONLY lockstep.pipeline
    ADD CONSTRAINT pipeline_pkey PRIMARY KEY (name);
ALTER TABLE ONLY lockstep.planned_sink
    ADD CONSTRAINT planned_sink_pkey PRIMARY KEY (pipeline, sink, spec_md5);
ALTER TABLE ONLY lockstep.planned_source
    ADD CONSTRAINT planned_source_pkey PRIMARY KEY (pipeline, source);
ALTER TABLE ONLY lockstep.retained_wal
    ADD CONSTRAINT retained_wal_pkey PRIMARY KEY (pipeline, epoch);
ALTER TABLE ONLY lockstep.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (dag_id, run_id);
ALTER TABLE ONLY lockstep.savepoint
    ADD CONSTRAINT savepoint_pkey PRIMARY KEY (pipeline);
ALTER TABLE ONLY lockstep.setting_override
    ADD CONSTRAINT setting_override_pkey PRIMARY KEY (id);
ALTER TABLE ONLY lockstep.verdict
    ADD CONSTRAINT verdict_pkey PRIMARY KEY (pipeline, epoch, manifest_hash);
CREATE INDEX claim_epoch ON lockstep.claim USING btree (pipeline, epoch);
CREATE INDEX claim_head ON lockstep.claim USING btree (pipeline, source, head) WHERE (head IS NOT NULL);
CREATE INDEX epoch_generations ON lockstep.epoch USING btree (pipeline, root) WHERE (root IS NOT NULL);
CREATE INDEX epoch_replaced ON lockstep.epoch USING btree (pipeline, id) WHERE (state = 'replaced'::text);
CREATE INDEX epoch_replacing_range ON lockstep.epoch USING btree (pipeline, id) WHERE (replaces_to IS NOT NULL);
CREATE INDEX epoch_restoring ON lockstep.epoch USING btree (pipeline, restores) WHERE (restores IS NOT NULL);
CREATE INDEX epoch_successors ON lockstep.epoch USING btree (pipeline, id) WHERE (root IS NOT NULL);
CREATE INDEX epoch_unfinished ON lockstep.epoch USING btree (pipeline, id) WHERE (state <> ALL (ARRAY['cleaned'::text, 'replaced'::text, 'void'::text]));
CREATE INDEX epoch_with_state ON lockstep.epoch USING btree (pipeline, id) WHERE (based_on IS NOT NULL);
CREATE UNIQUE INDEX legal_transition_key ON lockstep.legal_transition USING btree (subject, COALESCE(source_state, ''::text), target_state, role);
CREATE UNIQUE INDEX one_epoch_per_generation ON lockstep.epoch USING btree (pipeline, root, generation) WHERE ((root IS NOT NULL) AND (state <> 'void'::text));
CREATE INDEX participant_unproven ON lockstep.participant USING btree (pipeline, epoch) WHERE (unproven IS NOT NULL);
CREATE INDEX participant_unpublished ON lockstep.participant USING btree (pipeline, epoch) WHERE (state <> 'published'::text);
CREATE INDEX pipeline_change_last ON lockstep.pipeline_change USING btree (pipeline, change, id);
CREATE INDEX run_epoch ON lockstep.run USING btree (pipeline, epoch);
CREATE INDEX setting_override_sink ON lockstep.setting_override USING btree (pipeline, sink, id);
CREATE INDEX transition_epoch ON ONLY lockstep.transition USING btree (pipeline, epoch, id);
CREATE INDEX transition_from_20261130_pipeline_epoch_id_idx ON lockstep.transition_from_20261130 USING btree (pipeline, epoch, id);
CREATE INDEX transition_from_the_start_pipeline_epoch_id_idx ON lockstep.transition_from_the_start USING btree (pipeline, epoch, id);
ALTER INDEX lockstep.transition_epoch ATTACH PARTITION lockstep.transition_from_20261130_pipeline_epoch_id_idx;
ALTER INDEX lockstep.transition_epoch ATTACH PARTITION lockstep.transition_from_the_start_pipeline_epoch_id_idx;
CREATE TRIGGER guard_deployment BEFORE UPDATE ON lockstep.deployment FOR EACH ROW EXECUTE FUNCTION lockstep.guard_deployment();
CREATE TRIGGER guard_epoch BEFORE INSERT OR UPDATE ON lockstep.epoch FOR EACH ROW EXECUTE FUNCTION lockstep.guard_epoch();
CREATE TRIGGER guard_generation BEFORE INSERT OR UPDATE ON lockstep.epoch FOR EACH ROW EXECUTE FUNCTION lockstep.guard_generation();
CREATE TRIGGER guard_participant BEFORE INSERT OR DELETE OR UPDATE ON lockstep.participant FOR EACH ROW EXECUTE FUNCTION lockstep.guard_participant();
CREATE TRIGGER guard_pipeline BEFORE UPDATE ON lockstep.pipeline FOR EACH ROW EXECUTE FUNCTION lockstep.guard_pipeline();
CREATE TRIGGER guard_restage BEFORE UPDATE ON lockstep.epoch FOR EACH ROW WHEN ((((new.restaged_wal IS DISTINCT FROM old.restaged_wal) OR (new.restaged_hash IS DISTINCT FROM old.restaged_hash)) OR (new.reordered IS DISTINCT FROM old.reordered))) EXECUTE FUNCTION lockstep.guard_restage();
CREATE TRIGGER guard_restoring BEFORE INSERT ON lockstep.epoch FOR EACH ROW WHEN ((new.restores IS NOT NULL)) EXECUTE FUNCTION lockstep.guard_restoring();
CREATE TRIGGER guard_restoring_update BEFORE UPDATE ON lockstep.epoch FOR EACH ROW WHEN ((new.restores IS DISTINCT FROM old.restores)) EXECUTE FUNCTION lockstep.guard_restoring();
CREATE TRIGGER guard_state BEFORE UPDATE ON lockstep.epoch FOR EACH ROW EXECUTE FUNCTION lockstep.guard_state();
CREATE TRIGGER guard_verdict BEFORE INSERT OR UPDATE ON lockstep.verdict FOR EACH ROW EXECUTE FUNCTION lockstep.guard_verdict();
CREATE TRIGGER protect_deployment BEFORE DELETE OR TRUNCATE ON lockstep.deployment FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER protect_epoch BEFORE DELETE OR TRUNCATE ON lockstep.epoch FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER protect_execution BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.execution FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER protect_override BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.setting_override FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER protect_participant BEFORE TRUNCATE ON lockstep.participant FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER protect_pipeline_change BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.pipeline_change FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER protect_referenced_wal BEFORE DELETE OR UPDATE ON lockstep.retained_wal FOR EACH ROW EXECUTE FUNCTION lockstep.protect_referenced_wal();
CREATE TRIGGER protect_savepoint BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.savepoint FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER protect_transition BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.transition FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER protect_transition BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.transition_from_20261130 FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER protect_transition BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.transition_from_the_start FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER protect_verdict BEFORE DELETE OR TRUNCATE ON lockstep.verdict FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse_change();
CREATE TRIGGER record_pending_event AFTER UPDATE ON lockstep.participant FOR EACH ROW WHEN (((new.state = 'published'::text) AND (old.state = 'prepared'::text))) EXECUTE FUNCTION lockstep.record_pending_event();
CREATE TRIGGER record_planned_sources AFTER INSERT OR UPDATE OF plan ON lockstep.epoch FOR EACH ROW WHEN ((new.span IS NULL)) EXECUTE FUNCTION lockstep.record_planned_sources();
CREATE CONSTRAINT TRIGGER require_replaced AFTER UPDATE ON lockstep.epoch DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((new.replaces IS NOT NULL) AND (new.state = 'committed'::text) AND (old.state = 'staged'::text))) EXECUTE FUNCTION lockstep.require_replaced();
CREATE TRIGGER require_verdict_to_decide BEFORE UPDATE ON lockstep.epoch FOR EACH ROW WHEN (((new.state = 'committed'::text) AND (old.state = 'staged'::text))) EXECUTE FUNCTION lockstep.require_verdict_to_decide();
CREATE TRIGGER require_verdict_to_vote BEFORE UPDATE ON lockstep.participant FOR EACH ROW WHEN (((new.state = 'prepared'::text) AND ((new.state IS DISTINCT FROM old.state) OR (new.token IS DISTINCT FROM old.token)))) EXECUTE FUNCTION lockstep.require_verdict_to_vote();
ALTER TABLE ONLY lockstep.claim
    ADD CONSTRAINT claim_pipeline_epoch_fkey FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch(pipeline, id);
ALTER TABLE ONLY lockstep.deployed_setting
    ADD CONSTRAINT deployed_setting_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.epoch
    ADD CONSTRAINT epoch_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.epoch
    ADD CONSTRAINT epoch_pipeline_replaces_fkey FOREIGN KEY (pipeline, replaces) REFERENCES lockstep.epoch(pipeline, id);
ALTER TABLE ONLY lockstep.epoch
    ADD CONSTRAINT epoch_pipeline_restores_fkey FOREIGN KEY (pipeline, restores) REFERENCES lockstep.epoch(pipeline, id);
ALTER TABLE ONLY lockstep.finished_rollup
    ADD CONSTRAINT finished_rollup_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.participant
    ADD CONSTRAINT participant_pipeline_epoch_fkey FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch(pipeline, id);
ALTER TABLE ONLY lockstep.pending_asset_event
    ADD CONSTRAINT pending_asset_event_pipeline_epoch_sink_fkey FOREIGN KEY (pipeline, epoch, sink) REFERENCES lockstep.participant(pipeline, epoch, sink);
ALTER TABLE ONLY lockstep.pipeline_change
    ADD CONSTRAINT pipeline_change_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.planned_sink
    ADD CONSTRAINT planned_sink_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.planned_source
    ADD CONSTRAINT planned_source_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.retained_wal
    ADD CONSTRAINT retained_wal_pipeline_epoch_fkey FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch(pipeline, id);
ALTER TABLE ONLY lockstep.run
    ADD CONSTRAINT run_pipeline_epoch_fkey FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch(pipeline, id);
ALTER TABLE ONLY lockstep.savepoint
    ADD CONSTRAINT savepoint_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.setting_override
    ADD CONSTRAINT setting_override_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.verdict
    ADD CONSTRAINT verdict_pipeline_epoch_fkey FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch(pipeline, id);
