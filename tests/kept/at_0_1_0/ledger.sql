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
CREATE FUNCTION lockstep.add_history(name text, starts timestamp with time zone, ends timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.keep_what_is_referred_to() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.note_untold() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO lockstep.untold (pipeline, epoch, sink, shown_by)
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
CREATE FUNCTION lockstep.refuse() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION '% on lockstep.%: what the ledger has recorded stays', TG_OP, TG_TABLE_NAME USING ERRCODE = 'LS001';
END $$;
CREATE FUNCTION lockstep.remember_sources() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO lockstep.planned_source AS s (pipeline, source, last_epoch)
    SELECT NEW.pipeline, named, NEW.id FROM jsonb_object_keys(NEW.plan -> 'sources') named ORDER BY named
    ON CONFLICT (pipeline, source) DO UPDATE SET last_epoch = EXCLUDED.last_epoch
    WHERE s.last_epoch < EXCLUDED.last_epoch;
    RETURN NULL;
END $$;
CREATE FUNCTION lockstep.require_legal(subject text, source_state text, target_state text) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.require_replaced() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
    restated_because text,
    restores bigint,
    replaces_to bigint,
    CONSTRAINT a_generation_is_of_a_root CHECK (
CASE generation
    WHEN 0 THEN (num_nonnulls(root, replaces, restated_because) = 0)
    ELSE ((generation > 0) AND (num_nulls(root, replaces, restated_because) = 0))
END),
    CONSTRAINT epoch_check CHECK (((wal IS NULL) = (manifest_hash IS NULL))),
    CONSTRAINT epoch_check1 CHECK (((state = ANY (ARRAY['planned'::text, 'void'::text])) OR (wal IS NOT NULL))),
    CONSTRAINT epoch_manifest_hash_check CHECK ((manifest_hash ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT epoch_restaged_hash_check CHECK ((restaged_hash ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT epoch_span_check CHECK (((NOT isempty(span)) AND lower_inc(span) AND (NOT upper_inc(span)))),
    CONSTRAINT only_a_generation_restores CHECK (((restores IS NULL) OR (generation > 0))),
    CONSTRAINT what_is_replaced_has_an_end CHECK (((replaces_to IS NULL) OR ((replaces IS NOT NULL) AND (replaces_to >= replaces) AND (span IS NULL) AND (restores IS NULL)))),
    CONSTRAINT what_was_restaged_is_whole CHECK (((restaged_wal IS NULL) = (restaged_hash IS NULL)))
);
CREATE FUNCTION lockstep.require_verdict(of_epoch lockstep.epoch) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
    of_epoch lockstep.epoch;
BEGIN
    SELECT * INTO of_epoch FROM lockstep.epoch e WHERE (e.pipeline, e.id) = (NEW.pipeline, NEW.epoch);
    PERFORM lockstep.require_verdict(of_epoch);
    RETURN NEW;
END $$;
CREATE FUNCTION lockstep.require_votes(deciding text, number bigint, current_attempt bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF (SELECT count(*) = 0 OR bool_or(p.state <> 'prepared' OR p.attempt <> current_attempt OR p.token < p.execution)
        FROM lockstep.participant p WHERE p.pipeline = deciding AND p.epoch = number) THEN
        RAISE EXCEPTION 'epoch % of % lacks a vote of attempt %', number, deciding, current_attempt USING ERRCODE = 'LS001';
    END IF;
END $$;
CREATE FUNCTION lockstep.split_history(written text, starts timestamp with time zone) RETURNS text
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.watch_deployment() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF coalesce(current_setting('lockstep.role', true), '') <> 'operator' OR EXISTS (SELECT FROM lockstep.epoch) THEN
        RAISE EXCEPTION 'the id of a ledger that has epochs stays' USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION lockstep.watch_epoch() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.watch_generation() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    before lockstep.epoch;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF (NEW.root, NEW.generation, NEW.replaces, NEW.replaces_to, NEW.restated_because)
           IS DISTINCT FROM (OLD.root, OLD.generation, OLD.replaces, OLD.replaces_to, OLD.restated_because) THEN
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
CREATE FUNCTION lockstep.watch_participant() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.watch_pipeline() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.watch_restage() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT (OLD.state = 'committed' AND NEW.state = 'committed' AND NEW.restaged_wal IS NOT NULL
            AND current_setting('lockstep.role', true) = 'operator') THEN
        RAISE EXCEPTION 'only a person has a committed epoch staged again, this one is %', OLD.state USING ERRCODE = 'LS001';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION lockstep.watch_restoring() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.watch_state() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION lockstep.watch_verdict() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
    only_row boolean DEFAULT true NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT deployment_only_row_check CHECK (only_row)
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
CREATE TABLE lockstep.finished (
    pipeline text NOT NULL,
    below bigint NOT NULL,
    cleaned bigint NOT NULL,
    void bigint NOT NULL,
    covered tstzmultirange NOT NULL
);
CREATE TABLE lockstep.kept_wal (
    pipeline text NOT NULL,
    epoch bigint NOT NULL,
    wal text NOT NULL,
    bytes bigint NOT NULL,
    kept_at timestamp with time zone DEFAULT now() NOT NULL,
    expired_at timestamp with time zone
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
CREATE TABLE lockstep.pipeline (
    name text NOT NULL,
    identity text NOT NULL,
    last_epoch bigint DEFAULT 0 NOT NULL,
    hold interval DEFAULT '02:00:00'::interval NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    forgotten_at timestamp with time zone,
    forgotten_by text,
    forgotten_why text,
    swept_until timestamp with time zone,
    keep_wal_time interval,
    keep_wal_epochs integer,
    CONSTRAINT pipeline_check CHECK ((num_nulls(forgotten_at, forgotten_by, forgotten_why, swept_until) = ANY (ARRAY[0, 4]))),
    CONSTRAINT pipeline_identity_check CHECK ((identity = ANY (ARRAY['interval'::text, 'cursor'::text]))),
    CONSTRAINT pipeline_keep_wal_epochs_check CHECK ((keep_wal_epochs > 0)),
    CONSTRAINT pipeline_keep_wal_time_check CHECK ((keep_wal_time > '00:00:00'::interval)),
    CONSTRAINT wals_are_kept_in_one_way CHECK ((num_nonnulls(keep_wal_time, keep_wal_epochs) <= 1))
);
CREATE TABLE lockstep.pipeline_change (
    id bigint NOT NULL,
    pipeline text NOT NULL,
    change text NOT NULL,
    found jsonb NOT NULL,
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
CREATE TABLE lockstep.run (
    dag_id text NOT NULL,
    run_id text NOT NULL,
    pipeline text NOT NULL,
    epoch bigint NOT NULL,
    attempt bigint NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    restate text
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
CREATE TABLE lockstep.untold (
    pipeline text NOT NULL,
    epoch bigint NOT NULL,
    sink text NOT NULL,
    shown_at timestamp with time zone DEFAULT now() NOT NULL,
    shown_by text NOT NULL,
    missed_at timestamp with time zone
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
INSERT INTO lockstep.deployed_setting VALUES ('tables', 'accounts', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-29 01:20:03.97081+00');
INSERT INTO lockstep.deployed_setting VALUES ('tables', 'entries', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-29 01:20:03.97081+00');
INSERT INTO lockstep.deployed_setting VALUES ('tables', 'careless', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-29 01:20:03.97081+00');
INSERT INTO lockstep.deployed_setting VALUES ('tables', 'http', '{"type": "lockstep.sinks:HttpSink", "arguments": {"tries": 6, "timeout": 30.0, "requests_at_once": 4, "bytes_per_request": 1048576, "records_per_request": 2}}', '2026-11-29 01:20:03.97081+00');
INSERT INTO lockstep.deployed_setting VALUES ('orders', 'warehouse', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-29 01:20:23.012816+00');
INSERT INTO lockstep.deployed_setting VALUES ('customers', 'totals', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"on_missing": "refuse", "lock_timeout": 10.0}}', '2026-11-29 01:21:08.459807+00');
INSERT INTO lockstep.deployed_setting VALUES ('lines', 'stdout', '{"type": "lockstep.sinks:StdoutSink", "arguments": {}}', '2026-11-29 01:21:31.281886+00');
INSERT INTO lockstep.deployed_setting VALUES ('lines', 'tcp', '{"type": "lockstep.sinks:TcpSink", "arguments": {"timeout": 60.0}}', '2026-11-29 01:21:31.281886+00');
INSERT INTO lockstep.deployed_setting VALUES ('numbers', 'shared', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-29 01:21:43.022371+00');
INSERT INTO lockstep.deployed_setting VALUES ('numbers', 'newest', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"on_missing": "refuse", "lock_timeout": 10.0}}', '2026-11-29 01:21:43.022371+00');
INSERT INTO lockstep.deployed_setting VALUES ('resumed', 'shared', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-29 01:23:02.189065+00');
INSERT INTO lockstep.deployed_setting VALUES ('resumed', 'newest', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"on_missing": "refuse", "lock_timeout": 10.0}}', '2026-11-29 01:23:02.189065+00');
INSERT INTO lockstep.deployed_setting VALUES ('maria_again', 'repeated', '{"type": "lockstep.sinks:MariaDbSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-29 01:23:36.278854+00');
INSERT INTO lockstep.deployed_setting VALUES ('maria', 'prepared', '{"type": "lockstep.sinks:MariaDbSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-29 01:23:41.871415+00');
INSERT INTO lockstep.deployed_setting VALUES ('maria', 'newest', '{"type": "lockstep.sinks:MariaDbSink", "arguments": {"on_missing": "refuse", "lock_timeout": 10.0}}', '2026-11-29 01:23:41.871415+00');
INSERT INTO lockstep.deployed_setting VALUES ('events', 'once', '{"type": "lockstep.sinks:KafkaSink", "arguments": {"shards": 2, "register": false, "on_restate": "refuse", "transaction_timeout": 300.0}}', '2026-11-29 01:23:54.292093+00');
INSERT INTO lockstep.deployed_setting VALUES ('events', 'repeated', '{"type": "lockstep.sinks:KafkaSink", "arguments": {"shards": 1, "register": false, "on_restate": "refuse", "transaction_timeout": 300.0}}', '2026-11-29 01:23:54.292093+00');
INSERT INTO lockstep.deployment VALUES (true, 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3', '2026-11-29 01:20:03.152007+00');
INSERT INTO lockstep.epoch VALUES ('clicks', 2, NULL, 'published', 157, '2026-11-29 01:23:30.239059+00', NULL, 'kept', 'clicks-2', '{"reads": {"clicks": "files @HOME@/landing/clicks"}, "sinks": {"late": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "late", "path": "@HOME@/out/late", "format": "parquet", "output": "late", "shared": false}}, "hourly": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "hourly", "path": "@HOME@/out/hourly", "format": "json", "output": "hourly", "shared": false}}}, "format": 1, "sources": {"clicks": {"end": {"files": [{"path": "@HOME@/landing/clicks/2.csv", "size": 73, "mtime_ns": 1600000025000000000}], "roots": ["@HOME@/landing/clicks"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/clicks", "spans": null, "watch": false, "format": "csv", "schema": "page STRING, seconds INT, at TIMESTAMP", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": 1}}, "start": {"files": [{"path": "@HOME@/landing/clicks/1.csv", "size": 100, "mtime_ns": 1600000024000000000}], "roots": ["@HOME@/landing/clicks"]}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/clicks/epoch=2/158', 'bbf01027b5c00d6a8fba83c509000da938e995232d9699fe8a5248bfdb422602', 'kept', '{"state": {"windows": {"rows": 1, "bytes": 870, "buckets": 2}, "windows_watermark": {"rows": 1, "bytes": 842, "buckets": 1}}, "outputs": {"late": {"rows": 0, "bytes": 229, "files": 1, "digest": "00000000000000000000000000000000", "columns": "069d529342443a86"}, "hourly": {"rows": 2, "bytes": 801, "files": 1, "digest": "9149a0190227004d1bf18386c39f394d", "columns": "5008f56cba072801"}}, "sources": {"clicks": {"rows": 2, "quarantined": 0}}, "balances": {"windows": {"in": 2, "late": 0, "folded": 2, "filtered": 0, "corrected": 1, "partly_late": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:23:30.239059+00', '2026-11-29 01:23:31.982309+00', '448b586fdc9b66c192f1ec3ffb632e3e3dabce7ed93abc341c0e84a14271376d', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('maria', 1, NULL, 'cleaned', 171, '2026-11-29 01:23:41.871415+00', NULL, 'kept', 'maria-1', '{"reads": {"moves": "table moves of connection maria"}, "sinks": {"newest": {"type": "lockstep.sinks:MariaDbSink", "arguments": {"key": {"moves": ["piece"]}, "mode": "upsert", "name": "newest", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_newest"}, "protocol": "write_ahead", "validate": "load", "connection": "maria", "epoch_column": "lockstep_epoch"}}, "prepared": {"type": "lockstep.sinks:MariaDbSink", "arguments": {"name": "prepared", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_prepared"}, "protocol": "two_phase", "validate": "load", "connection": "maria", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"moves": {"end": {"rows": 2, "upto": "2", "after": null, "server": "server 1 (B99ypwJFVnY2dKpWTddIujz7XgI=), database kept, table moves", "order_by": "id"}, "spec": {"type": "lockstep.sources:MariaDbTableSource", "arguments": {"table": "moves", "accept": [], "settle": 0.0, "columns": [], "order_by": "id", "connection": "maria", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": null}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/maria/epoch=1/172', '9676e6f5ed01bbc154cc6dc61d959babbf5b77ce26677542338e34dde145fb4a', 'kept', '{"outputs": {"moves": {"rows": 2, "bytes": 425, "files": 1, "digest": "99e6359fe96e2a953f3437d06569a5fe", "columns": "5d1c0e39e4340e8b"}}, "sources": {"moves": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:23:41.871415+00', '2026-11-29 01:23:49.063894+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('maria_again', 2, NULL, 'committed', 177, '2026-11-29 01:23:49.401342+00', NULL, 'kept', 'maria_again-2', '{"reads": {"moves": "table moves of connection maria"}, "sinks": {"repeated": {"type": "lockstep.sinks:MariaDbSink", "arguments": {"name": "repeated", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_repeated"}, "protocol": "write_ahead", "validate": "load", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "maria", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"moves": {"end": {"rows": 2, "upto": "4", "after": "2", "server": "server 1 (B99ypwJFVnY2dKpWTddIujz7XgI=), database kept, table moves", "order_by": "id"}, "spec": {"type": "lockstep.sources:MariaDbTableSource", "arguments": {"table": "moves", "accept": [], "settle": 0.0, "columns": ["id", "piece"], "order_by": "id", "connection": "maria", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": {"rows": 2, "upto": "2", "after": null, "server": "server 1 (B99ypwJFVnY2dKpWTddIujz7XgI=), database kept, table moves", "order_by": "id"}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/maria_again/epoch=2/178', '0147631ba266f23a3da6444a95dc51e767389832fdf2e830d1ce00800ed53b98', 'kept', '{"outputs": {"moves": {"rows": 2, "bytes": 307, "files": 1, "digest": "f5b55bdc84df1a3bbf487dac86efeae3", "columns": "ad9dc2711a7a23a1"}}, "sources": {"moves": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:23:49.401342+00', '2026-11-29 01:23:50.429866+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('tables', 1, NULL, 'cleaned', 1, '2026-11-29 01:20:03.97081+00', NULL, 'kept', 'tables-1', '{"reads": {"entries": "table public.entries of connection warehouse", "accounts": "table public.accounts of connection warehouse"}, "sinks": {"http": {"type": "lockstep.sinks:HttpSink", "arguments": {"name": "http", "output": "entries", "committer": "postgres:warehouse", "connection": "http", "key_header": "Authorization"}}, "entries": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "entries", "create": true, "schema": "proofs", "shared": false, "tables": {"entries": "public.entries_copy"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "accounts": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "accounts", "create": true, "schema": "public", "shared": false, "tables": {"accounts": "public.accounts_copy"}, "protocol": "write_ahead", "validate": "schema", "committer": "postgres:warehouse", "guarantee": "at_least_once", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "careless": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "careless", "create": true, "schema": "public", "shared": false, "tables": {"entries": "public.entries_careless"}, "protocol": "write_ahead", "validate": "load", "guarantee": "none", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"entries": {"end": {"rows": 3, "upto": "3", "after": null, "server": "system 7713396725675637930, timeline 00000001, database 16388, table 16398", "order_by": "id"}, "spec": {"type": "lockstep.sources:PostgresTableSource", "arguments": {"table": "public.entries", "accept": [], "settle": 0.0, "columns": [], "order_by": "id", "connection": "warehouse", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": null}, "accounts": {"end": {"rows": 3, "upto": "771", "after": null, "server": "system 7713396725675637930, timeline 00000001, database 16388, table 16389", "order_by": "xid"}, "spec": {"type": "lockstep.sources:PostgresTableSource", "arguments": {"table": "public.accounts", "accept": [], "settle": null, "columns": ["id", "owner"], "order_by": "xid", "connection": "warehouse", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": null}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/tables/epoch=1/2', 'f41791177e6a4f218369c19c0aa83ecaec003affc96e0515df9ce55be3b30aef', 'kept', '{"outputs": {"entries": {"rows": 3, "bytes": 443, "files": 1, "digest": "04933906e98dccadcda5e9c4da26081b", "columns": "39a9cfc71963f5cf"}, "accounts": {"rows": 3, "bytes": 316, "files": 1, "digest": "fa8a5564931e64f7cd5c60c6f5249a1f", "columns": "2eec007ad4b74b3a"}}, "sources": {"entries": {"rows": 3, "quarantined": 0}, "accounts": {"rows": 3, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:20:03.97081+00', '2026-11-29 01:20:18.007788+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('numbers', 2, NULL, 'cleaned', 127, '2026-11-29 01:22:11.269265+00', NULL, 'kept', 'numbers-2', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.numbers_sums"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/numbers", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 20}, "start": {"next": 10}}, "spec": {"type": "lockstep.sources:SequenceSource", "arguments": {"first": 0, "partitions": 2, "rows_per_epoch": 10}}, "start": {"end": {"next": 10}, "start": {"next": 0}}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/numbers/epoch=2/128', '7ae52751a453a6a0c93012131fcf78de6c738bb74366dacb6f6e74102abb8faf', 'kept', '{"state": {"sums": {"rows": 2, "bytes": 299, "buckets": 2}}, "outputs": {"sums": {"rows": 2, "bytes": 299, "files": 1, "digest": "309441ea088488bb5710a518612f05f2", "columns": "db3b0806f2150575"}, "words": {"rows": 10, "bytes": 898, "files": 2, "digest": "0a315c2392149038e1c6b67aa6efb6b0", "columns": "533cc8e2e0dd8bba"}, "numbers": {"rows": 10, "bytes": 1276, "files": 2, "digest": "f19ad56657ccf8222752f03e58a88692", "columns": "a1cda762d8e7e38e"}}, "sources": {"numbers": {"rows": 10, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:22:11.269265+00', '2026-11-29 01:22:38.738531+00', 'bd912a32fed7272293cce408dbdc867c2d17a6ae764f6845b134d1eda1e2412d', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('clicks', 1, NULL, 'cleaned', 151, '2026-11-29 01:23:26.475449+00', NULL, 'kept', 'clicks-1', '{"reads": {"clicks": "files @HOME@/landing/clicks"}, "sinks": {"late": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "late", "path": "@HOME@/out/late", "format": "parquet", "output": "late", "shared": false}}, "hourly": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "hourly", "path": "@HOME@/out/hourly", "format": "json", "output": "hourly", "shared": false}}}, "format": 1, "sources": {"clicks": {"end": {"files": [{"path": "@HOME@/landing/clicks/1.csv", "size": 100, "mtime_ns": 1600000024000000000}], "roots": ["@HOME@/landing/clicks"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/clicks", "spans": null, "watch": false, "format": "csv", "schema": "page STRING, seconds INT, at TIMESTAMP", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": 1}}, "start": null}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/clicks/epoch=1/152', '448b586fdc9b66c192f1ec3ffb632e3e3dabce7ed93abc341c0e84a14271376d', 'kept', '{"state": {"windows": {"rows": 2, "bytes": 1740, "buckets": 2}, "windows_watermark": {"rows": 1, "bytes": 842, "buckets": 1}}, "outputs": {"late": {"rows": 0, "bytes": 229, "files": 1, "digest": "00000000000000000000000000000000", "columns": "069d529342443a86"}, "hourly": {"rows": 1, "bytes": 761, "files": 1, "digest": "f52abe6317157087c3d597df20c58d6e", "columns": "5008f56cba072801"}}, "sources": {"clicks": {"rows": 3, "quarantined": 0}}, "balances": {"windows": {"in": 3, "late": 0, "folded": 3, "filtered": 0, "corrected": 0, "partly_late": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:23:26.475449+00', '2026-11-29 01:23:30.172394+00', '', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('maria_again', 1, NULL, 'cleaned', 167, '2026-11-29 01:23:36.278854+00', NULL, 'kept', 'maria_again-1', '{"reads": {"moves": "table moves of connection maria"}, "sinks": {"repeated": {"type": "lockstep.sinks:MariaDbSink", "arguments": {"name": "repeated", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_repeated"}, "protocol": "write_ahead", "validate": "load", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "maria", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"moves": {"end": {"rows": 2, "upto": "2", "after": null, "server": "server 1 (B99ypwJFVnY2dKpWTddIujz7XgI=), database kept, table moves", "order_by": "id"}, "spec": {"type": "lockstep.sources:MariaDbTableSource", "arguments": {"table": "moves", "accept": [], "settle": 0.0, "columns": ["id", "piece"], "order_by": "id", "connection": "maria", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": null}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/maria_again/epoch=1/168', 'f3ac8b85a60effc7aec22ce49cf12bc0ab448f9c6d880fa3d2f5a5c6fbc583de', 'kept', '{"outputs": {"moves": {"rows": 2, "bytes": 307, "files": 1, "digest": "df65e822f9a1f9a9d12e843bd01a4cff", "columns": "ad9dc2711a7a23a1"}}, "sources": {"moves": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:23:36.278854+00', '2026-11-29 01:23:41.748651+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('tables', 2, NULL, 'committed', 11, '2026-11-29 01:20:18.422765+00', NULL, 'kept', 'tables-2', '{"reads": {"entries": "table public.entries of connection warehouse", "accounts": "table public.accounts of connection warehouse"}, "sinks": {"http": {"type": "lockstep.sinks:HttpSink", "arguments": {"name": "http", "output": "entries", "committer": "postgres:warehouse", "connection": "http", "key_header": "Authorization"}}, "entries": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "entries", "create": true, "schema": "proofs", "shared": false, "tables": {"entries": "public.entries_copy"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "accounts": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "accounts", "create": true, "schema": "public", "shared": false, "tables": {"accounts": "public.accounts_copy"}, "protocol": "write_ahead", "validate": "schema", "committer": "postgres:warehouse", "guarantee": "at_least_once", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "careless": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "careless", "create": true, "schema": "public", "shared": false, "tables": {"entries": "public.entries_careless"}, "protocol": "write_ahead", "validate": "load", "guarantee": "none", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"entries": {"end": {"rows": 3, "upto": "6", "after": "3", "server": "system 7713396725675637930, timeline 00000001, database 16388, table 16398", "order_by": "id"}, "spec": {"type": "lockstep.sources:PostgresTableSource", "arguments": {"table": "public.entries", "accept": [], "settle": 0.0, "columns": [], "order_by": "id", "connection": "warehouse", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": {"rows": 3, "upto": "3", "after": null, "server": "system 7713396725675637930, timeline 00000001, database 16388, table 16398", "order_by": "id"}}, "accounts": {"end": {"rows": 3, "upto": "791", "after": "771", "server": "system 7713396725675637930, timeline 00000001, database 16388, table 16389", "order_by": "xid"}, "spec": {"type": "lockstep.sources:PostgresTableSource", "arguments": {"table": "public.accounts", "accept": [], "settle": null, "columns": ["id", "owner"], "order_by": "xid", "connection": "warehouse", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": {"rows": 3, "upto": "771", "after": null, "server": "system 7713396725675637930, timeline 00000001, database 16388, table 16389", "order_by": "xid"}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/tables/epoch=2/12', 'ba16258af0b908cb69321a2e649079654a279376a347090879aceefc257fc91f', 'kept', '{"outputs": {"entries": {"rows": 3, "bytes": 444, "files": 1, "digest": "15ed6f8853b587837485d463ef56c989", "columns": "39a9cfc71963f5cf"}, "accounts": {"rows": 3, "bytes": 316, "files": 1, "digest": "81aacbf88f0f5fa56b790cb6f4762b28", "columns": "2eec007ad4b74b3a"}}, "sources": {"entries": {"rows": 3, "quarantined": 0}, "accounts": {"rows": 3, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:20:18.422765+00', '2026-11-29 01:20:20.471139+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('tables', 3, NULL, 'committed', 19, '2026-11-29 01:20:21.248375+00', NULL, 'kept', 'tables-3', '{"reads": {"entries": "table public.entries of connection warehouse", "accounts": "table public.accounts of connection warehouse"}, "sinks": {"http": {"type": "lockstep.sinks:HttpSink", "arguments": {"name": "http", "output": "entries", "committer": "postgres:warehouse", "connection": "http", "key_header": "Authorization"}}, "entries": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "entries", "create": true, "schema": "proofs", "shared": false, "tables": {"entries": "public.entries_copy"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "accounts": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "accounts", "create": true, "schema": "public", "shared": false, "tables": {"accounts": "public.accounts_copy"}, "protocol": "write_ahead", "validate": "schema", "committer": "postgres:warehouse", "guarantee": "at_least_once", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "careless": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "careless", "create": true, "schema": "public", "shared": false, "tables": {"entries": "public.entries_careless"}, "protocol": "write_ahead", "validate": "load", "guarantee": "none", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"entries": {"end": {"rows": 3, "upto": "9", "after": "6", "server": "system 7713396725675637930, timeline 00000001, database 16388, table 16398", "order_by": "id"}, "spec": {"type": "lockstep.sources:PostgresTableSource", "arguments": {"table": "public.entries", "accept": [], "settle": 0.0, "columns": [], "order_by": "id", "connection": "warehouse", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": {"rows": 3, "upto": "6", "after": "3", "server": "system 7713396725675637930, timeline 00000001, database 16388, table 16398", "order_by": "id"}}, "accounts": {"end": {"rows": 3, "upto": "802", "after": "791", "server": "system 7713396725675637930, timeline 00000001, database 16388, table 16389", "order_by": "xid"}, "spec": {"type": "lockstep.sources:PostgresTableSource", "arguments": {"table": "public.accounts", "accept": [], "settle": null, "columns": ["id", "owner"], "order_by": "xid", "connection": "warehouse", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": {"rows": 3, "upto": "791", "after": "771", "server": "system 7713396725675637930, timeline 00000001, database 16388, table 16389", "order_by": "xid"}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/tables/epoch=3/20', '3f1c84a80b305987229317ababee116f264556ae9bbf0bb8aeeec0dbe88928bd', 'kept', '{"outputs": {"entries": {"rows": 3, "bytes": 444, "files": 1, "digest": "438d3e6db27112088cc2644333e70e3c", "columns": "39a9cfc71963f5cf"}, "accounts": {"rows": 3, "bytes": 316, "files": 1, "digest": "45a40ecf88052e7823ae8d536dc371b7", "columns": "2eec007ad4b74b3a"}}, "sources": {"entries": {"rows": 3, "quarantined": 0}, "accounts": {"rows": 3, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:20:21.248375+00', '2026-11-29 01:20:22.769858+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('customers', 5, NULL, 'staged', 100, '2026-11-29 01:21:28.300456+00', '2026-11-29 01:21:58.370402+00', 'kept', 'customers-5', '{"reads": {"payments": "files @HOME@/landing/payments"}, "sinks": {"totals": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "changes": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_0_1_0.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}}, "format": 1, "sources": {"payments": {"end": {"files": [{"path": "@HOME@/landing/payments/5.json", "size": 51, "mtime_ns": 1600000018000000000}], "roots": ["@HOME@/landing/payments"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/payments", "spans": null, "watch": false, "format": "json", "schema": "customer STRING, amount BIGINT, gone BOOLEAN", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": {"files": [{"path": "@HOME@/landing/payments/4.json", "size": 99, "mtime_ns": 1600000017000000000}], "roots": ["@HOME@/landing/payments"]}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/customers/epoch=5/101', '9107b4fa23ef77fdfe842ff14462d4c282b4de674a4dbddbd934b8eede1bff31', 'kept', '{"state": {"totals": {"rows": 5, "bytes": 644, "buckets": 2}}, "outputs": {"totals": {"rows": 1, "bytes": 801, "files": 1, "digest": "105234b6fc4170e45215335ffabce80a", "columns": "2f732987f0e6a07a"}}, "sources": {"payments": {"rows": 1, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:21:28.300456+00', '2026-11-29 01:21:31.127395+00', '55d382f28407c7d77dd79e0024fa4c545e507132fe6d31786b518153c5106e8c', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 1, '["2013-01-01 00:00:00+00","2013-01-02 00:00:00+00")', 'cleaned', 25, '2026-11-29 01:20:23.012816+00', NULL, 'kept', 'orders-0', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-01.csv", "size": 384, "mtime_ns": 1600000002000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-01.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/orders/epoch=1/26', '1c93e86ecdd3917dc9e2a6f376b93acff2cbac52771abec40146eaacd3e7bf5a', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1018, "files": 1, "digest": "7850533f1ff18742c08f41cc98e526bb", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "2c2503174758e382f51b36541a024ba1", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:20:23.012816+00', '2026-11-29 01:20:33.392829+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('clicks', 3, NULL, 'committed', 163, '2026-11-29 01:23:32.031915+00', NULL, 'kept', 'clicks-3', '{"reads": {"clicks": "files @HOME@/landing/clicks"}, "sinks": {"late": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "late", "path": "@HOME@/out/late", "format": "parquet", "output": "late", "shared": false}}, "hourly": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "hourly", "path": "@HOME@/out/hourly", "format": "json", "output": "hourly", "shared": false}}}, "format": 1, "sources": {"clicks": {"end": {"files": [{"path": "@HOME@/landing/clicks/3.csv", "size": 72, "mtime_ns": 1600000026000000000}], "roots": ["@HOME@/landing/clicks"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/clicks", "spans": null, "watch": false, "format": "csv", "schema": "page STRING, seconds INT, at TIMESTAMP", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": 1}}, "start": {"files": [{"path": "@HOME@/landing/clicks/2.csv", "size": 73, "mtime_ns": 1600000025000000000}], "roots": ["@HOME@/landing/clicks"]}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/clicks/epoch=3/164', '5a21194bfd0e06c2baac08712f5cb611ad2fcd31d16facd7d0245f7b2786207d', 'kept', '{"state": {"windows": {"rows": 2, "bytes": 1740, "buckets": 2}, "windows_watermark": {"rows": 1, "bytes": 842, "buckets": 1}}, "outputs": {"late": {"rows": 1, "bytes": 809, "files": 1, "digest": "89709ee118eb50c04ce97b482ab18bce", "columns": "069d529342443a86"}, "hourly": {"rows": 1, "bytes": 761, "files": 1, "digest": "6c7aeb943f92a95655b60bef618cec25", "columns": "5008f56cba072801"}}, "sources": {"clicks": {"rows": 2, "quarantined": 0}}, "balances": {"windows": {"in": 2, "late": 1, "folded": 1, "filtered": 0, "corrected": 0, "partly_late": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:23:32.031915+00', '2026-11-29 01:23:35.901848+00', 'bbf01027b5c00d6a8fba83c509000da938e995232d9699fe8a5248bfdb422602', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('customers', 3, NULL, 'committed', 91, '2026-11-29 01:21:20.757565+00', NULL, 'kept', 'customers-3', '{"reads": {"payments": "files @HOME@/landing/payments"}, "sinks": {"totals": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "changes": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_0_1_0.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}}, "format": 1, "sources": {"payments": {"end": {"files": [{"path": "@HOME@/landing/payments/3.json", "size": 96, "mtime_ns": 1600000016000000000}], "roots": ["@HOME@/landing/payments"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/payments", "spans": null, "watch": false, "format": "json", "schema": "customer STRING, amount BIGINT, gone BOOLEAN", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": {"files": [{"path": "@HOME@/landing/payments/2.json", "size": 99, "mtime_ns": 1600000015000000000}], "roots": ["@HOME@/landing/payments"]}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/customers/epoch=3/92', '17a3ddf5b69dedb2d1a6adb281f5bfc704f217c6ea9b928495f1bbe4a836631e', 'kept', '{"state": {"totals": {"rows": 4, "bytes": 341, "buckets": 2}}, "outputs": {"totals": {"rows": 2, "bytes": 817, "files": 1, "digest": "1bdb3fd5e7c6f071aef8dac9a174a317", "columns": "2f732987f0e6a07a"}}, "sources": {"payments": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:21:20.757565+00', '2026-11-29 01:21:24.37407+00', 'c3ac90d3ae3d2854570b3bfcdb2107b266dca947fe7282eae786cc9c0da7002b', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 2, '["2013-01-02 00:00:00+00","2013-01-03 00:00:00+00")', 'published', 33, '2026-11-29 01:20:33.574863+00', NULL, 'kept', 'orders-1', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-02.csv", "size": 389, "mtime_ns": 1600000003000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-02.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/orders/epoch=2/34', '288472c37b77db1064744dd8556f49dff7a8238d2c08e1f2fdf9c799ae8d8c1f', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1027, "files": 1, "digest": "1a1a955df76f6bce56b6afe13d2b7812", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "a820947971945152ee2f90ff11c36dbe", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:20:33.574863+00', '2026-11-29 01:20:38.295025+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('numbers', 3, NULL, 'committed', 137, '2026-11-29 01:22:39.135742+00', NULL, 'kept', 'numbers-3', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.numbers_sums"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/numbers", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 30}, "start": {"next": 20}}, "spec": {"type": "lockstep.sources:SequenceSource", "arguments": {"first": 0, "partitions": 2, "rows_per_epoch": 10}}, "start": {"end": {"next": 20}, "start": {"next": 10}}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/numbers/epoch=3/138', 'f49548fa7d909029617f33aac8abd540bfb346b409f068ff17b6223561c2bbe7', 'kept', '{"state": {"sums": {"rows": 2, "bytes": 299, "buckets": 2}}, "outputs": {"sums": {"rows": 2, "bytes": 299, "files": 1, "digest": "e6e5a0fd902d01b67860338a24880934", "columns": "db3b0806f2150575"}, "words": {"rows": 10, "bytes": 897, "files": 2, "digest": "237199a4b985a098d4d42b21c9e6b125", "columns": "533cc8e2e0dd8bba"}, "numbers": {"rows": 10, "bytes": 1276, "files": 2, "digest": "2f3d5d09d7ae5acb2b054d8d1e9fa06c", "columns": "a1cda762d8e7e38e"}}, "sources": {"numbers": {"rows": 10, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:22:39.135742+00', '2026-11-29 01:23:01.614627+00', '7ae52751a453a6a0c93012131fcf78de6c738bb74366dacb6f6e74102abb8faf', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 8, '["2013-01-08 00:00:00+00","2013-01-09 00:00:00+00")', 'staged', 71, '2026-11-29 01:21:04.072499+00', '2026-11-29 01:21:35.710255+00', 'kept', 'orders-7', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-08.csv", "size": 389, "mtime_ns": 1600000009000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-08.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/orders/epoch=8/72', '44baec767d512b354c04c3929db0f5b2d3e0de4ec70ad15374f6c9f0c5360fd5', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1027, "files": 1, "digest": "48b2c6777aa0e032805d3ad25accd0e6", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "72601ba3475da230b3ab3718bc542ece", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:21:04.072499+00', '2026-11-29 01:21:05.642527+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 3, '["2013-01-03 00:00:00+00","2013-01-04 00:00:00+00")', 'committed', 41, '2026-11-29 01:20:38.442077+00', NULL, 'kept', 'orders-2', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-03.csv", "size": 389, "mtime_ns": 1600000004000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-03.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/orders/epoch=3/42', '93d1c66f59c7cb7072f3cd56def1c637a5abcca3fa7ca70a55000b69ccf11ab2', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1020, "files": 1, "digest": "dd1d1a8c48977235e3a6ef5ab1e5c40f", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "d7ffd2b1f81b7aa4fc256656adf330aa", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:20:38.442077+00', '2026-11-29 01:20:42.937147+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 9, '["2013-01-09 00:00:00+00","2013-01-10 00:00:00+00")', 'staged', 74, '2026-11-29 01:21:06.092216+00', '2026-11-29 01:21:36.194191+00', 'kept', 'orders-8', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-09.csv", "size": 389, "mtime_ns": 1600000010000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-09.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/orders/epoch=9/75', '7ff9a3ae02ec32d63267cbd3524beb26b689b3c2ac6c23f9c8ab179c8f747370', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1018, "files": 1, "digest": "1561a3bc4bbf786bcf3ebba777c81ca4", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "29e9d9a11fa1d408c28d0e7f00916682", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:21:06.092216+00', '2026-11-29 01:21:07.584291+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('numbers', 1, NULL, 'cleaned', 117, '2026-11-29 01:21:43.022371+00', NULL, 'kept', 'numbers-1', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.numbers_sums"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/numbers", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 10}, "start": {"next": 0}}, "spec": {"type": "lockstep.sources:SequenceSource", "arguments": {"first": 0, "partitions": 2, "rows_per_epoch": 10}}, "start": null}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/numbers/epoch=1/118', 'bd912a32fed7272293cce408dbdc867c2d17a6ae764f6845b134d1eda1e2412d', 'kept', '{"state": {"sums": {"rows": 2, "bytes": 299, "buckets": 2}}, "outputs": {"sums": {"rows": 2, "bytes": 299, "files": 1, "digest": "e6efd430c230bc026c40a60ce5821bf8", "columns": "db3b0806f2150575"}, "words": {"rows": 10, "bytes": 899, "files": 2, "digest": "7833deb34a337f276c820cd5d4813763", "columns": "533cc8e2e0dd8bba"}, "numbers": {"rows": 10, "bytes": 1276, "files": 2, "digest": "69a53f6519b25c9585b89b60dac9389a", "columns": "a1cda762d8e7e38e"}}, "sources": {"numbers": {"rows": 10, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:21:43.022371+00', '2026-11-29 01:22:11.089078+00', '', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('numbers', 4, NULL, 'planned', 143, '2026-11-29 01:23:02.036487+00', '2026-11-29 01:23:32.036487+00', 'kept', 'numbers-4', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.numbers_sums"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/numbers", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 40}, "start": {"next": 30}}, "spec": {"type": "lockstep.sources:SequenceSource", "arguments": {"first": 0, "partitions": 2, "rows_per_epoch": 10}}, "start": {"end": {"next": 30}, "start": {"next": 20}}}}}', NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:23:02.036487+00', '2026-11-29 01:23:02.036487+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 4, '["2013-01-04 00:00:00+00","2013-01-05 00:00:00+00")', 'committed', 48, '2026-11-29 01:20:43.253756+00', NULL, 'kept', 'orders-3', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-04.csv", "size": 389, "mtime_ns": 1600000005000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-04.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/orders/epoch=4/49', '913adff5eb185c5579bcc0d02cdc84058902cbfd2b2417c5633dfa1b3e02dddf', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1027, "files": 1, "digest": "b06f1896b00b6feec88c1c918b856a67", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "0a48b58c56cb258748195a92200f120b", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:20:43.253756+00', '2026-11-29 01:20:46.485795+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('customers', 1, NULL, 'cleaned', 79, '2026-11-29 01:21:08.459807+00', NULL, 'kept', 'customers-1', '{"reads": {"payments": "files @HOME@/landing/payments"}, "sinks": {"totals": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "changes": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_0_1_0.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}}, "format": 1, "sources": {"payments": {"end": {"files": [{"path": "@HOME@/landing/payments/1.json", "size": 145, "mtime_ns": 1600000014000000000}], "roots": ["@HOME@/landing/payments"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/payments", "spans": null, "watch": false, "format": "json", "schema": "customer STRING, amount BIGINT, gone BOOLEAN", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/customers/epoch=1/80', '4d65e4ad4894c3be204a89ad12ec89d990fadcffb64a26fee45e925a6e49e32d', 'kept', '{"state": {"totals": {"rows": 3, "bytes": 329, "buckets": 2}}, "outputs": {"totals": {"rows": 3, "bytes": 830, "files": 1, "digest": "a20b052d35cf010792cb9535646d697d", "columns": "2f732987f0e6a07a"}}, "sources": {"payments": {"rows": 3, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:21:08.459807+00', '2026-11-29 01:21:15.516925+00', '', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 11, '["2013-01-11 00:00:00+00","2013-01-12 00:00:00+00")', 'void', 78, '2026-11-29 01:21:08.253867+00', NULL, NULL, NULL, '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-11.csv", "size": 394, "mtime_ns": 1600000012000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-11.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', NULL, NULL, NULL, NULL, 'nobody wants that day', '2026-11-29 01:21:08.163629+00', '2026-11-29 01:21:08.253867+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('lines', 1, NULL, 'cleaned', 102, '2026-11-29 01:21:31.281886+00', NULL, 'kept', 'lines-1', '{"reads": {"lines": "files @HOME@/landing/lines/*.csv"}, "sinks": {"tcp": {"type": "lockstep.sinks:TcpSink", "arguments": {"name": "tcp", "output": "lines", "committer": "@HOME@/sent", "connection": "tcp"}}, "stdout": {"type": "lockstep.sinks:StdoutSink", "arguments": {"name": "stdout", "output": "lines", "committer": "@HOME@/sent"}}}, "format": 1, "sources": {"lines": {"end": {"files": [{"to": 20, "from": 0, "path": "@HOME@/landing/lines/a.csv", "size": 20, "digest": "f3f9bfcf27a8d79a357777f5eb73733fd86e4761dc044146bd7d99431d38ef5c", "sha256": "9ff1b76384a0bd03d8fe51a09bff6bda908cc865152e51472acfed4e72fd2570", "mtime_ns": 1600000021000000000}, {"to": 18, "from": 0, "path": "@HOME@/landing/lines/b.csv", "size": 18, "digest": "30b0c7f27491dffebad22638b3c9be39d0e6a91771485012bb901203c7acc761", "sha256": "cdd3b2112e917fe5998df16d247f315d690783a2d1c394fe6590300b2caebe4e", "mtime_ns": 1600000022000000000}], "roots": ["@HOME@/landing/lines"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": true, "hash": true, "once": false, "path": "@HOME@/landing/lines/*.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, word STRING", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/lines/epoch=1/103', '5e87bdce64304d3fa993729f490b9e0e147773f47c1d1304533e94c3cd59bfbe', 'kept', '{"outputs": {"lines": {"rows": 3, "bytes": 317, "files": 1, "digest": "1d917c36f2d48dec8a815763f3dc54be", "columns": "ca1b5abf660de8e3"}}, "sources": {"lines": {"rows": 3, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:21:31.281886+00', '2026-11-29 01:21:40.050586+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 5, '["2013-01-05 00:00:00+00","2013-01-06 00:00:00+00")', 'committed', 53, '2026-11-29 01:20:46.803215+00', NULL, 'kept', 'orders-4', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-05.csv", "size": 389, "mtime_ns": 1600000006000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-05.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/orders/epoch=5/54', '6d709eb7bc500744b7e2d5e073cdaaa1b2373c819e2f3d9941581d985de2c94d', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1027, "files": 1, "digest": "6cf6c82e8c36bd444584b56783d411fa", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "e85666fe00bf38a262fd075b8a6b7a72", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:20:46.803215+00', '2026-11-29 01:20:51.001871+00', NULL, 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/orders/epoch=5/58', '9bca45c1e7e92ea3d75568bb0bae63f286b89bbb38fcbeff773e7118b26e79fc', false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 6, '["2013-01-06 00:00:00+00","2013-01-07 00:00:00+00")', 'committed', 59, '2026-11-29 01:20:53.933172+00', NULL, 'kept', 'orders-5', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-06.csv", "size": 389, "mtime_ns": 1600000007000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-06.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/orders/epoch=6/60', '38ed5563f23235ee48c45e0a7f3068329806a2bf7df5d1f90dffa4df56587a1d', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1027, "files": 1, "digest": "aeaa4bfc17eee22184531627d339c4c9", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "68c5874ddbf69fdc9a2b05788ff8bbe7", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:20:53.933172+00', '2026-11-29 01:20:58.54409+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 7, '["2013-01-07 00:00:00+00","2013-01-08 00:00:00+00")', 'staged', 66, '2026-11-29 01:20:58.89665+00', '2026-11-29 01:21:33.6469+00', 'kept', 'orders-6', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-07.csv", "size": 389, "mtime_ns": 1600000008000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-07.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/orders/epoch=7/67', '8011fe8bc9d55e2777ecda297db303bf38bb377cd877907f22f3fec5d9274706', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1033, "files": 1, "digest": "6c465f20697e6e5b22ee705903d2f7ff", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 402, "files": 1, "digest": "749ef507c1d7c7afc00b58c11d154725", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:20:58.89665+00', '2026-11-29 01:21:03.026542+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('orders', 10, '["2013-01-10 00:00:00+00","2013-01-11 00:00:00+00")', 'planned', 76, '2026-11-29 01:21:07.857764+00', '2026-11-29 01:21:37.857764+00', 'kept', 'orders-9', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-10.csv", "size": 389, "mtime_ns": 1600000011000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-10.csv"}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, day DATE, at TIMESTAMP, weight DOUBLE, pieces INT", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": null}}}', NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:21:07.857764+00', '2026-11-29 01:21:07.857764+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('customers', 2, NULL, 'published', 85, '2026-11-29 01:21:15.642658+00', NULL, 'kept', 'customers-2', '{"reads": {"payments": "files @HOME@/landing/payments"}, "sinks": {"totals": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "changes": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_0_1_0.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}}, "format": 1, "sources": {"payments": {"end": {"files": [{"path": "@HOME@/landing/payments/2.json", "size": 99, "mtime_ns": 1600000015000000000}], "roots": ["@HOME@/landing/payments"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/payments", "spans": null, "watch": false, "format": "json", "schema": "customer STRING, amount BIGINT, gone BOOLEAN", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": {"files": [{"path": "@HOME@/landing/payments/1.json", "size": 145, "mtime_ns": 1600000014000000000}], "roots": ["@HOME@/landing/payments"]}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/customers/epoch=2/86', 'c3ac90d3ae3d2854570b3bfcdb2107b266dca947fe7282eae786cc9c0da7002b', 'kept', '{"state": {"totals": {"rows": 4, "bytes": 341, "buckets": 2}}, "outputs": {"totals": {"rows": 2, "bytes": 817, "files": 1, "digest": "914f228fce3da144f87c181a430031e7", "columns": "2f732987f0e6a07a"}}, "sources": {"payments": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:21:15.642658+00', '2026-11-29 01:21:20.548203+00', '4d65e4ad4894c3be204a89ad12ec89d990fadcffb64a26fee45e925a6e49e32d', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('resumed', 1, NULL, 'committed', 144, '2026-11-29 01:23:02.363547+00', NULL, 'kept', 'resumed-1', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.resumed_sums"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/resumed", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 30}, "start": {"next": 20}}, "spec": {"type": "lockstep.sources:DataSourceSource", "arguments": {"schema": null, "options": {"first": "0"}, "data_source": "lockstep.compute.sequence:SequenceDataSource", "connection_options": {}, "max_rows_per_epoch": 10, "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": {"end": {"next": 20}, "start": {"next": 10}}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/resumed/epoch=1/145', '212314066e1d00f98639a1a04070c90422fbb43f74f1a5a23870e795d6c0126f', 'kept', '{"state": {"sums": {"rows": 2, "bytes": 299, "buckets": 2}}, "outputs": {"sums": {"rows": 2, "bytes": 299, "files": 1, "digest": "e6e5a0fd902d01b67860338a24880934", "columns": "db3b0806f2150575"}, "words": {"rows": 10, "bytes": 897, "files": 2, "digest": "237199a4b985a098d4d42b21c9e6b125", "columns": "533cc8e2e0dd8bba"}, "numbers": {"rows": 10, "bytes": 1276, "files": 2, "digest": "2f3d5d09d7ae5acb2b054d8d1e9fa06c", "columns": "a1cda762d8e7e38e"}}, "sources": {"numbers": {"rows": 10, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:23:02.363547+00', '2026-11-29 01:23:26.051702+00', '', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('customers', 4, NULL, 'committed', 96, '2026-11-29 01:21:24.667768+00', NULL, 'kept', 'customers-4', '{"reads": {"payments": "files @HOME@/landing/payments"}, "sinks": {"totals": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "changes": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_0_1_0.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}}, "format": 1, "sources": {"payments": {"end": {"files": [{"path": "@HOME@/landing/payments/4.json", "size": 99, "mtime_ns": 1600000017000000000}], "roots": ["@HOME@/landing/payments"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": false, "hash": false, "once": false, "path": "@HOME@/landing/payments", "spans": null, "watch": false, "format": "json", "schema": "customer STRING, amount BIGINT, gone BOOLEAN", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": {"files": [{"path": "@HOME@/landing/payments/3.json", "size": 96, "mtime_ns": 1600000016000000000}], "roots": ["@HOME@/landing/payments"]}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/customers/epoch=4/97', '55d382f28407c7d77dd79e0024fa4c545e507132fe6d31786b518153c5106e8c', 'kept', '{"state": {"totals": {"rows": 5, "bytes": 644, "buckets": 2}}, "outputs": {"totals": {"rows": 2, "bytes": 817, "files": 1, "digest": "0fda1f7ef202accf112ee671e6803b06", "columns": "2f732987f0e6a07a"}}, "sources": {"payments": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:21:24.667768+00', '2026-11-29 01:21:28.197651+00', '17a3ddf5b69dedb2d1a6adb281f5bfc704f217c6ea9b928495f1bbe4a836631e', NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('resumed', 2, NULL, 'planned', 150, '2026-11-29 01:23:26.350504+00', '2026-11-29 01:23:56.350504+00', 'kept', 'resumed-2', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.resumed_sums"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/resumed", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 40}, "start": {"next": 30}}, "spec": {"type": "lockstep.sources:DataSourceSource", "arguments": {"schema": null, "options": {"first": "0"}, "data_source": "lockstep.compute.sequence:SequenceDataSource", "connection_options": {}, "max_rows_per_epoch": 10, "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": {"end": {"next": 30}, "start": {"next": 20}}}}}', NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:23:26.350504+00', '2026-11-29 01:23:26.350504+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('lines', 2, NULL, 'committed', 108, '2026-11-29 01:21:40.155371+00', NULL, 'kept', 'lines-2', '{"reads": {"lines": "files @HOME@/landing/lines/*.csv"}, "sinks": {"tcp": {"type": "lockstep.sinks:TcpSink", "arguments": {"name": "tcp", "output": "lines", "committer": "@HOME@/sent", "connection": "tcp"}}, "stdout": {"type": "lockstep.sinks:StdoutSink", "arguments": {"name": "stdout", "output": "lines", "committer": "@HOME@/sent"}}}, "format": 1, "sources": {"lines": {"end": {"files": [{"to": 28, "from": 20, "path": "@HOME@/landing/lines/a.csv", "size": 28, "digest": "cd5407940540c80ee55816f4159489507415dcf291b5206426fbe99271b5eab4", "sha256": "5a3d85b61ff36bef74ef7a6a342e64c0c14e96af6631b7968d3ed2c8eb261bd6", "mtime_ns": 1600000022000000000}], "roots": ["@HOME@/landing/lines"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": true, "hash": true, "once": false, "path": "@HOME@/landing/lines/*.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, word STRING", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": {"files": [{"to": 20, "from": 0, "path": "@HOME@/landing/lines/a.csv", "size": 20, "digest": "f3f9bfcf27a8d79a357777f5eb73733fd86e4761dc044146bd7d99431d38ef5c", "sha256": "9ff1b76384a0bd03d8fe51a09bff6bda908cc865152e51472acfed4e72fd2570", "mtime_ns": 1600000021000000000}, {"to": 18, "from": 0, "path": "@HOME@/landing/lines/b.csv", "size": 18, "digest": "30b0c7f27491dffebad22638b3c9be39d0e6a91771485012bb901203c7acc761", "sha256": "cdd3b2112e917fe5998df16d247f315d690783a2d1c394fe6590300b2caebe4e", "mtime_ns": 1600000022000000000}], "roots": ["@HOME@/landing/lines"]}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/lines/epoch=2/109', '278547242a07e55233d9b5d9fd7f6b253b38821ad0a1028521352fcf198f4132', 'kept', '{"outputs": {"lines": {"rows": 1, "bytes": 290, "files": 1, "digest": "3723ad80331979c56c668dca34cd57c9", "columns": "ca1b5abf660de8e3"}}, "sources": {"lines": {"rows": 1, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:21:40.155371+00', '2026-11-29 01:21:41.470058+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('lines', 3, NULL, 'committed', 113, '2026-11-29 01:21:41.692725+00', NULL, 'kept', 'lines-3', '{"reads": {"lines": "files @HOME@/landing/lines/*.csv"}, "sinks": {"tcp": {"type": "lockstep.sinks:TcpSink", "arguments": {"name": "tcp", "output": "lines", "committer": "@HOME@/sent", "connection": "tcp"}}, "stdout": {"type": "lockstep.sinks:StdoutSink", "arguments": {"name": "stdout", "output": "lines", "committer": "@HOME@/sent"}}}, "format": 1, "sources": {"lines": {"end": {"files": [{"to": 40, "from": 18, "path": "@HOME@/landing/lines/b.csv", "size": 40, "digest": "38714403b783b19817193ae314067554041506d2441b56b6fbbb6c944cfba4cd", "sha256": "8ecc757b2ae2ecd08a0d120f63fa8a12acec6724869ea7f12b23448c087f3574", "mtime_ns": 1600000022000000000}], "roots": ["@HOME@/landing/lines"]}, "spec": {"type": "lockstep.sources:FileSource", "arguments": {"grow": true, "hash": true, "once": false, "path": "@HOME@/landing/lines/*.csv", "spans": null, "watch": false, "format": "csv", "schema": "id BIGINT, word STRING", "missing": "error", "options": {}, "formerly": [], "timezone": "UTC", "on_bad_records": "fail", "max_bytes_per_epoch": null, "max_files_per_epoch": null}}, "start": {"files": [{"to": 28, "from": 20, "path": "@HOME@/landing/lines/a.csv", "size": 28, "digest": "cd5407940540c80ee55816f4159489507415dcf291b5206426fbe99271b5eab4", "sha256": "5a3d85b61ff36bef74ef7a6a342e64c0c14e96af6631b7968d3ed2c8eb261bd6", "mtime_ns": 1600000022000000000}], "roots": ["@HOME@/landing/lines"]}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/lines/epoch=3/114', '4c1e385c0273846cbafd58d7dc9862e55c9a85ea2e247cdf20dd9d20f3d48360', 'kept', '{"outputs": {"lines": {"rows": 2, "bytes": 311, "files": 1, "digest": "b12e1c9fae17fc7478d163d59e39b7e0", "columns": "ca1b5abf660de8e3"}}, "sources": {"lines": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:21:41.692725+00', '2026-11-29 01:21:42.813867+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('maria', 2, NULL, 'published', 180, '2026-11-29 01:23:50.804663+00', NULL, 'kept', 'maria-2', '{"reads": {"moves": "table moves of connection maria"}, "sinks": {"newest": {"type": "lockstep.sinks:MariaDbSink", "arguments": {"key": {"moves": ["piece"]}, "mode": "upsert", "name": "newest", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_newest"}, "protocol": "write_ahead", "validate": "load", "connection": "maria", "epoch_column": "lockstep_epoch"}}, "prepared": {"type": "lockstep.sinks:MariaDbSink", "arguments": {"name": "prepared", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_prepared"}, "protocol": "two_phase", "validate": "load", "connection": "maria", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"moves": {"end": {"rows": 2, "upto": "4", "after": "2", "server": "server 1 (B99ypwJFVnY2dKpWTddIujz7XgI=), database kept, table moves", "order_by": "id"}, "spec": {"type": "lockstep.sources:MariaDbTableSource", "arguments": {"table": "moves", "accept": [], "settle": 0.0, "columns": [], "order_by": "id", "connection": "maria", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": {"rows": 2, "upto": "2", "after": null, "server": "server 1 (B99ypwJFVnY2dKpWTddIujz7XgI=), database kept, table moves", "order_by": "id"}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/maria/epoch=2/181', '10b7d4fbdf697a61f73d0125beba007e325596ed2e2c6fbbab18fb9b10aa8eab', 'kept', '{"outputs": {"moves": {"rows": 2, "bytes": 425, "files": 1, "digest": "a4b9d8ce503c3d4cbc7dffc603fd7145", "columns": "5d1c0e39e4340e8b"}}, "sources": {"moves": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:23:50.804663+00', '2026-11-29 01:23:52.262482+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('maria', 3, NULL, 'committed', 186, '2026-11-29 01:23:52.39463+00', NULL, 'kept', 'maria-3', '{"reads": {"moves": "table moves of connection maria"}, "sinks": {"newest": {"type": "lockstep.sinks:MariaDbSink", "arguments": {"key": {"moves": ["piece"]}, "mode": "upsert", "name": "newest", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_newest"}, "protocol": "write_ahead", "validate": "load", "connection": "maria", "epoch_column": "lockstep_epoch"}}, "prepared": {"type": "lockstep.sinks:MariaDbSink", "arguments": {"name": "prepared", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_prepared"}, "protocol": "two_phase", "validate": "load", "connection": "maria", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"moves": {"end": {"rows": 2, "upto": "6", "after": "4", "server": "server 1 (B99ypwJFVnY2dKpWTddIujz7XgI=), database kept, table moves", "order_by": "id"}, "spec": {"type": "lockstep.sources:MariaDbTableSource", "arguments": {"table": "moves", "accept": [], "settle": 0.0, "columns": [], "order_by": "id", "connection": "maria", "settled_by": null, "verify_count": true, "max_rows_per_epoch": null, "rows_per_partition": 200000}}, "start": {"rows": 2, "upto": "4", "after": "2", "server": "server 1 (B99ypwJFVnY2dKpWTddIujz7XgI=), database kept, table moves", "order_by": "id"}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/maria/epoch=3/187', '65510898ed0c29e622a03befb225cd247b7c5191116102ce997146ec1f54d927', 'kept', '{"outputs": {"moves": {"rows": 2, "bytes": 426, "files": 1, "digest": "8c851f495cd6d7efd285aa3d7aca17f2", "columns": "5d1c0e39e4340e8b"}}, "sources": {"moves": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:23:52.39463+00', '2026-11-29 01:23:53.338045+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('events', 1, NULL, 'cleaned', 190, '2026-11-29 01:23:54.292093+00', NULL, 'kept', 'events-1', '{"reads": {"events": "topics kept.events of connection kafka"}, "sinks": {"once": {"type": "lockstep.sinks:KafkaSink", "arguments": {"key": "key", "name": "once", "topic": "kept.once", "output": "events", "guarantee": "exactly_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "kept.markers"}}, "repeated": {"type": "lockstep.sinks:KafkaSink", "arguments": {"key": "key", "name": "repeated", "topic": "kept.repeated", "output": "events", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "lockstep.markers"}}}, "format": 1, "sources": {"events": {"end": {"topics": {"kept.events": {"id": "4iJuu4dXRyeVJlplIXHTrQ", "leaders": {"0": 0, "1": 0}, "partitions": {"0": [0, 2], "1": [0, 2]}}}, "cluster": "7OanmDvTTKu0QiD3VbbO8A"}, "spec": {"type": "lockstep.sources:KafkaSource", "arguments": {"end": null, "key": "string", "group": "kept", "start": "earliest", "value": "string", "settle": 60.0, "topics": ["kept.events"], "headers": false, "pattern": null, "registry": null, "subjects": [], "connection": "kafka", "key_schema": null, "accept_loss": [], "by_interval": false, "offset_reset": "none", "value_schema": null, "on_bad_records": "fail", "max_rows_per_epoch": null}}, "start": null}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/events/epoch=1/191', '90b8074978db7fd432a07bf5494cb07803206a0bf47d1b8cae57ffb8829e5777', 'kept', '{"outputs": {"events": {"rows": 4, "bytes": 338, "files": 1, "digest": "6d35e9d675913dd82ccbcf1dfa1c6c5d", "columns": "26ca518de9c156b5"}}, "sources": {"events": {"rows": 4, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:23:54.292093+00', '2026-11-29 01:24:08.490243+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('events', 3, NULL, 'committed', 201, '2026-11-29 01:24:10.299543+00', NULL, 'kept', 'events-3', '{"reads": {"events": "topics kept.events of connection kafka"}, "sinks": {"once": {"type": "lockstep.sinks:KafkaSink", "arguments": {"key": "key", "name": "once", "topic": "kept.once", "output": "events", "guarantee": "exactly_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "kept.markers"}}, "repeated": {"type": "lockstep.sinks:KafkaSink", "arguments": {"key": "key", "name": "repeated", "topic": "kept.repeated", "output": "events", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "lockstep.markers"}}}, "format": 1, "sources": {"events": {"end": {"topics": {"kept.events": {"id": "4iJuu4dXRyeVJlplIXHTrQ", "leaders": {"0": 0, "1": 0}, "partitions": {"0": [4, 6], "1": [4, 6]}}}, "cluster": "7OanmDvTTKu0QiD3VbbO8A"}, "spec": {"type": "lockstep.sources:KafkaSource", "arguments": {"end": null, "key": "string", "group": "kept", "start": "earliest", "value": "string", "settle": 60.0, "topics": ["kept.events"], "headers": false, "pattern": null, "registry": null, "subjects": [], "connection": "kafka", "key_schema": null, "accept_loss": [], "by_interval": false, "offset_reset": "none", "value_schema": null, "on_bad_records": "fail", "max_rows_per_epoch": null}}, "start": {"topics": {"kept.events": {"id": "4iJuu4dXRyeVJlplIXHTrQ", "leaders": {"0": 0, "1": 0}, "partitions": {"0": [2, 4], "1": [2, 4]}}}, "cluster": "7OanmDvTTKu0QiD3VbbO8A"}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/events/epoch=3/202', '564a52f076aeeee556d201b3a29e10ec346cc9706634a22d04348ba50a027561', 'kept', '{"outputs": {"events": {"rows": 4, "bytes": 343, "files": 1, "digest": "aea589ed57b989ba5b2ebad0b0f8568f", "columns": "26ca518de9c156b5"}}, "sources": {"events": {"rows": 4, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:24:10.299543+00', '2026-11-29 01:24:11.352476+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.epoch VALUES ('events', 2, NULL, 'committed', 196, '2026-11-29 01:24:08.881942+00', NULL, 'kept', 'events-2', '{"reads": {"events": "topics kept.events of connection kafka"}, "sinks": {"once": {"type": "lockstep.sinks:KafkaSink", "arguments": {"key": "key", "name": "once", "topic": "kept.once", "output": "events", "guarantee": "exactly_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "kept.markers"}}, "repeated": {"type": "lockstep.sinks:KafkaSink", "arguments": {"key": "key", "name": "repeated", "topic": "kept.repeated", "output": "events", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "lockstep.markers"}}}, "format": 1, "sources": {"events": {"end": {"topics": {"kept.events": {"id": "4iJuu4dXRyeVJlplIXHTrQ", "leaders": {"0": 0, "1": 0}, "partitions": {"0": [2, 4], "1": [2, 4]}}}, "cluster": "7OanmDvTTKu0QiD3VbbO8A"}, "spec": {"type": "lockstep.sources:KafkaSource", "arguments": {"end": null, "key": "string", "group": "kept", "start": "earliest", "value": "string", "settle": 60.0, "topics": ["kept.events"], "headers": false, "pattern": null, "registry": null, "subjects": [], "connection": "kafka", "key_schema": null, "accept_loss": [], "by_interval": false, "offset_reset": "none", "value_schema": null, "on_bad_records": "fail", "max_rows_per_epoch": null}}, "start": {"topics": {"kept.events": {"id": "4iJuu4dXRyeVJlplIXHTrQ", "leaders": {"0": 0, "1": 0}, "partitions": {"0": [0, 2], "1": [0, 2]}}}, "cluster": "7OanmDvTTKu0QiD3VbbO8A"}}}}', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3/events/epoch=2/197', 'f5b64deae31fb22e2b6f472a1495df1a9d3ceba62044485f69fe062b78cb2c5d', 'kept', '{"outputs": {"events": {"rows": 4, "bytes": 338, "files": 1, "digest": "d9e7913bd755b636351d00cc56a44ce4", "columns": "26ca518de9c156b5"}}, "sources": {"events": {"rows": 4, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-29 01:24:08.881942+00', '2026-11-29 01:24:09.988033+00', NULL, NULL, NULL, false, NULL, 0, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.execution VALUES (1, 'tables', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 01:20:03.97081+00');
INSERT INTO lockstep.execution VALUES (2, 'tables', 1, NULL, 1, 'stage', 'kept', '2026-11-29 01:20:04.038246+00');
INSERT INTO lockstep.execution VALUES (3, 'tables', 1, 'accounts', 1, 'prepare', 'kept', '2026-11-29 01:20:17.020428+00');
INSERT INTO lockstep.execution VALUES (4, 'tables', 1, 'entries', 1, 'prepare', 'kept', '2026-11-29 01:20:17.210257+00');
INSERT INTO lockstep.execution VALUES (5, 'tables', 1, 'careless', 1, 'prepare', 'kept', '2026-11-29 01:20:17.331265+00');
INSERT INTO lockstep.execution VALUES (6, 'tables', 1, 'http', 1, 'prepare', 'kept', '2026-11-29 01:20:17.429569+00');
INSERT INTO lockstep.execution VALUES (7, 'tables', 1, 'accounts', 1, 'publish', 'kept', '2026-11-29 01:20:17.583704+00');
INSERT INTO lockstep.execution VALUES (8, 'tables', 1, 'entries', 1, 'publish', 'kept', '2026-11-29 01:20:17.710293+00');
INSERT INTO lockstep.execution VALUES (9, 'tables', 1, 'careless', 1, 'publish', 'kept', '2026-11-29 01:20:17.813853+00');
INSERT INTO lockstep.execution VALUES (10, 'tables', 1, 'http', 1, 'publish', 'kept', '2026-11-29 01:20:17.883314+00');
INSERT INTO lockstep.execution VALUES (11, 'tables', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 01:20:18.422765+00');
INSERT INTO lockstep.execution VALUES (12, 'tables', 2, NULL, 11, 'stage', 'kept', '2026-11-29 01:20:18.504641+00');
INSERT INTO lockstep.execution VALUES (13, 'tables', 2, 'accounts', 11, 'prepare', 'kept', '2026-11-29 01:20:19.943708+00');
INSERT INTO lockstep.execution VALUES (14, 'tables', 2, 'entries', 11, 'prepare', 'kept', '2026-11-29 01:20:20.109658+00');
INSERT INTO lockstep.execution VALUES (15, 'tables', 2, 'careless', 11, 'prepare', 'kept', '2026-11-29 01:20:20.259443+00');
INSERT INTO lockstep.execution VALUES (16, 'tables', 2, 'http', 11, 'prepare', 'kept', '2026-11-29 01:20:20.423991+00');
INSERT INTO lockstep.execution VALUES (17, 'tables', 2, 'accounts', 11, 'publish', 'kept', '2026-11-29 01:20:20.546001+00');
INSERT INTO lockstep.execution VALUES (18, 'tables', 2, 'careless', 11, 'publish', 'kept', '2026-11-29 01:20:20.667374+00');
INSERT INTO lockstep.execution VALUES (19, 'tables', 3, NULL, NULL, 'begin', 'kept', '2026-11-29 01:20:21.248375+00');
INSERT INTO lockstep.execution VALUES (20, 'tables', 3, NULL, 19, 'stage', 'kept', '2026-11-29 01:20:21.35468+00');
INSERT INTO lockstep.execution VALUES (21, 'tables', 3, 'accounts', 19, 'prepare', 'kept', '2026-11-29 01:20:22.337178+00');
INSERT INTO lockstep.execution VALUES (22, 'tables', 3, 'entries', 19, 'prepare', 'kept', '2026-11-29 01:20:22.464291+00');
INSERT INTO lockstep.execution VALUES (23, 'tables', 3, 'careless', 19, 'prepare', 'kept', '2026-11-29 01:20:22.596175+00');
INSERT INTO lockstep.execution VALUES (24, 'tables', 3, 'http', 19, 'prepare', 'kept', '2026-11-29 01:20:22.72118+00');
INSERT INTO lockstep.execution VALUES (25, 'orders', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 01:20:23.012816+00');
INSERT INTO lockstep.execution VALUES (26, 'orders', 1, NULL, 25, 'stage', 'kept', '2026-11-29 01:20:23.129863+00');
INSERT INTO lockstep.execution VALUES (27, 'orders', 1, 'warehouse', 25, 'prepare', 'kept', '2026-11-29 01:20:32.705335+00');
INSERT INTO lockstep.execution VALUES (28, 'orders', 1, 'by_hour', 25, 'prepare', 'kept', '2026-11-29 01:20:32.945861+00');
INSERT INTO lockstep.execution VALUES (29, 'orders', 1, 'refunds', 25, 'prepare', 'kept', '2026-11-29 01:20:33.057702+00');
INSERT INTO lockstep.execution VALUES (30, 'orders', 1, 'warehouse', 25, 'publish', 'kept', '2026-11-29 01:20:33.158908+00');
INSERT INTO lockstep.execution VALUES (31, 'orders', 1, 'by_hour', 25, 'publish', 'kept', '2026-11-29 01:20:33.226185+00');
INSERT INTO lockstep.execution VALUES (32, 'orders', 1, 'refunds', 25, 'publish', 'kept', '2026-11-29 01:20:33.270059+00');
INSERT INTO lockstep.execution VALUES (33, 'orders', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 01:20:33.574863+00');
INSERT INTO lockstep.execution VALUES (34, 'orders', 2, NULL, 33, 'stage', 'kept', '2026-11-29 01:20:33.661597+00');
INSERT INTO lockstep.execution VALUES (35, 'orders', 2, 'warehouse', 33, 'prepare', 'kept', '2026-11-29 01:20:37.730076+00');
INSERT INTO lockstep.execution VALUES (36, 'orders', 2, 'by_hour', 33, 'prepare', 'kept', '2026-11-29 01:20:37.844554+00');
INSERT INTO lockstep.execution VALUES (37, 'orders', 2, 'refunds', 33, 'prepare', 'kept', '2026-11-29 01:20:37.948015+00');
INSERT INTO lockstep.execution VALUES (38, 'orders', 2, 'warehouse', 33, 'publish', 'kept', '2026-11-29 01:20:38.08646+00');
INSERT INTO lockstep.execution VALUES (39, 'orders', 2, 'by_hour', 33, 'publish', 'kept', '2026-11-29 01:20:38.229911+00');
INSERT INTO lockstep.execution VALUES (40, 'orders', 2, 'refunds', 33, 'publish', 'kept', '2026-11-29 01:20:38.271576+00');
INSERT INTO lockstep.execution VALUES (41, 'orders', 3, NULL, NULL, 'begin', 'kept', '2026-11-29 01:20:38.442077+00');
INSERT INTO lockstep.execution VALUES (42, 'orders', 3, NULL, 41, 'stage', 'kept', '2026-11-29 01:20:38.510178+00');
INSERT INTO lockstep.execution VALUES (43, 'orders', 3, 'warehouse', 41, 'prepare', 'kept', '2026-11-29 01:20:42.616561+00');
INSERT INTO lockstep.execution VALUES (44, 'orders', 3, 'by_hour', 41, 'prepare', 'kept', '2026-11-29 01:20:42.801432+00');
INSERT INTO lockstep.execution VALUES (45, 'orders', 3, 'refunds', 41, 'prepare', 'kept', '2026-11-29 01:20:42.874956+00');
INSERT INTO lockstep.execution VALUES (46, 'orders', 3, 'warehouse', 41, 'publish', 'kept', '2026-11-29 01:20:42.986222+00');
INSERT INTO lockstep.execution VALUES (47, 'orders', 3, 'refunds', 41, 'publish', 'kept', '2026-11-29 01:20:43.077663+00');
INSERT INTO lockstep.execution VALUES (48, 'orders', 4, NULL, NULL, 'begin', 'kept', '2026-11-29 01:20:43.253756+00');
INSERT INTO lockstep.execution VALUES (49, 'orders', 4, NULL, 48, 'stage', 'kept', '2026-11-29 01:20:43.325989+00');
INSERT INTO lockstep.execution VALUES (50, 'orders', 4, 'warehouse', 48, 'prepare', 'kept', '2026-11-29 01:20:46.125686+00');
INSERT INTO lockstep.execution VALUES (51, 'orders', 4, 'by_hour', 48, 'prepare', 'kept', '2026-11-29 01:20:46.318732+00');
INSERT INTO lockstep.execution VALUES (52, 'orders', 4, 'refunds', 48, 'prepare', 'kept', '2026-11-29 01:20:46.415441+00');
INSERT INTO lockstep.execution VALUES (53, 'orders', 5, NULL, NULL, 'begin', 'kept', '2026-11-29 01:20:46.803215+00');
INSERT INTO lockstep.execution VALUES (54, 'orders', 5, NULL, 53, 'stage', 'kept', '2026-11-29 01:20:46.893362+00');
INSERT INTO lockstep.execution VALUES (55, 'orders', 5, 'warehouse', 53, 'prepare', 'kept', '2026-11-29 01:20:50.60831+00');
INSERT INTO lockstep.execution VALUES (56, 'orders', 5, 'by_hour', 53, 'prepare', 'kept', '2026-11-29 01:20:50.765872+00');
INSERT INTO lockstep.execution VALUES (57, 'orders', 5, 'refunds', 53, 'prepare', 'kept', '2026-11-29 01:20:50.849883+00');
INSERT INTO lockstep.execution VALUES (58, 'orders', 5, NULL, 53, 'operator', 'kept', '2026-11-29 01:20:51.067909+00');
INSERT INTO lockstep.execution VALUES (59, 'orders', 6, NULL, NULL, 'begin', 'kept', '2026-11-29 01:20:53.933172+00');
INSERT INTO lockstep.execution VALUES (60, 'orders', 6, NULL, 59, 'stage', 'kept', '2026-11-29 01:20:54.017853+00');
INSERT INTO lockstep.execution VALUES (61, 'orders', 6, 'warehouse', 59, 'prepare', 'kept', '2026-11-29 01:20:57.800386+00');
INSERT INTO lockstep.execution VALUES (62, 'orders', 6, 'by_hour', 59, 'prepare', 'kept', '2026-11-29 01:20:58.074643+00');
INSERT INTO lockstep.execution VALUES (63, 'orders', 6, 'refunds', 59, 'prepare', 'kept', '2026-11-29 01:20:58.332715+00');
INSERT INTO lockstep.execution VALUES (64, 'orders', 6, 'warehouse', 59, 'publish', 'kept', '2026-11-29 01:20:58.582094+00');
INSERT INTO lockstep.execution VALUES (65, 'orders', 6, 'by_hour', 59, 'publish', 'kept', '2026-11-29 01:20:58.616445+00');
INSERT INTO lockstep.execution VALUES (66, 'orders', 7, NULL, NULL, 'begin', 'kept', '2026-11-29 01:20:58.89665+00');
INSERT INTO lockstep.execution VALUES (67, 'orders', 7, NULL, 66, 'stage', 'kept', '2026-11-29 01:20:59.065425+00');
INSERT INTO lockstep.execution VALUES (68, 'orders', 7, 'warehouse', 66, 'prepare', 'kept', '2026-11-29 01:21:03.162954+00');
INSERT INTO lockstep.execution VALUES (69, 'orders', 7, 'by_hour', 66, 'prepare', 'kept', '2026-11-29 01:21:03.589851+00');
INSERT INTO lockstep.execution VALUES (70, 'orders', 7, 'refunds', 66, 'prepare', 'kept', '2026-11-29 01:21:03.659892+00');
INSERT INTO lockstep.execution VALUES (71, 'orders', 8, NULL, NULL, 'begin', 'kept', '2026-11-29 01:21:04.072499+00');
INSERT INTO lockstep.execution VALUES (72, 'orders', 8, NULL, 71, 'stage', 'kept', '2026-11-29 01:21:04.197675+00');
INSERT INTO lockstep.execution VALUES (73, 'orders', 8, 'warehouse', 71, 'prepare', 'kept', '2026-11-29 01:21:05.75359+00');
INSERT INTO lockstep.execution VALUES (74, 'orders', 9, NULL, NULL, 'begin', 'kept', '2026-11-29 01:21:06.092216+00');
INSERT INTO lockstep.execution VALUES (75, 'orders', 9, NULL, 74, 'stage', 'kept', '2026-11-29 01:21:06.185871+00');
INSERT INTO lockstep.execution VALUES (76, 'orders', 10, NULL, NULL, 'begin', 'kept', '2026-11-29 01:21:07.857764+00');
INSERT INTO lockstep.execution VALUES (77, 'orders', 11, NULL, NULL, 'begin', 'kept', '2026-11-29 01:21:08.163629+00');
INSERT INTO lockstep.execution VALUES (78, 'orders', 11, NULL, NULL, 'operator', 'kept', '2026-11-29 01:21:08.253867+00');
INSERT INTO lockstep.execution VALUES (79, 'customers', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 01:21:08.459807+00');
INSERT INTO lockstep.execution VALUES (80, 'customers', 1, NULL, 79, 'stage', 'kept', '2026-11-29 01:21:08.529854+00');
INSERT INTO lockstep.execution VALUES (81, 'customers', 1, 'totals', 79, 'prepare', 'kept', '2026-11-29 01:21:15.071397+00');
INSERT INTO lockstep.execution VALUES (82, 'customers', 1, 'changes', 79, 'prepare', 'kept', '2026-11-29 01:21:15.237914+00');
INSERT INTO lockstep.execution VALUES (83, 'customers', 1, 'totals', 79, 'publish', 'kept', '2026-11-29 01:21:15.325369+00');
INSERT INTO lockstep.execution VALUES (84, 'customers', 1, 'changes', 79, 'publish', 'kept', '2026-11-29 01:21:15.437233+00');
INSERT INTO lockstep.execution VALUES (85, 'customers', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 01:21:15.642658+00');
INSERT INTO lockstep.execution VALUES (86, 'customers', 2, NULL, 85, 'stage', 'kept', '2026-11-29 01:21:15.768187+00');
INSERT INTO lockstep.execution VALUES (87, 'customers', 2, 'totals', 85, 'prepare', 'kept', '2026-11-29 01:21:19.785274+00');
INSERT INTO lockstep.execution VALUES (88, 'customers', 2, 'changes', 85, 'prepare', 'kept', '2026-11-29 01:21:20.050021+00');
INSERT INTO lockstep.execution VALUES (89, 'customers', 2, 'totals', 85, 'publish', 'kept', '2026-11-29 01:21:20.317249+00');
INSERT INTO lockstep.execution VALUES (90, 'customers', 2, 'changes', 85, 'publish', 'kept', '2026-11-29 01:21:20.520953+00');
INSERT INTO lockstep.execution VALUES (91, 'customers', 3, NULL, NULL, 'begin', 'kept', '2026-11-29 01:21:20.757565+00');
INSERT INTO lockstep.execution VALUES (92, 'customers', 3, NULL, 91, 'stage', 'kept', '2026-11-29 01:21:20.854367+00');
INSERT INTO lockstep.execution VALUES (93, 'customers', 3, 'totals', 91, 'prepare', 'kept', '2026-11-29 01:21:24.142354+00');
INSERT INTO lockstep.execution VALUES (94, 'customers', 3, 'changes', 91, 'prepare', 'kept', '2026-11-29 01:21:24.296928+00');
INSERT INTO lockstep.execution VALUES (95, 'customers', 3, 'totals', 91, 'publish', 'kept', '2026-11-29 01:21:24.44619+00');
INSERT INTO lockstep.execution VALUES (96, 'customers', 4, NULL, NULL, 'begin', 'kept', '2026-11-29 01:21:24.667768+00');
INSERT INTO lockstep.execution VALUES (97, 'customers', 4, NULL, 96, 'stage', 'kept', '2026-11-29 01:21:24.698094+00');
INSERT INTO lockstep.execution VALUES (98, 'customers', 4, 'totals', 96, 'prepare', 'kept', '2026-11-29 01:21:27.984642+00');
INSERT INTO lockstep.execution VALUES (99, 'customers', 4, 'changes', 96, 'prepare', 'kept', '2026-11-29 01:21:28.150156+00');
INSERT INTO lockstep.execution VALUES (100, 'customers', 5, NULL, NULL, 'begin', 'kept', '2026-11-29 01:21:28.300456+00');
INSERT INTO lockstep.execution VALUES (101, 'customers', 5, NULL, 100, 'stage', 'kept', '2026-11-29 01:21:28.359483+00');
INSERT INTO lockstep.execution VALUES (102, 'lines', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 01:21:31.281886+00');
INSERT INTO lockstep.execution VALUES (103, 'lines', 1, NULL, 102, 'stage', 'kept', '2026-11-29 01:21:31.416618+00');
INSERT INTO lockstep.execution VALUES (104, 'lines', 1, 'stdout', 102, 'prepare', 'kept', '2026-11-29 01:21:39.755152+00');
INSERT INTO lockstep.execution VALUES (105, 'lines', 1, 'tcp', 102, 'prepare', 'kept', '2026-11-29 01:21:39.82665+00');
INSERT INTO lockstep.execution VALUES (106, 'lines', 1, 'stdout', 102, 'publish', 'kept', '2026-11-29 01:21:39.942028+00');
INSERT INTO lockstep.execution VALUES (107, 'lines', 1, 'tcp', 102, 'publish', 'kept', '2026-11-29 01:21:39.970901+00');
INSERT INTO lockstep.execution VALUES (108, 'lines', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 01:21:40.155371+00');
INSERT INTO lockstep.execution VALUES (109, 'lines', 2, NULL, 108, 'stage', 'kept', '2026-11-29 01:21:40.221523+00');
INSERT INTO lockstep.execution VALUES (110, 'lines', 2, 'stdout', 108, 'prepare', 'kept', '2026-11-29 01:21:41.35173+00');
INSERT INTO lockstep.execution VALUES (111, 'lines', 2, 'tcp', 108, 'prepare', 'kept', '2026-11-29 01:21:41.407726+00');
INSERT INTO lockstep.execution VALUES (112, 'lines', 2, 'stdout', 108, 'publish', 'kept', '2026-11-29 01:21:41.560438+00');
INSERT INTO lockstep.execution VALUES (113, 'lines', 3, NULL, NULL, 'begin', 'kept', '2026-11-29 01:21:41.692725+00');
INSERT INTO lockstep.execution VALUES (114, 'lines', 3, NULL, 113, 'stage', 'kept', '2026-11-29 01:21:41.766939+00');
INSERT INTO lockstep.execution VALUES (115, 'lines', 3, 'stdout', 113, 'prepare', 'kept', '2026-11-29 01:21:42.744082+00');
INSERT INTO lockstep.execution VALUES (116, 'lines', 3, 'tcp', 113, 'prepare', 'kept', '2026-11-29 01:21:42.777732+00');
INSERT INTO lockstep.execution VALUES (117, 'numbers', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 01:21:43.022371+00');
INSERT INTO lockstep.execution VALUES (118, 'numbers', 1, NULL, 117, 'stage', 'kept', '2026-11-29 01:21:43.108007+00');
INSERT INTO lockstep.execution VALUES (119, 'numbers', 1, 'shared', 117, 'prepare', 'kept', '2026-11-29 01:22:10.375997+00');
INSERT INTO lockstep.execution VALUES (120, 'numbers', 1, 'newest', 117, 'prepare', 'kept', '2026-11-29 01:22:10.494243+00');
INSERT INTO lockstep.execution VALUES (121, 'numbers', 1, 'by_parity', 117, 'prepare', 'kept', '2026-11-29 01:22:10.605055+00');
INSERT INTO lockstep.execution VALUES (122, 'numbers', 1, 'words', 117, 'prepare', 'kept', '2026-11-29 01:22:10.664362+00');
INSERT INTO lockstep.execution VALUES (123, 'numbers', 1, 'shared', 117, 'publish', 'kept', '2026-11-29 01:22:10.772931+00');
INSERT INTO lockstep.execution VALUES (124, 'numbers', 1, 'newest', 117, 'publish', 'kept', '2026-11-29 01:22:10.8229+00');
INSERT INTO lockstep.execution VALUES (125, 'numbers', 1, 'by_parity', 117, 'publish', 'kept', '2026-11-29 01:22:10.914629+00');
INSERT INTO lockstep.execution VALUES (126, 'numbers', 1, 'words', 117, 'publish', 'kept', '2026-11-29 01:22:10.954644+00');
INSERT INTO lockstep.execution VALUES (127, 'numbers', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 01:22:11.269265+00');
INSERT INTO lockstep.execution VALUES (128, 'numbers', 2, NULL, 127, 'stage', 'kept', '2026-11-29 01:22:11.38243+00');
INSERT INTO lockstep.execution VALUES (129, 'numbers', 2, 'shared', 127, 'prepare', 'kept', '2026-11-29 01:22:37.509991+00');
INSERT INTO lockstep.execution VALUES (130, 'numbers', 2, 'newest', 127, 'prepare', 'kept', '2026-11-29 01:22:37.702573+00');
INSERT INTO lockstep.execution VALUES (131, 'numbers', 2, 'by_parity', 127, 'prepare', 'kept', '2026-11-29 01:22:37.88738+00');
INSERT INTO lockstep.execution VALUES (132, 'numbers', 2, 'words', 127, 'prepare', 'kept', '2026-11-29 01:22:38.007795+00');
INSERT INTO lockstep.execution VALUES (133, 'numbers', 2, 'shared', 127, 'publish', 'kept', '2026-11-29 01:22:38.162566+00');
INSERT INTO lockstep.execution VALUES (134, 'numbers', 2, 'newest', 127, 'publish', 'kept', '2026-11-29 01:22:38.261189+00');
INSERT INTO lockstep.execution VALUES (135, 'numbers', 2, 'by_parity', 127, 'publish', 'kept', '2026-11-29 01:22:38.447764+00');
INSERT INTO lockstep.execution VALUES (136, 'numbers', 2, 'words', 127, 'publish', 'kept', '2026-11-29 01:22:38.532+00');
INSERT INTO lockstep.execution VALUES (137, 'numbers', 3, NULL, NULL, 'begin', 'kept', '2026-11-29 01:22:39.135742+00');
INSERT INTO lockstep.execution VALUES (138, 'numbers', 3, NULL, 137, 'stage', 'kept', '2026-11-29 01:22:39.256378+00');
INSERT INTO lockstep.execution VALUES (139, 'numbers', 3, 'shared', 137, 'prepare', 'kept', '2026-11-29 01:23:00.992928+00');
INSERT INTO lockstep.execution VALUES (140, 'numbers', 3, 'newest', 137, 'prepare', 'kept', '2026-11-29 01:23:01.220805+00');
INSERT INTO lockstep.execution VALUES (141, 'numbers', 3, 'by_parity', 137, 'prepare', 'kept', '2026-11-29 01:23:01.362374+00');
INSERT INTO lockstep.execution VALUES (142, 'numbers', 3, 'words', 137, 'prepare', 'kept', '2026-11-29 01:23:01.453852+00');
INSERT INTO lockstep.execution VALUES (143, 'numbers', 4, NULL, NULL, 'begin', 'kept', '2026-11-29 01:23:02.036487+00');
INSERT INTO lockstep.execution VALUES (144, 'resumed', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 01:23:02.363547+00');
INSERT INTO lockstep.execution VALUES (145, 'resumed', 1, NULL, 144, 'stage', 'kept', '2026-11-29 01:23:02.447346+00');
INSERT INTO lockstep.execution VALUES (146, 'resumed', 1, 'shared', 144, 'prepare', 'kept', '2026-11-29 01:23:25.64589+00');
INSERT INTO lockstep.execution VALUES (147, 'resumed', 1, 'newest', 144, 'prepare', 'kept', '2026-11-29 01:23:25.788633+00');
INSERT INTO lockstep.execution VALUES (148, 'resumed', 1, 'by_parity', 144, 'prepare', 'kept', '2026-11-29 01:23:25.92566+00');
INSERT INTO lockstep.execution VALUES (149, 'resumed', 1, 'words', 144, 'prepare', 'kept', '2026-11-29 01:23:25.984897+00');
INSERT INTO lockstep.execution VALUES (150, 'resumed', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 01:23:26.350504+00');
INSERT INTO lockstep.execution VALUES (151, 'clicks', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 01:23:26.475449+00');
INSERT INTO lockstep.execution VALUES (152, 'clicks', 1, NULL, 151, 'stage', 'kept', '2026-11-29 01:23:26.520386+00');
INSERT INTO lockstep.execution VALUES (153, 'clicks', 1, 'hourly', 151, 'prepare', 'kept', '2026-11-29 01:23:29.781855+00');
INSERT INTO lockstep.execution VALUES (154, 'clicks', 1, 'late', 151, 'prepare', 'kept', '2026-11-29 01:23:29.964879+00');
INSERT INTO lockstep.execution VALUES (155, 'clicks', 1, 'hourly', 151, 'publish', 'kept', '2026-11-29 01:23:30.071293+00');
INSERT INTO lockstep.execution VALUES (156, 'clicks', 1, 'late', 151, 'publish', 'kept', '2026-11-29 01:23:30.095464+00');
INSERT INTO lockstep.execution VALUES (157, 'clicks', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 01:23:30.239059+00');
INSERT INTO lockstep.execution VALUES (158, 'clicks', 2, NULL, 157, 'stage', 'kept', '2026-11-29 01:23:30.283715+00');
INSERT INTO lockstep.execution VALUES (159, 'clicks', 2, 'hourly', 157, 'prepare', 'kept', '2026-11-29 01:23:31.708833+00');
INSERT INTO lockstep.execution VALUES (160, 'clicks', 2, 'late', 157, 'prepare', 'kept', '2026-11-29 01:23:31.810075+00');
INSERT INTO lockstep.execution VALUES (161, 'clicks', 2, 'hourly', 157, 'publish', 'kept', '2026-11-29 01:23:31.921212+00');
INSERT INTO lockstep.execution VALUES (162, 'clicks', 2, 'late', 157, 'publish', 'kept', '2026-11-29 01:23:31.958442+00');
INSERT INTO lockstep.execution VALUES (163, 'clicks', 3, NULL, NULL, 'begin', 'kept', '2026-11-29 01:23:32.031915+00');
INSERT INTO lockstep.execution VALUES (164, 'clicks', 3, NULL, 163, 'stage', 'kept', '2026-11-29 01:23:32.14578+00');
INSERT INTO lockstep.execution VALUES (165, 'clicks', 3, 'hourly', 163, 'prepare', 'kept', '2026-11-29 01:23:35.759282+00');
INSERT INTO lockstep.execution VALUES (166, 'clicks', 3, 'late', 163, 'prepare', 'kept', '2026-11-29 01:23:35.839888+00');
INSERT INTO lockstep.execution VALUES (167, 'maria_again', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 01:23:36.278854+00');
INSERT INTO lockstep.execution VALUES (168, 'maria_again', 1, NULL, 167, 'stage', 'kept', '2026-11-29 01:23:36.391327+00');
INSERT INTO lockstep.execution VALUES (169, 'maria_again', 1, 'repeated', 167, 'prepare', 'kept', '2026-11-29 01:23:41.280028+00');
INSERT INTO lockstep.execution VALUES (170, 'maria_again', 1, 'repeated', 167, 'publish', 'kept', '2026-11-29 01:23:41.589704+00');
INSERT INTO lockstep.execution VALUES (171, 'maria', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 01:23:41.871415+00');
INSERT INTO lockstep.execution VALUES (172, 'maria', 1, NULL, 171, 'stage', 'kept', '2026-11-29 01:23:41.923801+00');
INSERT INTO lockstep.execution VALUES (173, 'maria', 1, 'prepared', 171, 'prepare', 'kept', '2026-11-29 01:23:48.357939+00');
INSERT INTO lockstep.execution VALUES (174, 'maria', 1, 'newest', 171, 'prepare', 'kept', '2026-11-29 01:23:48.44706+00');
INSERT INTO lockstep.execution VALUES (175, 'maria', 1, 'prepared', 171, 'publish', 'kept', '2026-11-29 01:23:48.638577+00');
INSERT INTO lockstep.execution VALUES (176, 'maria', 1, 'newest', 171, 'publish', 'kept', '2026-11-29 01:23:48.669116+00');
INSERT INTO lockstep.execution VALUES (177, 'maria_again', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 01:23:49.401342+00');
INSERT INTO lockstep.execution VALUES (178, 'maria_again', 2, NULL, 177, 'stage', 'kept', '2026-11-29 01:23:49.535744+00');
INSERT INTO lockstep.execution VALUES (179, 'maria_again', 2, 'repeated', 177, 'prepare', 'kept', '2026-11-29 01:23:50.31278+00');
INSERT INTO lockstep.execution VALUES (180, 'maria', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 01:23:50.804663+00');
INSERT INTO lockstep.execution VALUES (181, 'maria', 2, NULL, 180, 'stage', 'kept', '2026-11-29 01:23:50.871806+00');
INSERT INTO lockstep.execution VALUES (182, 'maria', 2, 'prepared', 180, 'prepare', 'kept', '2026-11-29 01:23:51.797521+00');
INSERT INTO lockstep.execution VALUES (183, 'maria', 2, 'newest', 180, 'prepare', 'kept', '2026-11-29 01:23:51.965445+00');
INSERT INTO lockstep.execution VALUES (184, 'maria', 2, 'prepared', 180, 'publish', 'kept', '2026-11-29 01:23:52.152211+00');
INSERT INTO lockstep.execution VALUES (185, 'maria', 2, 'newest', 180, 'publish', 'kept', '2026-11-29 01:23:52.235587+00');
INSERT INTO lockstep.execution VALUES (186, 'maria', 3, NULL, NULL, 'begin', 'kept', '2026-11-29 01:23:52.39463+00');
INSERT INTO lockstep.execution VALUES (187, 'maria', 3, NULL, 186, 'stage', 'kept', '2026-11-29 01:23:52.437019+00');
INSERT INTO lockstep.execution VALUES (188, 'maria', 3, 'prepared', 186, 'prepare', 'kept', '2026-11-29 01:23:53.100532+00');
INSERT INTO lockstep.execution VALUES (189, 'maria', 3, 'newest', 186, 'prepare', 'kept', '2026-11-29 01:23:53.214625+00');
INSERT INTO lockstep.execution VALUES (190, 'events', 1, NULL, NULL, 'begin', 'kept', '2026-11-29 01:23:54.292093+00');
INSERT INTO lockstep.execution VALUES (191, 'events', 1, NULL, 190, 'stage', 'kept', '2026-11-29 01:23:54.35414+00');
INSERT INTO lockstep.execution VALUES (192, 'events', 1, 'once', 190, 'prepare', 'kept', '2026-11-29 01:24:06.693854+00');
INSERT INTO lockstep.execution VALUES (193, 'events', 1, 'repeated', 190, 'prepare', 'kept', '2026-11-29 01:24:06.796089+00');
INSERT INTO lockstep.execution VALUES (194, 'events', 1, 'once', 190, 'publish', 'kept', '2026-11-29 01:24:06.875013+00');
INSERT INTO lockstep.execution VALUES (195, 'events', 1, 'repeated', 190, 'publish', 'kept', '2026-11-29 01:24:08.117911+00');
INSERT INTO lockstep.execution VALUES (196, 'events', 2, NULL, NULL, 'begin', 'kept', '2026-11-29 01:24:08.881942+00');
INSERT INTO lockstep.execution VALUES (197, 'events', 2, NULL, 196, 'stage', 'kept', '2026-11-29 01:24:08.943584+00');
INSERT INTO lockstep.execution VALUES (198, 'events', 2, 'once', 196, 'prepare', 'kept', '2026-11-29 01:24:09.909563+00');
INSERT INTO lockstep.execution VALUES (199, 'events', 2, 'repeated', 196, 'prepare', 'kept', '2026-11-29 01:24:09.959537+00');
INSERT INTO lockstep.execution VALUES (200, 'events', 2, 'once', 196, 'publish', 'kept', '2026-11-29 01:24:10.087928+00');
INSERT INTO lockstep.execution VALUES (201, 'events', 3, NULL, NULL, 'begin', 'kept', '2026-11-29 01:24:10.299543+00');
INSERT INTO lockstep.execution VALUES (202, 'events', 3, NULL, 201, 'stage', 'kept', '2026-11-29 01:24:10.326939+00');
INSERT INTO lockstep.execution VALUES (203, 'events', 3, 'once', 201, 'prepare', 'kept', '2026-11-29 01:24:11.173159+00');
INSERT INTO lockstep.execution VALUES (204, 'events', 3, 'repeated', 201, 'prepare', 'kept', '2026-11-29 01:24:11.317494+00');
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
INSERT INTO lockstep.migration VALUES (1, '0001_schema', '2026-11-29 01:20:03.152007+00');
INSERT INTO lockstep.participant VALUES ('orders', 1, 'refunds', 'published', 29, 25, 29, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:refunds:1:29:1c93e86ecdd3', '0b96a76e-266d-49ac-a1a9-a0807d6e583e', '{"refunds": 1}', 'committed', '2026-11-29 01:20:33.294471+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 1, 'accounts', 'published', 3, 1, 3, NULL, '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"accounts": 3}', 'sent', '2026-11-29 01:20:17.679226+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 1, 'entries', 'published', 4, 1, 4, NULL, '093f6416-2fda-4ab1-af33-b1417da68ce7', '{"entries": 3}', 'sent', '2026-11-29 01:20:17.772996+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 1, 'careless', 'published', 5, 1, 5, NULL, '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"entries": 3}', 'sent', '2026-11-29 01:20:17.863715+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 1, 'http', 'published', 6, 1, 6, NULL, 'b233b852-fe1e-422f-b65d-4f9fd8f8a0a2', '{"entries": 3}', 'sent', '2026-11-29 01:20:17.929098+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 3, 'refunds', 'published', 45, 41, 45, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:refunds:3:45:93d1c66f59c7', '0b96a76e-266d-49ac-a1a9-a0807d6e583e', '{"refunds": 1}', 'committed', '2026-11-29 01:20:43.109983+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 2, 'entries', 'prepared', 14, 11, 14, NULL, '093f6416-2fda-4ab1-af33-b1417da68ce7', '{"entries": 3}', NULL, '2026-11-29 01:20:20.224716+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 2, 'http', 'prepared', 16, 11, 16, NULL, 'b233b852-fe1e-422f-b65d-4f9fd8f8a0a2', '{"entries": 3}', NULL, '2026-11-29 01:20:20.441732+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 2, 'accounts', 'published', 13, 11, 13, NULL, '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"accounts": 3}', 'sent', '2026-11-29 01:20:20.613627+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 2, 'careless', 'published', 15, 11, 15, NULL, '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"entries": 3}', 'sent', '2026-11-29 01:20:20.736628+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 3, 'accounts', 'prepared', 21, 19, 21, NULL, '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"accounts": 3}', NULL, '2026-11-29 01:20:22.418483+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 3, 'entries', 'prepared', 22, 19, 22, NULL, '093f6416-2fda-4ab1-af33-b1417da68ce7', '{"entries": 3}', NULL, '2026-11-29 01:20:22.554582+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 2, 'warehouse', 'published', 35, 33, 35, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:warehouse:2:35:288472c37b77', '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"orders": 4, "refunds": 1}', 'committed', '2026-11-29 01:20:38.187183+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 3, 'careless', 'prepared', 23, 19, 23, NULL, '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"entries": 3}', NULL, '2026-11-29 01:20:22.689648+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 2, 'by_hour', 'published', 36, 33, 36, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:by_hour:2:36:288472c37b77', 'a56b8563-a229-4b5c-ac9d-0717a5f19cf0', '{"orders": 4}', 'committed', '2026-11-29 01:20:38.252543+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('tables', 3, 'http', 'prepared', 24, 19, 24, NULL, 'b233b852-fe1e-422f-b65d-4f9fd8f8a0a2', '{"entries": 3}', NULL, '2026-11-29 01:20:22.738487+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 2, 'refunds', 'published', 37, 33, 37, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:refunds:2:37:288472c37b77', '0b96a76e-266d-49ac-a1a9-a0807d6e583e', '{"refunds": 1}', 'committed', '2026-11-29 01:20:38.295025+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 1, 'warehouse', 'published', 27, 25, 27, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:warehouse:1:27:1c93e86ecdd3', '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"orders": 4, "refunds": 1}', 'committed', '2026-11-29 01:20:33.189793+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 1, 'by_hour', 'published', 28, 25, 28, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:by_hour:1:28:1c93e86ecdd3', 'a56b8563-a229-4b5c-ac9d-0717a5f19cf0', '{"orders": 4}', 'committed', '2026-11-29 01:20:33.24906+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 3, 'by_hour', 'prepared', 44, 41, 44, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:by_hour:3:44:93d1c66f59c7', 'a56b8563-a229-4b5c-ac9d-0717a5f19cf0', '{"orders": 4}', NULL, '2026-11-29 01:20:42.846787+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 4, 'warehouse', 'prepared', 50, 48, 50, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:warehouse:4:50:913adff5eb18', '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"orders": 4, "refunds": 1}', NULL, '2026-11-29 01:20:46.274299+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 3, 'warehouse', 'published', 43, 41, 43, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:warehouse:3:43:93d1c66f59c7', '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"orders": 4, "refunds": 1}', 'committed', '2026-11-29 01:20:43.030728+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 5, 'by_hour', 'prepared', 56, 53, 56, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:by_hour:5:56:6d709eb7bc50', 'a56b8563-a229-4b5c-ac9d-0717a5f19cf0', '{"orders": 4}', NULL, '2026-11-29 01:20:50.80628+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 4, 'by_hour', 'prepared', 51, 48, 51, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:by_hour:4:51:913adff5eb18', 'a56b8563-a229-4b5c-ac9d-0717a5f19cf0', '{"orders": 4}', NULL, '2026-11-29 01:20:46.379895+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 6, 'by_hour', 'prepared', 62, 59, 62, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:by_hour:6:62:38ed5563f232', 'a56b8563-a229-4b5c-ac9d-0717a5f19cf0', '{"orders": 4}', NULL, '2026-11-29 01:20:58.262537+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 4, 'refunds', 'prepared', 52, 48, 52, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:refunds:4:52:913adff5eb18', '0b96a76e-266d-49ac-a1a9-a0807d6e583e', '{"refunds": 1}', NULL, '2026-11-29 01:20:46.458518+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 5, 'refunds', 'prepared', 57, 53, 57, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:refunds:5:57:6d709eb7bc50', '0b96a76e-266d-49ac-a1a9-a0807d6e583e', '{"refunds": 1}', NULL, '2026-11-29 01:20:50.918273+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 5, 'warehouse', 'prepared', 55, 53, 55, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:warehouse:5:55:6d709eb7bc50', '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"orders": 4, "refunds": 1}', NULL, '2026-11-29 01:20:50.722247+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 6, 'refunds', 'prepared', 63, 59, 63, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:refunds:6:63:38ed5563f232', '0b96a76e-266d-49ac-a1a9-a0807d6e583e', '{"refunds": 1}', NULL, '2026-11-29 01:20:58.438718+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 6, 'warehouse', 'prepared', 61, 59, 61, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:warehouse:6:61:38ed5563f232', '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"orders": 4, "refunds": 1}', NULL, '2026-11-29 01:20:58.016458+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 7, 'warehouse', 'prepared', 68, 66, 68, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:warehouse:7:68:8011fe8bc9d5', '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"orders": 4, "refunds": 1}', NULL, '2026-11-29 01:21:03.537863+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 7, 'refunds', 'prepared', 70, 66, 70, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:refunds:7:70:8011fe8bc9d5', '0b96a76e-266d-49ac-a1a9-a0807d6e583e', '{"refunds": 1}', NULL, '2026-11-29 01:21:03.714966+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 7, 'by_hour', 'prepared', 69, 66, 69, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:by_hour:7:69:8011fe8bc9d5', 'a56b8563-a229-4b5c-ac9d-0717a5f19cf0', '{"orders": 4}', NULL, '2026-11-29 01:21:03.637933+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 8, 'by_hour', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:21:04.072499+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 8, 'refunds', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:21:04.072499+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('lines', 1, 'stdout', 'published', 104, 102, 104, NULL, 'b2eab403-0ca4-4929-9628-962b08f921d0', '{"lines": 3}', 'sent', '2026-11-29 01:21:39.950734+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 8, 'warehouse', 'prepared', 73, 71, 73, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:orders:warehouse:8:73:44baec767d51', '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"orders": 4, "refunds": 1}', NULL, '2026-11-29 01:21:05.860019+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 9, 'warehouse', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:21:06.092216+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 9, 'by_hour', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:21:06.092216+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 9, 'refunds', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:21:06.092216+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 10, 'warehouse', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:21:07.857764+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 10, 'by_hour', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:21:07.857764+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 10, 'refunds', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:21:07.857764+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 11, 'warehouse', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:21:08.163629+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 11, 'by_hour', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:21:08.163629+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('orders', 11, 'refunds', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:21:08.163629+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('lines', 1, 'tcp', 'published', 105, 102, 105, NULL, 'b2eab403-0ca4-4929-9628-962b08f921d0', '{"lines": 3}', 'sent', '2026-11-29 01:21:39.982429+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 1, 'totals', 'published', 81, 79, 81, NULL, '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"totals": 3}', 'sent', '2026-11-29 01:21:15.417641+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 1, 'changes', 'published', 82, 79, 82, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:customers:changes:1:82:4d65e4ad4894', '3034f8f7-3ad0-4556-a68c-41f8c8b44f8a', '{"totals": 3}', 'committed', '2026-11-29 01:21:15.45287+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 1, 'shared', 'published', 119, 117, 119, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:numbers:shared:1:119:bd912a32fed7', '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"numbers": 10}', 'committed', '2026-11-29 01:22:10.799763+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 1, 'newest', 'published', 120, 117, 120, NULL, '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"sums": 2}', 'sent', '2026-11-29 01:22:10.890711+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 1, 'by_parity', 'published', 121, 117, 121, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:numbers:by_parity:1:121:bd912a32fed7', 'b6276c86-7b13-4195-9cc4-249d5c2b6456', '{"numbers": 10}', 'committed', '2026-11-29 01:22:10.942535+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 1, 'words', 'published', 122, 117, 122, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:numbers:words:1:122:bd912a32fed7', '75c8630d-ab96-491f-862b-d042e38822bd', '{"words": 10}', 'committed', '2026-11-29 01:22:10.974729+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 2, 'totals', 'published', 87, 85, 87, NULL, '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"totals": 2}', 'sent', '2026-11-29 01:21:20.477786+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 2, 'changes', 'published', 88, 85, 88, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:customers:changes:2:88:c3ac90d3ae3d', '3034f8f7-3ad0-4556-a68c-41f8c8b44f8a', '{"totals": 2}', 'committed', '2026-11-29 01:21:20.548203+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 2, 'shared', 'published', 129, 127, 129, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:numbers:shared:2:129:7ae52751a453', '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"numbers": 10}', 'committed', '2026-11-29 01:22:38.223108+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 3, 'changes', 'prepared', 94, 91, 94, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:customers:changes:3:94:17a3ddf5b69d', '3034f8f7-3ad0-4556-a68c-41f8c8b44f8a', '{"totals": 2}', NULL, '2026-11-29 01:21:24.328184+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 3, 'totals', 'published', 93, 91, 93, NULL, '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"totals": 2}', 'sent', '2026-11-29 01:21:24.542399+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 2, 'words', 'published', 132, 127, 132, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:numbers:words:2:132:7ae52751a453', '75c8630d-ab96-491f-862b-d042e38822bd', '{"words": 10}', 'committed', '2026-11-29 01:22:38.557241+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 2, 'newest', 'published', 130, 127, 130, NULL, '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"sums": 2}', 'sent', '2026-11-29 01:22:38.413188+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('lines', 2, 'tcp', 'prepared', 111, 108, 111, NULL, 'b2eab403-0ca4-4929-9628-962b08f921d0', '{"lines": 1}', NULL, '2026-11-29 01:21:41.423177+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 4, 'totals', 'prepared', 98, 96, 98, NULL, '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"totals": 2}', NULL, '2026-11-29 01:21:28.097751+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('lines', 2, 'stdout', 'published', 110, 108, 110, NULL, 'b2eab403-0ca4-4929-9628-962b08f921d0', '{"lines": 1}', 'sent', '2026-11-29 01:21:41.578168+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 4, 'changes', 'prepared', 99, 96, 99, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:customers:changes:4:99:55d382f28407', '3034f8f7-3ad0-4556-a68c-41f8c8b44f8a', '{"totals": 2}', NULL, '2026-11-29 01:21:28.177918+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 5, 'totals', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:21:28.300456+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('customers', 5, 'changes', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:21:28.300456+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 2, 'by_parity', 'published', 131, 127, 131, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:numbers:by_parity:2:131:7ae52751a453', 'b6276c86-7b13-4195-9cc4-249d5c2b6456', '{"numbers": 10}', 'committed', '2026-11-29 01:22:38.498423+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 4, 'shared', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:23:02.036487+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 3, 'shared', 'prepared', 139, 137, 139, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:numbers:shared:3:139:f49548fa7d90', '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"numbers": 10}', NULL, '2026-11-29 01:23:01.151529+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('lines', 3, 'stdout', 'prepared', 115, 113, 115, NULL, 'b2eab403-0ca4-4929-9628-962b08f921d0', '{"lines": 2}', NULL, '2026-11-29 01:21:42.755086+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 3, 'newest', 'prepared', 140, 137, 140, NULL, '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"sums": 2}', NULL, '2026-11-29 01:23:01.322201+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('lines', 3, 'tcp', 'prepared', 116, 113, 116, NULL, 'b2eab403-0ca4-4929-9628-962b08f921d0', '{"lines": 2}', NULL, '2026-11-29 01:21:42.786876+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 3, 'by_parity', 'prepared', 141, 137, 141, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:numbers:by_parity:3:141:f49548fa7d90', 'b6276c86-7b13-4195-9cc4-249d5c2b6456', '{"numbers": 10}', NULL, '2026-11-29 01:23:01.419661+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 3, 'words', 'prepared', 142, 137, 142, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:numbers:words:3:142:f49548fa7d90', '75c8630d-ab96-491f-862b-d042e38822bd', '{"words": 10}', NULL, '2026-11-29 01:23:01.526999+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 4, 'newest', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:23:02.036487+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 4, 'by_parity', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:23:02.036487+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('numbers', 4, 'words', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:23:02.036487+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('maria', 1, 'newest', 'published', 174, 171, 174, NULL, 'ee6af692-0c5d-4adf-a908-db1933619a50', '{"moves": 2}', 'sent', '2026-11-29 01:23:48.798094+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('resumed', 1, 'shared', 'prepared', 146, 144, 146, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:resumed:shared:1:146:212314066e1d', '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"numbers": 10}', NULL, '2026-11-29 01:23:25.759338+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('resumed', 1, 'newest', 'prepared', 147, 144, 147, NULL, '24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', '{"sums": 2}', NULL, '2026-11-29 01:23:25.894042+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('events', 1, 'repeated', 'published', 193, 190, 193, NULL, 'TWpAevbGS7Ksj8N69V3Ufg', '{"events": 4}', 'sent', '2026-11-29 01:24:08.156639+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('resumed', 1, 'by_parity', 'prepared', 148, 144, 148, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:resumed:by_parity:1:148:212314066e1d', 'be46f114-45c5-4a1e-bbcf-cce19702cad6', '{"numbers": 10}', NULL, '2026-11-29 01:23:25.96232+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('maria_again', 2, 'repeated', 'prepared', 179, 177, 179, NULL, 'ee6af692-0c5d-4adf-a908-db1933619a50', '{"moves": 2}', NULL, '2026-11-29 01:23:50.383864+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('resumed', 1, 'words', 'prepared', 149, 144, 149, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:resumed:words:1:149:212314066e1d', '75c8630d-ab96-491f-862b-d042e38822bd', '{"words": 10}', NULL, '2026-11-29 01:23:26.009532+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('resumed', 2, 'shared', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:23:26.350504+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('resumed', 2, 'newest', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:23:26.350504+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('resumed', 2, 'by_parity', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:23:26.350504+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('resumed', 2, 'words', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-29 01:23:26.350504+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('clicks', 1, 'hourly', 'published', 153, 151, 153, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:clicks:hourly:1:153:448b586fdc9b', '05a01087-a5f3-46a0-8890-1746c8bacc92', '{"hourly": 1}', 'committed', '2026-11-29 01:23:30.079357+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('clicks', 1, 'late', 'published', 154, 151, 154, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:clicks:late:1:154:448b586fdc9b', 'd80dc698-997f-42be-aa23-c2da53afd61d', '{"late": 0}', 'committed', '2026-11-29 01:23:30.113858+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('clicks', 2, 'hourly', 'published', 159, 157, 159, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:clicks:hourly:2:159:bbf01027b5c0', '05a01087-a5f3-46a0-8890-1746c8bacc92', '{"hourly": 2}', 'committed', '2026-11-29 01:23:31.937193+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('clicks', 2, 'late', 'published', 160, 157, 160, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:clicks:late:2:160:bbf01027b5c0', 'd80dc698-997f-42be-aa23-c2da53afd61d', '{"late": 0}', 'committed', '2026-11-29 01:23:31.982309+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('clicks', 3, 'hourly', 'prepared', 165, 163, 165, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:clicks:hourly:3:165:5a21194bfd0e', '05a01087-a5f3-46a0-8890-1746c8bacc92', '{"hourly": 1}', NULL, '2026-11-29 01:23:35.810386+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('clicks', 3, 'late', 'prepared', 166, 163, 166, 'lockstep:b22cd34d-3a52-4455-b37a-32d9ed73c0e3:clicks:late:3:166:5a21194bfd0e', 'd80dc698-997f-42be-aa23-c2da53afd61d', '{"late": 1}', NULL, '2026-11-29 01:23:35.874338+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('maria', 2, 'prepared', 'published', 182, 180, 182, 'lockstep:b3a3bcf4906ebfa47d51ec069a9df9c8:2:182:10b7d4fbdf69:maria.prepared', 'ee6af692-0c5d-4adf-a908-db1933619a50', '{"moves": 2}', 'committed', '2026-11-29 01:23:52.186991+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('maria_again', 1, 'repeated', 'published', 169, 167, 169, NULL, 'ee6af692-0c5d-4adf-a908-db1933619a50', '{"moves": 2}', 'sent', '2026-11-29 01:23:41.627353+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('maria', 2, 'newest', 'published', 183, 180, 183, NULL, 'ee6af692-0c5d-4adf-a908-db1933619a50', '{"moves": 2}', 'sent', '2026-11-29 01:23:52.262482+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('maria', 1, 'prepared', 'published', 173, 171, 173, 'lockstep:b3a3bcf4906ebfa47d51ec069a9df9c8:1:173:9676e6f5ed01:maria.prepared', 'ee6af692-0c5d-4adf-a908-db1933619a50', '{"moves": 2}', 'committed', '2026-11-29 01:23:48.65359+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('maria', 3, 'prepared', 'prepared', 188, 186, 188, 'lockstep:b3a3bcf4906ebfa47d51ec069a9df9c8:3:188:65510898ed0c:maria.prepared', 'ee6af692-0c5d-4adf-a908-db1933619a50', '{"moves": 2}', NULL, '2026-11-29 01:23:53.167106+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('maria', 3, 'newest', 'prepared', 189, 186, 189, NULL, 'ee6af692-0c5d-4adf-a908-db1933619a50', '{"moves": 2}', NULL, '2026-11-29 01:23:53.286715+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('events', 2, 'repeated', 'prepared', 199, 196, 199, NULL, 'TWpAevbGS7Ksj8N69V3Ufg', '{"events": 4}', NULL, '2026-11-29 01:24:09.97242+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('events', 1, 'once', 'published', 192, 190, 192, 'shards=2', 'lGsm5nvZTLimNJlcZBFb0w Gqr3K1FgTJy+9ZgacZwSDw', '{"events": 4}', 'sent', '2026-11-29 01:24:08.084134+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('events', 2, 'once', 'published', 198, 196, 198, 'shards=2', 'lGsm5nvZTLimNJlcZBFb0w Gqr3K1FgTJy+9ZgacZwSDw', '{"events": 4}', 'sent', '2026-11-29 01:24:10.16895+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('events', 3, 'once', 'prepared', 203, 201, 203, 'shards=2', 'lGsm5nvZTLimNJlcZBFb0w Gqr3K1FgTJy+9ZgacZwSDw', '{"events": 4}', NULL, '2026-11-29 01:24:11.246015+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.participant VALUES ('events', 3, 'repeated', 'prepared', 204, 201, 204, NULL, 'TWpAevbGS7Ksj8N69V3Ufg', '{"events": 4}', NULL, '2026-11-29 01:24:11.334673+00', false, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('tables', 'cursor', 3, '02:00:00', '2026-11-29 01:20:03.97081+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('orders', 'interval', 11, '02:00:00', '2026-11-29 01:20:23.012816+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('customers', 'cursor', 5, '02:00:00', '2026-11-29 01:21:08.459807+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('lines', 'cursor', 3, '02:00:00', '2026-11-29 01:21:31.281886+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('numbers', 'cursor', 4, '02:00:00', '2026-11-29 01:21:43.022371+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('resumed', 'cursor', 2, '02:00:00', '2026-11-29 01:23:02.189065+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('clicks', 'cursor', 3, '02:00:00', '2026-11-29 01:23:26.475449+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('maria_again', 'cursor', 2, '02:00:00', '2026-11-29 01:23:36.278854+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('maria', 'cursor', 3, '02:00:00', '2026-11-29 01:23:41.871415+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('events', 'cursor', 3, '02:00:00', '2026-11-29 01:23:54.292093+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO lockstep.planned_sink VALUES ('orders', 'by_hour', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}', DEFAULT, '2026-11-29 01:21:08.163629+00');
INSERT INTO lockstep.planned_sink VALUES ('orders', 'refunds', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}', DEFAULT, '2026-11-29 01:21:08.163629+00');
INSERT INTO lockstep.planned_sink VALUES ('tables', 'accounts', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "accounts", "create": true, "schema": "public", "shared": false, "tables": {"accounts": "public.accounts_copy"}, "protocol": "write_ahead", "validate": "schema", "committer": "postgres:warehouse", "guarantee": "at_least_once", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 01:20:21.248375+00');
INSERT INTO lockstep.planned_sink VALUES ('tables', 'entries', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "entries", "create": true, "schema": "proofs", "shared": false, "tables": {"entries": "public.entries_copy"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 01:20:21.248375+00');
INSERT INTO lockstep.planned_sink VALUES ('tables', 'careless', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "careless", "create": true, "schema": "public", "shared": false, "tables": {"entries": "public.entries_careless"}, "protocol": "write_ahead", "validate": "load", "guarantee": "none", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 01:20:21.248375+00');
INSERT INTO lockstep.planned_sink VALUES ('tables', 'http', '{"type": "lockstep.sinks:HttpSink", "arguments": {"name": "http", "output": "entries", "committer": "postgres:warehouse", "connection": "http", "key_header": "Authorization"}}', DEFAULT, '2026-11-29 01:20:21.248375+00');
INSERT INTO lockstep.planned_sink VALUES ('customers', 'changes', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_0_1_0.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}', DEFAULT, '2026-11-29 01:21:28.300456+00');
INSERT INTO lockstep.planned_sink VALUES ('numbers', 'newest', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.numbers_sums"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 01:23:02.036487+00');
INSERT INTO lockstep.planned_sink VALUES ('numbers', 'by_parity', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/numbers", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}', DEFAULT, '2026-11-29 01:23:02.036487+00');
INSERT INTO lockstep.planned_sink VALUES ('lines', 'stdout', '{"type": "lockstep.sinks:StdoutSink", "arguments": {"name": "stdout", "output": "lines", "committer": "@HOME@/sent"}}', DEFAULT, '2026-11-29 01:21:41.692725+00');
INSERT INTO lockstep.planned_sink VALUES ('lines', 'tcp', '{"type": "lockstep.sinks:TcpSink", "arguments": {"name": "tcp", "output": "lines", "committer": "@HOME@/sent", "connection": "tcp"}}', DEFAULT, '2026-11-29 01:21:41.692725+00');
INSERT INTO lockstep.planned_sink VALUES ('orders', 'warehouse', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 01:21:08.163629+00');
INSERT INTO lockstep.planned_sink VALUES ('numbers', 'words', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}', DEFAULT, '2026-11-29 01:23:02.036487+00');
INSERT INTO lockstep.planned_sink VALUES ('customers', 'totals', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 01:21:28.300456+00');
INSERT INTO lockstep.planned_sink VALUES ('resumed', 'shared', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 01:23:26.350504+00');
INSERT INTO lockstep.planned_sink VALUES ('resumed', 'newest', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.resumed_sums"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 01:23:26.350504+00');
INSERT INTO lockstep.planned_sink VALUES ('numbers', 'shared', '{"type": "lockstep.sinks:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 01:23:02.036487+00');
INSERT INTO lockstep.planned_sink VALUES ('resumed', 'by_parity', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/resumed", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}', DEFAULT, '2026-11-29 01:23:26.350504+00');
INSERT INTO lockstep.planned_sink VALUES ('resumed', 'words', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}', DEFAULT, '2026-11-29 01:23:26.350504+00');
INSERT INTO lockstep.planned_sink VALUES ('events', 'once', '{"type": "lockstep.sinks:KafkaSink", "arguments": {"key": "key", "name": "once", "topic": "kept.once", "output": "events", "guarantee": "exactly_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "kept.markers"}}', DEFAULT, '2026-11-29 01:24:10.299543+00');
INSERT INTO lockstep.planned_sink VALUES ('events', 'repeated', '{"type": "lockstep.sinks:KafkaSink", "arguments": {"key": "key", "name": "repeated", "topic": "kept.repeated", "output": "events", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "lockstep.markers"}}', DEFAULT, '2026-11-29 01:24:10.299543+00');
INSERT INTO lockstep.planned_sink VALUES ('clicks', 'hourly', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "hourly", "path": "@HOME@/out/hourly", "format": "json", "output": "hourly", "shared": false}}', DEFAULT, '2026-11-29 01:23:32.031915+00');
INSERT INTO lockstep.planned_sink VALUES ('clicks', 'late', '{"type": "lockstep.sinks:FileSink", "arguments": {"name": "late", "path": "@HOME@/out/late", "format": "parquet", "output": "late", "shared": false}}', DEFAULT, '2026-11-29 01:23:32.031915+00');
INSERT INTO lockstep.planned_sink VALUES ('maria_again', 'repeated', '{"type": "lockstep.sinks:MariaDbSink", "arguments": {"name": "repeated", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_repeated"}, "protocol": "write_ahead", "validate": "load", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "maria", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 01:23:49.401342+00');
INSERT INTO lockstep.planned_sink VALUES ('maria', 'prepared', '{"type": "lockstep.sinks:MariaDbSink", "arguments": {"name": "prepared", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_prepared"}, "protocol": "two_phase", "validate": "load", "connection": "maria", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 01:23:52.39463+00');
INSERT INTO lockstep.planned_sink VALUES ('maria', 'newest', '{"type": "lockstep.sinks:MariaDbSink", "arguments": {"key": {"moves": ["piece"]}, "mode": "upsert", "name": "newest", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_newest"}, "protocol": "write_ahead", "validate": "load", "connection": "maria", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-29 01:23:52.39463+00');
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
INSERT INTO lockstep.run VALUES ('kept', 'tables-1', 'tables', 1, 1, '2026-11-29 01:20:03.97081+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'tables-2', 'tables', 2, 11, '2026-11-29 01:20:18.422765+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'tables-3', 'tables', 3, 19, '2026-11-29 01:20:21.248375+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-0', 'orders', 1, 25, '2026-11-29 01:20:23.012816+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-1', 'orders', 2, 33, '2026-11-29 01:20:33.574863+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-2', 'orders', 3, 41, '2026-11-29 01:20:38.442077+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-3', 'orders', 4, 48, '2026-11-29 01:20:43.253756+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-4', 'orders', 5, 53, '2026-11-29 01:20:46.803215+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-5', 'orders', 6, 59, '2026-11-29 01:20:53.933172+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-6', 'orders', 7, 66, '2026-11-29 01:20:58.89665+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-7', 'orders', 8, 71, '2026-11-29 01:21:04.072499+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-8', 'orders', 9, 74, '2026-11-29 01:21:06.092216+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-9', 'orders', 10, 76, '2026-11-29 01:21:07.857764+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'orders-10', 'orders', 11, 77, '2026-11-29 01:21:08.163629+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'customers-1', 'customers', 1, 79, '2026-11-29 01:21:08.459807+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'customers-2', 'customers', 2, 85, '2026-11-29 01:21:15.642658+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'customers-3', 'customers', 3, 91, '2026-11-29 01:21:20.757565+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'customers-4', 'customers', 4, 96, '2026-11-29 01:21:24.667768+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'customers-5', 'customers', 5, 100, '2026-11-29 01:21:28.300456+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'lines-1', 'lines', 1, 102, '2026-11-29 01:21:31.281886+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'lines-2', 'lines', 2, 108, '2026-11-29 01:21:40.155371+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'lines-3', 'lines', 3, 113, '2026-11-29 01:21:41.692725+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'numbers-1', 'numbers', 1, 117, '2026-11-29 01:21:43.022371+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'numbers-2', 'numbers', 2, 127, '2026-11-29 01:22:11.269265+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'numbers-3', 'numbers', 3, 137, '2026-11-29 01:22:39.135742+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'numbers-4', 'numbers', 4, 143, '2026-11-29 01:23:02.036487+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'resumed-1', 'resumed', 1, 144, '2026-11-29 01:23:02.363547+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'resumed-2', 'resumed', 2, 150, '2026-11-29 01:23:26.350504+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'clicks-1', 'clicks', 1, 151, '2026-11-29 01:23:26.475449+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'clicks-2', 'clicks', 2, 157, '2026-11-29 01:23:30.239059+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'clicks-3', 'clicks', 3, 163, '2026-11-29 01:23:32.031915+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'maria_again-1', 'maria_again', 1, 167, '2026-11-29 01:23:36.278854+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'maria-1', 'maria', 1, 171, '2026-11-29 01:23:41.871415+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'maria_again-2', 'maria_again', 2, 177, '2026-11-29 01:23:49.401342+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'maria-2', 'maria', 2, 180, '2026-11-29 01:23:50.804663+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'maria-3', 'maria', 3, 186, '2026-11-29 01:23:52.39463+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'events-1', 'events', 1, 190, '2026-11-29 01:23:54.292093+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'events-2', 'events', 2, 196, '2026-11-29 01:24:08.881942+00', NULL);
INSERT INTO lockstep.run VALUES ('kept', 'events-3', 'events', 3, 201, '2026-11-29 01:24:10.299543+00', NULL);
INSERT INTO lockstep.savepoint VALUES ('resumed', '{"epoch": 2, "format": 1, "pipeline": "numbers", "versions": {"sums": {"key": ["parity"], "files": [{"path": "2-128-part-00000-48c5eb84-8beb-4ed6-9b55-63eeed7e3c89.zstd.parquet", "rows": 2, "bytes": 299, "epoch": 0, "token": 0, "bucket": 1, "digest": "309441ea088488bb5710a518612f05f2", "sha256": "c81a23de876c83438da5295abaa2c6031340af6495af3a32214ebd20c9ce9e5c", "earliest": null}], "schema": "parity INT, total BIGINT", "buckets": 2, "expires": null}}, "positions": {"numbers": {"end": {"next": 20}, "start": {"next": 10}}}, "deployment": "b22cd34d-3a52-4455-b37a-32d9ed73c0e3", "manifest_hash": "7ae52751a453a6a0c93012131fcf78de6c738bb74366dacb6f6e74102abb8faf"}', 'e7d58002f8658f908bd9d5e273b91ed6f10e649ff601459f1b66a5eca04cffa7', 'kept', '2026-11-29 01:23:02.219577+00');
INSERT INTO lockstep.setting_override OVERRIDING SYSTEM VALUE VALUES (1, 'orders', 'warehouse', '{"lock_timeout": 7.0}', 'kept', 'a slow day', '2026-11-29 01:21:08.34687+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (1, 'tables', 1, NULL, NULL, 'planned', 1, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:03.982416+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (2, 'tables', 1, 'accounts', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:03.987085+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (3, 'tables', 1, 'entries', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:03.988279+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (4, 'tables', 1, 'careless', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:03.988871+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (5, 'tables', 1, 'http', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:03.989473+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (6, 'tables', 1, NULL, 'planned', 'staged', 1, NULL, 'stage', 'kept', NULL, '2026-11-29 01:20:16.936866+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (7, 'tables', 1, 'accounts', 'pending', 'prepared', 1, 3, 'prepare', 'kept', NULL, '2026-11-29 01:20:17.1763+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (8, 'tables', 1, 'entries', 'pending', 'prepared', 1, 4, 'prepare', 'kept', NULL, '2026-11-29 01:20:17.313796+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (9, 'tables', 1, 'careless', 'pending', 'prepared', 1, 5, 'prepare', 'kept', NULL, '2026-11-29 01:20:17.400549+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (10, 'tables', 1, 'http', 'pending', 'prepared', 1, 6, 'prepare', 'kept', NULL, '2026-11-29 01:20:17.471989+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (11, 'tables', 1, NULL, 'staged', 'committed', 1, NULL, 'commit', 'kept', NULL, '2026-11-29 01:20:17.51323+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (12, 'tables', 1, 'accounts', 'prepared', 'published', 1, 3, 'publish', 'kept', NULL, '2026-11-29 01:20:17.688557+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (13, 'tables', 1, 'entries', 'prepared', 'published', 1, 4, 'publish', 'kept', NULL, '2026-11-29 01:20:17.777147+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (14, 'tables', 1, 'careless', 'prepared', 'published', 1, 5, 'publish', 'kept', NULL, '2026-11-29 01:20:17.866542+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (15, 'tables', 1, 'http', 'prepared', 'published', 1, 6, 'publish', 'kept', NULL, '2026-11-29 01:20:17.930557+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (16, 'tables', 1, NULL, 'committed', 'published', 1, NULL, 'publish', 'kept', NULL, '2026-11-29 01:20:17.93822+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (17, 'tables', 1, NULL, 'published', 'cleaned', 1, NULL, 'cleanup', 'kept', NULL, '2026-11-29 01:20:18.021299+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (18, 'tables', 2, NULL, NULL, 'planned', 11, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:18.444636+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (19, 'tables', 2, 'accounts', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:18.450336+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (20, 'tables', 2, 'entries', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:18.455457+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (21, 'tables', 2, 'careless', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:18.457404+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (22, 'tables', 2, 'http', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:18.45842+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (23, 'tables', 2, NULL, 'planned', 'staged', 11, NULL, 'stage', 'kept', NULL, '2026-11-29 01:20:19.816138+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (24, 'tables', 2, 'accounts', 'pending', 'prepared', 11, 13, 'prepare', 'kept', NULL, '2026-11-29 01:20:20.038366+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (25, 'tables', 2, 'entries', 'pending', 'prepared', 11, 14, 'prepare', 'kept', NULL, '2026-11-29 01:20:20.231787+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (26, 'tables', 2, 'careless', 'pending', 'prepared', 11, 15, 'prepare', 'kept', NULL, '2026-11-29 01:20:20.355492+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (27, 'tables', 2, 'http', 'pending', 'prepared', 11, 16, 'prepare', 'kept', NULL, '2026-11-29 01:20:20.443595+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (28, 'tables', 2, NULL, 'staged', 'committed', 11, NULL, 'commit', 'kept', NULL, '2026-11-29 01:20:20.485662+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (29, 'tables', 2, 'accounts', 'prepared', 'published', 11, 13, 'publish', 'kept', NULL, '2026-11-29 01:20:20.616568+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (30, 'tables', 2, 'careless', 'prepared', 'published', 11, 15, 'publish', 'kept', NULL, '2026-11-29 01:20:20.744151+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (31, 'tables', 3, NULL, NULL, 'planned', 19, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:21.264617+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (32, 'tables', 3, 'accounts', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:21.282846+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (33, 'tables', 3, 'entries', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:21.29054+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (34, 'tables', 3, 'careless', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:21.293305+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (35, 'tables', 3, 'http', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:21.299656+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (36, 'tables', 3, NULL, 'planned', 'staged', 19, NULL, 'stage', 'kept', NULL, '2026-11-29 01:20:22.23492+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (37, 'tables', 3, 'accounts', 'pending', 'prepared', 19, 21, 'prepare', 'kept', NULL, '2026-11-29 01:20:22.422318+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (38, 'tables', 3, 'entries', 'pending', 'prepared', 19, 22, 'prepare', 'kept', NULL, '2026-11-29 01:20:22.559342+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (39, 'tables', 3, 'careless', 'pending', 'prepared', 19, 23, 'prepare', 'kept', NULL, '2026-11-29 01:20:22.691259+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (40, 'tables', 3, 'http', 'pending', 'prepared', 19, 24, 'prepare', 'kept', NULL, '2026-11-29 01:20:22.739925+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (41, 'tables', 3, NULL, 'staged', 'committed', 19, NULL, 'commit', 'kept', NULL, '2026-11-29 01:20:22.780784+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (42, 'orders', 1, NULL, NULL, 'planned', 25, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:23.043587+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (43, 'orders', 1, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:23.05039+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (44, 'orders', 1, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:23.056204+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (45, 'orders', 1, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:23.057948+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (46, 'orders', 1, NULL, 'planned', 'staged', 25, NULL, 'stage', 'kept', NULL, '2026-11-29 01:20:32.639552+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (47, 'orders', 1, 'warehouse', 'pending', 'prepared', 25, 27, 'prepare', 'kept', NULL, '2026-11-29 01:20:32.881519+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (48, 'orders', 1, 'by_hour', 'pending', 'prepared', 25, 28, 'prepare', 'kept', NULL, '2026-11-29 01:20:33.023811+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (49, 'orders', 1, 'refunds', 'pending', 'prepared', 25, 29, 'prepare', 'kept', NULL, '2026-11-29 01:20:33.089058+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (50, 'orders', 1, NULL, 'staged', 'committed', 25, NULL, 'commit', 'kept', NULL, '2026-11-29 01:20:33.123921+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (51, 'orders', 1, 'warehouse', 'prepared', 'published', 25, 27, 'publish', 'kept', NULL, '2026-11-29 01:20:33.206606+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (52, 'orders', 1, 'by_hour', 'prepared', 'published', 25, 28, 'publish', 'kept', NULL, '2026-11-29 01:20:33.251793+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (53, 'orders', 1, 'refunds', 'prepared', 'published', 25, 29, 'publish', 'kept', NULL, '2026-11-29 01:20:33.301294+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (54, 'orders', 1, NULL, 'committed', 'published', 25, NULL, 'publish', 'kept', NULL, '2026-11-29 01:20:33.309058+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (55, 'orders', 1, NULL, 'published', 'cleaned', 25, NULL, 'cleanup', 'kept', NULL, '2026-11-29 01:20:33.401648+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (56, 'orders', 2, NULL, NULL, 'planned', 33, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:33.590045+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (57, 'orders', 2, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:33.594972+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (58, 'orders', 2, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:33.599357+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (59, 'orders', 2, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:33.601967+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (60, 'orders', 2, NULL, 'planned', 'staged', 33, NULL, 'stage', 'kept', NULL, '2026-11-29 01:20:37.649153+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (61, 'orders', 2, 'warehouse', 'pending', 'prepared', 33, 35, 'prepare', 'kept', NULL, '2026-11-29 01:20:37.810763+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (62, 'orders', 2, 'by_hour', 'pending', 'prepared', 33, 36, 'prepare', 'kept', NULL, '2026-11-29 01:20:37.915762+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (63, 'orders', 2, 'refunds', 'pending', 'prepared', 33, 37, 'prepare', 'kept', NULL, '2026-11-29 01:20:38.01285+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (64, 'orders', 2, NULL, 'staged', 'committed', 33, NULL, 'commit', 'kept', NULL, '2026-11-29 01:20:38.050509+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (65, 'orders', 2, 'warehouse', 'prepared', 'published', 33, 35, 'publish', 'kept', NULL, '2026-11-29 01:20:38.193128+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (66, 'orders', 2, 'by_hour', 'prepared', 'published', 33, 36, 'publish', 'kept', NULL, '2026-11-29 01:20:38.255011+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (67, 'orders', 2, 'refunds', 'prepared', 'published', 33, 37, 'publish', 'kept', NULL, '2026-11-29 01:20:38.299835+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (68, 'orders', 2, NULL, 'committed', 'published', 33, NULL, 'publish', 'kept', NULL, '2026-11-29 01:20:38.303195+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (69, 'orders', 3, NULL, NULL, 'planned', 41, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:38.447456+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (70, 'orders', 3, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:38.450348+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (71, 'orders', 3, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:38.459081+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (72, 'orders', 3, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:38.460035+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (73, 'orders', 3, NULL, 'planned', 'staged', 41, NULL, 'stage', 'kept', NULL, '2026-11-29 01:20:42.494031+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (74, 'orders', 3, 'warehouse', 'pending', 'prepared', 41, 43, 'prepare', 'kept', NULL, '2026-11-29 01:20:42.768273+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (75, 'orders', 3, 'by_hour', 'pending', 'prepared', 41, 44, 'prepare', 'kept', NULL, '2026-11-29 01:20:42.848396+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (76, 'orders', 3, 'refunds', 'pending', 'prepared', 41, 45, 'prepare', 'kept', NULL, '2026-11-29 01:20:42.901948+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (77, 'orders', 3, NULL, 'staged', 'committed', 41, NULL, 'commit', 'kept', NULL, '2026-11-29 01:20:42.952595+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (78, 'orders', 3, 'warehouse', 'prepared', 'published', 41, 43, 'publish', 'kept', NULL, '2026-11-29 01:20:43.036005+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (79, 'orders', 3, 'refunds', 'prepared', 'published', 41, 45, 'publish', 'kept', NULL, '2026-11-29 01:20:43.120468+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (80, 'orders', 4, NULL, NULL, 'planned', 48, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:43.264863+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (81, 'orders', 4, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:43.271787+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (82, 'orders', 4, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:43.274281+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (83, 'orders', 4, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:43.276338+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (84, 'orders', 4, NULL, 'planned', 'staged', 48, NULL, 'stage', 'kept', NULL, '2026-11-29 01:20:45.97831+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (85, 'orders', 4, 'warehouse', 'pending', 'prepared', 48, 50, 'prepare', 'kept', NULL, '2026-11-29 01:20:46.279004+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (86, 'orders', 4, 'by_hour', 'pending', 'prepared', 48, 51, 'prepare', 'kept', NULL, '2026-11-29 01:20:46.381469+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (87, 'orders', 4, 'refunds', 'pending', 'prepared', 48, 52, 'prepare', 'kept', NULL, '2026-11-29 01:20:46.472011+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (88, 'orders', 4, NULL, 'staged', 'committed', 48, NULL, 'commit', 'kept', NULL, '2026-11-29 01:20:46.504434+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (89, 'orders', 5, NULL, NULL, 'planned', 53, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:46.823739+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (90, 'orders', 5, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:46.830432+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (91, 'orders', 5, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:46.832588+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (92, 'orders', 5, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:46.833522+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (93, 'orders', 5, NULL, 'planned', 'staged', 53, NULL, 'stage', 'kept', NULL, '2026-11-29 01:20:50.510895+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (94, 'orders', 5, 'warehouse', 'pending', 'prepared', 53, 55, 'prepare', 'kept', NULL, '2026-11-29 01:20:50.7253+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (95, 'orders', 5, 'by_hour', 'pending', 'prepared', 53, 56, 'prepare', 'kept', NULL, '2026-11-29 01:20:50.809671+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (96, 'orders', 5, 'refunds', 'pending', 'prepared', 53, 57, 'prepare', 'kept', NULL, '2026-11-29 01:20:50.923003+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (97, 'orders', 5, NULL, 'staged', 'committed', 53, NULL, 'commit', 'kept', NULL, '2026-11-29 01:20:51.021134+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (98, 'orders', 5, NULL, 'committed', 'committed', 53, 58, 'operator', 'kept', 'a disk was lost', '2026-11-29 01:20:53.65039+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (99, 'orders', 6, NULL, NULL, 'planned', 59, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:53.946565+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (100, 'orders', 6, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:53.950806+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (101, 'orders', 6, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:53.9624+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (102, 'orders', 6, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:53.972265+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (103, 'orders', 6, NULL, 'planned', 'staged', 59, NULL, 'stage', 'kept', NULL, '2026-11-29 01:20:57.646433+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (104, 'orders', 6, 'warehouse', 'pending', 'prepared', 59, 61, 'prepare', 'kept', NULL, '2026-11-29 01:20:58.025709+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (105, 'orders', 6, 'by_hour', 'pending', 'prepared', 59, 62, 'prepare', 'kept', NULL, '2026-11-29 01:20:58.26977+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (106, 'orders', 6, 'refunds', 'pending', 'prepared', 59, 63, 'prepare', 'kept', NULL, '2026-11-29 01:20:58.46198+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (107, 'orders', 6, NULL, 'staged', 'committed', 59, NULL, 'commit', 'kept', NULL, '2026-11-29 01:20:58.549345+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (108, 'orders', 7, NULL, NULL, 'planned', 66, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:58.913636+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (109, 'orders', 7, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:58.991239+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (110, 'orders', 7, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:58.994693+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (111, 'orders', 7, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:20:58.995919+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (112, 'orders', 7, NULL, 'planned', 'staged', 66, NULL, 'stage', 'kept', NULL, '2026-11-29 01:21:03.032229+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (113, 'orders', 7, 'warehouse', 'pending', 'prepared', 66, 68, 'prepare', 'kept', NULL, '2026-11-29 01:21:03.556735+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (114, 'orders', 7, 'by_hour', 'pending', 'prepared', 66, 69, 'prepare', 'kept', NULL, '2026-11-29 01:21:03.639825+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (115, 'orders', 7, 'refunds', 'pending', 'prepared', 66, 70, 'prepare', 'kept', NULL, '2026-11-29 01:21:03.724226+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (116, 'orders', 8, NULL, NULL, 'planned', 71, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:04.077091+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (117, 'orders', 8, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:04.087095+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (118, 'orders', 8, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:04.100549+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (119, 'orders', 8, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:04.102492+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (120, 'orders', 8, NULL, 'planned', 'staged', 71, NULL, 'stage', 'kept', NULL, '2026-11-29 01:21:05.653929+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (121, 'orders', 8, 'warehouse', 'pending', 'prepared', 71, 73, 'prepare', 'kept', NULL, '2026-11-29 01:21:05.862979+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (122, 'orders', 9, NULL, NULL, 'planned', 74, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:06.097529+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (123, 'orders', 9, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:06.104178+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (124, 'orders', 9, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:06.108658+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (125, 'orders', 9, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:06.114618+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (126, 'orders', 9, NULL, 'planned', 'staged', 74, NULL, 'stage', 'kept', NULL, '2026-11-29 01:21:07.587268+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (127, 'orders', 10, NULL, NULL, 'planned', 76, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:07.880554+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (128, 'orders', 10, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:07.887966+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (129, 'orders', 10, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:07.890409+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (130, 'orders', 10, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:07.892096+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (131, 'orders', 11, NULL, NULL, 'planned', 77, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:08.181041+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (132, 'orders', 11, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:08.192378+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (133, 'orders', 11, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:08.194946+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (134, 'orders', 11, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:08.197548+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (135, 'orders', 11, NULL, 'planned', 'planned', 78, NULL, 'operator', 'kept', 'nobody wants that day', '2026-11-29 01:21:08.272375+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (136, 'orders', 11, NULL, 'planned', 'void', 78, NULL, 'operator', 'kept', 'nobody wants that day', '2026-11-29 01:21:08.27873+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (137, 'customers', 1, NULL, NULL, 'planned', 79, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:08.477108+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (138, 'customers', 1, 'totals', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:08.483819+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (139, 'customers', 1, 'changes', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:08.486339+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (140, 'customers', 1, NULL, 'planned', 'staged', 79, NULL, 'stage', 'kept', NULL, '2026-11-29 01:21:15.031012+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (141, 'customers', 1, 'totals', 'pending', 'prepared', 79, 81, 'prepare', 'kept', NULL, '2026-11-29 01:21:15.217141+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (142, 'customers', 1, 'changes', 'pending', 'prepared', 79, 82, 'prepare', 'kept', NULL, '2026-11-29 01:21:15.264026+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (143, 'customers', 1, NULL, 'staged', 'committed', 79, NULL, 'commit', 'kept', NULL, '2026-11-29 01:21:15.283807+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (144, 'customers', 1, 'totals', 'prepared', 'published', 79, 81, 'publish', 'kept', NULL, '2026-11-29 01:21:15.422531+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (145, 'customers', 1, 'changes', 'prepared', 'published', 79, 82, 'publish', 'kept', NULL, '2026-11-29 01:21:15.454131+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (146, 'customers', 1, NULL, 'committed', 'published', 79, NULL, 'publish', 'kept', NULL, '2026-11-29 01:21:15.456282+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (147, 'customers', 1, NULL, 'published', 'cleaned', 79, NULL, 'cleanup', 'kept', NULL, '2026-11-29 01:21:15.521561+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (148, 'customers', 2, NULL, NULL, 'planned', 85, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:15.658249+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (149, 'customers', 2, 'totals', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:15.660151+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (150, 'customers', 2, 'changes', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:15.662551+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (151, 'customers', 2, NULL, 'planned', 'staged', 85, NULL, 'stage', 'kept', NULL, '2026-11-29 01:21:19.52361+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (152, 'customers', 2, 'totals', 'pending', 'prepared', 85, 87, 'prepare', 'kept', NULL, '2026-11-29 01:21:19.969669+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (153, 'customers', 2, 'changes', 'pending', 'prepared', 85, 88, 'prepare', 'kept', NULL, '2026-11-29 01:21:20.189717+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (154, 'customers', 2, NULL, 'staged', 'committed', 85, NULL, 'commit', 'kept', NULL, '2026-11-29 01:21:20.225287+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (155, 'customers', 2, 'totals', 'prepared', 'published', 85, 87, 'publish', 'kept', NULL, '2026-11-29 01:21:20.487774+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (156, 'customers', 2, 'changes', 'prepared', 'published', 85, 88, 'publish', 'kept', NULL, '2026-11-29 01:21:20.553755+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (157, 'customers', 2, NULL, 'committed', 'published', 85, NULL, 'publish', 'kept', NULL, '2026-11-29 01:21:20.561672+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (158, 'customers', 3, NULL, NULL, 'planned', 91, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:20.778724+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (159, 'customers', 3, 'totals', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:20.787821+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (160, 'customers', 3, 'changes', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:20.793168+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (161, 'customers', 3, NULL, 'planned', 'staged', 91, NULL, 'stage', 'kept', NULL, '2026-11-29 01:21:24.031579+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (162, 'customers', 3, 'totals', 'pending', 'prepared', 91, 93, 'prepare', 'kept', NULL, '2026-11-29 01:21:24.275533+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (163, 'customers', 3, 'changes', 'pending', 'prepared', 91, 94, 'prepare', 'kept', NULL, '2026-11-29 01:21:24.332166+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (164, 'customers', 3, NULL, 'staged', 'committed', 91, NULL, 'commit', 'kept', NULL, '2026-11-29 01:21:24.391525+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (165, 'customers', 3, 'totals', 'prepared', 'published', 91, 93, 'publish', 'kept', NULL, '2026-11-29 01:21:24.550472+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (166, 'customers', 4, NULL, NULL, 'planned', 96, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:24.673219+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (167, 'customers', 4, 'totals', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:24.675038+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (168, 'customers', 4, 'changes', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:24.675859+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (169, 'customers', 4, NULL, 'planned', 'staged', 96, NULL, 'stage', 'kept', NULL, '2026-11-29 01:21:27.844225+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (170, 'customers', 4, 'totals', 'pending', 'prepared', 96, 98, 'prepare', 'kept', NULL, '2026-11-29 01:21:28.110636+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (171, 'customers', 4, 'changes', 'pending', 'prepared', 96, 99, 'prepare', 'kept', NULL, '2026-11-29 01:21:28.1815+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (172, 'customers', 4, NULL, 'staged', 'committed', 96, NULL, 'commit', 'kept', NULL, '2026-11-29 01:21:28.205244+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (173, 'customers', 5, NULL, NULL, 'planned', 100, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:28.312207+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (174, 'customers', 5, 'totals', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:28.318817+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (175, 'customers', 5, 'changes', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:28.322698+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (176, 'customers', 5, NULL, 'planned', 'staged', 100, NULL, 'stage', 'kept', NULL, '2026-11-29 01:21:31.129511+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (177, 'lines', 1, NULL, NULL, 'planned', 102, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:31.327246+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (178, 'lines', 1, 'stdout', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:31.336843+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (179, 'lines', 1, 'tcp', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:31.340838+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (180, 'lines', 1, NULL, 'planned', 'staged', 102, NULL, 'stage', 'kept', NULL, '2026-11-29 01:21:39.64814+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (181, 'lines', 1, 'stdout', 'pending', 'prepared', 102, 104, 'prepare', 'kept', NULL, '2026-11-29 01:21:39.79936+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (182, 'lines', 1, 'tcp', 'pending', 'prepared', 102, 105, 'prepare', 'kept', NULL, '2026-11-29 01:21:39.853008+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (183, 'lines', 1, NULL, 'staged', 'committed', 102, NULL, 'commit', 'kept', NULL, '2026-11-29 01:21:39.898526+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (184, 'lines', 1, 'stdout', 'prepared', 'published', 102, 104, 'publish', 'kept', NULL, '2026-11-29 01:21:39.957253+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (185, 'lines', 1, 'tcp', 'prepared', 'published', 102, 105, 'publish', 'kept', NULL, '2026-11-29 01:21:39.984009+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (186, 'lines', 1, NULL, 'committed', 'published', 102, NULL, 'publish', 'kept', NULL, '2026-11-29 01:21:39.989976+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (187, 'lines', 1, NULL, 'published', 'cleaned', 102, NULL, 'cleanup', 'kept', NULL, '2026-11-29 01:21:40.057808+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (188, 'lines', 2, NULL, NULL, 'planned', 108, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:40.168111+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (189, 'lines', 2, 'stdout', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:40.177567+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (190, 'lines', 2, 'tcp', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:40.178662+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (191, 'lines', 2, NULL, 'planned', 'staged', 108, NULL, 'stage', 'kept', NULL, '2026-11-29 01:21:41.269649+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (192, 'lines', 2, 'stdout', 'pending', 'prepared', 108, 110, 'prepare', 'kept', NULL, '2026-11-29 01:21:41.372059+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (193, 'lines', 2, 'tcp', 'pending', 'prepared', 108, 111, 'prepare', 'kept', NULL, '2026-11-29 01:21:41.426242+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (194, 'lines', 2, NULL, 'staged', 'committed', 108, NULL, 'commit', 'kept', NULL, '2026-11-29 01:21:41.511345+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (195, 'lines', 2, 'stdout', 'prepared', 'published', 108, 110, 'publish', 'kept', NULL, '2026-11-29 01:21:41.586649+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (196, 'lines', 3, NULL, NULL, 'planned', 113, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:41.706313+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (197, 'lines', 3, 'stdout', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:41.713399+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (198, 'lines', 3, 'tcp', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:41.715226+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (199, 'lines', 3, NULL, 'planned', 'staged', 113, NULL, 'stage', 'kept', NULL, '2026-11-29 01:21:42.687808+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (200, 'lines', 3, 'stdout', 'pending', 'prepared', 113, 115, 'prepare', 'kept', NULL, '2026-11-29 01:21:42.762612+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (201, 'lines', 3, 'tcp', 'pending', 'prepared', 113, 116, 'prepare', 'kept', NULL, '2026-11-29 01:21:42.791076+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (202, 'lines', 3, NULL, 'staged', 'committed', 113, NULL, 'commit', 'kept', NULL, '2026-11-29 01:21:42.82092+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (203, 'numbers', 1, NULL, NULL, 'planned', 117, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:43.047414+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (204, 'numbers', 1, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:43.049566+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (205, 'numbers', 1, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:43.056457+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (206, 'numbers', 1, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:43.058499+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (207, 'numbers', 1, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:21:43.059232+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (208, 'numbers', 1, NULL, 'planned', 'staged', 117, NULL, 'stage', 'kept', NULL, '2026-11-29 01:22:10.287884+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (209, 'numbers', 1, 'shared', 'pending', 'prepared', 117, 119, 'prepare', 'kept', NULL, '2026-11-29 01:22:10.474575+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (210, 'numbers', 1, 'newest', 'pending', 'prepared', 117, 120, 'prepare', 'kept', NULL, '2026-11-29 01:22:10.58258+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (211, 'numbers', 1, 'by_parity', 'pending', 'prepared', 117, 121, 'prepare', 'kept', NULL, '2026-11-29 01:22:10.646185+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (212, 'numbers', 1, 'words', 'pending', 'prepared', 117, 122, 'prepare', 'kept', NULL, '2026-11-29 01:22:10.69844+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (213, 'numbers', 1, NULL, 'staged', 'committed', 117, NULL, 'commit', 'kept', NULL, '2026-11-29 01:22:10.734551+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (214, 'numbers', 1, 'shared', 'prepared', 'published', 117, 119, 'publish', 'kept', NULL, '2026-11-29 01:22:10.805967+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (215, 'numbers', 1, 'newest', 'prepared', 'published', 117, 120, 'publish', 'kept', NULL, '2026-11-29 01:22:10.894255+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (216, 'numbers', 1, 'by_parity', 'prepared', 'published', 117, 121, 'publish', 'kept', NULL, '2026-11-29 01:22:10.944531+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (217, 'numbers', 1, 'words', 'prepared', 'published', 117, 122, 'publish', 'kept', NULL, '2026-11-29 01:22:10.978892+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (218, 'numbers', 1, NULL, 'committed', 'published', 117, NULL, 'publish', 'kept', NULL, '2026-11-29 01:22:10.985669+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (219, 'numbers', 1, NULL, 'published', 'cleaned', 117, NULL, 'cleanup', 'kept', NULL, '2026-11-29 01:22:11.098426+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (220, 'numbers', 2, NULL, NULL, 'planned', 127, NULL, 'begin', 'kept', NULL, '2026-11-29 01:22:11.284415+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (221, 'numbers', 2, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:22:11.290436+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (222, 'numbers', 2, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:22:11.294812+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (223, 'numbers', 2, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:22:11.295776+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (224, 'numbers', 2, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:22:11.302567+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (225, 'numbers', 2, NULL, 'planned', 'staged', 127, NULL, 'stage', 'kept', NULL, '2026-11-29 01:22:37.350244+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (226, 'numbers', 2, 'shared', 'pending', 'prepared', 127, 129, 'prepare', 'kept', NULL, '2026-11-29 01:22:37.632926+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (227, 'numbers', 2, 'newest', 'pending', 'prepared', 127, 130, 'prepare', 'kept', NULL, '2026-11-29 01:22:37.830025+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (228, 'numbers', 2, 'by_parity', 'pending', 'prepared', 127, 131, 'prepare', 'kept', NULL, '2026-11-29 01:22:37.947051+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (229, 'numbers', 2, 'words', 'pending', 'prepared', 127, 132, 'prepare', 'kept', NULL, '2026-11-29 01:22:38.066118+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (230, 'numbers', 2, NULL, 'staged', 'committed', 127, NULL, 'commit', 'kept', NULL, '2026-11-29 01:22:38.089313+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (231, 'numbers', 2, 'shared', 'prepared', 'published', 127, 129, 'publish', 'kept', NULL, '2026-11-29 01:22:38.235139+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (232, 'numbers', 2, 'newest', 'prepared', 'published', 127, 130, 'publish', 'kept', NULL, '2026-11-29 01:22:38.418466+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (233, 'numbers', 2, 'by_parity', 'prepared', 'published', 127, 131, 'publish', 'kept', NULL, '2026-11-29 01:22:38.506537+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (234, 'numbers', 2, 'words', 'prepared', 'published', 127, 132, 'publish', 'kept', NULL, '2026-11-29 01:22:38.560002+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (235, 'numbers', 2, NULL, 'committed', 'published', 127, NULL, 'publish', 'kept', NULL, '2026-11-29 01:22:38.571949+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (236, 'numbers', 2, NULL, 'published', 'cleaned', 127, NULL, 'cleanup', 'kept', NULL, '2026-11-29 01:22:38.750976+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (237, 'numbers', 3, NULL, NULL, 'planned', 137, NULL, 'begin', 'kept', NULL, '2026-11-29 01:22:39.147426+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (238, 'numbers', 3, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:22:39.157902+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (239, 'numbers', 3, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:22:39.15919+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (240, 'numbers', 3, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:22:39.16009+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (241, 'numbers', 3, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:22:39.162534+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (242, 'numbers', 3, NULL, 'planned', 'staged', 137, NULL, 'stage', 'kept', NULL, '2026-11-29 01:23:00.835842+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (243, 'numbers', 3, 'shared', 'pending', 'prepared', 137, 139, 'prepare', 'kept', NULL, '2026-11-29 01:23:01.155643+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (244, 'numbers', 3, 'newest', 'pending', 'prepared', 137, 140, 'prepare', 'kept', NULL, '2026-11-29 01:23:01.325487+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (245, 'numbers', 3, 'by_parity', 'pending', 'prepared', 137, 141, 'prepare', 'kept', NULL, '2026-11-29 01:23:01.421671+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (246, 'numbers', 3, 'words', 'pending', 'prepared', 137, 142, 'prepare', 'kept', NULL, '2026-11-29 01:23:01.534925+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (247, 'numbers', 3, NULL, 'staged', 'committed', 137, NULL, 'commit', 'kept', NULL, '2026-11-29 01:23:01.636477+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (248, 'numbers', 4, NULL, NULL, 'planned', 143, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:02.042323+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (249, 'numbers', 4, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:02.046734+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (250, 'numbers', 4, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:02.049904+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (251, 'numbers', 4, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:02.054236+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (252, 'numbers', 4, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:02.061438+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (253, 'resumed', 1, NULL, NULL, 'planned', 144, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:02.375358+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (254, 'resumed', 1, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:02.382589+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (255, 'resumed', 1, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:02.383828+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (256, 'resumed', 1, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:02.384593+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (257, 'resumed', 1, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:02.386036+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (258, 'resumed', 1, NULL, 'planned', 'staged', 144, NULL, 'stage', 'kept', NULL, '2026-11-29 01:23:25.564847+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (259, 'resumed', 1, 'shared', 'pending', 'prepared', 144, 146, 'prepare', 'kept', NULL, '2026-11-29 01:23:25.762831+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (260, 'resumed', 1, 'newest', 'pending', 'prepared', 144, 147, 'prepare', 'kept', NULL, '2026-11-29 01:23:25.89668+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (261, 'resumed', 1, 'by_parity', 'pending', 'prepared', 144, 148, 'prepare', 'kept', NULL, '2026-11-29 01:23:25.964011+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (262, 'resumed', 1, 'words', 'pending', 'prepared', 144, 149, 'prepare', 'kept', NULL, '2026-11-29 01:23:26.019084+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (263, 'resumed', 1, NULL, 'staged', 'committed', 144, NULL, 'commit', 'kept', NULL, '2026-11-29 01:23:26.202518+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (264, 'resumed', 2, NULL, NULL, 'planned', 150, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:26.376573+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (265, 'resumed', 2, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:26.384481+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (266, 'resumed', 2, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:26.390466+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (267, 'resumed', 2, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:26.398277+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (268, 'resumed', 2, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:26.399262+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (269, 'clicks', 1, NULL, NULL, 'planned', 151, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:26.483824+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (270, 'clicks', 1, 'hourly', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:26.486156+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (271, 'clicks', 1, 'late', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:26.488083+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (272, 'clicks', 1, NULL, 'planned', 'staged', 151, NULL, 'stage', 'kept', NULL, '2026-11-29 01:23:29.680487+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (273, 'clicks', 1, 'hourly', 'pending', 'prepared', 151, 153, 'prepare', 'kept', NULL, '2026-11-29 01:23:29.863762+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (274, 'clicks', 1, 'late', 'pending', 'prepared', 151, 154, 'prepare', 'kept', NULL, '2026-11-29 01:23:30.007384+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (275, 'clicks', 1, NULL, 'staged', 'committed', 151, NULL, 'commit', 'kept', NULL, '2026-11-29 01:23:30.046781+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (276, 'clicks', 1, 'hourly', 'prepared', 'published', 151, 153, 'publish', 'kept', NULL, '2026-11-29 01:23:30.083469+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (277, 'clicks', 1, 'late', 'prepared', 'published', 151, 154, 'publish', 'kept', NULL, '2026-11-29 01:23:30.115149+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (278, 'clicks', 1, NULL, 'committed', 'published', 151, NULL, 'publish', 'kept', NULL, '2026-11-29 01:23:30.116991+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (279, 'clicks', 1, NULL, 'published', 'cleaned', 151, NULL, 'cleanup', 'kept', NULL, '2026-11-29 01:23:30.179015+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (280, 'clicks', 2, NULL, NULL, 'planned', 157, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:30.247297+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (281, 'clicks', 2, 'hourly', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:30.251124+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (282, 'clicks', 2, 'late', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:30.254471+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (283, 'clicks', 2, NULL, 'planned', 'staged', 157, NULL, 'stage', 'kept', NULL, '2026-11-29 01:23:31.666872+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (284, 'clicks', 2, 'hourly', 'pending', 'prepared', 157, 159, 'prepare', 'kept', NULL, '2026-11-29 01:23:31.760391+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (285, 'clicks', 2, 'late', 'pending', 'prepared', 157, 160, 'prepare', 'kept', NULL, '2026-11-29 01:23:31.861114+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (286, 'clicks', 2, NULL, 'staged', 'committed', 157, NULL, 'commit', 'kept', NULL, '2026-11-29 01:23:31.892182+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (287, 'clicks', 2, 'hourly', 'prepared', 'published', 157, 159, 'publish', 'kept', NULL, '2026-11-29 01:23:31.946181+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (288, 'clicks', 2, 'late', 'prepared', 'published', 157, 160, 'publish', 'kept', NULL, '2026-11-29 01:23:31.983742+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (289, 'clicks', 2, NULL, 'committed', 'published', 157, NULL, 'publish', 'kept', NULL, '2026-11-29 01:23:31.985664+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (290, 'clicks', 3, NULL, NULL, 'planned', 163, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:32.041223+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (291, 'clicks', 3, 'hourly', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:32.047859+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (292, 'clicks', 3, 'late', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:32.051206+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (293, 'clicks', 3, NULL, 'planned', 'staged', 163, NULL, 'stage', 'kept', NULL, '2026-11-29 01:23:35.671611+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (294, 'clicks', 3, 'hourly', 'pending', 'prepared', 163, 165, 'prepare', 'kept', NULL, '2026-11-29 01:23:35.816436+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (295, 'clicks', 3, 'late', 'pending', 'prepared', 163, 166, 'prepare', 'kept', NULL, '2026-11-29 01:23:35.876169+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (296, 'clicks', 3, NULL, 'staged', 'committed', 163, NULL, 'commit', 'kept', NULL, '2026-11-29 01:23:35.922725+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (297, 'maria_again', 1, NULL, NULL, 'planned', 167, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:36.313013+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (298, 'maria_again', 1, 'repeated', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:36.320964+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (299, 'maria_again', 1, NULL, 'planned', 'staged', 167, NULL, 'stage', 'kept', NULL, '2026-11-29 01:23:41.219399+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (300, 'maria_again', 1, 'repeated', 'pending', 'prepared', 167, 169, 'prepare', 'kept', NULL, '2026-11-29 01:23:41.450292+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (301, 'maria_again', 1, NULL, 'staged', 'committed', 167, NULL, 'commit', 'kept', NULL, '2026-11-29 01:23:41.567981+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (302, 'maria_again', 1, 'repeated', 'prepared', 'published', 167, 169, 'publish', 'kept', NULL, '2026-11-29 01:23:41.63113+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (303, 'maria_again', 1, NULL, 'committed', 'published', 167, NULL, 'publish', 'kept', NULL, '2026-11-29 01:23:41.636993+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (304, 'maria_again', 1, NULL, 'published', 'cleaned', 167, NULL, 'cleanup', 'kept', NULL, '2026-11-29 01:23:41.76383+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (305, 'maria', 1, NULL, NULL, 'planned', 171, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:41.879792+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (306, 'maria', 1, 'prepared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:41.88385+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (307, 'maria', 1, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:41.885365+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (308, 'maria', 1, NULL, 'planned', 'staged', 171, NULL, 'stage', 'kept', NULL, '2026-11-29 01:23:48.287851+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (309, 'maria', 1, 'prepared', 'pending', 'prepared', 171, 173, 'prepare', 'kept', NULL, '2026-11-29 01:23:48.428996+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (310, 'maria', 1, 'newest', 'pending', 'prepared', 171, 174, 'prepare', 'kept', NULL, '2026-11-29 01:23:48.581376+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (311, 'maria', 1, NULL, 'staged', 'committed', 171, NULL, 'commit', 'kept', NULL, '2026-11-29 01:23:48.611751+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (312, 'maria', 1, 'prepared', 'prepared', 'published', 171, 173, 'publish', 'kept', NULL, '2026-11-29 01:23:48.657081+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (313, 'maria', 1, 'newest', 'prepared', 'published', 171, 174, 'publish', 'kept', NULL, '2026-11-29 01:23:48.801753+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (314, 'maria', 1, NULL, 'committed', 'published', 171, NULL, 'publish', 'kept', NULL, '2026-11-29 01:23:48.812767+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (315, 'maria', 1, NULL, 'published', 'cleaned', 171, NULL, 'cleanup', 'kept', NULL, '2026-11-29 01:23:49.082888+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (316, 'maria_again', 2, NULL, NULL, 'planned', 177, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:49.467139+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (317, 'maria_again', 2, 'repeated', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:49.472221+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (318, 'maria_again', 2, NULL, 'planned', 'staged', 177, NULL, 'stage', 'kept', NULL, '2026-11-29 01:23:50.25748+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (319, 'maria_again', 2, 'repeated', 'pending', 'prepared', 177, 179, 'prepare', 'kept', NULL, '2026-11-29 01:23:50.387053+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (320, 'maria_again', 2, NULL, 'staged', 'committed', 177, NULL, 'commit', 'kept', NULL, '2026-11-29 01:23:50.488235+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (321, 'maria', 2, NULL, NULL, 'planned', 180, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:50.81451+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (322, 'maria', 2, 'prepared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:50.818925+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (323, 'maria', 2, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:50.822423+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (324, 'maria', 2, NULL, 'planned', 'staged', 180, NULL, 'stage', 'kept', NULL, '2026-11-29 01:23:51.625014+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (325, 'maria', 2, 'prepared', 'pending', 'prepared', 180, 182, 'prepare', 'kept', NULL, '2026-11-29 01:23:51.869622+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (326, 'maria', 2, 'newest', 'pending', 'prepared', 180, 183, 'prepare', 'kept', NULL, '2026-11-29 01:23:52.010191+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (327, 'maria', 2, NULL, 'staged', 'committed', 180, NULL, 'commit', 'kept', NULL, '2026-11-29 01:23:52.091747+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (328, 'maria', 2, 'prepared', 'prepared', 'published', 180, 182, 'publish', 'kept', NULL, '2026-11-29 01:23:52.200893+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (329, 'maria', 2, 'newest', 'prepared', 'published', 180, 183, 'publish', 'kept', NULL, '2026-11-29 01:23:52.267253+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (330, 'maria', 2, NULL, 'committed', 'published', 180, NULL, 'publish', 'kept', NULL, '2026-11-29 01:23:52.273028+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (331, 'maria', 3, NULL, NULL, 'planned', 186, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:52.400989+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (332, 'maria', 3, 'prepared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:52.403954+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (333, 'maria', 3, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:52.406313+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (334, 'maria', 3, NULL, 'planned', 'staged', 186, NULL, 'stage', 'kept', NULL, '2026-11-29 01:23:52.977948+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (335, 'maria', 3, 'prepared', 'pending', 'prepared', 186, 188, 'prepare', 'kept', NULL, '2026-11-29 01:23:53.170548+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (336, 'maria', 3, 'newest', 'pending', 'prepared', 186, 189, 'prepare', 'kept', NULL, '2026-11-29 01:23:53.288519+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (337, 'maria', 3, NULL, 'staged', 'committed', 186, NULL, 'commit', 'kept', NULL, '2026-11-29 01:23:53.351448+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (338, 'events', 1, NULL, NULL, 'planned', 190, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:54.310556+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (339, 'events', 1, 'once', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:54.315028+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (340, 'events', 1, 'repeated', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:23:54.316015+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (341, 'events', 1, NULL, 'planned', 'staged', 190, NULL, 'stage', 'kept', NULL, '2026-11-29 01:24:06.589372+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (342, 'events', 1, 'once', 'pending', 'prepared', 190, 192, 'prepare', 'kept', NULL, '2026-11-29 01:24:06.779124+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (343, 'events', 1, 'repeated', 'pending', 'prepared', 190, 193, 'prepare', 'kept', NULL, '2026-11-29 01:24:06.816977+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (344, 'events', 1, NULL, 'staged', 'committed', 190, NULL, 'commit', 'kept', NULL, '2026-11-29 01:24:06.84014+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (345, 'events', 1, 'once', 'prepared', 'published', 190, 192, 'publish', 'kept', NULL, '2026-11-29 01:24:08.089238+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (346, 'events', 1, 'repeated', 'prepared', 'published', 190, 193, 'publish', 'kept', NULL, '2026-11-29 01:24:08.158427+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (347, 'events', 1, NULL, 'committed', 'published', 190, NULL, 'publish', 'kept', NULL, '2026-11-29 01:24:08.161486+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (348, 'events', 1, NULL, 'published', 'cleaned', 190, NULL, 'cleanup', 'kept', NULL, '2026-11-29 01:24:08.499692+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (349, 'events', 2, NULL, NULL, 'planned', 196, NULL, 'begin', 'kept', NULL, '2026-11-29 01:24:08.887086+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (350, 'events', 2, 'once', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:24:08.890757+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (351, 'events', 2, 'repeated', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:24:08.891611+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (352, 'events', 2, NULL, 'planned', 'staged', 196, NULL, 'stage', 'kept', NULL, '2026-11-29 01:24:09.792452+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (353, 'events', 2, 'once', 'pending', 'prepared', 196, 198, 'prepare', 'kept', NULL, '2026-11-29 01:24:09.944496+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (354, 'events', 2, 'repeated', 'pending', 'prepared', 196, 199, 'prepare', 'kept', NULL, '2026-11-29 01:24:09.975468+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (355, 'events', 2, NULL, 'staged', 'committed', 196, NULL, 'commit', 'kept', NULL, '2026-11-29 01:24:09.997439+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (356, 'events', 2, 'once', 'prepared', 'published', 196, 198, 'publish', 'kept', NULL, '2026-11-29 01:24:10.172483+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (357, 'events', 3, NULL, NULL, 'planned', 201, NULL, 'begin', 'kept', NULL, '2026-11-29 01:24:10.304699+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (358, 'events', 3, 'once', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:24:10.306632+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (359, 'events', 3, 'repeated', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-29 01:24:10.307489+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (360, 'events', 3, NULL, 'planned', 'staged', 201, NULL, 'stage', 'kept', NULL, '2026-11-29 01:24:11.058426+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (361, 'events', 3, 'once', 'pending', 'prepared', 201, 203, 'prepare', 'kept', NULL, '2026-11-29 01:24:11.25436+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (362, 'events', 3, 'repeated', 'pending', 'prepared', 201, 204, 'prepare', 'kept', NULL, '2026-11-29 01:24:11.336464+00');
INSERT INTO lockstep.transition_from_the_start OVERRIDING SYSTEM VALUE VALUES (363, 'events', 3, NULL, 'staged', 'committed', 201, NULL, 'commit', 'kept', NULL, '2026-11-29 01:24:11.374396+00');
INSERT INTO lockstep.untold VALUES ('tables', 1, 'accounts', '2026-11-29 01:20:17.679226+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('tables', 1, 'entries', '2026-11-29 01:20:17.772996+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('tables', 1, 'careless', '2026-11-29 01:20:17.863715+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('tables', 1, 'http', '2026-11-29 01:20:17.929098+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('tables', 2, 'accounts', '2026-11-29 01:20:20.613627+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('tables', 2, 'careless', '2026-11-29 01:20:20.736628+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('orders', 1, 'warehouse', '2026-11-29 01:20:33.189793+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('orders', 1, 'by_hour', '2026-11-29 01:20:33.24906+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('orders', 1, 'refunds', '2026-11-29 01:20:33.294471+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('orders', 2, 'warehouse', '2026-11-29 01:20:38.187183+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('orders', 2, 'by_hour', '2026-11-29 01:20:38.252543+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('orders', 2, 'refunds', '2026-11-29 01:20:38.295025+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('orders', 3, 'warehouse', '2026-11-29 01:20:43.030728+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('orders', 3, 'refunds', '2026-11-29 01:20:43.109983+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('customers', 1, 'totals', '2026-11-29 01:21:15.417641+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('customers', 1, 'changes', '2026-11-29 01:21:15.45287+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('customers', 2, 'totals', '2026-11-29 01:21:20.477786+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('customers', 2, 'changes', '2026-11-29 01:21:20.548203+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('customers', 3, 'totals', '2026-11-29 01:21:24.542399+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('lines', 1, 'stdout', '2026-11-29 01:21:39.950734+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('lines', 1, 'tcp', '2026-11-29 01:21:39.982429+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('lines', 2, 'stdout', '2026-11-29 01:21:41.578168+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('numbers', 1, 'shared', '2026-11-29 01:22:10.799763+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('numbers', 1, 'newest', '2026-11-29 01:22:10.890711+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('numbers', 1, 'by_parity', '2026-11-29 01:22:10.942535+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('numbers', 1, 'words', '2026-11-29 01:22:10.974729+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('numbers', 2, 'shared', '2026-11-29 01:22:38.223108+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('numbers', 2, 'newest', '2026-11-29 01:22:38.413188+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('numbers', 2, 'by_parity', '2026-11-29 01:22:38.498423+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('numbers', 2, 'words', '2026-11-29 01:22:38.557241+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('clicks', 1, 'hourly', '2026-11-29 01:23:30.079357+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('clicks', 1, 'late', '2026-11-29 01:23:30.113858+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('clicks', 2, 'hourly', '2026-11-29 01:23:31.937193+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('clicks', 2, 'late', '2026-11-29 01:23:31.982309+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('maria_again', 1, 'repeated', '2026-11-29 01:23:41.627353+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('maria', 1, 'prepared', '2026-11-29 01:23:48.65359+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('maria', 1, 'newest', '2026-11-29 01:23:48.798094+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('maria', 2, 'prepared', '2026-11-29 01:23:52.186991+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('maria', 2, 'newest', '2026-11-29 01:23:52.262482+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('events', 1, 'once', '2026-11-29 01:24:08.084134+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('events', 1, 'repeated', '2026-11-29 01:24:08.156639+00', 'kept', NULL);
INSERT INTO lockstep.untold VALUES ('events', 2, 'once', '2026-11-29 01:24:10.16895+00', 'kept', NULL);
SELECT pg_catalog.setval('lockstep.pipeline_change_id_seq', 1, false);
SELECT pg_catalog.setval('lockstep.setting_override_id_seq', 1, true);
SELECT pg_catalog.setval('lockstep.token', 204, true);
SELECT pg_catalog.setval('lockstep.transition_number', 363, true);
ALTER TABLE ONLY lockstep.epoch
    ADD CONSTRAINT an_interval_has_one_root EXCLUDE USING gist (pipeline WITH =, span WITH &&) WHERE (((span IS NOT NULL) AND (generation = 0)));
ALTER TABLE ONLY lockstep.claim
    ADD CONSTRAINT claim_pkey PRIMARY KEY (pipeline, source, path, starts);
ALTER TABLE ONLY lockstep.deployed_setting
    ADD CONSTRAINT deployed_setting_pkey PRIMARY KEY (pipeline, sink);
ALTER TABLE ONLY lockstep.deployment
    ADD CONSTRAINT deployment_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY lockstep.epoch
    ADD CONSTRAINT epoch_pkey PRIMARY KEY (pipeline, id);
ALTER TABLE ONLY lockstep.execution
    ADD CONSTRAINT execution_pkey PRIMARY KEY (token);
ALTER TABLE ONLY lockstep.finished
    ADD CONSTRAINT finished_pkey PRIMARY KEY (pipeline);
ALTER TABLE ONLY lockstep.kept_wal
    ADD CONSTRAINT kept_wal_pkey PRIMARY KEY (pipeline, epoch);
ALTER TABLE ONLY lockstep.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (version);
ALTER TABLE ONLY lockstep.participant
    ADD CONSTRAINT one_epoch_has_the_turn EXCLUDE USING gist (pipeline WITH =, epoch WITH <>) WHERE ((turn AND (state <> 'published'::text)));
ALTER TABLE ONLY lockstep.participant
    ADD CONSTRAINT participant_pkey PRIMARY KEY (pipeline, epoch, sink);
ALTER TABLE ONLY lockstep.pipeline_change
    ADD CONSTRAINT pipeline_change_pkey PRIMARY KEY (id);
ALTER TABLE ONLY lockstep.pipeline
    ADD CONSTRAINT pipeline_pkey PRIMARY KEY (name);
ALTER TABLE ONLY lockstep.planned_sink
    ADD CONSTRAINT planned_sink_pkey PRIMARY KEY (pipeline, sink, spec_md5);
ALTER TABLE ONLY lockstep.planned_source
    ADD CONSTRAINT planned_source_pkey PRIMARY KEY (pipeline, source);
ALTER TABLE ONLY lockstep.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (dag_id, run_id);
ALTER TABLE ONLY lockstep.savepoint
    ADD CONSTRAINT savepoint_pkey PRIMARY KEY (pipeline);
ALTER TABLE ONLY lockstep.setting_override
    ADD CONSTRAINT setting_override_pkey PRIMARY KEY (id);
ALTER TABLE ONLY lockstep.untold
    ADD CONSTRAINT untold_pkey PRIMARY KEY (pipeline, epoch, sink);
ALTER TABLE ONLY lockstep.verdict
    ADD CONSTRAINT verdict_pkey PRIMARY KEY (pipeline, epoch, manifest_hash);
CREATE INDEX claim_epoch ON lockstep.claim USING btree (pipeline, epoch);
CREATE INDEX claim_head ON lockstep.claim USING btree (pipeline, source, head) WHERE (head IS NOT NULL);
CREATE INDEX epoch_generations ON lockstep.epoch USING btree (pipeline, root) WHERE (root IS NOT NULL);
CREATE INDEX epoch_of_several ON lockstep.epoch USING btree (pipeline, id) WHERE (replaces_to IS NOT NULL);
CREATE INDEX epoch_replaced ON lockstep.epoch USING btree (pipeline, id) WHERE (state = 'replaced'::text);
CREATE INDEX epoch_restoring ON lockstep.epoch USING btree (pipeline, restores) WHERE (restores IS NOT NULL);
CREATE INDEX epoch_successors ON lockstep.epoch USING btree (pipeline, id) WHERE (root IS NOT NULL);
CREATE INDEX epoch_unfinished ON lockstep.epoch USING btree (pipeline, id) WHERE (state <> ALL (ARRAY['cleaned'::text, 'replaced'::text, 'void'::text]));
CREATE INDEX epoch_with_state ON lockstep.epoch USING btree (pipeline, id) WHERE (based_on IS NOT NULL);
CREATE UNIQUE INDEX legal_transition_key ON lockstep.legal_transition USING btree (subject, COALESCE(source_state, ''::text), target_state, role);
CREATE UNIQUE INDEX one_epoch_of_a_generation ON lockstep.epoch USING btree (pipeline, root, generation) WHERE ((root IS NOT NULL) AND (state <> 'void'::text));
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
CREATE TRIGGER keep_deployment BEFORE DELETE OR TRUNCATE ON lockstep.deployment FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_epoch BEFORE DELETE OR TRUNCATE ON lockstep.epoch FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_execution BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.execution FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_override BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.setting_override FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_participant BEFORE TRUNCATE ON lockstep.participant FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_pipeline_change BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.pipeline_change FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_restoring BEFORE UPDATE ON lockstep.epoch FOR EACH ROW WHEN ((new.restores IS DISTINCT FROM old.restores)) EXECUTE FUNCTION lockstep.watch_restoring();
CREATE TRIGGER keep_savepoint BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.savepoint FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_transition BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.transition FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_transition BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.transition_from_20261130 FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_transition BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.transition_from_the_start FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_verdict BEFORE DELETE OR TRUNCATE ON lockstep.verdict FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_what_is_referred_to BEFORE DELETE OR UPDATE ON lockstep.kept_wal FOR EACH ROW EXECUTE FUNCTION lockstep.keep_what_is_referred_to();
CREATE TRIGGER note_untold AFTER UPDATE ON lockstep.participant FOR EACH ROW WHEN (((new.state = 'published'::text) AND (old.state = 'prepared'::text))) EXECUTE FUNCTION lockstep.note_untold();
CREATE TRIGGER remember_sources AFTER INSERT OR UPDATE OF plan ON lockstep.epoch FOR EACH ROW WHEN ((new.span IS NULL)) EXECUTE FUNCTION lockstep.remember_sources();
CREATE CONSTRAINT TRIGGER require_replaced AFTER UPDATE ON lockstep.epoch DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((new.replaces IS NOT NULL) AND (new.state = 'committed'::text) AND (old.state = 'staged'::text))) EXECUTE FUNCTION lockstep.require_replaced();
CREATE TRIGGER require_verdict_to_decide BEFORE UPDATE ON lockstep.epoch FOR EACH ROW WHEN (((new.state = 'committed'::text) AND (old.state = 'staged'::text))) EXECUTE FUNCTION lockstep.require_verdict_to_decide();
CREATE TRIGGER require_verdict_to_vote BEFORE UPDATE ON lockstep.participant FOR EACH ROW WHEN (((new.state = 'prepared'::text) AND ((new.state IS DISTINCT FROM old.state) OR (new.token IS DISTINCT FROM old.token)))) EXECUTE FUNCTION lockstep.require_verdict_to_vote();
CREATE TRIGGER watch_deployment BEFORE UPDATE ON lockstep.deployment FOR EACH ROW EXECUTE FUNCTION lockstep.watch_deployment();
CREATE TRIGGER watch_epoch BEFORE INSERT OR UPDATE ON lockstep.epoch FOR EACH ROW EXECUTE FUNCTION lockstep.watch_epoch();
CREATE TRIGGER watch_generation BEFORE INSERT OR UPDATE ON lockstep.epoch FOR EACH ROW EXECUTE FUNCTION lockstep.watch_generation();
CREATE TRIGGER watch_participant BEFORE INSERT OR DELETE OR UPDATE ON lockstep.participant FOR EACH ROW EXECUTE FUNCTION lockstep.watch_participant();
CREATE TRIGGER watch_pipeline BEFORE UPDATE ON lockstep.pipeline FOR EACH ROW EXECUTE FUNCTION lockstep.watch_pipeline();
CREATE TRIGGER watch_restage BEFORE UPDATE ON lockstep.epoch FOR EACH ROW WHEN ((((new.restaged_wal IS DISTINCT FROM old.restaged_wal) OR (new.restaged_hash IS DISTINCT FROM old.restaged_hash)) OR (new.reordered IS DISTINCT FROM old.reordered))) EXECUTE FUNCTION lockstep.watch_restage();
CREATE TRIGGER watch_restoring BEFORE INSERT ON lockstep.epoch FOR EACH ROW WHEN ((new.restores IS NOT NULL)) EXECUTE FUNCTION lockstep.watch_restoring();
CREATE TRIGGER watch_state BEFORE UPDATE ON lockstep.epoch FOR EACH ROW EXECUTE FUNCTION lockstep.watch_state();
CREATE TRIGGER watch_verdict BEFORE INSERT OR UPDATE ON lockstep.verdict FOR EACH ROW EXECUTE FUNCTION lockstep.watch_verdict();
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
ALTER TABLE ONLY lockstep.finished
    ADD CONSTRAINT finished_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.kept_wal
    ADD CONSTRAINT kept_wal_pipeline_epoch_fkey FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch(pipeline, id);
ALTER TABLE ONLY lockstep.participant
    ADD CONSTRAINT participant_pipeline_epoch_fkey FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch(pipeline, id);
ALTER TABLE ONLY lockstep.pipeline_change
    ADD CONSTRAINT pipeline_change_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.planned_sink
    ADD CONSTRAINT planned_sink_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.planned_source
    ADD CONSTRAINT planned_source_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.run
    ADD CONSTRAINT run_pipeline_epoch_fkey FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch(pipeline, id);
ALTER TABLE ONLY lockstep.savepoint
    ADD CONSTRAINT savepoint_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.setting_override
    ADD CONSTRAINT setting_override_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.untold
    ADD CONSTRAINT untold_pipeline_epoch_sink_fkey FOREIGN KEY (pipeline, epoch, sink) REFERENCES lockstep.participant(pipeline, epoch, sink);
ALTER TABLE ONLY lockstep.verdict
    ADD CONSTRAINT verdict_pipeline_epoch_fkey FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch(pipeline, id);
