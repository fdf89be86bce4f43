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
CREATE FUNCTION lockstep.refuse() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION '% on lockstep.%: what the ledger has recorded stays', TG_OP, TG_TABLE_NAME USING ERRCODE = 'LS001';
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
CREATE FUNCTION lockstep.require_votes(deciding text, number bigint, current_attempt bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF (SELECT count(*) = 0 OR bool_or(p.state <> 'prepared' OR p.attempt <> current_attempt OR p.token < p.execution)
        FROM lockstep.participant p WHERE p.pipeline = deciding AND p.epoch = number) THEN
        RAISE EXCEPTION 'epoch % of % lacks a vote of attempt %', number, deciding, current_attempt USING ERRCODE = 'LS001';
    END IF;
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
        SELECT * INTO before FROM lockstep.epoch e
        WHERE e.pipeline = NEW.pipeline AND e.id < NEW.id AND e.state <> 'void' ORDER BY e.id DESC LIMIT 1;
        IF (NEW.based_on IS NULL AND before.based_on IS NOT NULL)
           OR (NEW.based_on IS NOT NULL AND NEW.based_on <> coalesce(before.manifest_hash, '')) THEN
            RAISE EXCEPTION 'the state of epoch % of % was not made from that of the epoch before', NEW.id, NEW.pipeline
                USING ERRCODE = 'LS001';
        END IF;
    END IF;
    RETURN NEW;
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
SET default_tablespace = '';
SET default_table_access_method = heap;
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
    CONSTRAINT epoch_check CHECK (((wal IS NULL) = (manifest_hash IS NULL))),
    CONSTRAINT epoch_check1 CHECK (((state = ANY (ARRAY['planned'::text, 'void'::text])) OR (wal IS NOT NULL))),
    CONSTRAINT epoch_manifest_hash_check CHECK ((manifest_hash ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT epoch_restaged_hash_check CHECK ((restaged_hash ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT epoch_span_check CHECK (((NOT isempty(span)) AND lower_inc(span) AND (NOT upper_inc(span)))),
    CONSTRAINT what_was_restaged_is_whole CHECK (((restaged_wal IS NULL) = (restaged_hash IS NULL)))
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
    CONSTRAINT pipeline_check CHECK ((num_nulls(forgotten_at, forgotten_by, forgotten_why, swept_until) = ANY (ARRAY[0, 4]))),
    CONSTRAINT pipeline_identity_check CHECK ((identity = ANY (ARRAY['interval'::text, 'cursor'::text])))
);
CREATE TABLE lockstep.pipeline_change (
    id bigint NOT NULL,
    pipeline text NOT NULL,
    change text NOT NULL,
    found jsonb NOT NULL,
    actor text NOT NULL,
    reason text NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pipeline_change_change_check CHECK ((change = ANY (ARRAY['redefined'::text, 'renumbered'::text])))
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
CREATE TABLE lockstep.run (
    dag_id text NOT NULL,
    run_id text NOT NULL,
    pipeline text NOT NULL,
    epoch bigint NOT NULL,
    attempt bigint NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL
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
);
ALTER TABLE lockstep.transition ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME lockstep.transition_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
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
INSERT INTO lockstep.deployed_setting VALUES ('tables', 'accounts', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-22 12:01:03.866304+00');
INSERT INTO lockstep.deployed_setting VALUES ('tables', 'entries', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-22 12:01:03.866304+00');
INSERT INTO lockstep.deployed_setting VALUES ('tables', 'careless', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-22 12:01:03.866304+00');
INSERT INTO lockstep.deployed_setting VALUES ('tables', 'http', '{"type": "lockstep.sinks.append_only.http:HttpSink", "arguments": {"tries": 6, "timeout": 30.0, "requests_at_once": 4, "bytes_per_request": 1048576, "records_per_request": 2}}', '2026-11-22 12:01:03.866304+00');
INSERT INTO lockstep.deployed_setting VALUES ('orders', 'warehouse', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-22 12:02:10.189914+00');
INSERT INTO lockstep.deployed_setting VALUES ('customers', 'totals', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-22 12:03:32.304867+00');
INSERT INTO lockstep.deployed_setting VALUES ('lines', 'tcp', '{"type": "lockstep.sinks.append_only.tcp:TcpSink", "arguments": {"timeout": 60.0}}', '2026-11-22 12:04:41.71795+00');
INSERT INTO lockstep.deployed_setting VALUES ('numbers', 'shared', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-22 12:05:15.105384+00');
INSERT INTO lockstep.deployed_setting VALUES ('numbers', 'newest', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-22 12:05:15.105384+00');
INSERT INTO lockstep.deployed_setting VALUES ('resumed', 'shared', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-22 12:07:03.53501+00');
INSERT INTO lockstep.deployed_setting VALUES ('resumed', 'newest', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-22 12:07:03.53501+00');
INSERT INTO lockstep.deployed_setting VALUES ('maria_again', 'repeated', '{"type": "lockstep.sinks.mysql.sink:MySqlSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-22 12:08:43.853468+00');
INSERT INTO lockstep.deployed_setting VALUES ('maria', 'prepared', '{"type": "lockstep.sinks.mysql.sink:MySqlSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-22 12:08:52.554689+00');
INSERT INTO lockstep.deployed_setting VALUES ('maria', 'newest', '{"type": "lockstep.sinks.mysql.sink:MySqlSink", "arguments": {"lock_timeout": 10.0}}', '2026-11-22 12:08:52.554689+00');
INSERT INTO lockstep.deployed_setting VALUES ('events', 'once', '{"type": "lockstep.sinks.kafka.sink:KafkaSink", "arguments": {"shards": 2, "transaction_timeout": 300.0}}', '2026-11-22 12:09:25.880269+00');
INSERT INTO lockstep.deployed_setting VALUES ('events', 'repeated', '{"type": "lockstep.sinks.kafka.sink:KafkaSink", "arguments": {"shards": 1, "transaction_timeout": 300.0}}', '2026-11-22 12:09:25.880269+00');
INSERT INTO lockstep.deployment VALUES (true, '03dce53b-23e1-4158-a6fb-140bcb46cc2b', '2026-11-22 12:01:01.659398+00');
INSERT INTO lockstep.epoch VALUES ('lines', 3, NULL, 'committed', 113, '2026-11-22 12:05:02.907826+00', NULL, 'kept', 'lines-3', '{"reads": {"lines": "files @HOME@/landing/lines/*.csv"}, "sinks": {"tcp": {"type": "lockstep.sinks.append_only.tcp:TcpSink", "arguments": {"name": "tcp", "output": "lines", "committer": "@HOME@/sent", "connection": "tcp"}}, "stdout": {"type": "lockstep.sinks.append_only.stdout:StdoutSink", "arguments": {"name": "stdout", "output": "lines", "committer": "@HOME@/sent"}}}, "format": 1, "sources": {"lines": {"end": {"files": [{"to": 40, "from": 18, "path": "@HOME@/landing/lines/b.csv", "size": 40, "digest": "38714403b783b19817193ae314067554041506d2441b56b6fbbb6c944cfba4cd", "sha256": "8ecc757b2ae2ecd08a0d120f63fa8a12acec6724869ea7f12b23448c087f3574", "mtime_ns": 1600000022000000000}], "roots": ["@HOME@/landing/lines"]}, "start": {"files": [{"to": 28, "from": 20, "path": "@HOME@/landing/lines/a.csv", "size": 28, "digest": "cd5407940540c80ee55816f4159489507415dcf291b5206426fbe99271b5eab4", "sha256": "5a3d85b61ff36bef74ef7a6a342e64c0c14e96af6631b7968d3ed2c8eb261bd6", "mtime_ns": 1600000022000000000}], "roots": ["@HOME@/landing/lines"]}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/lines/epoch=3/114', '30b696eba491afc15ddcb8668f142e869e0f2bd83369f7f3f3050d9524eaa9a6', 'kept', '{"outputs": {"lines": {"rows": 2, "bytes": 627, "files": 1, "digest": "b12e1c9fae17fc7478d163d59e39b7e0", "columns": "ca1b5abf660de8e3"}}, "sources": {"lines": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:05:02.907826+00', '2026-11-22 12:05:14.391224+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('customers', 5, NULL, 'staged', 100, '2026-11-22 12:04:30.457748+00', '2026-11-22 12:05:10.65338+00', 'kept', 'customers-5', '{"reads": {"payments": "files @HOME@/landing/payments"}, "sinks": {"totals": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "changes": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_e8bf36e.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}}, "format": 1, "sources": {"payments": {"end": {"files": [{"path": "@HOME@/landing/payments/5.json", "size": 51, "mtime_ns": 1600000018000000000}], "roots": ["@HOME@/landing/payments"]}, "start": {"files": [{"path": "@HOME@/landing/payments/4.json", "size": 99, "mtime_ns": 1600000017000000000}], "roots": ["@HOME@/landing/payments"]}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/customers/epoch=5/101', '6cc3e9e98dc3ee7166a78d68b7a3b31a1f016f7acb93d56adfd7629f23144bb0', 'kept', '{"state": {"totals": {"rows": 5, "bytes": 1292, "buckets": 2}}, "outputs": {"totals": {"rows": 1, "bytes": 801, "files": 1, "digest": "105234b6fc4170e45215335ffabce80a", "columns": "2f732987f0e6a07a"}}, "sources": {"payments": {"rows": 1, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:04:30.457748+00', '2026-11-22 12:04:41.573204+00', '3d13f19844ccaf86eecc8580386b4f983069e8b957560bfe794fcd8348cf10fd', NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('clicks', 3, NULL, 'committed', 163, '2026-11-22 12:08:22.493534+00', NULL, 'kept', 'clicks-3', '{"reads": {"clicks": "files @HOME@/landing/clicks"}, "sinks": {"late": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "late", "path": "@HOME@/out/late", "format": "parquet", "output": "late", "shared": false}}, "hourly": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "hourly", "path": "@HOME@/out/hourly", "format": "json", "output": "hourly", "shared": false}}}, "format": 1, "sources": {"clicks": {"end": {"files": [{"path": "@HOME@/landing/clicks/3.csv", "size": 72, "mtime_ns": 1600000026000000000}], "roots": ["@HOME@/landing/clicks"]}, "start": {"files": [{"path": "@HOME@/landing/clicks/2.csv", "size": 73, "mtime_ns": 1600000025000000000}], "roots": ["@HOME@/landing/clicks"]}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/clicks/epoch=3/164', '537011d9c0317e7fbb1cd789dc18137b18586a66803128bfef05b202709705cb', 'kept', '{"state": {"windows": {"rows": 2, "bytes": 3240, "buckets": 2}, "windows_watermark": {"rows": 1, "bytes": 1519, "buckets": 1}}, "outputs": {"late": {"rows": 1, "bytes": 809, "files": 1, "digest": "89709ee118eb50c04ce97b482ab18bce", "columns": "069d529342443a86"}, "hourly": {"rows": 1, "bytes": 1424, "files": 1, "digest": "6c7aeb943f92a95655b60bef618cec25", "columns": "5bc35be1bac4ed93"}}, "sources": {"clicks": {"rows": 2, "quarantined": 0}}, "balances": {"windows": {"in": 2, "late": 1, "folded": 1, "filtered": 0, "corrected": 0, "partly_late": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:08:22.493534+00', '2026-11-22 12:08:43.210814+00', 'c4bc2b2048263356ac18c70e4c6f0b21f1237c93864ce7ee84b6221030a29e74', NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('events', 1, NULL, 'cleaned', 190, '2026-11-22 12:09:25.880269+00', NULL, 'kept', 'events-1', '{"reads": {"events": "topics kept.events of connection kafka"}, "sinks": {"once": {"type": "lockstep.sinks.kafka.sink:KafkaSink", "arguments": {"key": "key", "name": "once", "topic": "kept.once", "output": "events", "guarantee": "exactly_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "kept.markers"}}, "repeated": {"type": "lockstep.sinks.kafka.sink:KafkaSink", "arguments": {"key": "key", "name": "repeated", "topic": "kept.repeated", "output": "events", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "lockstep.markers"}}}, "format": 1, "sources": {"events": {"end": {"topics": {"kept.events": {"id": "BfmGAc1bTjWMso6iN4gkkQ", "leaders": {"0": 0, "1": 0}, "partitions": {"0": [0, 2], "1": [0, 2]}}}, "cluster": "EIv3bo6ASQmrTtAzieaQlg"}, "start": null}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/events/epoch=1/191', '973b80d504b705272efb3f52f2f1131ba07b4bcd47b521c2b2af5d1f5a764344', 'kept', '{"outputs": {"events": {"rows": 4, "bytes": 1288, "files": 2, "digest": "6d35e9d675913dd82ccbcf1dfa1c6c5d", "columns": "26ca518de9c156b5"}}, "sources": {"events": {"rows": 4, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:09:25.880269+00', '2026-11-22 12:09:37.288856+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('numbers', 2, NULL, 'cleaned', 127, '2026-11-22 12:05:53.186585+00', NULL, 'kept', 'numbers-2', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.numbers_sums"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/numbers", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 20}, "start": {"next": 10}}, "start": {"end": {"next": 10}, "start": {"next": 0}}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/numbers/epoch=2/128', '985f0f9688c53486963e8187898cbf125eabd679b815d22437a9676776536be5', 'kept', '{"state": {"sums": {"rows": 2, "bytes": 618, "buckets": 2}}, "outputs": {"sums": {"rows": 2, "bytes": 618, "files": 1, "digest": "309441ea088488bb5710a518612f05f2", "columns": "db3b0806f2150575"}, "words": {"rows": 10, "bytes": 898, "files": 2, "digest": "0a315c2392149038e1c6b67aa6efb6b0", "columns": "533cc8e2e0dd8bba"}, "numbers": {"rows": 10, "bytes": 1276, "files": 2, "digest": "f19ad56657ccf8222752f03e58a88692", "columns": "a1cda762d8e7e38e"}}, "sources": {"numbers": {"rows": 10, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:05:53.186585+00', '2026-11-22 12:06:39.21865+00', 'cb9dd7723f881bf9a10d82a4666b3595bbdf268a6c311a059ea5d8fa09064b90', NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('tables', 1, NULL, 'cleaned', 1, '2026-11-22 12:01:03.866304+00', NULL, 'kept', 'tables-1', '{"reads": {"entries": "table public.entries of connection warehouse", "accounts": "table public.accounts of connection warehouse"}, "sinks": {"http": {"type": "lockstep.sinks.append_only.http:HttpSink", "arguments": {"name": "http", "output": "entries", "committer": "postgres:warehouse", "connection": "http", "key_header": "Authorization"}}, "entries": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "entries", "create": true, "schema": "proofs", "shared": false, "tables": {"entries": "public.entries_copy"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "accounts": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "accounts", "create": true, "schema": "public", "shared": false, "tables": {"accounts": "public.accounts_copy"}, "protocol": "write_ahead", "validate": "schema", "committer": "postgres:warehouse", "guarantee": "at_least_once", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "careless": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "careless", "create": true, "schema": "public", "shared": false, "tables": {"entries": "public.entries_careless"}, "protocol": "write_ahead", "validate": "load", "guarantee": "none", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"entries": {"end": {"rows": 3, "upto": "3", "after": null, "server": "system 7710964083920999023, timeline 00000001, database 16387, table 16397", "order_by": "id"}, "start": null}, "accounts": {"end": {"rows": 3, "upto": "765", "after": null, "server": "system 7710964083920999023, timeline 00000001, database 16387, table 16388", "order_by": "xid"}, "start": null}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/tables/epoch=1/2', 'ea2af588ee00aac28d34e83c6553c6e7eaa72e9adc3548a41ba6e0f18dd3a81b', 'kept', '{"outputs": {"entries": {"rows": 3, "bytes": 848, "files": 1, "digest": "04933906e98dccadcda5e9c4da26081b", "columns": "39a9cfc71963f5cf"}, "accounts": {"rows": 3, "bytes": 655, "files": 1, "digest": "fa8a5564931e64f7cd5c60c6f5249a1f", "columns": "2eec007ad4b74b3a"}}, "sources": {"entries": {"rows": 3, "quarantined": 0}, "accounts": {"rows": 3, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:01:03.866304+00', '2026-11-22 12:01:41.481614+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('maria_again', 1, NULL, 'cleaned', 167, '2026-11-22 12:08:43.853468+00', NULL, 'kept', 'maria_again-1', '{"reads": {"moves": "table moves of connection maria"}, "sinks": {"repeated": {"type": "lockstep.sinks.mysql.sink:MySqlSink", "arguments": {"name": "repeated", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_repeated"}, "protocol": "write_ahead", "validate": "load", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "maria", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"moves": {"end": {"rows": 2, "upto": "2", "after": null, "server": "server 1 (CIcVV8yomDremi8gYHaBQQJDCgA=), database kept, table moves", "order_by": "id"}, "start": null}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/maria_again/epoch=1/168', '57c3d37b21fa6a9309fd5ba6db0727946e9e1fbba4296ea84db83061a8d67b1f', 'kept', '{"outputs": {"moves": {"rows": 2, "bytes": 644, "files": 1, "digest": "df65e822f9a1f9a9d12e843bd01a4cff", "columns": "ad9dc2711a7a23a1"}}, "sources": {"moves": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:08:43.853468+00', '2026-11-22 12:08:52.292394+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('tables', 2, NULL, 'committed', 11, '2026-11-22 12:01:42.546028+00', NULL, 'kept', 'tables-2', '{"reads": {"entries": "table public.entries of connection warehouse", "accounts": "table public.accounts of connection warehouse"}, "sinks": {"http": {"type": "lockstep.sinks.append_only.http:HttpSink", "arguments": {"name": "http", "output": "entries", "committer": "postgres:warehouse", "connection": "http", "key_header": "Authorization"}}, "entries": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "entries", "create": true, "schema": "proofs", "shared": false, "tables": {"entries": "public.entries_copy"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "accounts": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "accounts", "create": true, "schema": "public", "shared": false, "tables": {"accounts": "public.accounts_copy"}, "protocol": "write_ahead", "validate": "schema", "committer": "postgres:warehouse", "guarantee": "at_least_once", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "careless": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "careless", "create": true, "schema": "public", "shared": false, "tables": {"entries": "public.entries_careless"}, "protocol": "write_ahead", "validate": "load", "guarantee": "none", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"entries": {"end": {"rows": 3, "upto": "6", "after": "3", "server": "system 7710964083920999023, timeline 00000001, database 16387, table 16397", "order_by": "id"}, "start": {"rows": 3, "upto": "3", "after": null, "server": "system 7710964083920999023, timeline 00000001, database 16387, table 16397", "order_by": "id"}}, "accounts": {"end": {"rows": 3, "upto": "787", "after": "765", "server": "system 7710964083920999023, timeline 00000001, database 16387, table 16388", "order_by": "xid"}, "start": {"rows": 3, "upto": "765", "after": null, "server": "system 7710964083920999023, timeline 00000001, database 16387, table 16388", "order_by": "xid"}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/tables/epoch=2/12', 'a91a07e4f6ed754cde3f0213b4c4980bb41c7d69dd623a7ec9e26f5fb7a94a39', 'kept', '{"outputs": {"entries": {"rows": 3, "bytes": 849, "files": 1, "digest": "15ed6f8853b587837485d463ef56c989", "columns": "39a9cfc71963f5cf"}, "accounts": {"rows": 3, "bytes": 655, "files": 1, "digest": "81aacbf88f0f5fa56b790cb6f4762b28", "columns": "2eec007ad4b74b3a"}}, "sources": {"entries": {"rows": 3, "quarantined": 0}, "accounts": {"rows": 3, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:01:42.546028+00', '2026-11-22 12:02:00.792917+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('tables', 3, NULL, 'committed', 19, '2026-11-22 12:02:01.961238+00', NULL, 'kept', 'tables-3', '{"reads": {"entries": "table public.entries of connection warehouse", "accounts": "table public.accounts of connection warehouse"}, "sinks": {"http": {"type": "lockstep.sinks.append_only.http:HttpSink", "arguments": {"name": "http", "output": "entries", "committer": "postgres:warehouse", "connection": "http", "key_header": "Authorization"}}, "entries": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "entries", "create": true, "schema": "proofs", "shared": false, "tables": {"entries": "public.entries_copy"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "accounts": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "accounts", "create": true, "schema": "public", "shared": false, "tables": {"accounts": "public.accounts_copy"}, "protocol": "write_ahead", "validate": "schema", "committer": "postgres:warehouse", "guarantee": "at_least_once", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "careless": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "careless", "create": true, "schema": "public", "shared": false, "tables": {"entries": "public.entries_careless"}, "protocol": "write_ahead", "validate": "load", "guarantee": "none", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"entries": {"end": {"rows": 3, "upto": "9", "after": "6", "server": "system 7710964083920999023, timeline 00000001, database 16387, table 16397", "order_by": "id"}, "start": {"rows": 3, "upto": "6", "after": "3", "server": "system 7710964083920999023, timeline 00000001, database 16387, table 16397", "order_by": "id"}}, "accounts": {"end": {"rows": 3, "upto": "800", "after": "787", "server": "system 7710964083920999023, timeline 00000001, database 16387, table 16388", "order_by": "xid"}, "start": {"rows": 3, "upto": "787", "after": "765", "server": "system 7710964083920999023, timeline 00000001, database 16387, table 16388", "order_by": "xid"}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/tables/epoch=3/20', 'dff8a4408932cad79dc8fc6330fb31d1fe91f192c2182550f11170956a3465cb', 'kept', '{"outputs": {"entries": {"rows": 3, "bytes": 849, "files": 1, "digest": "438d3e6db27112088cc2644333e70e3c", "columns": "39a9cfc71963f5cf"}, "accounts": {"rows": 3, "bytes": 655, "files": 1, "digest": "45a40ecf88052e7823ae8d536dc371b7", "columns": "2eec007ad4b74b3a"}}, "sources": {"entries": {"rows": 3, "quarantined": 0}, "accounts": {"rows": 3, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:02:01.961238+00', '2026-11-22 12:02:09.792947+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('resumed', 1, NULL, 'committed', 144, '2026-11-22 12:07:03.939121+00', NULL, 'kept', 'resumed-1', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.resumed_sums"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/resumed", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 30}, "start": {"next": 20}}, "start": {"end": {"next": 20}, "start": {"next": 10}}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/resumed/epoch=1/145', '15dc957646c6da77c0d10943bcf6152dc5f99856350ad6b9045b446ae05e4d99', 'kept', '{"state": {"sums": {"rows": 2, "bytes": 618, "buckets": 2}}, "outputs": {"sums": {"rows": 2, "bytes": 618, "files": 1, "digest": "e6e5a0fd902d01b67860338a24880934", "columns": "db3b0806f2150575"}, "words": {"rows": 10, "bytes": 897, "files": 2, "digest": "237199a4b985a098d4d42b21c9e6b125", "columns": "533cc8e2e0dd8bba"}, "numbers": {"rows": 10, "bytes": 1276, "files": 2, "digest": "2f3d5d09d7ae5acb2b054d8d1e9fa06c", "columns": "a1cda762d8e7e38e"}}, "sources": {"numbers": {"rows": 10, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:07:03.939121+00', '2026-11-22 12:07:32.020672+00', '', NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('orders', 1, '["2013-01-01 00:00:00+00","2013-01-02 00:00:00+00")', 'cleaned', 25, '2026-11-22 12:02:10.189914+00', NULL, 'kept', 'orders-0', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-01.csv", "size": 384, "mtime_ns": 1600000002000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-01.csv"}, "start": null}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/orders/epoch=1/26', '6ccdd53b5e22dcd809d8eeda3313c29e140d64436d2f6d174b647186aecd5eeb', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1828, "files": 1, "digest": "7850533f1ff18742c08f41cc98e526bb", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 799, "files": 1, "digest": "2c2503174758e382f51b36541a024ba1", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:02:10.189914+00', '2026-11-22 12:02:31.120083+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('resumed', 2, NULL, 'planned', 150, '2026-11-22 12:07:32.538061+00', '2026-11-22 12:08:02.538061+00', 'kept', 'resumed-2', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.resumed_sums"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/resumed", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 40}, "start": {"next": 30}}, "start": {"end": {"next": 30}, "start": {"next": 20}}}}}', NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:07:32.538061+00', '2026-11-22 12:07:32.538061+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('orders', 2, '["2013-01-02 00:00:00+00","2013-01-03 00:00:00+00")', 'published', 33, '2026-11-22 12:02:31.5327+00', NULL, 'kept', 'orders-1', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-02.csv", "size": 389, "mtime_ns": 1600000003000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-02.csv"}, "start": null}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/orders/epoch=2/34', '4488c9c5087fc9b5a82de9186697b1f7019d20a55311c0eac77d5c7ae147c4d3', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1830, "files": 1, "digest": "1a1a955df76f6bce56b6afe13d2b7812", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 799, "files": 1, "digest": "a820947971945152ee2f90ff11c36dbe", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:02:31.5327+00', '2026-11-22 12:02:41.672711+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('orders', 3, '["2013-01-03 00:00:00+00","2013-01-04 00:00:00+00")', 'committed', 41, '2026-11-22 12:02:41.935571+00', NULL, 'kept', 'orders-2', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-03.csv", "size": 389, "mtime_ns": 1600000004000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-03.csv"}, "start": null}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/orders/epoch=3/42', '2f8c164309442fe9398a618ca3016ef333709a1df8f638830abe0a1a29693c54', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1830, "files": 1, "digest": "dd1d1a8c48977235e3a6ef5ab1e5c40f", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 799, "files": 1, "digest": "d7ffd2b1f81b7aa4fc256656adf330aa", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:02:41.935571+00', '2026-11-22 12:02:50.141909+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('orders', 4, '["2013-01-04 00:00:00+00","2013-01-05 00:00:00+00")', 'committed', 48, '2026-11-22 12:02:50.752117+00', NULL, 'kept', 'orders-3', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-04.csv", "size": 389, "mtime_ns": 1600000005000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-04.csv"}, "start": null}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/orders/epoch=4/49', 'd37fd16d236ab2dede66404232ebb84f692b824dbfc3da7783e4a426c9cc4c4b', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1830, "files": 1, "digest": "b06f1896b00b6feec88c1c918b856a67", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 799, "files": 1, "digest": "0a48b58c56cb258748195a92200f120b", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:02:50.752117+00', '2026-11-22 12:02:57.595312+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('orders', 5, '["2013-01-05 00:00:00+00","2013-01-06 00:00:00+00")', 'committed', 53, '2026-11-22 12:02:57.864379+00', NULL, 'kept', 'orders-4', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-05.csv", "size": 389, "mtime_ns": 1600000006000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-05.csv"}, "start": null}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/orders/epoch=5/54', '5f48b5e991e1636e6ee999ab15695381c358112b1b9af79cf4cdc8aba27ab344', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1831, "files": 1, "digest": "6cf6c82e8c36bd444584b56783d411fa", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 799, "files": 1, "digest": "e85666fe00bf38a262fd075b8a6b7a72", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:02:57.864379+00', '2026-11-22 12:03:05.527356+00', NULL, '03dce53b-23e1-4158-a6fb-140bcb46cc2b/orders/epoch=5/58', '9551cfffdde36e17797fbd8678c900869d9a1680fc096f9f2f3fd69aa6b3021d', false);
INSERT INTO lockstep.epoch VALUES ('orders', 7, '["2013-01-07 00:00:00+00","2013-01-08 00:00:00+00")', 'staged', 66, '2026-11-22 12:03:19.413315+00', '2026-11-22 12:03:54.445448+00', 'kept', 'orders-6', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-07.csv", "size": 389, "mtime_ns": 1600000008000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-07.csv"}, "start": null}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/orders/epoch=7/67', 'ca07112a4ff7f4c67ddb623335cca6baaa044fdbe39528be1dd66037b3656cfd', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1831, "files": 1, "digest": "6c465f20697e6e5b22ee705903d2f7ff", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 799, "files": 1, "digest": "749ef507c1d7c7afc00b58c11d154725", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:03:19.413315+00', '2026-11-22 12:03:24.092835+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('orders', 6, '["2013-01-06 00:00:00+00","2013-01-07 00:00:00+00")', 'committed', 59, '2026-11-22 12:03:12.713736+00', NULL, 'kept', 'orders-5', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-06.csv", "size": 389, "mtime_ns": 1600000007000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-06.csv"}, "start": null}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/orders/epoch=6/60', 'cccbffe4be575f32e2ad4a1bf2043bde301192b3528fd6c0b14f8484fedfe7d4', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1830, "files": 1, "digest": "aeaa4bfc17eee22184531627d339c4c9", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 799, "files": 1, "digest": "68c5874ddbf69fdc9a2b05788ff8bbe7", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:03:12.713736+00', '2026-11-22 12:03:18.824623+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('orders', 8, '["2013-01-08 00:00:00+00","2013-01-09 00:00:00+00")', 'staged', 71, '2026-11-22 12:03:24.693765+00', '2026-11-22 12:03:58.085383+00', 'kept', 'orders-7', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-08.csv", "size": 389, "mtime_ns": 1600000009000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-08.csv"}, "start": null}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/orders/epoch=8/72', '98221551754d078ec3b73cf3dff402930ac2752ed78d4fbb0e498c19d99598ef', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1830, "files": 1, "digest": "48b2c6777aa0e032805d3ad25accd0e6", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 799, "files": 1, "digest": "72601ba3475da230b3ab3718bc542ece", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:03:24.693765+00', '2026-11-22 12:03:28.04028+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('numbers', 1, NULL, 'cleaned', 117, '2026-11-22 12:05:15.105384+00', NULL, 'kept', 'numbers-1', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.numbers_sums"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/numbers", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 10}, "start": {"next": 0}}, "start": null}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/numbers/epoch=1/118', 'cb9dd7723f881bf9a10d82a4666b3595bbdf268a6c311a059ea5d8fa09064b90', 'kept', '{"state": {"sums": {"rows": 2, "bytes": 618, "buckets": 2}}, "outputs": {"sums": {"rows": 2, "bytes": 618, "files": 1, "digest": "e6efd430c230bc026c40a60ce5821bf8", "columns": "db3b0806f2150575"}, "words": {"rows": 10, "bytes": 899, "files": 2, "digest": "7833deb34a337f276c820cd5d4813763", "columns": "533cc8e2e0dd8bba"}, "numbers": {"rows": 10, "bytes": 1276, "files": 2, "digest": "69a53f6519b25c9585b89b60dac9389a", "columns": "a1cda762d8e7e38e"}}, "sources": {"numbers": {"rows": 10, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:05:15.105384+00', '2026-11-22 12:05:52.968115+00', '', NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('orders', 9, '["2013-01-09 00:00:00+00","2013-01-10 00:00:00+00")', 'staged', 74, '2026-11-22 12:03:28.305354+00', '2026-11-22 12:03:58.373159+00', 'kept', 'orders-8', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-09.csv", "size": 389, "mtime_ns": 1600000010000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-09.csv"}, "start": null}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/orders/epoch=9/75', 'ed7dd04a17f638f36cfa1a5066f3a8ce291a075146de058db94c7be7d94b2060', 'kept', '{"outputs": {"orders": {"rows": 4, "bytes": 1828, "files": 1, "digest": "1561a3bc4bbf786bcf3ebba777c81ca4", "columns": "c5bead159f7b7252"}, "refunds": {"rows": 1, "bytes": 799, "files": 1, "digest": "29e9d9a11fa1d408c28d0e7f00916682", "columns": "aca7157b32455186"}}, "sources": {"orders": {"rows": 5, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:03:28.305354+00', '2026-11-22 12:03:31.201002+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('orders', 10, '["2013-01-10 00:00:00+00","2013-01-11 00:00:00+00")', 'planned', 76, '2026-11-22 12:03:31.41871+00', '2026-11-22 12:04:01.41871+00', 'kept', 'orders-9', '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-10.csv", "size": 389, "mtime_ns": 1600000011000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-10.csv"}, "start": null}}}', NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:03:31.41871+00', '2026-11-22 12:03:31.41871+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('orders', 11, '["2013-01-11 00:00:00+00","2013-01-12 00:00:00+00")', 'void', 78, '2026-11-22 12:03:31.805213+00', NULL, NULL, NULL, '{"reads": {"orders": "files @HOME@/landing/orders/{interval_start:%Y-%m-%d}.csv"}, "sinks": {"by_hour": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}, "refunds": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}, "warehouse": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"orders": {"end": {"files": [{"path": "@HOME@/landing/orders/2013-01-11.csv", "size": 394, "mtime_ns": 1600000012000000000}], "roots": ["@HOME@/landing/orders"], "expects": "@HOME@/landing/orders/2013-01-11.csv"}, "start": null}}}', NULL, NULL, NULL, NULL, 'nobody wants that day', '2026-11-22 12:03:31.702962+00', '2026-11-22 12:03:31.805213+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('numbers', 3, NULL, 'committed', 137, '2026-11-22 12:06:39.774418+00', NULL, 'kept', 'numbers-3', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.numbers_sums"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/numbers", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 30}, "start": {"next": 20}}, "start": {"end": {"next": 20}, "start": {"next": 10}}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/numbers/epoch=3/138', 'e1477cf940bc5eb4955941551b7f6d4313b6534267ce452bc96728a93b8396ed', 'kept', '{"state": {"sums": {"rows": 2, "bytes": 618, "buckets": 2}}, "outputs": {"sums": {"rows": 2, "bytes": 618, "files": 1, "digest": "e6e5a0fd902d01b67860338a24880934", "columns": "db3b0806f2150575"}, "words": {"rows": 10, "bytes": 897, "files": 2, "digest": "237199a4b985a098d4d42b21c9e6b125", "columns": "533cc8e2e0dd8bba"}, "numbers": {"rows": 10, "bytes": 1276, "files": 2, "digest": "2f3d5d09d7ae5acb2b054d8d1e9fa06c", "columns": "a1cda762d8e7e38e"}}, "sources": {"numbers": {"rows": 10, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:06:39.774418+00', '2026-11-22 12:07:02.956803+00', '985f0f9688c53486963e8187898cbf125eabd679b815d22437a9676776536be5', NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('clicks', 2, NULL, 'published', 157, '2026-11-22 12:08:00.952132+00', NULL, 'kept', 'clicks-2', '{"reads": {"clicks": "files @HOME@/landing/clicks"}, "sinks": {"late": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "late", "path": "@HOME@/out/late", "format": "parquet", "output": "late", "shared": false}}, "hourly": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "hourly", "path": "@HOME@/out/hourly", "format": "json", "output": "hourly", "shared": false}}}, "format": 1, "sources": {"clicks": {"end": {"files": [{"path": "@HOME@/landing/clicks/2.csv", "size": 73, "mtime_ns": 1600000025000000000}], "roots": ["@HOME@/landing/clicks"]}, "start": {"files": [{"path": "@HOME@/landing/clicks/1.csv", "size": 100, "mtime_ns": 1600000024000000000}], "roots": ["@HOME@/landing/clicks"]}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/clicks/epoch=2/158', 'c4bc2b2048263356ac18c70e4c6f0b21f1237c93864ce7ee84b6221030a29e74', 'kept', '{"state": {"windows": {"rows": 1, "bytes": 1620, "buckets": 2}, "windows_watermark": {"rows": 1, "bytes": 1519, "buckets": 1}}, "outputs": {"late": {"rows": 0, "bytes": 478, "files": 1, "digest": "00000000000000000000000000000000", "columns": "069d529342443a86"}, "hourly": {"rows": 2, "bytes": 1464, "files": 1, "digest": "9149a0190227004d1bf18386c39f394d", "columns": "5bc35be1bac4ed93"}}, "sources": {"clicks": {"rows": 2, "quarantined": 0}}, "balances": {"windows": {"in": 2, "late": 0, "folded": 2, "filtered": 0, "corrected": 1, "partly_late": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:08:00.952132+00', '2026-11-22 12:08:22.377784+00', '5d14bf447545da6eb998b0f4ef9697647814ea49448b01d650e2316b121f4e30', NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('maria', 1, NULL, 'cleaned', 171, '2026-11-22 12:08:52.554689+00', NULL, 'kept', 'maria-1', '{"reads": {"moves": "table moves of connection maria"}, "sinks": {"newest": {"type": "lockstep.sinks.mysql.sink:MySqlSink", "arguments": {"key": {"moves": ["piece"]}, "mode": "upsert", "name": "newest", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_newest"}, "protocol": "write_ahead", "validate": "load", "connection": "maria", "epoch_column": "lockstep_epoch"}}, "prepared": {"type": "lockstep.sinks.mysql.sink:MySqlSink", "arguments": {"name": "prepared", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_prepared"}, "protocol": "two_phase", "validate": "load", "connection": "maria", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"moves": {"end": {"rows": 2, "upto": "2", "after": null, "server": "server 1 (CIcVV8yomDremi8gYHaBQQJDCgA=), database kept, table moves", "order_by": "id"}, "start": null}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/maria/epoch=1/172', 'e79ee2d29caf6e86c06fc786e9144e42078fa52f8bc13756b5c80603cb51897b', 'kept', '{"outputs": {"moves": {"rows": 2, "bytes": 867, "files": 1, "digest": "99e6359fe96e2a953f3437d06569a5fe", "columns": "5d1c0e39e4340e8b"}}, "sources": {"moves": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:08:52.554689+00', '2026-11-22 12:09:02.2479+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('customers', 1, NULL, 'cleaned', 79, '2026-11-22 12:03:32.304867+00', NULL, 'kept', 'customers-1', '{"reads": {"payments": "files @HOME@/landing/payments"}, "sinks": {"totals": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "changes": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_e8bf36e.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}}, "format": 1, "sources": {"payments": {"end": {"files": [{"path": "@HOME@/landing/payments/1.json", "size": 145, "mtime_ns": 1600000014000000000}], "roots": ["@HOME@/landing/payments"]}, "start": null}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/customers/epoch=1/80', '49a2fd8a5bbeb2f509dc4b6e1965d10b592ab7224dca4550f810cf83873477f5', 'kept', '{"state": {"totals": {"rows": 3, "bytes": 674, "buckets": 2}}, "outputs": {"totals": {"rows": 3, "bytes": 830, "files": 1, "digest": "a20b052d35cf010792cb9535646d697d", "columns": "2f732987f0e6a07a"}}, "sources": {"payments": {"rows": 3, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:03:32.304867+00', '2026-11-22 12:03:43.081888+00', '', NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('customers', 2, NULL, 'published', 85, '2026-11-22 12:03:43.181709+00', NULL, 'kept', 'customers-2', '{"reads": {"payments": "files @HOME@/landing/payments"}, "sinks": {"totals": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "changes": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_e8bf36e.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}}, "format": 1, "sources": {"payments": {"end": {"files": [{"path": "@HOME@/landing/payments/2.json", "size": 99, "mtime_ns": 1600000015000000000}], "roots": ["@HOME@/landing/payments"]}, "start": {"files": [{"path": "@HOME@/landing/payments/1.json", "size": 145, "mtime_ns": 1600000014000000000}], "roots": ["@HOME@/landing/payments"]}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/customers/epoch=2/86', 'c626f6a3dde6119b0f74cae727903da0bd25d96974d24768b0298dad88fa9108', 'kept', '{"state": {"totals": {"rows": 4, "bytes": 666, "buckets": 2}}, "outputs": {"totals": {"rows": 2, "bytes": 817, "files": 1, "digest": "914f228fce3da144f87c181a430031e7", "columns": "2f732987f0e6a07a"}}, "sources": {"payments": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:03:43.181709+00', '2026-11-22 12:04:02.549628+00', '49a2fd8a5bbeb2f509dc4b6e1965d10b592ab7224dca4550f810cf83873477f5', NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('customers', 3, NULL, 'committed', 91, '2026-11-22 12:04:02.837636+00', NULL, 'kept', 'customers-3', '{"reads": {"payments": "files @HOME@/landing/payments"}, "sinks": {"totals": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "changes": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_e8bf36e.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}}, "format": 1, "sources": {"payments": {"end": {"files": [{"path": "@HOME@/landing/payments/3.json", "size": 96, "mtime_ns": 1600000016000000000}], "roots": ["@HOME@/landing/payments"]}, "start": {"files": [{"path": "@HOME@/landing/payments/2.json", "size": 99, "mtime_ns": 1600000015000000000}], "roots": ["@HOME@/landing/payments"]}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/customers/epoch=3/92', '3af8ce443b0a56af3f8c090d85dcb64245110a1d931abf284f0b7663943baf54', 'kept', '{"state": {"totals": {"rows": 4, "bytes": 665, "buckets": 2}}, "outputs": {"totals": {"rows": 2, "bytes": 817, "files": 1, "digest": "1bdb3fd5e7c6f071aef8dac9a174a317", "columns": "2f732987f0e6a07a"}}, "sources": {"payments": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:04:02.837636+00', '2026-11-22 12:04:15.286463+00', 'c626f6a3dde6119b0f74cae727903da0bd25d96974d24768b0298dad88fa9108', NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('customers', 4, NULL, 'committed', 96, '2026-11-22 12:04:15.745691+00', NULL, 'kept', 'customers-4', '{"reads": {"payments": "files @HOME@/landing/payments"}, "sinks": {"totals": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "changes": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_e8bf36e.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}}, "format": 1, "sources": {"payments": {"end": {"files": [{"path": "@HOME@/landing/payments/4.json", "size": 99, "mtime_ns": 1600000017000000000}], "roots": ["@HOME@/landing/payments"]}, "start": {"files": [{"path": "@HOME@/landing/payments/3.json", "size": 96, "mtime_ns": 1600000016000000000}], "roots": ["@HOME@/landing/payments"]}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/customers/epoch=4/97', '3d13f19844ccaf86eecc8580386b4f983069e8b957560bfe794fcd8348cf10fd', 'kept', '{"state": {"totals": {"rows": 5, "bytes": 1292, "buckets": 2}}, "outputs": {"totals": {"rows": 2, "bytes": 817, "files": 1, "digest": "0fda1f7ef202accf112ee671e6803b06", "columns": "2f732987f0e6a07a"}}, "sources": {"payments": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:04:15.745691+00', '2026-11-22 12:04:30.297933+00', '3af8ce443b0a56af3f8c090d85dcb64245110a1d931abf284f0b7663943baf54', NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('lines', 1, NULL, 'cleaned', 102, '2026-11-22 12:04:41.71795+00', NULL, 'kept', 'lines-1', '{"reads": {"lines": "files @HOME@/landing/lines/*.csv"}, "sinks": {"tcp": {"type": "lockstep.sinks.append_only.tcp:TcpSink", "arguments": {"name": "tcp", "output": "lines", "committer": "@HOME@/sent", "connection": "tcp"}}, "stdout": {"type": "lockstep.sinks.append_only.stdout:StdoutSink", "arguments": {"name": "stdout", "output": "lines", "committer": "@HOME@/sent"}}}, "format": 1, "sources": {"lines": {"end": {"files": [{"to": 20, "from": 0, "path": "@HOME@/landing/lines/a.csv", "size": 20, "digest": "f3f9bfcf27a8d79a357777f5eb73733fd86e4761dc044146bd7d99431d38ef5c", "sha256": "9ff1b76384a0bd03d8fe51a09bff6bda908cc865152e51472acfed4e72fd2570", "mtime_ns": 1600000021000000000}, {"to": 18, "from": 0, "path": "@HOME@/landing/lines/b.csv", "size": 18, "digest": "30b0c7f27491dffebad22638b3c9be39d0e6a91771485012bb901203c7acc761", "sha256": "cdd3b2112e917fe5998df16d247f315d690783a2d1c394fe6590300b2caebe4e", "mtime_ns": 1600000022000000000}], "roots": ["@HOME@/landing/lines"]}, "start": null}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/lines/epoch=1/103', '92b2ab15435a134629232e1abea70f9292278754677d4e39b4ca8d0d9f3487a4', 'kept', '{"outputs": {"lines": {"rows": 3, "bytes": 637, "files": 1, "digest": "1d917c36f2d48dec8a815763f3dc54be", "columns": "ca1b5abf660de8e3"}}, "sources": {"lines": {"rows": 3, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:04:41.71795+00', '2026-11-22 12:04:51.751321+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('numbers', 4, NULL, 'planned', 143, '2026-11-22 12:07:03.353127+00', '2026-11-22 12:07:33.353127+00', 'kept', 'numbers-4', '{"reads": {"numbers": "data source lockstep.compute.sequence:SequenceDataSource"}, "sinks": {"words": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}, "newest": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.numbers_sums"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "shared": {"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}, "by_parity": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/numbers", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}}, "format": 1, "sources": {"numbers": {"end": {"end": {"next": 40}, "start": {"next": 30}}, "start": {"end": {"next": 30}, "start": {"next": 20}}}}}', NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:07:03.353127+00', '2026-11-22 12:07:03.353127+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('clicks', 1, NULL, 'cleaned', 151, '2026-11-22 12:07:32.781609+00', NULL, 'kept', 'clicks-1', '{"reads": {"clicks": "files @HOME@/landing/clicks"}, "sinks": {"late": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "late", "path": "@HOME@/out/late", "format": "parquet", "output": "late", "shared": false}}, "hourly": {"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "hourly", "path": "@HOME@/out/hourly", "format": "json", "output": "hourly", "shared": false}}}, "format": 1, "sources": {"clicks": {"end": {"files": [{"path": "@HOME@/landing/clicks/1.csv", "size": 100, "mtime_ns": 1600000024000000000}], "roots": ["@HOME@/landing/clicks"]}, "start": null}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/clicks/epoch=1/152', '5d14bf447545da6eb998b0f4ef9697647814ea49448b01d650e2316b121f4e30', 'kept', '{"state": {"windows": {"rows": 2, "bytes": 3279, "buckets": 2}, "windows_watermark": {"rows": 1, "bytes": 1556, "buckets": 1}}, "outputs": {"late": {"rows": 0, "bytes": 478, "files": 1, "digest": "00000000000000000000000000000000", "columns": "069d529342443a86"}, "hourly": {"rows": 1, "bytes": 1423, "files": 1, "digest": "f52abe6317157087c3d597df20c58d6e", "columns": "5bc35be1bac4ed93"}}, "sources": {"clicks": {"rows": 3, "quarantined": 0}}, "balances": {"windows": {"in": 3, "late": 0, "folded": 3, "filtered": 0, "corrected": 0, "partly_late": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:07:32.781609+00', '2026-11-22 12:08:00.78746+00', '', NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('lines', 2, NULL, 'committed', 108, '2026-11-22 12:04:51.961023+00', NULL, 'kept', 'lines-2', '{"reads": {"lines": "files @HOME@/landing/lines/*.csv"}, "sinks": {"tcp": {"type": "lockstep.sinks.append_only.tcp:TcpSink", "arguments": {"name": "tcp", "output": "lines", "committer": "@HOME@/sent", "connection": "tcp"}}, "stdout": {"type": "lockstep.sinks.append_only.stdout:StdoutSink", "arguments": {"name": "stdout", "output": "lines", "committer": "@HOME@/sent"}}}, "format": 1, "sources": {"lines": {"end": {"files": [{"to": 28, "from": 20, "path": "@HOME@/landing/lines/a.csv", "size": 28, "digest": "cd5407940540c80ee55816f4159489507415dcf291b5206426fbe99271b5eab4", "sha256": "5a3d85b61ff36bef74ef7a6a342e64c0c14e96af6631b7968d3ed2c8eb261bd6", "mtime_ns": 1600000022000000000}], "roots": ["@HOME@/landing/lines"]}, "start": {"files": [{"to": 20, "from": 0, "path": "@HOME@/landing/lines/a.csv", "size": 20, "digest": "f3f9bfcf27a8d79a357777f5eb73733fd86e4761dc044146bd7d99431d38ef5c", "sha256": "9ff1b76384a0bd03d8fe51a09bff6bda908cc865152e51472acfed4e72fd2570", "mtime_ns": 1600000021000000000}, {"to": 18, "from": 0, "path": "@HOME@/landing/lines/b.csv", "size": 18, "digest": "30b0c7f27491dffebad22638b3c9be39d0e6a91771485012bb901203c7acc761", "sha256": "cdd3b2112e917fe5998df16d247f315d690783a2d1c394fe6590300b2caebe4e", "mtime_ns": 1600000022000000000}], "roots": ["@HOME@/landing/lines"]}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/lines/epoch=2/109', 'b45161c2d692ee54f8a63686afa46c89c7c10592037ba0cc9e2c28d9c4d9264e', 'kept', '{"outputs": {"lines": {"rows": 1, "bytes": 606, "files": 1, "digest": "3723ad80331979c56c668dca34cd57c9", "columns": "ca1b5abf660de8e3"}}, "sources": {"lines": {"rows": 1, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:04:51.961023+00', '2026-11-22 12:05:02.546465+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('maria_again', 2, NULL, 'committed', 177, '2026-11-22 12:09:02.629979+00', NULL, 'kept', 'maria_again-2', '{"reads": {"moves": "table moves of connection maria"}, "sinks": {"repeated": {"type": "lockstep.sinks.mysql.sink:MySqlSink", "arguments": {"name": "repeated", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_repeated"}, "protocol": "write_ahead", "validate": "load", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "maria", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"moves": {"end": {"rows": 2, "upto": "4", "after": "2", "server": "server 1 (CIcVV8yomDremi8gYHaBQQJDCgA=), database kept, table moves", "order_by": "id"}, "start": {"rows": 2, "upto": "2", "after": null, "server": "server 1 (CIcVV8yomDremi8gYHaBQQJDCgA=), database kept, table moves", "order_by": "id"}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/maria_again/epoch=2/178', 'e5e38c48511945d8edec99fd5880f2c6b6e1563c9c76380765084d12b72235a6', 'kept', '{"outputs": {"moves": {"rows": 2, "bytes": 644, "files": 1, "digest": "f5b55bdc84df1a3bbf487dac86efeae3", "columns": "ad9dc2711a7a23a1"}}, "sources": {"moves": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:09:02.629979+00', '2026-11-22 12:09:10.59088+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('maria', 2, NULL, 'published', 180, '2026-11-22 12:09:10.962153+00', NULL, 'kept', 'maria-2', '{"reads": {"moves": "table moves of connection maria"}, "sinks": {"newest": {"type": "lockstep.sinks.mysql.sink:MySqlSink", "arguments": {"key": {"moves": ["piece"]}, "mode": "upsert", "name": "newest", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_newest"}, "protocol": "write_ahead", "validate": "load", "connection": "maria", "epoch_column": "lockstep_epoch"}}, "prepared": {"type": "lockstep.sinks.mysql.sink:MySqlSink", "arguments": {"name": "prepared", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_prepared"}, "protocol": "two_phase", "validate": "load", "connection": "maria", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"moves": {"end": {"rows": 2, "upto": "4", "after": "2", "server": "server 1 (CIcVV8yomDremi8gYHaBQQJDCgA=), database kept, table moves", "order_by": "id"}, "start": {"rows": 2, "upto": "2", "after": null, "server": "server 1 (CIcVV8yomDremi8gYHaBQQJDCgA=), database kept, table moves", "order_by": "id"}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/maria/epoch=2/181', 'b1c9bc3cb3c434eef8f44a2705672504b95200a424178171d79d7439d93473e1', 'kept', '{"outputs": {"moves": {"rows": 2, "bytes": 867, "files": 1, "digest": "a4b9d8ce503c3d4cbc7dffc603fd7145", "columns": "5d1c0e39e4340e8b"}}, "sources": {"moves": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:09:10.962153+00', '2026-11-22 12:09:19.370639+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('maria', 3, NULL, 'committed', 186, '2026-11-22 12:09:19.754465+00', NULL, 'kept', 'maria-3', '{"reads": {"moves": "table moves of connection maria"}, "sinks": {"newest": {"type": "lockstep.sinks.mysql.sink:MySqlSink", "arguments": {"key": {"moves": ["piece"]}, "mode": "upsert", "name": "newest", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_newest"}, "protocol": "write_ahead", "validate": "load", "connection": "maria", "epoch_column": "lockstep_epoch"}}, "prepared": {"type": "lockstep.sinks.mysql.sink:MySqlSink", "arguments": {"name": "prepared", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_prepared"}, "protocol": "two_phase", "validate": "load", "connection": "maria", "epoch_column": "lockstep_epoch"}}}, "format": 1, "sources": {"moves": {"end": {"rows": 2, "upto": "6", "after": "4", "server": "server 1 (CIcVV8yomDremi8gYHaBQQJDCgA=), database kept, table moves", "order_by": "id"}, "start": {"rows": 2, "upto": "4", "after": "2", "server": "server 1 (CIcVV8yomDremi8gYHaBQQJDCgA=), database kept, table moves", "order_by": "id"}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/maria/epoch=3/187', 'fbed6f6bf62338459d58de9aa517f83d7da09d43bdc41b5da886b110d27b591c', 'kept', '{"outputs": {"moves": {"rows": 2, "bytes": 868, "files": 1, "digest": "8c851f495cd6d7efd285aa3d7aca17f2", "columns": "5d1c0e39e4340e8b"}}, "sources": {"moves": {"rows": 2, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:09:19.754465+00', '2026-11-22 12:09:25.0109+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('events', 3, NULL, 'committed', 201, '2026-11-22 12:09:44.359996+00', NULL, 'kept', 'events-3', '{"reads": {"events": "topics kept.events of connection kafka"}, "sinks": {"once": {"type": "lockstep.sinks.kafka.sink:KafkaSink", "arguments": {"key": "key", "name": "once", "topic": "kept.once", "output": "events", "guarantee": "exactly_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "kept.markers"}}, "repeated": {"type": "lockstep.sinks.kafka.sink:KafkaSink", "arguments": {"key": "key", "name": "repeated", "topic": "kept.repeated", "output": "events", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "lockstep.markers"}}}, "format": 1, "sources": {"events": {"end": {"topics": {"kept.events": {"id": "BfmGAc1bTjWMso6iN4gkkQ", "leaders": {"0": 0, "1": 0}, "partitions": {"0": [4, 6], "1": [4, 6]}}}, "cluster": "EIv3bo6ASQmrTtAzieaQlg"}, "start": {"topics": {"kept.events": {"id": "BfmGAc1bTjWMso6iN4gkkQ", "leaders": {"0": 0, "1": 0}, "partitions": {"0": [2, 4], "1": [2, 4]}}}, "cluster": "EIv3bo6ASQmrTtAzieaQlg"}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/events/epoch=3/202', 'b9c5501815402a69f289308997adda41e935c7c1c9ab1cc401922cdc658abca9', 'kept', '{"outputs": {"events": {"rows": 4, "bytes": 1292, "files": 2, "digest": "aea589ed57b989ba5b2ebad0b0f8568f", "columns": "26ca518de9c156b5"}}, "sources": {"events": {"rows": 4, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:09:44.359996+00', '2026-11-22 12:09:46.765843+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.epoch VALUES ('events', 2, NULL, 'committed', 196, '2026-11-22 12:09:37.562371+00', NULL, 'kept', 'events-2', '{"reads": {"events": "topics kept.events of connection kafka"}, "sinks": {"once": {"type": "lockstep.sinks.kafka.sink:KafkaSink", "arguments": {"key": "key", "name": "once", "topic": "kept.once", "output": "events", "guarantee": "exactly_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "kept.markers"}}, "repeated": {"type": "lockstep.sinks.kafka.sink:KafkaSink", "arguments": {"key": "key", "name": "repeated", "topic": "kept.repeated", "output": "events", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "lockstep.markers"}}}, "format": 1, "sources": {"events": {"end": {"topics": {"kept.events": {"id": "BfmGAc1bTjWMso6iN4gkkQ", "leaders": {"0": 0, "1": 0}, "partitions": {"0": [2, 4], "1": [2, 4]}}}, "cluster": "EIv3bo6ASQmrTtAzieaQlg"}, "start": {"topics": {"kept.events": {"id": "BfmGAc1bTjWMso6iN4gkkQ", "leaders": {"0": 0, "1": 0}, "partitions": {"0": [0, 2], "1": [0, 2]}}}, "cluster": "EIv3bo6ASQmrTtAzieaQlg"}}}}', '03dce53b-23e1-4158-a6fb-140bcb46cc2b/events/epoch=2/197', 'e73098a2283bf61f050a3f3bce0ddb697fa3e3960f329864bee25b10cbdd6498', 'kept', '{"outputs": {"events": {"rows": 4, "bytes": 1288, "files": 2, "digest": "d9e7913bd755b636351d00cc56a44ce4", "columns": "26ca518de9c156b5"}}, "sources": {"events": {"rows": 4, "quarantined": 0}}, "digest_version": 1}', NULL, '2026-11-22 12:09:37.562371+00', '2026-11-22 12:09:40.879531+00', NULL, NULL, NULL, false);
INSERT INTO lockstep.execution VALUES (1, 'tables', 1, NULL, NULL, 'begin', 'kept', '2026-11-22 12:01:03.866304+00');
INSERT INTO lockstep.execution VALUES (2, 'tables', 1, NULL, 1, 'stage', 'kept', '2026-11-22 12:01:04.121907+00');
INSERT INTO lockstep.execution VALUES (3, 'tables', 1, 'accounts', 1, 'prepare', 'kept', '2026-11-22 12:01:39.024865+00');
INSERT INTO lockstep.execution VALUES (4, 'tables', 1, 'entries', 1, 'prepare', 'kept', '2026-11-22 12:01:39.389802+00');
INSERT INTO lockstep.execution VALUES (5, 'tables', 1, 'careless', 1, 'prepare', 'kept', '2026-11-22 12:01:39.700857+00');
INSERT INTO lockstep.execution VALUES (6, 'tables', 1, 'http', 1, 'prepare', 'kept', '2026-11-22 12:01:39.981118+00');
INSERT INTO lockstep.execution VALUES (7, 'tables', 1, 'accounts', 1, 'publish', 'kept', '2026-11-22 12:01:40.346129+00');
INSERT INTO lockstep.execution VALUES (8, 'tables', 1, 'entries', 1, 'publish', 'kept', '2026-11-22 12:01:40.583369+00');
INSERT INTO lockstep.execution VALUES (9, 'tables', 1, 'careless', 1, 'publish', 'kept', '2026-11-22 12:01:40.860461+00');
INSERT INTO lockstep.execution VALUES (10, 'tables', 1, 'http', 1, 'publish', 'kept', '2026-11-22 12:01:41.093725+00');
INSERT INTO lockstep.execution VALUES (11, 'tables', 2, NULL, NULL, 'begin', 'kept', '2026-11-22 12:01:42.546028+00');
INSERT INTO lockstep.execution VALUES (12, 'tables', 2, NULL, 11, 'stage', 'kept', '2026-11-22 12:01:42.76115+00');
INSERT INTO lockstep.execution VALUES (13, 'tables', 2, 'accounts', 11, 'prepare', 'kept', '2026-11-22 12:01:59.881321+00');
INSERT INTO lockstep.execution VALUES (14, 'tables', 2, 'entries', 11, 'prepare', 'kept', '2026-11-22 12:02:00.203547+00');
INSERT INTO lockstep.execution VALUES (15, 'tables', 2, 'careless', 11, 'prepare', 'kept', '2026-11-22 12:02:00.535793+00');
INSERT INTO lockstep.execution VALUES (16, 'tables', 2, 'http', 11, 'prepare', 'kept', '2026-11-22 12:02:00.696692+00');
INSERT INTO lockstep.execution VALUES (17, 'tables', 2, 'accounts', 11, 'publish', 'kept', '2026-11-22 12:02:00.97936+00');
INSERT INTO lockstep.execution VALUES (18, 'tables', 2, 'careless', 11, 'publish', 'kept', '2026-11-22 12:02:01.162925+00');
INSERT INTO lockstep.execution VALUES (19, 'tables', 3, NULL, NULL, 'begin', 'kept', '2026-11-22 12:02:01.961238+00');
INSERT INTO lockstep.execution VALUES (20, 'tables', 3, NULL, 19, 'stage', 'kept', '2026-11-22 12:02:02.065959+00');
INSERT INTO lockstep.execution VALUES (21, 'tables', 3, 'accounts', 19, 'prepare', 'kept', '2026-11-22 12:02:08.932258+00');
INSERT INTO lockstep.execution VALUES (22, 'tables', 3, 'entries', 19, 'prepare', 'kept', '2026-11-22 12:02:09.233268+00');
INSERT INTO lockstep.execution VALUES (23, 'tables', 3, 'careless', 19, 'prepare', 'kept', '2026-11-22 12:02:09.423389+00');
INSERT INTO lockstep.execution VALUES (24, 'tables', 3, 'http', 19, 'prepare', 'kept', '2026-11-22 12:02:09.649689+00');
INSERT INTO lockstep.execution VALUES (25, 'orders', 1, NULL, NULL, 'begin', 'kept', '2026-11-22 12:02:10.189914+00');
INSERT INTO lockstep.execution VALUES (26, 'orders', 1, NULL, 25, 'stage', 'kept', '2026-11-22 12:02:10.290436+00');
INSERT INTO lockstep.execution VALUES (27, 'orders', 1, 'warehouse', 25, 'prepare', 'kept', '2026-11-22 12:02:29.905072+00');
INSERT INTO lockstep.execution VALUES (28, 'orders', 1, 'by_hour', 25, 'prepare', 'kept', '2026-11-22 12:02:30.352184+00');
INSERT INTO lockstep.execution VALUES (29, 'orders', 1, 'refunds', 25, 'prepare', 'kept', '2026-11-22 12:02:30.48683+00');
INSERT INTO lockstep.execution VALUES (30, 'orders', 1, 'warehouse', 25, 'publish', 'kept', '2026-11-22 12:02:30.703052+00');
INSERT INTO lockstep.execution VALUES (31, 'orders', 1, 'by_hour', 25, 'publish', 'kept', '2026-11-22 12:02:30.801696+00');
INSERT INTO lockstep.execution VALUES (32, 'orders', 1, 'refunds', 25, 'publish', 'kept', '2026-11-22 12:02:30.8805+00');
INSERT INTO lockstep.execution VALUES (33, 'orders', 2, NULL, NULL, 'begin', 'kept', '2026-11-22 12:02:31.5327+00');
INSERT INTO lockstep.execution VALUES (34, 'orders', 2, NULL, 33, 'stage', 'kept', '2026-11-22 12:02:31.726217+00');
INSERT INTO lockstep.execution VALUES (35, 'orders', 2, 'warehouse', 33, 'prepare', 'kept', '2026-11-22 12:02:40.667238+00');
INSERT INTO lockstep.execution VALUES (36, 'orders', 2, 'by_hour', 33, 'prepare', 'kept', '2026-11-22 12:02:40.987208+00');
INSERT INTO lockstep.execution VALUES (37, 'orders', 2, 'refunds', 33, 'prepare', 'kept', '2026-11-22 12:02:41.20266+00');
INSERT INTO lockstep.execution VALUES (38, 'orders', 2, 'warehouse', 33, 'publish', 'kept', '2026-11-22 12:02:41.50618+00');
INSERT INTO lockstep.execution VALUES (39, 'orders', 2, 'by_hour', 33, 'publish', 'kept', '2026-11-22 12:02:41.585091+00');
INSERT INTO lockstep.execution VALUES (40, 'orders', 2, 'refunds', 33, 'publish', 'kept', '2026-11-22 12:02:41.63171+00');
INSERT INTO lockstep.execution VALUES (41, 'orders', 3, NULL, NULL, 'begin', 'kept', '2026-11-22 12:02:41.935571+00');
INSERT INTO lockstep.execution VALUES (42, 'orders', 3, NULL, 41, 'stage', 'kept', '2026-11-22 12:02:42.063237+00');
INSERT INTO lockstep.execution VALUES (43, 'orders', 3, 'warehouse', 41, 'prepare', 'kept', '2026-11-22 12:02:49.442136+00');
INSERT INTO lockstep.execution VALUES (44, 'orders', 3, 'by_hour', 41, 'prepare', 'kept', '2026-11-22 12:02:49.734008+00');
INSERT INTO lockstep.execution VALUES (45, 'orders', 3, 'refunds', 41, 'prepare', 'kept', '2026-11-22 12:02:49.975529+00');
INSERT INTO lockstep.execution VALUES (46, 'orders', 3, 'warehouse', 41, 'publish', 'kept', '2026-11-22 12:02:50.283444+00');
INSERT INTO lockstep.execution VALUES (47, 'orders', 3, 'refunds', 41, 'publish', 'kept', '2026-11-22 12:02:50.42338+00');
INSERT INTO lockstep.execution VALUES (48, 'orders', 4, NULL, NULL, 'begin', 'kept', '2026-11-22 12:02:50.752117+00');
INSERT INTO lockstep.execution VALUES (49, 'orders', 4, NULL, 48, 'stage', 'kept', '2026-11-22 12:02:50.90326+00');
INSERT INTO lockstep.execution VALUES (50, 'orders', 4, 'warehouse', 48, 'prepare', 'kept', '2026-11-22 12:02:56.887387+00');
INSERT INTO lockstep.execution VALUES (51, 'orders', 4, 'by_hour', 48, 'prepare', 'kept', '2026-11-22 12:02:57.253118+00');
INSERT INTO lockstep.execution VALUES (52, 'orders', 4, 'refunds', 48, 'prepare', 'kept', '2026-11-22 12:02:57.407456+00');
INSERT INTO lockstep.execution VALUES (53, 'orders', 5, NULL, NULL, 'begin', 'kept', '2026-11-22 12:02:57.864379+00');
INSERT INTO lockstep.execution VALUES (54, 'orders', 5, NULL, 53, 'stage', 'kept', '2026-11-22 12:02:58.011814+00');
INSERT INTO lockstep.execution VALUES (55, 'orders', 5, 'warehouse', 53, 'prepare', 'kept', '2026-11-22 12:03:04.991359+00');
INSERT INTO lockstep.execution VALUES (56, 'orders', 5, 'by_hour', 53, 'prepare', 'kept', '2026-11-22 12:03:05.20236+00');
INSERT INTO lockstep.execution VALUES (57, 'orders', 5, 'refunds', 53, 'prepare', 'kept', '2026-11-22 12:03:05.371014+00');
INSERT INTO lockstep.execution VALUES (58, 'orders', 5, NULL, 53, 'operator', 'kept', '2026-11-22 12:03:05.62068+00');
INSERT INTO lockstep.execution VALUES (59, 'orders', 6, NULL, NULL, 'begin', 'kept', '2026-11-22 12:03:12.713736+00');
INSERT INTO lockstep.execution VALUES (60, 'orders', 6, NULL, 59, 'stage', 'kept', '2026-11-22 12:03:12.94855+00');
INSERT INTO lockstep.execution VALUES (61, 'orders', 6, 'warehouse', 59, 'prepare', 'kept', '2026-11-22 12:03:18.224115+00');
INSERT INTO lockstep.execution VALUES (62, 'orders', 6, 'by_hour', 59, 'prepare', 'kept', '2026-11-22 12:03:18.511266+00');
INSERT INTO lockstep.execution VALUES (63, 'orders', 6, 'refunds', 59, 'prepare', 'kept', '2026-11-22 12:03:18.637331+00');
INSERT INTO lockstep.execution VALUES (64, 'orders', 6, 'warehouse', 59, 'publish', 'kept', '2026-11-22 12:03:18.987491+00');
INSERT INTO lockstep.execution VALUES (65, 'orders', 6, 'by_hour', 59, 'publish', 'kept', '2026-11-22 12:03:19.142604+00');
INSERT INTO lockstep.execution VALUES (66, 'orders', 7, NULL, NULL, 'begin', 'kept', '2026-11-22 12:03:19.413315+00');
INSERT INTO lockstep.execution VALUES (67, 'orders', 7, NULL, 66, 'stage', 'kept', '2026-11-22 12:03:19.600557+00');
INSERT INTO lockstep.execution VALUES (68, 'orders', 7, 'warehouse', 66, 'prepare', 'kept', '2026-11-22 12:03:24.213661+00');
INSERT INTO lockstep.execution VALUES (69, 'orders', 7, 'by_hour', 66, 'prepare', 'kept', '2026-11-22 12:03:24.351785+00');
INSERT INTO lockstep.execution VALUES (70, 'orders', 7, 'refunds', 66, 'prepare', 'kept', '2026-11-22 12:03:24.451246+00');
INSERT INTO lockstep.execution VALUES (71, 'orders', 8, NULL, NULL, 'begin', 'kept', '2026-11-22 12:03:24.693765+00');
INSERT INTO lockstep.execution VALUES (72, 'orders', 8, NULL, 71, 'stage', 'kept', '2026-11-22 12:03:24.771576+00');
INSERT INTO lockstep.execution VALUES (73, 'orders', 8, 'warehouse', 71, 'prepare', 'kept', '2026-11-22 12:03:28.094547+00');
INSERT INTO lockstep.execution VALUES (74, 'orders', 9, NULL, NULL, 'begin', 'kept', '2026-11-22 12:03:28.305354+00');
INSERT INTO lockstep.execution VALUES (75, 'orders', 9, NULL, 74, 'stage', 'kept', '2026-11-22 12:03:28.370222+00');
INSERT INTO lockstep.execution VALUES (76, 'orders', 10, NULL, NULL, 'begin', 'kept', '2026-11-22 12:03:31.41871+00');
INSERT INTO lockstep.execution VALUES (77, 'orders', 11, NULL, NULL, 'begin', 'kept', '2026-11-22 12:03:31.702962+00');
INSERT INTO lockstep.execution VALUES (78, 'orders', 11, NULL, NULL, 'operator', 'kept', '2026-11-22 12:03:31.805213+00');
INSERT INTO lockstep.execution VALUES (79, 'customers', 1, NULL, NULL, 'begin', 'kept', '2026-11-22 12:03:32.304867+00');
INSERT INTO lockstep.execution VALUES (80, 'customers', 1, NULL, 79, 'stage', 'kept', '2026-11-22 12:03:32.383265+00');
INSERT INTO lockstep.execution VALUES (81, 'customers', 1, 'totals', 79, 'prepare', 'kept', '2026-11-22 12:03:42.712208+00');
INSERT INTO lockstep.execution VALUES (82, 'customers', 1, 'changes', 79, 'prepare', 'kept', '2026-11-22 12:03:42.80326+00');
INSERT INTO lockstep.execution VALUES (83, 'customers', 1, 'totals', 79, 'publish', 'kept', '2026-11-22 12:03:42.890275+00');
INSERT INTO lockstep.execution VALUES (84, 'customers', 1, 'changes', 79, 'publish', 'kept', '2026-11-22 12:03:42.970032+00');
INSERT INTO lockstep.execution VALUES (85, 'customers', 2, NULL, NULL, 'begin', 'kept', '2026-11-22 12:03:43.181709+00');
INSERT INTO lockstep.execution VALUES (86, 'customers', 2, NULL, 85, 'stage', 'kept', '2026-11-22 12:03:43.247551+00');
INSERT INTO lockstep.execution VALUES (87, 'customers', 2, 'totals', 85, 'prepare', 'kept', '2026-11-22 12:04:01.668001+00');
INSERT INTO lockstep.execution VALUES (88, 'customers', 2, 'changes', 85, 'prepare', 'kept', '2026-11-22 12:04:01.97364+00');
INSERT INTO lockstep.execution VALUES (89, 'customers', 2, 'totals', 85, 'publish', 'kept', '2026-11-22 12:04:02.199383+00');
INSERT INTO lockstep.execution VALUES (90, 'customers', 2, 'changes', 85, 'publish', 'kept', '2026-11-22 12:04:02.49911+00');
INSERT INTO lockstep.execution VALUES (91, 'customers', 3, NULL, NULL, 'begin', 'kept', '2026-11-22 12:04:02.837636+00');
INSERT INTO lockstep.execution VALUES (92, 'customers', 3, NULL, 91, 'stage', 'kept', '2026-11-22 12:04:02.956555+00');
INSERT INTO lockstep.execution VALUES (93, 'customers', 3, 'totals', 91, 'prepare', 'kept', '2026-11-22 12:04:15.059987+00');
INSERT INTO lockstep.execution VALUES (94, 'customers', 3, 'changes', 91, 'prepare', 'kept', '2026-11-22 12:04:15.210206+00');
INSERT INTO lockstep.execution VALUES (95, 'customers', 3, 'totals', 91, 'publish', 'kept', '2026-11-22 12:04:15.376412+00');
INSERT INTO lockstep.execution VALUES (96, 'customers', 4, NULL, NULL, 'begin', 'kept', '2026-11-22 12:04:15.745691+00');
INSERT INTO lockstep.execution VALUES (97, 'customers', 4, NULL, 96, 'stage', 'kept', '2026-11-22 12:04:15.87965+00');
INSERT INTO lockstep.execution VALUES (98, 'customers', 4, 'totals', 96, 'prepare', 'kept', '2026-11-22 12:04:30.020903+00');
INSERT INTO lockstep.execution VALUES (99, 'customers', 4, 'changes', 96, 'prepare', 'kept', '2026-11-22 12:04:30.179486+00');
INSERT INTO lockstep.execution VALUES (100, 'customers', 5, NULL, NULL, 'begin', 'kept', '2026-11-22 12:04:30.457748+00');
INSERT INTO lockstep.execution VALUES (101, 'customers', 5, NULL, 100, 'stage', 'kept', '2026-11-22 12:04:30.600865+00');
INSERT INTO lockstep.execution VALUES (102, 'lines', 1, NULL, NULL, 'begin', 'kept', '2026-11-22 12:04:41.71795+00');
INSERT INTO lockstep.execution VALUES (103, 'lines', 1, NULL, 102, 'stage', 'kept', '2026-11-22 12:04:41.810719+00');
INSERT INTO lockstep.execution VALUES (104, 'lines', 1, 'stdout', 102, 'prepare', 'kept', '2026-11-22 12:04:51.149023+00');
INSERT INTO lockstep.execution VALUES (105, 'lines', 1, 'tcp', 102, 'prepare', 'kept', '2026-11-22 12:04:51.255426+00');
INSERT INTO lockstep.execution VALUES (106, 'lines', 1, 'stdout', 102, 'publish', 'kept', '2026-11-22 12:04:51.547926+00');
INSERT INTO lockstep.execution VALUES (107, 'lines', 1, 'tcp', 102, 'publish', 'kept', '2026-11-22 12:04:51.634943+00');
INSERT INTO lockstep.execution VALUES (108, 'lines', 2, NULL, NULL, 'begin', 'kept', '2026-11-22 12:04:51.961023+00');
INSERT INTO lockstep.execution VALUES (109, 'lines', 2, NULL, 108, 'stage', 'kept', '2026-11-22 12:04:52.032612+00');
INSERT INTO lockstep.execution VALUES (110, 'lines', 2, 'stdout', 108, 'prepare', 'kept', '2026-11-22 12:05:02.331101+00');
INSERT INTO lockstep.execution VALUES (111, 'lines', 2, 'tcp', 108, 'prepare', 'kept', '2026-11-22 12:05:02.459703+00');
INSERT INTO lockstep.execution VALUES (112, 'lines', 2, 'stdout', 108, 'publish', 'kept', '2026-11-22 12:05:02.672844+00');
INSERT INTO lockstep.execution VALUES (113, 'lines', 3, NULL, NULL, 'begin', 'kept', '2026-11-22 12:05:02.907826+00');
INSERT INTO lockstep.execution VALUES (114, 'lines', 3, NULL, 113, 'stage', 'kept', '2026-11-22 12:05:03.035967+00');
INSERT INTO lockstep.execution VALUES (115, 'lines', 3, 'stdout', 113, 'prepare', 'kept', '2026-11-22 12:05:14.120884+00');
INSERT INTO lockstep.execution VALUES (116, 'lines', 3, 'tcp', 113, 'prepare', 'kept', '2026-11-22 12:05:14.249607+00');
INSERT INTO lockstep.execution VALUES (117, 'numbers', 1, NULL, NULL, 'begin', 'kept', '2026-11-22 12:05:15.105384+00');
INSERT INTO lockstep.execution VALUES (118, 'numbers', 1, NULL, 117, 'stage', 'kept', '2026-11-22 12:05:15.307832+00');
INSERT INTO lockstep.execution VALUES (119, 'numbers', 1, 'shared', 117, 'prepare', 'kept', '2026-11-22 12:05:51.318518+00');
INSERT INTO lockstep.execution VALUES (120, 'numbers', 1, 'newest', 117, 'prepare', 'kept', '2026-11-22 12:05:51.6338+00');
INSERT INTO lockstep.execution VALUES (121, 'numbers', 1, 'by_parity', 117, 'prepare', 'kept', '2026-11-22 12:05:51.906182+00');
INSERT INTO lockstep.execution VALUES (122, 'numbers', 1, 'words', 117, 'prepare', 'kept', '2026-11-22 12:05:51.973156+00');
INSERT INTO lockstep.execution VALUES (123, 'numbers', 1, 'shared', 117, 'publish', 'kept', '2026-11-22 12:05:52.311976+00');
INSERT INTO lockstep.execution VALUES (124, 'numbers', 1, 'newest', 117, 'publish', 'kept', '2026-11-22 12:05:52.459269+00');
INSERT INTO lockstep.execution VALUES (125, 'numbers', 1, 'by_parity', 117, 'publish', 'kept', '2026-11-22 12:05:52.733122+00');
INSERT INTO lockstep.execution VALUES (126, 'numbers', 1, 'words', 117, 'publish', 'kept', '2026-11-22 12:05:52.82372+00');
INSERT INTO lockstep.execution VALUES (127, 'numbers', 2, NULL, NULL, 'begin', 'kept', '2026-11-22 12:05:53.186585+00');
INSERT INTO lockstep.execution VALUES (128, 'numbers', 2, NULL, 127, 'stage', 'kept', '2026-11-22 12:05:53.290374+00');
INSERT INTO lockstep.execution VALUES (129, 'numbers', 2, 'shared', 127, 'prepare', 'kept', '2026-11-22 12:06:37.747293+00');
INSERT INTO lockstep.execution VALUES (130, 'numbers', 2, 'newest', 127, 'prepare', 'kept', '2026-11-22 12:06:37.991313+00');
INSERT INTO lockstep.execution VALUES (131, 'numbers', 2, 'by_parity', 127, 'prepare', 'kept', '2026-11-22 12:06:38.174462+00');
INSERT INTO lockstep.execution VALUES (132, 'numbers', 2, 'words', 127, 'prepare', 'kept', '2026-11-22 12:06:38.270999+00');
INSERT INTO lockstep.execution VALUES (133, 'numbers', 2, 'shared', 127, 'publish', 'kept', '2026-11-22 12:06:38.523025+00');
INSERT INTO lockstep.execution VALUES (134, 'numbers', 2, 'newest', 127, 'publish', 'kept', '2026-11-22 12:06:38.656852+00');
INSERT INTO lockstep.execution VALUES (135, 'numbers', 2, 'by_parity', 127, 'publish', 'kept', '2026-11-22 12:06:38.871564+00');
INSERT INTO lockstep.execution VALUES (136, 'numbers', 2, 'words', 127, 'publish', 'kept', '2026-11-22 12:06:38.978127+00');
INSERT INTO lockstep.execution VALUES (137, 'numbers', 3, NULL, NULL, 'begin', 'kept', '2026-11-22 12:06:39.774418+00');
INSERT INTO lockstep.execution VALUES (138, 'numbers', 3, NULL, 137, 'stage', 'kept', '2026-11-22 12:06:40.006563+00');
INSERT INTO lockstep.execution VALUES (139, 'numbers', 3, 'shared', 137, 'prepare', 'kept', '2026-11-22 12:07:02.383189+00');
INSERT INTO lockstep.execution VALUES (140, 'numbers', 3, 'newest', 137, 'prepare', 'kept', '2026-11-22 12:07:02.47828+00');
INSERT INTO lockstep.execution VALUES (141, 'numbers', 3, 'by_parity', 137, 'prepare', 'kept', '2026-11-22 12:07:02.693592+00');
INSERT INTO lockstep.execution VALUES (142, 'numbers', 3, 'words', 137, 'prepare', 'kept', '2026-11-22 12:07:02.824811+00');
INSERT INTO lockstep.execution VALUES (143, 'numbers', 4, NULL, NULL, 'begin', 'kept', '2026-11-22 12:07:03.353127+00');
INSERT INTO lockstep.execution VALUES (144, 'resumed', 1, NULL, NULL, 'begin', 'kept', '2026-11-22 12:07:03.939121+00');
INSERT INTO lockstep.execution VALUES (145, 'resumed', 1, NULL, 144, 'stage', 'kept', '2026-11-22 12:07:04.147485+00');
INSERT INTO lockstep.execution VALUES (146, 'resumed', 1, 'shared', 144, 'prepare', 'kept', '2026-11-22 12:07:31.547198+00');
INSERT INTO lockstep.execution VALUES (147, 'resumed', 1, 'newest', 144, 'prepare', 'kept', '2026-11-22 12:07:31.656936+00');
INSERT INTO lockstep.execution VALUES (148, 'resumed', 1, 'by_parity', 144, 'prepare', 'kept', '2026-11-22 12:07:31.876387+00');
INSERT INTO lockstep.execution VALUES (149, 'resumed', 1, 'words', 144, 'prepare', 'kept', '2026-11-22 12:07:31.940527+00');
INSERT INTO lockstep.execution VALUES (150, 'resumed', 2, NULL, NULL, 'begin', 'kept', '2026-11-22 12:07:32.538061+00');
INSERT INTO lockstep.execution VALUES (151, 'clicks', 1, NULL, NULL, 'begin', 'kept', '2026-11-22 12:07:32.781609+00');
INSERT INTO lockstep.execution VALUES (152, 'clicks', 1, NULL, 151, 'stage', 'kept', '2026-11-22 12:07:32.908992+00');
INSERT INTO lockstep.execution VALUES (153, 'clicks', 1, 'hourly', 151, 'prepare', 'kept', '2026-11-22 12:07:59.936256+00');
INSERT INTO lockstep.execution VALUES (154, 'clicks', 1, 'late', 151, 'prepare', 'kept', '2026-11-22 12:08:00.075919+00');
INSERT INTO lockstep.execution VALUES (155, 'clicks', 1, 'hourly', 151, 'publish', 'kept', '2026-11-22 12:08:00.260873+00');
INSERT INTO lockstep.execution VALUES (156, 'clicks', 1, 'late', 151, 'publish', 'kept', '2026-11-22 12:08:00.568733+00');
INSERT INTO lockstep.execution VALUES (157, 'clicks', 2, NULL, NULL, 'begin', 'kept', '2026-11-22 12:08:00.952132+00');
INSERT INTO lockstep.execution VALUES (158, 'clicks', 2, NULL, 157, 'stage', 'kept', '2026-11-22 12:08:01.080649+00');
INSERT INTO lockstep.execution VALUES (159, 'clicks', 2, 'hourly', 157, 'prepare', 'kept', '2026-11-22 12:08:21.661039+00');
INSERT INTO lockstep.execution VALUES (160, 'clicks', 2, 'late', 157, 'prepare', 'kept', '2026-11-22 12:08:21.855316+00');
INSERT INTO lockstep.execution VALUES (161, 'clicks', 2, 'hourly', 157, 'publish', 'kept', '2026-11-22 12:08:22.188002+00');
INSERT INTO lockstep.execution VALUES (162, 'clicks', 2, 'late', 157, 'publish', 'kept', '2026-11-22 12:08:22.349398+00');
INSERT INTO lockstep.execution VALUES (163, 'clicks', 3, NULL, NULL, 'begin', 'kept', '2026-11-22 12:08:22.493534+00');
INSERT INTO lockstep.execution VALUES (164, 'clicks', 3, NULL, 163, 'stage', 'kept', '2026-11-22 12:08:22.623007+00');
INSERT INTO lockstep.execution VALUES (165, 'clicks', 3, 'hourly', 163, 'prepare', 'kept', '2026-11-22 12:08:42.895153+00');
INSERT INTO lockstep.execution VALUES (166, 'clicks', 3, 'late', 163, 'prepare', 'kept', '2026-11-22 12:08:42.980001+00');
INSERT INTO lockstep.execution VALUES (167, 'maria_again', 1, NULL, NULL, 'begin', 'kept', '2026-11-22 12:08:43.853468+00');
INSERT INTO lockstep.execution VALUES (168, 'maria_again', 1, NULL, 167, 'stage', 'kept', '2026-11-22 12:08:43.919162+00');
INSERT INTO lockstep.execution VALUES (169, 'maria_again', 1, 'repeated', 167, 'prepare', 'kept', '2026-11-22 12:08:51.732878+00');
INSERT INTO lockstep.execution VALUES (170, 'maria_again', 1, 'repeated', 167, 'publish', 'kept', '2026-11-22 12:08:52.139986+00');
INSERT INTO lockstep.execution VALUES (171, 'maria', 1, NULL, NULL, 'begin', 'kept', '2026-11-22 12:08:52.554689+00');
INSERT INTO lockstep.execution VALUES (172, 'maria', 1, NULL, 171, 'stage', 'kept', '2026-11-22 12:08:52.62828+00');
INSERT INTO lockstep.execution VALUES (173, 'maria', 1, 'prepared', 171, 'prepare', 'kept', '2026-11-22 12:09:01.414806+00');
INSERT INTO lockstep.execution VALUES (174, 'maria', 1, 'newest', 171, 'prepare', 'kept', '2026-11-22 12:09:01.623008+00');
INSERT INTO lockstep.execution VALUES (175, 'maria', 1, 'prepared', 171, 'publish', 'kept', '2026-11-22 12:09:01.847933+00');
INSERT INTO lockstep.execution VALUES (176, 'maria', 1, 'newest', 171, 'publish', 'kept', '2026-11-22 12:09:01.946361+00');
INSERT INTO lockstep.execution VALUES (177, 'maria_again', 2, NULL, NULL, 'begin', 'kept', '2026-11-22 12:09:02.629979+00');
INSERT INTO lockstep.execution VALUES (178, 'maria_again', 2, NULL, 177, 'stage', 'kept', '2026-11-22 12:09:02.689435+00');
INSERT INTO lockstep.execution VALUES (179, 'maria_again', 2, 'repeated', 177, 'prepare', 'kept', '2026-11-22 12:09:10.424209+00');
INSERT INTO lockstep.execution VALUES (180, 'maria', 2, NULL, NULL, 'begin', 'kept', '2026-11-22 12:09:10.962153+00');
INSERT INTO lockstep.execution VALUES (181, 'maria', 2, NULL, 180, 'stage', 'kept', '2026-11-22 12:09:11.113454+00');
INSERT INTO lockstep.execution VALUES (182, 'maria', 2, 'prepared', 180, 'prepare', 'kept', '2026-11-22 12:09:18.923723+00');
INSERT INTO lockstep.execution VALUES (183, 'maria', 2, 'newest', 180, 'prepare', 'kept', '2026-11-22 12:09:19.008848+00');
INSERT INTO lockstep.execution VALUES (184, 'maria', 2, 'prepared', 180, 'publish', 'kept', '2026-11-22 12:09:19.186406+00');
INSERT INTO lockstep.execution VALUES (185, 'maria', 2, 'newest', 180, 'publish', 'kept', '2026-11-22 12:09:19.295244+00');
INSERT INTO lockstep.execution VALUES (186, 'maria', 3, NULL, NULL, 'begin', 'kept', '2026-11-22 12:09:19.754465+00');
INSERT INTO lockstep.execution VALUES (187, 'maria', 3, NULL, 186, 'stage', 'kept', '2026-11-22 12:09:19.872828+00');
INSERT INTO lockstep.execution VALUES (188, 'maria', 3, 'prepared', 186, 'prepare', 'kept', '2026-11-22 12:09:24.849363+00');
INSERT INTO lockstep.execution VALUES (189, 'maria', 3, 'newest', 186, 'prepare', 'kept', '2026-11-22 12:09:24.906542+00');
INSERT INTO lockstep.execution VALUES (190, 'events', 1, NULL, NULL, 'begin', 'kept', '2026-11-22 12:09:25.880269+00');
INSERT INTO lockstep.execution VALUES (191, 'events', 1, NULL, 190, 'stage', 'kept', '2026-11-22 12:09:25.9762+00');
INSERT INTO lockstep.execution VALUES (192, 'events', 1, 'once', 190, 'prepare', 'kept', '2026-11-22 12:09:35.349337+00');
INSERT INTO lockstep.execution VALUES (193, 'events', 1, 'repeated', 190, 'prepare', 'kept', '2026-11-22 12:09:35.446204+00');
INSERT INTO lockstep.execution VALUES (194, 'events', 1, 'once', 190, 'publish', 'kept', '2026-11-22 12:09:35.610353+00');
INSERT INTO lockstep.execution VALUES (195, 'events', 1, 'repeated', 190, 'publish', 'kept', '2026-11-22 12:09:36.879029+00');
INSERT INTO lockstep.execution VALUES (196, 'events', 2, NULL, NULL, 'begin', 'kept', '2026-11-22 12:09:37.562371+00');
INSERT INTO lockstep.execution VALUES (197, 'events', 2, NULL, 196, 'stage', 'kept', '2026-11-22 12:09:37.753302+00');
INSERT INTO lockstep.execution VALUES (198, 'events', 2, 'once', 196, 'prepare', 'kept', '2026-11-22 12:09:40.699407+00');
INSERT INTO lockstep.execution VALUES (199, 'events', 2, 'repeated', 196, 'prepare', 'kept', '2026-11-22 12:09:40.817301+00');
INSERT INTO lockstep.execution VALUES (200, 'events', 2, 'once', 196, 'publish', 'kept', '2026-11-22 12:09:44.060712+00');
INSERT INTO lockstep.execution VALUES (201, 'events', 3, NULL, NULL, 'begin', 'kept', '2026-11-22 12:09:44.359996+00');
INSERT INTO lockstep.execution VALUES (202, 'events', 3, NULL, 201, 'stage', 'kept', '2026-11-22 12:09:44.452453+00');
INSERT INTO lockstep.execution VALUES (203, 'events', 3, 'once', 201, 'prepare', 'kept', '2026-11-22 12:09:46.558367+00');
INSERT INTO lockstep.execution VALUES (204, 'events', 3, 'repeated', 201, 'prepare', 'kept', '2026-11-22 12:09:46.694322+00');
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
INSERT INTO lockstep.migration VALUES (1, '0001_protocol', '2026-11-22 12:01:01.659398+00');
INSERT INTO lockstep.migration VALUES (2, '0002_claims', '2026-11-22 12:01:02.072877+00');
INSERT INTO lockstep.migration VALUES (3, '0003_heads', '2026-11-22 12:01:02.086373+00');
INSERT INTO lockstep.migration VALUES (4, '0004_state', '2026-11-22 12:01:02.094458+00');
INSERT INTO lockstep.migration VALUES (5, '0005_pipeline_changes', '2026-11-22 12:01:02.126873+00');
INSERT INTO lockstep.migration VALUES (6, '0006_forgotten', '2026-11-22 12:01:02.211529+00');
INSERT INTO lockstep.migration VALUES (7, '0007_turns', '2026-11-22 12:01:02.228279+00');
INSERT INTO lockstep.migration VALUES (8, '0008_settings', '2026-11-22 12:01:02.241669+00');
INSERT INTO lockstep.migration VALUES (9, '0009_restaged', '2026-11-22 12:01:02.306157+00');
INSERT INTO lockstep.participant VALUES ('customers', 5, 'totals', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:04:30.457748+00', false);
INSERT INTO lockstep.participant VALUES ('customers', 5, 'changes', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:04:30.457748+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 1, 'refunds', 'published', 29, 25, 29, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:refunds:1:29:6ccdd53b5e22', '60cbef05-bad9-4064-ab96-e96e209e7e9f', '{"refunds": 1}', 'committed', '2026-11-22 12:02:30.950316+00', false);
INSERT INTO lockstep.participant VALUES ('tables', 1, 'accounts', 'published', 3, 1, 3, NULL, '62811985-7771-4d9c-bc95-a26d96426a6c', '{"accounts": 3}', 'sent', '2026-11-22 12:01:40.48135+00', false);
INSERT INTO lockstep.participant VALUES ('tables', 1, 'entries', 'published', 4, 1, 4, NULL, 'b2009287-1dd4-4158-bd5f-2ec384be4050', '{"entries": 3}', 'sent', '2026-11-22 12:01:40.751025+00', false);
INSERT INTO lockstep.participant VALUES ('tables', 1, 'careless', 'published', 5, 1, 5, NULL, '62811985-7771-4d9c-bc95-a26d96426a6c', '{"entries": 3}', 'sent', '2026-11-22 12:01:41.022036+00', false);
INSERT INTO lockstep.participant VALUES ('tables', 1, 'http', 'published', 6, 1, 6, NULL, 'efa62072-818d-4c03-9dfb-2dd0daa5beff', '{"entries": 3}', 'sent', '2026-11-22 12:01:41.231044+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 3, 'refunds', 'published', 45, 41, 45, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:refunds:3:45:2f8c16430944', '60cbef05-bad9-4064-ab96-e96e209e7e9f', '{"refunds": 1}', 'committed', '2026-11-22 12:02:50.451258+00', false);
INSERT INTO lockstep.participant VALUES ('tables', 2, 'entries', 'prepared', 14, 11, 14, NULL, 'b2009287-1dd4-4158-bd5f-2ec384be4050', '{"entries": 3}', NULL, '2026-11-22 12:02:00.461903+00', false);
INSERT INTO lockstep.participant VALUES ('tables', 2, 'http', 'prepared', 16, 11, 16, NULL, 'efa62072-818d-4c03-9dfb-2dd0daa5beff', '{"entries": 3}', NULL, '2026-11-22 12:02:00.743146+00', false);
INSERT INTO lockstep.participant VALUES ('tables', 2, 'accounts', 'published', 13, 11, 13, NULL, '62811985-7771-4d9c-bc95-a26d96426a6c', '{"accounts": 3}', 'sent', '2026-11-22 12:02:01.064702+00', false);
INSERT INTO lockstep.participant VALUES ('tables', 2, 'careless', 'published', 15, 11, 15, NULL, '62811985-7771-4d9c-bc95-a26d96426a6c', '{"entries": 3}', 'sent', '2026-11-22 12:02:01.228664+00', false);
INSERT INTO lockstep.participant VALUES ('tables', 3, 'accounts', 'prepared', 21, 19, 21, NULL, '62811985-7771-4d9c-bc95-a26d96426a6c', '{"accounts": 3}', NULL, '2026-11-22 12:02:09.181411+00', false);
INSERT INTO lockstep.participant VALUES ('tables', 3, 'entries', 'prepared', 22, 19, 22, NULL, 'b2009287-1dd4-4158-bd5f-2ec384be4050', '{"entries": 3}', NULL, '2026-11-22 12:02:09.363791+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 2, 'warehouse', 'published', 35, 33, 35, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:warehouse:2:35:4488c9c5087f', '62811985-7771-4d9c-bc95-a26d96426a6c', '{"orders": 4, "refunds": 1}', 'committed', '2026-11-22 12:02:41.561161+00', false);
INSERT INTO lockstep.participant VALUES ('tables', 3, 'careless', 'prepared', 23, 19, 23, NULL, '62811985-7771-4d9c-bc95-a26d96426a6c', '{"entries": 3}', NULL, '2026-11-22 12:02:09.559839+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 2, 'by_hour', 'published', 36, 33, 36, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:by_hour:2:36:4488c9c5087f', '6305ce85-9b24-4711-b1cb-33617f3e7a79', '{"orders": 4}', 'committed', '2026-11-22 12:02:41.625145+00', false);
INSERT INTO lockstep.participant VALUES ('tables', 3, 'http', 'prepared', 24, 19, 24, NULL, 'efa62072-818d-4c03-9dfb-2dd0daa5beff', '{"entries": 3}', NULL, '2026-11-22 12:02:09.723225+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 2, 'refunds', 'published', 37, 33, 37, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:refunds:2:37:4488c9c5087f', '60cbef05-bad9-4064-ab96-e96e209e7e9f', '{"refunds": 1}', 'committed', '2026-11-22 12:02:41.672711+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 1, 'warehouse', 'published', 27, 25, 27, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:warehouse:1:27:6ccdd53b5e22', '62811985-7771-4d9c-bc95-a26d96426a6c', '{"orders": 4, "refunds": 1}', 'committed', '2026-11-22 12:02:30.753768+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 1, 'by_hour', 'published', 28, 25, 28, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:by_hour:1:28:6ccdd53b5e22', '6305ce85-9b24-4711-b1cb-33617f3e7a79', '{"orders": 4}', 'committed', '2026-11-22 12:02:30.822947+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 3, 'by_hour', 'prepared', 44, 41, 44, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:by_hour:3:44:2f8c16430944', '6305ce85-9b24-4711-b1cb-33617f3e7a79', '{"orders": 4}', NULL, '2026-11-22 12:02:49.870575+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 4, 'warehouse', 'prepared', 50, 48, 50, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:warehouse:4:50:d37fd16d236a', '62811985-7771-4d9c-bc95-a26d96426a6c', '{"orders": 4, "refunds": 1}', NULL, '2026-11-22 12:02:57.200202+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 3, 'warehouse', 'published', 43, 41, 43, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:warehouse:3:43:2f8c16430944', '62811985-7771-4d9c-bc95-a26d96426a6c', '{"orders": 4, "refunds": 1}', 'committed', '2026-11-22 12:02:50.353807+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 5, 'by_hour', 'prepared', 56, 53, 56, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:by_hour:5:56:5f48b5e991e1', '6305ce85-9b24-4711-b1cb-33617f3e7a79', '{"orders": 4}', NULL, '2026-11-22 12:03:05.299336+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 4, 'by_hour', 'prepared', 51, 48, 51, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:by_hour:4:51:d37fd16d236a', '6305ce85-9b24-4711-b1cb-33617f3e7a79', '{"orders": 4}', NULL, '2026-11-22 12:02:57.350946+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 6, 'by_hour', 'prepared', 62, 59, 62, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:by_hour:6:62:cccbffe4be57', '6305ce85-9b24-4711-b1cb-33617f3e7a79', '{"orders": 4}', NULL, '2026-11-22 12:03:18.589861+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 4, 'refunds', 'prepared', 52, 48, 52, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:refunds:4:52:d37fd16d236a', '60cbef05-bad9-4064-ab96-e96e209e7e9f', '{"refunds": 1}', NULL, '2026-11-22 12:02:57.520488+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 5, 'refunds', 'prepared', 57, 53, 57, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:refunds:5:57:5f48b5e991e1', '60cbef05-bad9-4064-ab96-e96e209e7e9f', '{"refunds": 1}', NULL, '2026-11-22 12:03:05.438162+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 5, 'warehouse', 'prepared', 55, 53, 55, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:warehouse:5:55:5f48b5e991e1', '62811985-7771-4d9c-bc95-a26d96426a6c', '{"orders": 4, "refunds": 1}', NULL, '2026-11-22 12:03:05.136289+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 6, 'refunds', 'prepared', 63, 59, 63, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:refunds:6:63:cccbffe4be57', '60cbef05-bad9-4064-ab96-e96e209e7e9f', '{"refunds": 1}', NULL, '2026-11-22 12:03:18.737217+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 6, 'warehouse', 'prepared', 61, 59, 61, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:warehouse:6:61:cccbffe4be57', '62811985-7771-4d9c-bc95-a26d96426a6c', '{"orders": 4, "refunds": 1}', NULL, '2026-11-22 12:03:18.449893+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 7, 'warehouse', 'prepared', 68, 66, 68, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:warehouse:7:68:ca07112a4ff7', '62811985-7771-4d9c-bc95-a26d96426a6c', '{"orders": 4, "refunds": 1}', NULL, '2026-11-22 12:03:24.333425+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 7, 'by_hour', 'prepared', 69, 66, 69, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:by_hour:7:69:ca07112a4ff7', '6305ce85-9b24-4711-b1cb-33617f3e7a79', '{"orders": 4}', NULL, '2026-11-22 12:03:24.391429+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 7, 'refunds', 'prepared', 70, 66, 70, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:refunds:7:70:ca07112a4ff7', '60cbef05-bad9-4064-ab96-e96e209e7e9f', '{"refunds": 1}', NULL, '2026-11-22 12:03:24.498104+00', false);
INSERT INTO lockstep.participant VALUES ('numbers', 2, 'newest', 'published', 130, 127, 130, NULL, '62811985-7771-4d9c-bc95-a26d96426a6c', '{"sums": 2}', 'sent', '2026-11-22 12:06:38.823999+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 8, 'by_hour', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:03:24.693765+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 8, 'refunds', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:03:24.693765+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 8, 'warehouse', 'prepared', 73, 71, 73, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:orders:warehouse:8:73:98221551754d', '62811985-7771-4d9c-bc95-a26d96426a6c', '{"orders": 4, "refunds": 1}', NULL, '2026-11-22 12:03:28.210466+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 9, 'warehouse', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:03:28.305354+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 9, 'by_hour', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:03:28.305354+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 9, 'refunds', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:03:28.305354+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 10, 'warehouse', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:03:31.41871+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 10, 'by_hour', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:03:31.41871+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 10, 'refunds', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:03:31.41871+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 11, 'warehouse', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:03:31.702962+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 11, 'by_hour', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:03:31.702962+00', false);
INSERT INTO lockstep.participant VALUES ('orders', 11, 'refunds', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:03:31.702962+00', false);
INSERT INTO lockstep.participant VALUES ('customers', 3, 'changes', 'prepared', 94, 91, 94, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:customers:changes:3:94:3af8ce443b0a', '6597db56-db4a-426d-813c-9a9928fec105', '{"totals": 2}', NULL, '2026-11-22 12:04:15.245513+00', false);
INSERT INTO lockstep.participant VALUES ('customers', 3, 'totals', 'published', 93, 91, 93, NULL, '62811985-7771-4d9c-bc95-a26d96426a6c', '{"totals": 2}', 'sent', '2026-11-22 12:04:15.503235+00', false);
INSERT INTO lockstep.participant VALUES ('customers', 4, 'totals', 'prepared', 98, 96, 98, NULL, '62811985-7771-4d9c-bc95-a26d96426a6c', '{"totals": 2}', NULL, '2026-11-22 12:04:30.145558+00', false);
INSERT INTO lockstep.participant VALUES ('customers', 4, 'changes', 'prepared', 99, 96, 99, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:customers:changes:4:99:3d13f19844cc', '6597db56-db4a-426d-813c-9a9928fec105', '{"totals": 2}', NULL, '2026-11-22 12:04:30.231917+00', false);
INSERT INTO lockstep.participant VALUES ('customers', 1, 'totals', 'published', 81, 79, 81, NULL, '62811985-7771-4d9c-bc95-a26d96426a6c', '{"totals": 3}', 'sent', '2026-11-22 12:03:42.951801+00', false);
INSERT INTO lockstep.participant VALUES ('customers', 1, 'changes', 'published', 82, 79, 82, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:customers:changes:1:82:49a2fd8a5bbe', '6597db56-db4a-426d-813c-9a9928fec105', '{"totals": 3}', 'committed', '2026-11-22 12:03:42.980535+00', false);
INSERT INTO lockstep.participant VALUES ('customers', 2, 'totals', 'published', 87, 85, 87, NULL, '62811985-7771-4d9c-bc95-a26d96426a6c', '{"totals": 2}', 'sent', '2026-11-22 12:04:02.420845+00', false);
INSERT INTO lockstep.participant VALUES ('customers', 2, 'changes', 'published', 88, 85, 88, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:customers:changes:2:88:c626f6a3dde6', '6597db56-db4a-426d-813c-9a9928fec105', '{"totals": 2}', 'committed', '2026-11-22 12:04:02.549628+00', false);
INSERT INTO lockstep.participant VALUES ('lines', 1, 'stdout', 'published', 104, 102, 104, NULL, '4da2e071-0541-4316-a55a-3a437b94c967', '{"lines": 3}', 'sent', '2026-11-22 12:04:51.610033+00', false);
INSERT INTO lockstep.participant VALUES ('lines', 1, 'tcp', 'published', 105, 102, 105, NULL, '4da2e071-0541-4316-a55a-3a437b94c967', '{"lines": 3}', 'sent', '2026-11-22 12:04:51.660578+00', false);
INSERT INTO lockstep.participant VALUES ('numbers', 2, 'by_parity', 'published', 131, 127, 131, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:numbers:by_parity:2:131:985f0f9688c5', '79132321-44af-4119-8c72-7b17f87d7687', '{"numbers": 10}', 'committed', '2026-11-22 12:06:38.938846+00', false);
INSERT INTO lockstep.participant VALUES ('lines', 2, 'tcp', 'prepared', 111, 108, 111, NULL, '4da2e071-0541-4316-a55a-3a437b94c967', '{"lines": 1}', NULL, '2026-11-22 12:05:02.506679+00', false);
INSERT INTO lockstep.participant VALUES ('lines', 2, 'stdout', 'published', 110, 108, 110, NULL, '4da2e071-0541-4316-a55a-3a437b94c967', '{"lines": 1}', 'sent', '2026-11-22 12:05:02.712478+00', false);
INSERT INTO lockstep.participant VALUES ('numbers', 1, 'shared', 'published', 119, 117, 119, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:numbers:shared:1:119:cb9dd7723f88', '62811985-7771-4d9c-bc95-a26d96426a6c', '{"numbers": 10}', 'committed', '2026-11-22 12:05:52.3831+00', false);
INSERT INTO lockstep.participant VALUES ('lines', 3, 'stdout', 'prepared', 115, 113, 115, NULL, '4da2e071-0541-4316-a55a-3a437b94c967', '{"lines": 2}', NULL, '2026-11-22 12:05:14.13911+00', false);
INSERT INTO lockstep.participant VALUES ('numbers', 1, 'newest', 'published', 120, 117, 120, NULL, '62811985-7771-4d9c-bc95-a26d96426a6c', '{"sums": 2}', 'sent', '2026-11-22 12:05:52.695542+00', false);
INSERT INTO lockstep.participant VALUES ('lines', 3, 'tcp', 'prepared', 116, 113, 116, NULL, '4da2e071-0541-4316-a55a-3a437b94c967', '{"lines": 2}', NULL, '2026-11-22 12:05:14.283507+00', false);
INSERT INTO lockstep.participant VALUES ('numbers', 1, 'by_parity', 'published', 121, 117, 121, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:numbers:by_parity:1:121:cb9dd7723f88', '79132321-44af-4119-8c72-7b17f87d7687', '{"numbers": 10}', 'committed', '2026-11-22 12:05:52.796054+00', false);
INSERT INTO lockstep.participant VALUES ('numbers', 1, 'words', 'published', 122, 117, 122, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:numbers:words:1:122:cb9dd7723f88', '3f31654f-9842-45e0-9442-fce1307f76e0', '{"words": 10}', 'committed', '2026-11-22 12:05:52.856861+00', false);
INSERT INTO lockstep.participant VALUES ('numbers', 2, 'words', 'published', 132, 127, 132, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:numbers:words:2:132:985f0f9688c5', '3f31654f-9842-45e0-9442-fce1307f76e0', '{"words": 10}', 'committed', '2026-11-22 12:06:39.045579+00', false);
INSERT INTO lockstep.participant VALUES ('numbers', 2, 'shared', 'published', 129, 127, 129, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:numbers:shared:2:129:985f0f9688c5', '62811985-7771-4d9c-bc95-a26d96426a6c', '{"numbers": 10}', 'committed', '2026-11-22 12:06:38.601837+00', false);
INSERT INTO lockstep.participant VALUES ('numbers', 4, 'shared', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:07:03.353127+00', false);
INSERT INTO lockstep.participant VALUES ('numbers', 3, 'shared', 'prepared', 139, 137, 139, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:numbers:shared:3:139:e1477cf940bc', '62811985-7771-4d9c-bc95-a26d96426a6c', '{"numbers": 10}', NULL, '2026-11-22 12:07:02.439067+00', false);
INSERT INTO lockstep.participant VALUES ('numbers', 3, 'newest', 'prepared', 140, 137, 140, NULL, '62811985-7771-4d9c-bc95-a26d96426a6c', '{"sums": 2}', NULL, '2026-11-22 12:07:02.613713+00', false);
INSERT INTO lockstep.participant VALUES ('numbers', 3, 'by_parity', 'prepared', 141, 137, 141, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:numbers:by_parity:3:141:e1477cf940bc', '79132321-44af-4119-8c72-7b17f87d7687', '{"numbers": 10}', NULL, '2026-11-22 12:07:02.736838+00', false);
INSERT INTO lockstep.participant VALUES ('numbers', 3, 'words', 'prepared', 142, 137, 142, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:numbers:words:3:142:e1477cf940bc', '3f31654f-9842-45e0-9442-fce1307f76e0', '{"words": 10}', NULL, '2026-11-22 12:07:02.880821+00', false);
INSERT INTO lockstep.participant VALUES ('numbers', 4, 'newest', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:07:03.353127+00', false);
INSERT INTO lockstep.participant VALUES ('numbers', 4, 'by_parity', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:07:03.353127+00', false);
INSERT INTO lockstep.participant VALUES ('numbers', 4, 'words', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:07:03.353127+00', false);
INSERT INTO lockstep.participant VALUES ('resumed', 1, 'shared', 'prepared', 146, 144, 146, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:resumed:shared:1:146:15dc957646c6', '62811985-7771-4d9c-bc95-a26d96426a6c', '{"numbers": 10}', NULL, '2026-11-22 12:07:31.62604+00', false);
INSERT INTO lockstep.participant VALUES ('resumed', 1, 'newest', 'prepared', 147, 144, 147, NULL, '62811985-7771-4d9c-bc95-a26d96426a6c', '{"sums": 2}', NULL, '2026-11-22 12:07:31.824906+00', false);
INSERT INTO lockstep.participant VALUES ('resumed', 1, 'by_parity', 'prepared', 148, 144, 148, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:resumed:by_parity:1:148:15dc957646c6', '87586ae4-99aa-4c8f-8a2b-d73ee774dd61', '{"numbers": 10}', NULL, '2026-11-22 12:07:31.918211+00', false);
INSERT INTO lockstep.participant VALUES ('maria_again', 2, 'repeated', 'prepared', 179, 177, 179, NULL, '06158365-9606-4fc1-b711-d23643e1740a', '{"moves": 2}', NULL, '2026-11-22 12:09:10.536024+00', false);
INSERT INTO lockstep.participant VALUES ('resumed', 1, 'words', 'prepared', 149, 144, 149, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:resumed:words:1:149:15dc957646c6', '3f31654f-9842-45e0-9442-fce1307f76e0', '{"words": 10}', NULL, '2026-11-22 12:07:31.962275+00', false);
INSERT INTO lockstep.participant VALUES ('resumed', 2, 'shared', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:07:32.538061+00', false);
INSERT INTO lockstep.participant VALUES ('resumed', 2, 'newest', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:07:32.538061+00', false);
INSERT INTO lockstep.participant VALUES ('resumed', 2, 'by_parity', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:07:32.538061+00', false);
INSERT INTO lockstep.participant VALUES ('resumed', 2, 'words', 'pending', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-22 12:07:32.538061+00', false);
INSERT INTO lockstep.participant VALUES ('clicks', 1, 'hourly', 'published', 153, 151, 153, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:clicks:hourly:1:153:5d14bf447545', 'a2f43730-13fa-43c0-9dc4-e4d94fd72c19', '{"hourly": 1}', 'committed', '2026-11-22 12:08:00.500443+00', false);
INSERT INTO lockstep.participant VALUES ('clicks', 1, 'late', 'published', 154, 151, 154, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:clicks:late:1:154:5d14bf447545', '87de0633-f7d3-4f0d-9c18-6f736f33d2e7', '{"late": 0}', 'committed', '2026-11-22 12:08:00.645164+00', false);
INSERT INTO lockstep.participant VALUES ('clicks', 2, 'hourly', 'published', 159, 157, 159, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:clicks:hourly:2:159:c4bc2b204826', 'a2f43730-13fa-43c0-9dc4-e4d94fd72c19', '{"hourly": 2}', 'committed', '2026-11-22 12:08:22.25564+00', false);
INSERT INTO lockstep.participant VALUES ('clicks', 2, 'late', 'published', 160, 157, 160, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:clicks:late:2:160:c4bc2b204826', '87de0633-f7d3-4f0d-9c18-6f736f33d2e7', '{"late": 0}', 'committed', '2026-11-22 12:08:22.377784+00', false);
INSERT INTO lockstep.participant VALUES ('events', 2, 'repeated', 'prepared', 199, 196, 199, NULL, 'RwcXwq8VSbujrkVdTdWSow', '{"events": 4}', NULL, '2026-11-22 12:09:40.830916+00', false);
INSERT INTO lockstep.participant VALUES ('clicks', 3, 'hourly', 'prepared', 165, 163, 165, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:clicks:hourly:3:165:537011d9c031', 'a2f43730-13fa-43c0-9dc4-e4d94fd72c19', '{"hourly": 1}', NULL, '2026-11-22 12:08:42.941137+00', false);
INSERT INTO lockstep.participant VALUES ('clicks', 3, 'late', 'prepared', 166, 163, 166, 'lockstep:03dce53b-23e1-4158-a6fb-140bcb46cc2b:clicks:late:3:166:537011d9c031', '87de0633-f7d3-4f0d-9c18-6f736f33d2e7', '{"late": 1}', NULL, '2026-11-22 12:08:43.123457+00', false);
INSERT INTO lockstep.participant VALUES ('maria', 2, 'prepared', 'published', 182, 180, 182, 'lockstep:e568fa61ead3a29c54f49c37e64be22c:2:182:b1c9bc3cb3c4:maria.prepared', '06158365-9606-4fc1-b711-d23643e1740a', '{"moves": 2}', 'committed', '2026-11-22 12:09:19.2159+00', false);
INSERT INTO lockstep.participant VALUES ('maria_again', 1, 'repeated', 'published', 169, 167, 169, NULL, '06158365-9606-4fc1-b711-d23643e1740a', '{"moves": 2}', 'sent', '2026-11-22 12:08:52.209668+00', false);
INSERT INTO lockstep.participant VALUES ('maria', 2, 'newest', 'published', 183, 180, 183, NULL, '06158365-9606-4fc1-b711-d23643e1740a', '{"moves": 2}', 'sent', '2026-11-22 12:09:19.370639+00', false);
INSERT INTO lockstep.participant VALUES ('maria', 1, 'prepared', 'published', 173, 171, 173, 'lockstep:e568fa61ead3a29c54f49c37e64be22c:1:173:e79ee2d29caf:maria.prepared', '06158365-9606-4fc1-b711-d23643e1740a', '{"moves": 2}', 'committed', '2026-11-22 12:09:01.884137+00', false);
INSERT INTO lockstep.participant VALUES ('maria', 1, 'newest', 'published', 174, 171, 174, NULL, '06158365-9606-4fc1-b711-d23643e1740a', '{"moves": 2}', 'sent', '2026-11-22 12:09:02.07684+00', false);
INSERT INTO lockstep.participant VALUES ('events', 2, 'once', 'published', 198, 196, 198, NULL, 'loE5Bx1sTXWCCNQU7APGAg gOU+Bln+RCapJQEK9XG5mg', '{"events": 4}', 'sent', '2026-11-22 12:09:44.14102+00', false);
INSERT INTO lockstep.participant VALUES ('maria', 3, 'prepared', 'prepared', 188, 186, 188, 'lockstep:e568fa61ead3a29c54f49c37e64be22c:3:188:fbed6f6bf623:maria.prepared', '06158365-9606-4fc1-b711-d23643e1740a', '{"moves": 2}', NULL, '2026-11-22 12:09:24.888414+00', false);
INSERT INTO lockstep.participant VALUES ('maria', 3, 'newest', 'prepared', 189, 186, 189, NULL, '06158365-9606-4fc1-b711-d23643e1740a', '{"moves": 2}', NULL, '2026-11-22 12:09:24.952905+00', false);
INSERT INTO lockstep.participant VALUES ('events', 3, 'once', 'prepared', 203, 201, 203, NULL, 'loE5Bx1sTXWCCNQU7APGAg gOU+Bln+RCapJQEK9XG5mg', '{"events": 4}', NULL, '2026-11-22 12:09:46.651046+00', false);
INSERT INTO lockstep.participant VALUES ('events', 1, 'once', 'published', 192, 190, 192, NULL, 'loE5Bx1sTXWCCNQU7APGAg gOU+Bln+RCapJQEK9XG5mg', '{"events": 4}', 'sent', '2026-11-22 12:09:36.810457+00', false);
INSERT INTO lockstep.participant VALUES ('events', 1, 'repeated', 'published', 193, 190, 193, NULL, 'RwcXwq8VSbujrkVdTdWSow', '{"events": 4}', 'sent', '2026-11-22 12:09:36.971817+00', false);
INSERT INTO lockstep.participant VALUES ('events', 3, 'repeated', 'prepared', 204, 201, 204, NULL, 'RwcXwq8VSbujrkVdTdWSow', '{"events": 4}', NULL, '2026-11-22 12:09:46.707938+00', false);
INSERT INTO lockstep.pipeline VALUES ('tables', 'cursor', 3, '02:00:00', '2026-11-22 12:01:03.866304+00', NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('orders', 'interval', 11, '02:00:00', '2026-11-22 12:02:10.189914+00', NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('customers', 'cursor', 5, '02:00:00', '2026-11-22 12:03:32.304867+00', NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('lines', 'cursor', 3, '02:00:00', '2026-11-22 12:04:41.71795+00', NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('numbers', 'cursor', 4, '02:00:00', '2026-11-22 12:05:15.105384+00', NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('resumed', 'cursor', 2, '02:00:00', '2026-11-22 12:07:03.53501+00', NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('clicks', 'cursor', 3, '02:00:00', '2026-11-22 12:07:32.781609+00', NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('maria_again', 'cursor', 2, '02:00:00', '2026-11-22 12:08:43.853468+00', NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('maria', 'cursor', 3, '02:00:00', '2026-11-22 12:08:52.554689+00', NULL, NULL, NULL, NULL);
INSERT INTO lockstep.pipeline VALUES ('events', 'cursor', 3, '02:00:00', '2026-11-22 12:09:25.880269+00', NULL, NULL, NULL, NULL);
INSERT INTO lockstep.planned_sink VALUES ('orders', 'warehouse', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "warehouse", "create": true, "schema": "public", "shared": false, "tables": {"orders": "public.orders", "refunds": "public.refunds"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-22 12:03:31.702962+00');
INSERT INTO lockstep.planned_sink VALUES ('orders', 'by_hour', '{"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_hour", "path": "@HOME@/out/by_hour", "bucket": {"by": "time", "column": "at", "folders": "%Y-%m/hour=%d-%H"}, "format": "parquet", "output": "orders", "shared": false, "success": "_SUCCESS"}}', DEFAULT, '2026-11-22 12:03:31.702962+00');
INSERT INTO lockstep.planned_sink VALUES ('orders', 'refunds', '{"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "refunds", "path": "@HOME@/out/refunds", "format": "csv", "output": "refunds", "shared": false, "max_rows_per_file": 2}}', DEFAULT, '2026-11-22 12:03:31.702962+00');
INSERT INTO lockstep.planned_sink VALUES ('tables', 'accounts', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "accounts", "create": true, "schema": "public", "shared": false, "tables": {"accounts": "public.accounts_copy"}, "protocol": "write_ahead", "validate": "schema", "committer": "postgres:warehouse", "guarantee": "at_least_once", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-22 12:02:01.961238+00');
INSERT INTO lockstep.planned_sink VALUES ('tables', 'entries', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "entries", "create": true, "schema": "proofs", "shared": false, "tables": {"entries": "public.entries_copy"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-22 12:02:01.961238+00');
INSERT INTO lockstep.planned_sink VALUES ('tables', 'careless', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "careless", "create": true, "schema": "public", "shared": false, "tables": {"entries": "public.entries_careless"}, "protocol": "write_ahead", "validate": "load", "guarantee": "none", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-22 12:02:01.961238+00');
INSERT INTO lockstep.planned_sink VALUES ('tables', 'http', '{"type": "lockstep.sinks.append_only.http:HttpSink", "arguments": {"name": "http", "output": "entries", "committer": "postgres:warehouse", "connection": "http", "key_header": "Authorization"}}', DEFAULT, '2026-11-22 12:02:01.961238+00');
INSERT INTO lockstep.planned_sink VALUES ('customers', 'totals', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"key": {"totals": ["customer"]}, "mode": "upsert", "name": "totals", "create": true, "schema": "public", "shared": false, "tables": {"totals": "public.totals"}, "deleted": "gone", "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-22 12:04:30.457748+00');
INSERT INTO lockstep.planned_sink VALUES ('customers', 'changes', '{"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "changes", "path": "@HOME@/out/changes", "bucket": {"by": "function", "function": "tests.kept.at_e8bf36e.pipelines:first_letter"}, "format": "json", "output": "totals", "shared": false}}', DEFAULT, '2026-11-22 12:04:30.457748+00');
INSERT INTO lockstep.planned_sink VALUES ('numbers', 'newest', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.numbers_sums"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-22 12:07:03.353127+00');
INSERT INTO lockstep.planned_sink VALUES ('numbers', 'by_parity', '{"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/numbers", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}', DEFAULT, '2026-11-22 12:07:03.353127+00');
INSERT INTO lockstep.planned_sink VALUES ('lines', 'stdout', '{"type": "lockstep.sinks.append_only.stdout:StdoutSink", "arguments": {"name": "stdout", "output": "lines", "committer": "@HOME@/sent"}}', DEFAULT, '2026-11-22 12:05:02.907826+00');
INSERT INTO lockstep.planned_sink VALUES ('numbers', 'words', '{"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}', DEFAULT, '2026-11-22 12:07:03.353127+00');
INSERT INTO lockstep.planned_sink VALUES ('lines', 'tcp', '{"type": "lockstep.sinks.append_only.tcp:TcpSink", "arguments": {"name": "tcp", "output": "lines", "committer": "@HOME@/sent", "connection": "tcp"}}', DEFAULT, '2026-11-22 12:05:02.907826+00');
INSERT INTO lockstep.planned_sink VALUES ('resumed', 'shared', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-22 12:07:32.538061+00');
INSERT INTO lockstep.planned_sink VALUES ('numbers', 'shared', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"name": "shared", "create": true, "schema": "public", "shared": true, "tables": {"numbers": "public.numbers"}, "protocol": "two_phase", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-22 12:07:03.353127+00');
INSERT INTO lockstep.planned_sink VALUES ('resumed', 'newest', '{"type": "lockstep.sinks.postgres.sink:PostgresSink", "arguments": {"key": {"sums": ["parity"]}, "mode": "upsert", "name": "newest", "order": "column:total", "create": true, "schema": "public", "shared": false, "tables": {"sums": "public.resumed_sums"}, "protocol": "write_ahead", "validate": "load", "connection": "warehouse", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-22 12:07:32.538061+00');
INSERT INTO lockstep.planned_sink VALUES ('resumed', 'by_parity', '{"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "by_parity", "path": "@HOME@/out/resumed", "bucket": {"by": "columns", "columns": ["parity"]}, "format": "parquet", "output": "numbers", "shared": false}}', DEFAULT, '2026-11-22 12:07:32.538061+00');
INSERT INTO lockstep.planned_sink VALUES ('resumed', 'words', '{"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "words", "path": "@HOME@/out/words", "format": "text", "output": "words", "shared": true}}', DEFAULT, '2026-11-22 12:07:32.538061+00');
INSERT INTO lockstep.planned_sink VALUES ('clicks', 'hourly', '{"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "hourly", "path": "@HOME@/out/hourly", "format": "json", "output": "hourly", "shared": false}}', DEFAULT, '2026-11-22 12:08:22.493534+00');
INSERT INTO lockstep.planned_sink VALUES ('clicks', 'late', '{"type": "lockstep.sinks.files.sink:FileSink", "arguments": {"name": "late", "path": "@HOME@/out/late", "format": "parquet", "output": "late", "shared": false}}', DEFAULT, '2026-11-22 12:08:22.493534+00');
INSERT INTO lockstep.planned_sink VALUES ('maria_again', 'repeated', '{"type": "lockstep.sinks.mysql.sink:MySqlSink", "arguments": {"name": "repeated", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_repeated"}, "protocol": "write_ahead", "validate": "load", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "maria", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-22 12:09:02.629979+00');
INSERT INTO lockstep.planned_sink VALUES ('events', 'once', '{"type": "lockstep.sinks.kafka.sink:KafkaSink", "arguments": {"key": "key", "name": "once", "topic": "kept.once", "output": "events", "guarantee": "exactly_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "kept.markers"}}', DEFAULT, '2026-11-22 12:09:44.359996+00');
INSERT INTO lockstep.planned_sink VALUES ('events', 'repeated', '{"type": "lockstep.sinks.kafka.sink:KafkaSink", "arguments": {"key": "key", "name": "repeated", "topic": "kept.repeated", "output": "events", "committer": "@HOME@/sent", "guarantee": "at_least_once", "connection": "kafka", "partitioner": "murmur2_random", "marker_topic": "lockstep.markers"}}', DEFAULT, '2026-11-22 12:09:44.359996+00');
INSERT INTO lockstep.planned_sink VALUES ('maria', 'prepared', '{"type": "lockstep.sinks.mysql.sink:MySqlSink", "arguments": {"name": "prepared", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_prepared"}, "protocol": "two_phase", "validate": "load", "connection": "maria", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-22 12:09:19.754465+00');
INSERT INTO lockstep.planned_sink VALUES ('maria', 'newest', '{"type": "lockstep.sinks.mysql.sink:MySqlSink", "arguments": {"key": {"moves": ["piece"]}, "mode": "upsert", "name": "newest", "create": true, "schema": null, "shared": false, "tables": {"moves": "moves_newest"}, "protocol": "write_ahead", "validate": "load", "connection": "maria", "epoch_column": "lockstep_epoch"}}', DEFAULT, '2026-11-22 12:09:19.754465+00');
INSERT INTO lockstep.run VALUES ('kept', 'tables-1', 'tables', 1, 1, '2026-11-22 12:01:03.866304+00');
INSERT INTO lockstep.run VALUES ('kept', 'tables-2', 'tables', 2, 11, '2026-11-22 12:01:42.546028+00');
INSERT INTO lockstep.run VALUES ('kept', 'tables-3', 'tables', 3, 19, '2026-11-22 12:02:01.961238+00');
INSERT INTO lockstep.run VALUES ('kept', 'orders-0', 'orders', 1, 25, '2026-11-22 12:02:10.189914+00');
INSERT INTO lockstep.run VALUES ('kept', 'orders-1', 'orders', 2, 33, '2026-11-22 12:02:31.5327+00');
INSERT INTO lockstep.run VALUES ('kept', 'orders-2', 'orders', 3, 41, '2026-11-22 12:02:41.935571+00');
INSERT INTO lockstep.run VALUES ('kept', 'orders-3', 'orders', 4, 48, '2026-11-22 12:02:50.752117+00');
INSERT INTO lockstep.run VALUES ('kept', 'orders-4', 'orders', 5, 53, '2026-11-22 12:02:57.864379+00');
INSERT INTO lockstep.run VALUES ('kept', 'orders-5', 'orders', 6, 59, '2026-11-22 12:03:12.713736+00');
INSERT INTO lockstep.run VALUES ('kept', 'orders-6', 'orders', 7, 66, '2026-11-22 12:03:19.413315+00');
INSERT INTO lockstep.run VALUES ('kept', 'orders-7', 'orders', 8, 71, '2026-11-22 12:03:24.693765+00');
INSERT INTO lockstep.run VALUES ('kept', 'orders-8', 'orders', 9, 74, '2026-11-22 12:03:28.305354+00');
INSERT INTO lockstep.run VALUES ('kept', 'orders-9', 'orders', 10, 76, '2026-11-22 12:03:31.41871+00');
INSERT INTO lockstep.run VALUES ('kept', 'orders-10', 'orders', 11, 77, '2026-11-22 12:03:31.702962+00');
INSERT INTO lockstep.run VALUES ('kept', 'customers-1', 'customers', 1, 79, '2026-11-22 12:03:32.304867+00');
INSERT INTO lockstep.run VALUES ('kept', 'customers-2', 'customers', 2, 85, '2026-11-22 12:03:43.181709+00');
INSERT INTO lockstep.run VALUES ('kept', 'customers-3', 'customers', 3, 91, '2026-11-22 12:04:02.837636+00');
INSERT INTO lockstep.run VALUES ('kept', 'customers-4', 'customers', 4, 96, '2026-11-22 12:04:15.745691+00');
INSERT INTO lockstep.run VALUES ('kept', 'customers-5', 'customers', 5, 100, '2026-11-22 12:04:30.457748+00');
INSERT INTO lockstep.run VALUES ('kept', 'lines-1', 'lines', 1, 102, '2026-11-22 12:04:41.71795+00');
INSERT INTO lockstep.run VALUES ('kept', 'lines-2', 'lines', 2, 108, '2026-11-22 12:04:51.961023+00');
INSERT INTO lockstep.run VALUES ('kept', 'lines-3', 'lines', 3, 113, '2026-11-22 12:05:02.907826+00');
INSERT INTO lockstep.run VALUES ('kept', 'numbers-1', 'numbers', 1, 117, '2026-11-22 12:05:15.105384+00');
INSERT INTO lockstep.run VALUES ('kept', 'numbers-2', 'numbers', 2, 127, '2026-11-22 12:05:53.186585+00');
INSERT INTO lockstep.run VALUES ('kept', 'numbers-3', 'numbers', 3, 137, '2026-11-22 12:06:39.774418+00');
INSERT INTO lockstep.run VALUES ('kept', 'numbers-4', 'numbers', 4, 143, '2026-11-22 12:07:03.353127+00');
INSERT INTO lockstep.run VALUES ('kept', 'resumed-1', 'resumed', 1, 144, '2026-11-22 12:07:03.939121+00');
INSERT INTO lockstep.run VALUES ('kept', 'resumed-2', 'resumed', 2, 150, '2026-11-22 12:07:32.538061+00');
INSERT INTO lockstep.run VALUES ('kept', 'clicks-1', 'clicks', 1, 151, '2026-11-22 12:07:32.781609+00');
INSERT INTO lockstep.run VALUES ('kept', 'clicks-2', 'clicks', 2, 157, '2026-11-22 12:08:00.952132+00');
INSERT INTO lockstep.run VALUES ('kept', 'clicks-3', 'clicks', 3, 163, '2026-11-22 12:08:22.493534+00');
INSERT INTO lockstep.run VALUES ('kept', 'maria_again-1', 'maria_again', 1, 167, '2026-11-22 12:08:43.853468+00');
INSERT INTO lockstep.run VALUES ('kept', 'maria-1', 'maria', 1, 171, '2026-11-22 12:08:52.554689+00');
INSERT INTO lockstep.run VALUES ('kept', 'maria_again-2', 'maria_again', 2, 177, '2026-11-22 12:09:02.629979+00');
INSERT INTO lockstep.run VALUES ('kept', 'maria-2', 'maria', 2, 180, '2026-11-22 12:09:10.962153+00');
INSERT INTO lockstep.run VALUES ('kept', 'maria-3', 'maria', 3, 186, '2026-11-22 12:09:19.754465+00');
INSERT INTO lockstep.run VALUES ('kept', 'events-1', 'events', 1, 190, '2026-11-22 12:09:25.880269+00');
INSERT INTO lockstep.run VALUES ('kept', 'events-2', 'events', 2, 196, '2026-11-22 12:09:37.562371+00');
INSERT INTO lockstep.run VALUES ('kept', 'events-3', 'events', 3, 201, '2026-11-22 12:09:44.359996+00');
INSERT INTO lockstep.savepoint VALUES ('resumed', '{"epoch": 2, "format": 1, "pipeline": "numbers", "versions": {"sums": {"key": ["parity"], "files": [{"path": "2-128-part-00000-985094bc-0f59-4873-a333-0a4f46ea0276.c000.zstd.parquet", "rows": 2, "bytes": 618, "epoch": 0, "token": 0, "bucket": 1, "digest": "309441ea088488bb5710a518612f05f2", "sha256": "c9e5a28567ebee119b93f0ae7fd0e0dbf35565e5ea2af91546619b2c56ff8cc8", "earliest": null}], "schema": "parity INT, total BIGINT", "buckets": 2, "expires": null}}, "positions": {"numbers": {"end": {"next": 20}, "start": {"next": 10}}}, "deployment": "03dce53b-23e1-4158-a6fb-140bcb46cc2b", "manifest_hash": "985f0f9688c53486963e8187898cbf125eabd679b815d22437a9676776536be5"}', 'c53440e400b39fa3c5bbc839b9ddeffd077cfbbbeecaeb79ed1863b6bc09304a', 'kept', '2026-11-22 12:07:03.617386+00');
INSERT INTO lockstep.setting_override OVERRIDING SYSTEM VALUE VALUES (1, 'orders', 'warehouse', '{"lock_timeout": 7.0}', 'kept', 'a slow day', '2026-11-22 12:03:31.911482+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (1, 'tables', 1, NULL, NULL, 'planned', 1, NULL, 'begin', 'kept', NULL, '2026-11-22 12:01:03.949122+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (2, 'tables', 1, 'accounts', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:01:03.958519+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (3, 'tables', 1, 'entries', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:01:03.967176+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (4, 'tables', 1, 'careless', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:01:03.978023+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (5, 'tables', 1, 'http', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:01:03.979538+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (6, 'tables', 1, NULL, 'planned', 'staged', 1, NULL, 'stage', 'kept', NULL, '2026-11-22 12:01:38.827369+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (7, 'tables', 1, 'accounts', 'pending', 'prepared', 1, 3, 'prepare', 'kept', NULL, '2026-11-22 12:01:39.316697+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (8, 'tables', 1, 'entries', 'pending', 'prepared', 1, 4, 'prepare', 'kept', NULL, '2026-11-22 12:01:39.646321+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (9, 'tables', 1, 'careless', 'pending', 'prepared', 1, 5, 'prepare', 'kept', NULL, '2026-11-22 12:01:39.919088+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (10, 'tables', 1, 'http', 'pending', 'prepared', 1, 6, 'prepare', 'kept', NULL, '2026-11-22 12:01:40.030349+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (11, 'tables', 1, NULL, 'staged', 'committed', 1, NULL, 'commit', 'kept', NULL, '2026-11-22 12:01:40.143366+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (12, 'tables', 1, 'accounts', 'prepared', 'published', 1, 3, 'publish', 'kept', NULL, '2026-11-22 12:01:40.493147+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (13, 'tables', 1, 'entries', 'prepared', 'published', 1, 4, 'publish', 'kept', NULL, '2026-11-22 12:01:40.761577+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (14, 'tables', 1, 'careless', 'prepared', 'published', 1, 5, 'publish', 'kept', NULL, '2026-11-22 12:01:41.030069+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (15, 'tables', 1, 'http', 'prepared', 'published', 1, 6, 'publish', 'kept', NULL, '2026-11-22 12:01:41.232456+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (16, 'tables', 1, NULL, 'committed', 'published', 1, NULL, 'publish', 'kept', NULL, '2026-11-22 12:01:41.236721+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (17, 'tables', 1, NULL, 'published', 'cleaned', 1, NULL, 'cleanup', 'kept', NULL, '2026-11-22 12:01:41.497061+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (18, 'tables', 2, NULL, NULL, 'planned', 11, NULL, 'begin', 'kept', NULL, '2026-11-22 12:01:42.569804+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (19, 'tables', 2, 'accounts', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:01:42.579381+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (20, 'tables', 2, 'entries', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:01:42.598375+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (21, 'tables', 2, 'careless', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:01:42.60029+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (22, 'tables', 2, 'http', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:01:42.601908+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (23, 'tables', 2, NULL, 'planned', 'staged', 11, NULL, 'stage', 'kept', NULL, '2026-11-22 12:01:59.716749+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (24, 'tables', 2, 'accounts', 'pending', 'prepared', 11, 13, 'prepare', 'kept', NULL, '2026-11-22 12:02:00.096062+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (25, 'tables', 2, 'entries', 'pending', 'prepared', 11, 14, 'prepare', 'kept', NULL, '2026-11-22 12:02:00.477697+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (26, 'tables', 2, 'careless', 'pending', 'prepared', 11, 15, 'prepare', 'kept', NULL, '2026-11-22 12:02:00.659162+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (27, 'tables', 2, 'http', 'pending', 'prepared', 11, 16, 'prepare', 'kept', NULL, '2026-11-22 12:02:00.745811+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (28, 'tables', 2, NULL, 'staged', 'committed', 11, NULL, 'commit', 'kept', NULL, '2026-11-22 12:02:00.823402+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (29, 'tables', 2, 'accounts', 'prepared', 'published', 11, 13, 'publish', 'kept', NULL, '2026-11-22 12:02:01.068152+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (30, 'tables', 2, 'careless', 'prepared', 'published', 11, 15, 'publish', 'kept', NULL, '2026-11-22 12:02:01.23972+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (31, 'tables', 3, NULL, NULL, 'planned', 19, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:01.978986+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (32, 'tables', 3, 'accounts', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:01.980354+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (33, 'tables', 3, 'entries', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:01.981404+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (34, 'tables', 3, 'careless', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:01.982337+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (35, 'tables', 3, 'http', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:01.986335+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (36, 'tables', 3, NULL, 'planned', 'staged', 19, NULL, 'stage', 'kept', NULL, '2026-11-22 12:02:08.80257+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (37, 'tables', 3, 'accounts', 'pending', 'prepared', 19, 21, 'prepare', 'kept', NULL, '2026-11-22 12:02:09.191911+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (38, 'tables', 3, 'entries', 'pending', 'prepared', 19, 22, 'prepare', 'kept', NULL, '2026-11-22 12:02:09.369462+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (39, 'tables', 3, 'careless', 'pending', 'prepared', 19, 23, 'prepare', 'kept', NULL, '2026-11-22 12:02:09.565235+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (40, 'tables', 3, 'http', 'pending', 'prepared', 19, 24, 'prepare', 'kept', NULL, '2026-11-22 12:02:09.729548+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (41, 'tables', 3, NULL, 'staged', 'committed', 19, NULL, 'commit', 'kept', NULL, '2026-11-22 12:02:09.816063+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (42, 'orders', 1, NULL, NULL, 'planned', 25, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:10.209334+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (43, 'orders', 1, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:10.222517+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (44, 'orders', 1, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:10.223745+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (45, 'orders', 1, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:10.224253+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (46, 'orders', 1, NULL, 'planned', 'staged', 25, NULL, 'stage', 'kept', NULL, '2026-11-22 12:02:29.766959+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (47, 'orders', 1, 'warehouse', 'pending', 'prepared', 25, 27, 'prepare', 'kept', NULL, '2026-11-22 12:02:30.289076+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (48, 'orders', 1, 'by_hour', 'pending', 'prepared', 25, 28, 'prepare', 'kept', NULL, '2026-11-22 12:02:30.455346+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (49, 'orders', 1, 'refunds', 'pending', 'prepared', 25, 29, 'prepare', 'kept', NULL, '2026-11-22 12:02:30.521789+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (50, 'orders', 1, NULL, 'staged', 'committed', 25, NULL, 'commit', 'kept', NULL, '2026-11-22 12:02:30.611688+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (51, 'orders', 1, 'warehouse', 'prepared', 'published', 25, 27, 'publish', 'kept', NULL, '2026-11-22 12:02:30.768641+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (52, 'orders', 1, 'by_hour', 'prepared', 'published', 25, 28, 'publish', 'kept', NULL, '2026-11-22 12:02:30.837535+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (53, 'orders', 1, 'refunds', 'prepared', 'published', 25, 29, 'publish', 'kept', NULL, '2026-11-22 12:02:30.9556+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (54, 'orders', 1, NULL, 'committed', 'published', 25, NULL, 'publish', 'kept', NULL, '2026-11-22 12:02:30.971239+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (55, 'orders', 1, NULL, 'published', 'cleaned', 25, NULL, 'cleanup', 'kept', NULL, '2026-11-22 12:02:31.153508+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (56, 'orders', 2, NULL, NULL, 'planned', 33, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:31.558376+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (57, 'orders', 2, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:31.567829+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (58, 'orders', 2, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:31.570329+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (59, 'orders', 2, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:31.577363+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (60, 'orders', 2, NULL, 'planned', 'staged', 33, NULL, 'stage', 'kept', NULL, '2026-11-22 12:02:40.539012+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (61, 'orders', 2, 'warehouse', 'pending', 'prepared', 33, 35, 'prepare', 'kept', NULL, '2026-11-22 12:02:40.918201+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (62, 'orders', 2, 'by_hour', 'pending', 'prepared', 33, 36, 'prepare', 'kept', NULL, '2026-11-22 12:02:41.130939+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (63, 'orders', 2, 'refunds', 'pending', 'prepared', 33, 37, 'prepare', 'kept', NULL, '2026-11-22 12:02:41.267536+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (64, 'orders', 2, NULL, 'staged', 'committed', 33, NULL, 'commit', 'kept', NULL, '2026-11-22 12:02:41.380399+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (65, 'orders', 2, 'warehouse', 'prepared', 'published', 33, 35, 'publish', 'kept', NULL, '2026-11-22 12:02:41.563896+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (66, 'orders', 2, 'by_hour', 'prepared', 'published', 33, 36, 'publish', 'kept', NULL, '2026-11-22 12:02:41.626459+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (67, 'orders', 2, 'refunds', 'prepared', 'published', 33, 37, 'publish', 'kept', NULL, '2026-11-22 12:02:41.675334+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (68, 'orders', 2, NULL, 'committed', 'published', 33, NULL, 'publish', 'kept', NULL, '2026-11-22 12:02:41.678594+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (69, 'orders', 3, NULL, NULL, 'planned', 41, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:41.949421+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (70, 'orders', 3, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:41.954099+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (71, 'orders', 3, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:41.956891+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (72, 'orders', 3, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:41.95771+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (73, 'orders', 3, NULL, 'planned', 'staged', 41, NULL, 'stage', 'kept', NULL, '2026-11-22 12:02:49.317663+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (74, 'orders', 3, 'warehouse', 'pending', 'prepared', 41, 43, 'prepare', 'kept', NULL, '2026-11-22 12:02:49.658269+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (75, 'orders', 3, 'by_hour', 'pending', 'prepared', 41, 44, 'prepare', 'kept', NULL, '2026-11-22 12:02:49.882333+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (76, 'orders', 3, 'refunds', 'pending', 'prepared', 41, 45, 'prepare', 'kept', NULL, '2026-11-22 12:02:50.052056+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (77, 'orders', 3, NULL, 'staged', 'committed', 41, NULL, 'commit', 'kept', NULL, '2026-11-22 12:02:50.163535+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (78, 'orders', 3, 'warehouse', 'prepared', 'published', 41, 43, 'publish', 'kept', NULL, '2026-11-22 12:02:50.36569+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (79, 'orders', 3, 'refunds', 'prepared', 'published', 41, 45, 'publish', 'kept', NULL, '2026-11-22 12:02:50.463901+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (80, 'orders', 4, NULL, NULL, 'planned', 48, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:50.776024+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (81, 'orders', 4, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:50.787082+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (82, 'orders', 4, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:50.790481+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (83, 'orders', 4, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:50.79382+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (84, 'orders', 4, NULL, 'planned', 'staged', 48, NULL, 'stage', 'kept', NULL, '2026-11-22 12:02:56.740606+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (85, 'orders', 4, 'warehouse', 'pending', 'prepared', 48, 50, 'prepare', 'kept', NULL, '2026-11-22 12:02:57.203694+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (86, 'orders', 4, 'by_hour', 'pending', 'prepared', 48, 51, 'prepare', 'kept', NULL, '2026-11-22 12:02:57.368546+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (87, 'orders', 4, 'refunds', 'pending', 'prepared', 48, 52, 'prepare', 'kept', NULL, '2026-11-22 12:02:57.531507+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (88, 'orders', 4, NULL, 'staged', 'committed', 48, NULL, 'commit', 'kept', NULL, '2026-11-22 12:02:57.617722+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (89, 'orders', 5, NULL, NULL, 'planned', 53, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:57.885683+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (90, 'orders', 5, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:57.897935+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (91, 'orders', 5, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:57.90223+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (92, 'orders', 5, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:02:57.910678+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (93, 'orders', 5, NULL, 'planned', 'staged', 53, NULL, 'stage', 'kept', NULL, '2026-11-22 12:03:04.87898+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (94, 'orders', 5, 'warehouse', 'pending', 'prepared', 53, 55, 'prepare', 'kept', NULL, '2026-11-22 12:03:05.141799+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (95, 'orders', 5, 'by_hour', 'pending', 'prepared', 53, 56, 'prepare', 'kept', NULL, '2026-11-22 12:03:05.317362+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (96, 'orders', 5, 'refunds', 'pending', 'prepared', 53, 57, 'prepare', 'kept', NULL, '2026-11-22 12:03:05.450207+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (97, 'orders', 5, NULL, 'staged', 'committed', 53, NULL, 'commit', 'kept', NULL, '2026-11-22 12:03:05.556229+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (98, 'orders', 5, NULL, 'committed', 'committed', 53, 58, 'operator', 'kept', 'a disk was lost', '2026-11-22 12:03:12.47264+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (99, 'orders', 6, NULL, NULL, 'planned', 59, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:12.731536+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (100, 'orders', 6, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:12.738226+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (101, 'orders', 6, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:12.745211+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (102, 'orders', 6, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:12.748492+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (103, 'orders', 6, NULL, 'planned', 'staged', 59, NULL, 'stage', 'kept', NULL, '2026-11-22 12:03:18.1429+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (104, 'orders', 6, 'warehouse', 'pending', 'prepared', 59, 61, 'prepare', 'kept', NULL, '2026-11-22 12:03:18.455338+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (105, 'orders', 6, 'by_hour', 'pending', 'prepared', 59, 62, 'prepare', 'kept', NULL, '2026-11-22 12:03:18.598562+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (106, 'orders', 6, 'refunds', 'pending', 'prepared', 59, 63, 'prepare', 'kept', NULL, '2026-11-22 12:03:18.743483+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (107, 'orders', 6, NULL, 'staged', 'committed', 59, NULL, 'commit', 'kept', NULL, '2026-11-22 12:03:18.838483+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (108, 'orders', 7, NULL, NULL, 'planned', 66, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:19.423956+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (109, 'orders', 7, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:19.438243+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (110, 'orders', 7, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:19.446351+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (111, 'orders', 7, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:19.447449+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (112, 'orders', 7, NULL, 'planned', 'staged', 66, NULL, 'stage', 'kept', NULL, '2026-11-22 12:03:24.094765+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (113, 'orders', 7, 'warehouse', 'pending', 'prepared', 66, 68, 'prepare', 'kept', NULL, '2026-11-22 12:03:24.335744+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (114, 'orders', 7, 'by_hour', 'pending', 'prepared', 66, 69, 'prepare', 'kept', NULL, '2026-11-22 12:03:24.419801+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (115, 'orders', 7, 'refunds', 'pending', 'prepared', 66, 70, 'prepare', 'kept', NULL, '2026-11-22 12:03:24.505328+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (116, 'orders', 8, NULL, NULL, 'planned', 71, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:24.702051+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (117, 'orders', 8, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:24.706318+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (118, 'orders', 8, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:24.711254+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (119, 'orders', 8, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:24.71192+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (120, 'orders', 8, NULL, 'planned', 'staged', 71, NULL, 'stage', 'kept', NULL, '2026-11-22 12:03:28.043325+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (121, 'orders', 8, 'warehouse', 'pending', 'prepared', 71, 73, 'prepare', 'kept', NULL, '2026-11-22 12:03:28.213807+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (122, 'orders', 9, NULL, NULL, 'planned', 74, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:28.318108+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (123, 'orders', 9, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:28.322248+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (124, 'orders', 9, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:28.323173+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (125, 'orders', 9, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:28.323637+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (126, 'orders', 9, NULL, 'planned', 'staged', 74, NULL, 'stage', 'kept', NULL, '2026-11-22 12:03:31.206474+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (127, 'orders', 10, NULL, NULL, 'planned', 76, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:31.43711+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (128, 'orders', 10, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:31.451877+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (129, 'orders', 10, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:31.457324+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (130, 'orders', 10, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:31.465398+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (131, 'orders', 11, NULL, NULL, 'planned', 77, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:31.721653+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (132, 'orders', 11, 'warehouse', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:31.728356+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (133, 'orders', 11, 'by_hour', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:31.730818+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (134, 'orders', 11, 'refunds', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:31.731388+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (135, 'orders', 11, NULL, 'planned', 'planned', 78, NULL, 'operator', 'kept', 'nobody wants that day', '2026-11-22 12:03:31.818169+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (136, 'orders', 11, NULL, 'planned', 'void', 78, NULL, 'operator', 'kept', 'nobody wants that day', '2026-11-22 12:03:31.829932+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (137, 'customers', 1, NULL, NULL, 'planned', 79, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:32.318615+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (138, 'customers', 1, 'totals', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:32.325157+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (139, 'customers', 1, 'changes', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:32.32972+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (140, 'customers', 1, NULL, 'planned', 'staged', 79, NULL, 'stage', 'kept', NULL, '2026-11-22 12:03:42.667762+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (141, 'customers', 1, 'totals', 'pending', 'prepared', 79, 81, 'prepare', 'kept', NULL, '2026-11-22 12:03:42.792442+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (142, 'customers', 1, 'changes', 'pending', 'prepared', 79, 82, 'prepare', 'kept', NULL, '2026-11-22 12:03:42.838362+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (143, 'customers', 1, NULL, 'staged', 'committed', 79, NULL, 'commit', 'kept', NULL, '2026-11-22 12:03:42.859359+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (144, 'customers', 1, 'totals', 'prepared', 'published', 79, 81, 'publish', 'kept', NULL, '2026-11-22 12:03:42.954748+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (145, 'customers', 1, 'changes', 'prepared', 'published', 79, 82, 'publish', 'kept', NULL, '2026-11-22 12:03:42.982241+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (146, 'customers', 1, NULL, 'committed', 'published', 79, NULL, 'publish', 'kept', NULL, '2026-11-22 12:03:42.985974+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (147, 'customers', 1, NULL, 'published', 'cleaned', 79, NULL, 'cleanup', 'kept', NULL, '2026-11-22 12:03:43.087474+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (148, 'customers', 2, NULL, NULL, 'planned', 85, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:43.195014+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (149, 'customers', 2, 'totals', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:43.19748+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (150, 'customers', 2, 'changes', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:03:43.20373+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (151, 'customers', 2, NULL, 'planned', 'staged', 85, NULL, 'stage', 'kept', NULL, '2026-11-22 12:04:01.535356+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (152, 'customers', 2, 'totals', 'pending', 'prepared', 85, 87, 'prepare', 'kept', NULL, '2026-11-22 12:04:01.929299+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (153, 'customers', 2, 'changes', 'pending', 'prepared', 85, 88, 'prepare', 'kept', NULL, '2026-11-22 12:04:02.057052+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (154, 'customers', 2, NULL, 'staged', 'committed', 85, NULL, 'commit', 'kept', NULL, '2026-11-22 12:04:02.112136+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (155, 'customers', 2, 'totals', 'prepared', 'published', 85, 87, 'publish', 'kept', NULL, '2026-11-22 12:04:02.430381+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (156, 'customers', 2, 'changes', 'prepared', 'published', 85, 88, 'publish', 'kept', NULL, '2026-11-22 12:04:02.554991+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (157, 'customers', 2, NULL, 'committed', 'published', 85, NULL, 'publish', 'kept', NULL, '2026-11-22 12:04:02.558329+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (158, 'customers', 3, NULL, NULL, 'planned', 91, NULL, 'begin', 'kept', NULL, '2026-11-22 12:04:02.857843+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (159, 'customers', 3, 'totals', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:04:02.872605+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (160, 'customers', 3, 'changes', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:04:02.880761+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (161, 'customers', 3, NULL, 'planned', 'staged', 91, NULL, 'stage', 'kept', NULL, '2026-11-22 12:04:14.90027+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (162, 'customers', 3, 'totals', 'pending', 'prepared', 91, 93, 'prepare', 'kept', NULL, '2026-11-22 12:04:15.185551+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (163, 'customers', 3, 'changes', 'pending', 'prepared', 91, 94, 'prepare', 'kept', NULL, '2026-11-22 12:04:15.247786+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (164, 'customers', 3, NULL, 'staged', 'committed', 91, NULL, 'commit', 'kept', NULL, '2026-11-22 12:04:15.302111+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (165, 'customers', 3, 'totals', 'prepared', 'published', 91, 93, 'publish', 'kept', NULL, '2026-11-22 12:04:15.517184+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (166, 'customers', 4, NULL, NULL, 'planned', 96, NULL, 'begin', 'kept', NULL, '2026-11-22 12:04:15.75946+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (167, 'customers', 4, 'totals', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:04:15.763554+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (168, 'customers', 4, 'changes', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:04:15.7733+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (169, 'customers', 4, NULL, 'planned', 'staged', 96, NULL, 'stage', 'kept', NULL, '2026-11-22 12:04:29.873673+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (170, 'customers', 4, 'totals', 'pending', 'prepared', 96, 98, 'prepare', 'kept', NULL, '2026-11-22 12:04:30.153078+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (171, 'customers', 4, 'changes', 'pending', 'prepared', 96, 99, 'prepare', 'kept', NULL, '2026-11-22 12:04:30.242236+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (172, 'customers', 4, NULL, 'staged', 'committed', 96, NULL, 'commit', 'kept', NULL, '2026-11-22 12:04:30.310473+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (173, 'customers', 5, NULL, NULL, 'planned', 100, NULL, 'begin', 'kept', NULL, '2026-11-22 12:04:30.473866+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (174, 'customers', 5, 'totals', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:04:30.477746+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (175, 'customers', 5, 'changes', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:04:30.483741+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (176, 'customers', 5, NULL, 'planned', 'staged', 100, NULL, 'stage', 'kept', NULL, '2026-11-22 12:04:41.580006+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (177, 'lines', 1, NULL, NULL, 'planned', 102, NULL, 'begin', 'kept', NULL, '2026-11-22 12:04:41.728581+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (178, 'lines', 1, 'stdout', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:04:41.733378+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (179, 'lines', 1, 'tcp', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:04:41.740564+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (180, 'lines', 1, NULL, 'planned', 'staged', 102, NULL, 'stage', 'kept', NULL, '2026-11-22 12:04:51.078241+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (181, 'lines', 1, 'stdout', 'pending', 'prepared', 102, 104, 'prepare', 'kept', NULL, '2026-11-22 12:04:51.17242+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (182, 'lines', 1, 'tcp', 'pending', 'prepared', 102, 105, 'prepare', 'kept', NULL, '2026-11-22 12:04:51.302082+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (183, 'lines', 1, NULL, 'staged', 'committed', 102, NULL, 'commit', 'kept', NULL, '2026-11-22 12:04:51.447572+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (184, 'lines', 1, 'stdout', 'prepared', 'published', 102, 104, 'publish', 'kept', NULL, '2026-11-22 12:04:51.619622+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (185, 'lines', 1, 'tcp', 'prepared', 'published', 102, 105, 'publish', 'kept', NULL, '2026-11-22 12:04:51.66659+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (186, 'lines', 1, NULL, 'committed', 'published', 102, NULL, 'publish', 'kept', NULL, '2026-11-22 12:04:51.66815+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (187, 'lines', 1, NULL, 'published', 'cleaned', 102, NULL, 'cleanup', 'kept', NULL, '2026-11-22 12:04:51.776149+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (188, 'lines', 2, NULL, NULL, 'planned', 108, NULL, 'begin', 'kept', NULL, '2026-11-22 12:04:51.975351+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (189, 'lines', 2, 'stdout', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:04:51.977602+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (190, 'lines', 2, 'tcp', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:04:51.979433+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (191, 'lines', 2, NULL, 'planned', 'staged', 108, NULL, 'stage', 'kept', NULL, '2026-11-22 12:05:02.207479+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (192, 'lines', 2, 'stdout', 'pending', 'prepared', 108, 110, 'prepare', 'kept', NULL, '2026-11-22 12:05:02.38343+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (193, 'lines', 2, 'tcp', 'pending', 'prepared', 108, 111, 'prepare', 'kept', NULL, '2026-11-22 12:05:02.511981+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (194, 'lines', 2, NULL, 'staged', 'committed', 108, NULL, 'commit', 'kept', NULL, '2026-11-22 12:05:02.578308+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (195, 'lines', 2, 'stdout', 'prepared', 'published', 108, 110, 'publish', 'kept', NULL, '2026-11-22 12:05:02.723187+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (196, 'lines', 3, NULL, NULL, 'planned', 113, NULL, 'begin', 'kept', NULL, '2026-11-22 12:05:02.934392+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (197, 'lines', 3, 'stdout', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:05:02.941176+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (198, 'lines', 3, 'tcp', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:05:02.951496+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (199, 'lines', 3, NULL, 'planned', 'staged', 113, NULL, 'stage', 'kept', NULL, '2026-11-22 12:05:13.940953+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (200, 'lines', 3, 'stdout', 'pending', 'prepared', 113, 115, 'prepare', 'kept', NULL, '2026-11-22 12:05:14.147555+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (201, 'lines', 3, 'tcp', 'pending', 'prepared', 113, 116, 'prepare', 'kept', NULL, '2026-11-22 12:05:14.293645+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (202, 'lines', 3, NULL, 'staged', 'committed', 113, NULL, 'commit', 'kept', NULL, '2026-11-22 12:05:14.426061+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (203, 'numbers', 1, NULL, NULL, 'planned', 117, NULL, 'begin', 'kept', NULL, '2026-11-22 12:05:15.135824+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (204, 'numbers', 1, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:05:15.143517+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (205, 'numbers', 1, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:05:15.150318+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (206, 'numbers', 1, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:05:15.154012+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (207, 'numbers', 1, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:05:15.154783+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (208, 'numbers', 1, NULL, 'planned', 'staged', 117, NULL, 'stage', 'kept', NULL, '2026-11-22 12:05:51.151693+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (209, 'numbers', 1, 'shared', 'pending', 'prepared', 117, 119, 'prepare', 'kept', NULL, '2026-11-22 12:05:51.594906+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (210, 'numbers', 1, 'newest', 'pending', 'prepared', 117, 120, 'prepare', 'kept', NULL, '2026-11-22 12:05:51.880098+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (211, 'numbers', 1, 'by_parity', 'pending', 'prepared', 117, 121, 'prepare', 'kept', NULL, '2026-11-22 12:05:51.950957+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (212, 'numbers', 1, 'words', 'pending', 'prepared', 117, 122, 'prepare', 'kept', NULL, '2026-11-22 12:05:52.034808+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (213, 'numbers', 1, NULL, 'staged', 'committed', 117, NULL, 'commit', 'kept', NULL, '2026-11-22 12:05:52.139461+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (214, 'numbers', 1, 'shared', 'prepared', 'published', 117, 119, 'publish', 'kept', NULL, '2026-11-22 12:05:52.386892+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (215, 'numbers', 1, 'newest', 'prepared', 'published', 117, 120, 'publish', 'kept', NULL, '2026-11-22 12:05:52.697982+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (216, 'numbers', 1, 'by_parity', 'prepared', 'published', 117, 121, 'publish', 'kept', NULL, '2026-11-22 12:05:52.797947+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (217, 'numbers', 1, 'words', 'prepared', 'published', 117, 122, 'publish', 'kept', NULL, '2026-11-22 12:05:52.864494+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (218, 'numbers', 1, NULL, 'committed', 'published', 117, NULL, 'publish', 'kept', NULL, '2026-11-22 12:05:52.8683+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (219, 'numbers', 1, NULL, 'published', 'cleaned', 117, NULL, 'cleanup', 'kept', NULL, '2026-11-22 12:05:52.974715+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (220, 'numbers', 2, NULL, NULL, 'planned', 127, NULL, 'begin', 'kept', NULL, '2026-11-22 12:05:53.199822+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (221, 'numbers', 2, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:05:53.209957+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (222, 'numbers', 2, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:05:53.211017+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (223, 'numbers', 2, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:05:53.211583+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (224, 'numbers', 2, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:05:53.212045+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (225, 'numbers', 2, NULL, 'planned', 'staged', 127, NULL, 'stage', 'kept', NULL, '2026-11-22 12:06:37.599786+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (226, 'numbers', 2, 'shared', 'pending', 'prepared', 127, 129, 'prepare', 'kept', NULL, '2026-11-22 12:06:37.924081+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (227, 'numbers', 2, 'newest', 'pending', 'prepared', 127, 130, 'prepare', 'kept', NULL, '2026-11-22 12:06:38.136565+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (228, 'numbers', 2, 'by_parity', 'pending', 'prepared', 127, 131, 'prepare', 'kept', NULL, '2026-11-22 12:06:38.22247+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (229, 'numbers', 2, 'words', 'pending', 'prepared', 127, 132, 'prepare', 'kept', NULL, '2026-11-22 12:06:38.353008+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (230, 'numbers', 2, NULL, 'staged', 'committed', 127, NULL, 'commit', 'kept', NULL, '2026-11-22 12:06:38.42319+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (231, 'numbers', 2, 'shared', 'prepared', 'published', 127, 129, 'publish', 'kept', NULL, '2026-11-22 12:06:38.609187+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (232, 'numbers', 2, 'newest', 'prepared', 'published', 127, 130, 'publish', 'kept', NULL, '2026-11-22 12:06:38.827422+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (233, 'numbers', 2, 'by_parity', 'prepared', 'published', 127, 131, 'publish', 'kept', NULL, '2026-11-22 12:06:38.945979+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (234, 'numbers', 2, 'words', 'prepared', 'published', 127, 132, 'publish', 'kept', NULL, '2026-11-22 12:06:39.047388+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (235, 'numbers', 2, NULL, 'committed', 'published', 127, NULL, 'publish', 'kept', NULL, '2026-11-22 12:06:39.060141+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (236, 'numbers', 2, NULL, 'published', 'cleaned', 127, NULL, 'cleanup', 'kept', NULL, '2026-11-22 12:06:39.258491+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (237, 'numbers', 3, NULL, NULL, 'planned', 137, NULL, 'begin', 'kept', NULL, '2026-11-22 12:06:39.804716+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (238, 'numbers', 3, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:06:39.807694+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (239, 'numbers', 3, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:06:39.814191+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (240, 'numbers', 3, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:06:39.818529+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (241, 'numbers', 3, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:06:39.827473+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (242, 'numbers', 3, NULL, 'planned', 'staged', 137, NULL, 'stage', 'kept', NULL, '2026-11-22 12:07:02.335021+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (243, 'numbers', 3, 'shared', 'pending', 'prepared', 137, 139, 'prepare', 'kept', NULL, '2026-11-22 12:07:02.441395+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (244, 'numbers', 3, 'newest', 'pending', 'prepared', 137, 140, 'prepare', 'kept', NULL, '2026-11-22 12:07:02.622155+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (245, 'numbers', 3, 'by_parity', 'pending', 'prepared', 137, 141, 'prepare', 'kept', NULL, '2026-11-22 12:07:02.761529+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (246, 'numbers', 3, 'words', 'pending', 'prepared', 137, 142, 'prepare', 'kept', NULL, '2026-11-22 12:07:02.886345+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (247, 'numbers', 3, NULL, 'staged', 'committed', 137, NULL, 'commit', 'kept', NULL, '2026-11-22 12:07:02.963209+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (248, 'numbers', 4, NULL, NULL, 'planned', 143, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:03.382105+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (249, 'numbers', 4, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:03.39318+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (250, 'numbers', 4, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:03.402509+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (251, 'numbers', 4, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:03.408895+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (252, 'numbers', 4, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:03.410919+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (253, 'resumed', 1, NULL, NULL, 'planned', 144, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:03.955241+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (254, 'resumed', 1, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:03.962717+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (255, 'resumed', 1, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:03.971273+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (256, 'resumed', 1, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:03.981121+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (257, 'resumed', 1, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:03.99339+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (258, 'resumed', 1, NULL, 'planned', 'staged', 144, NULL, 'stage', 'kept', NULL, '2026-11-22 12:07:31.307034+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (259, 'resumed', 1, 'shared', 'pending', 'prepared', 144, 146, 'prepare', 'kept', NULL, '2026-11-22 12:07:31.634211+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (260, 'resumed', 1, 'newest', 'pending', 'prepared', 144, 147, 'prepare', 'kept', NULL, '2026-11-22 12:07:31.827771+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (261, 'resumed', 1, 'by_parity', 'pending', 'prepared', 144, 148, 'prepare', 'kept', NULL, '2026-11-22 12:07:31.922252+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (262, 'resumed', 1, 'words', 'pending', 'prepared', 144, 149, 'prepare', 'kept', NULL, '2026-11-22 12:07:31.967064+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (263, 'resumed', 1, NULL, 'staged', 'committed', 144, NULL, 'commit', 'kept', NULL, '2026-11-22 12:07:32.047396+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (264, 'resumed', 2, NULL, NULL, 'planned', 150, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:32.562605+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (265, 'resumed', 2, 'shared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:32.56914+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (266, 'resumed', 2, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:32.57837+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (267, 'resumed', 2, 'by_parity', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:32.581323+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (268, 'resumed', 2, 'words', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:32.584269+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (269, 'clicks', 1, NULL, NULL, 'planned', 151, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:32.799712+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (270, 'clicks', 1, 'hourly', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:32.802739+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (271, 'clicks', 1, 'late', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:07:32.808002+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (272, 'clicks', 1, NULL, 'planned', 'staged', 151, NULL, 'stage', 'kept', NULL, '2026-11-22 12:07:59.807377+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (273, 'clicks', 1, 'hourly', 'pending', 'prepared', 151, 153, 'prepare', 'kept', NULL, '2026-11-22 12:08:00.054687+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (274, 'clicks', 1, 'late', 'pending', 'prepared', 151, 154, 'prepare', 'kept', NULL, '2026-11-22 12:08:00.103262+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (275, 'clicks', 1, NULL, 'staged', 'committed', 151, NULL, 'commit', 'kept', NULL, '2026-11-22 12:08:00.134654+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (276, 'clicks', 1, 'hourly', 'prepared', 'published', 151, 153, 'publish', 'kept', NULL, '2026-11-22 12:08:00.507004+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (277, 'clicks', 1, 'late', 'prepared', 'published', 151, 154, 'publish', 'kept', NULL, '2026-11-22 12:08:00.659426+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (278, 'clicks', 1, NULL, 'committed', 'published', 151, NULL, 'publish', 'kept', NULL, '2026-11-22 12:08:00.664391+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (279, 'clicks', 1, NULL, 'published', 'cleaned', 151, NULL, 'cleanup', 'kept', NULL, '2026-11-22 12:08:00.831373+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (280, 'clicks', 2, NULL, NULL, 'planned', 157, NULL, 'begin', 'kept', NULL, '2026-11-22 12:08:00.976586+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (281, 'clicks', 2, 'hourly', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:08:00.986502+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (282, 'clicks', 2, 'late', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:08:00.997183+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (283, 'clicks', 2, NULL, 'planned', 'staged', 157, NULL, 'stage', 'kept', NULL, '2026-11-22 12:08:21.469315+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (284, 'clicks', 2, 'hourly', 'pending', 'prepared', 157, 159, 'prepare', 'kept', NULL, '2026-11-22 12:08:21.792629+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (285, 'clicks', 2, 'late', 'pending', 'prepared', 157, 160, 'prepare', 'kept', NULL, '2026-11-22 12:08:21.919137+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (286, 'clicks', 2, NULL, 'staged', 'committed', 157, NULL, 'commit', 'kept', NULL, '2026-11-22 12:08:22.008586+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (287, 'clicks', 2, 'hourly', 'prepared', 'published', 157, 159, 'publish', 'kept', NULL, '2026-11-22 12:08:22.300352+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (288, 'clicks', 2, 'late', 'prepared', 'published', 157, 160, 'publish', 'kept', NULL, '2026-11-22 12:08:22.385261+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (289, 'clicks', 2, NULL, 'committed', 'published', 157, NULL, 'publish', 'kept', NULL, '2026-11-22 12:08:22.389815+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (290, 'clicks', 3, NULL, NULL, 'planned', 163, NULL, 'begin', 'kept', NULL, '2026-11-22 12:08:22.507608+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (291, 'clicks', 3, 'hourly', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:08:22.508735+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (292, 'clicks', 3, 'late', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:08:22.511473+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (293, 'clicks', 3, NULL, 'planned', 'staged', 163, NULL, 'stage', 'kept', NULL, '2026-11-22 12:08:42.758439+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (294, 'clicks', 3, 'hourly', 'pending', 'prepared', 163, 165, 'prepare', 'kept', NULL, '2026-11-22 12:08:42.954193+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (295, 'clicks', 3, 'late', 'pending', 'prepared', 163, 166, 'prepare', 'kept', NULL, '2026-11-22 12:08:43.137316+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (296, 'clicks', 3, NULL, 'staged', 'committed', 163, NULL, 'commit', 'kept', NULL, '2026-11-22 12:08:43.225514+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (297, 'maria_again', 1, NULL, NULL, 'planned', 167, NULL, 'begin', 'kept', NULL, '2026-11-22 12:08:43.860092+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (298, 'maria_again', 1, 'repeated', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:08:43.881305+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (299, 'maria_again', 1, NULL, 'planned', 'staged', 167, NULL, 'stage', 'kept', NULL, '2026-11-22 12:08:51.64938+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (300, 'maria_again', 1, 'repeated', 'pending', 'prepared', 167, 169, 'prepare', 'kept', NULL, '2026-11-22 12:08:51.952497+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (301, 'maria_again', 1, NULL, 'staged', 'committed', 167, NULL, 'commit', 'kept', NULL, '2026-11-22 12:08:52.053902+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (302, 'maria_again', 1, 'repeated', 'prepared', 'published', 167, 169, 'publish', 'kept', NULL, '2026-11-22 12:08:52.212768+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (303, 'maria_again', 1, NULL, 'committed', 'published', 167, NULL, 'publish', 'kept', NULL, '2026-11-22 12:08:52.214414+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (304, 'maria_again', 1, NULL, 'published', 'cleaned', 167, NULL, 'cleanup', 'kept', NULL, '2026-11-22 12:08:52.313271+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (305, 'maria', 1, NULL, NULL, 'planned', 171, NULL, 'begin', 'kept', NULL, '2026-11-22 12:08:52.560358+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (306, 'maria', 1, 'prepared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:08:52.566013+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (307, 'maria', 1, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:08:52.567468+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (308, 'maria', 1, NULL, 'planned', 'staged', 171, NULL, 'stage', 'kept', NULL, '2026-11-22 12:09:01.237567+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (309, 'maria', 1, 'prepared', 'pending', 'prepared', 171, 173, 'prepare', 'kept', NULL, '2026-11-22 12:09:01.588073+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (310, 'maria', 1, 'newest', 'pending', 'prepared', 171, 174, 'prepare', 'kept', NULL, '2026-11-22 12:09:01.729963+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (311, 'maria', 1, NULL, 'staged', 'committed', 171, NULL, 'commit', 'kept', NULL, '2026-11-22 12:09:01.792739+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (312, 'maria', 1, 'prepared', 'prepared', 'published', 171, 173, 'publish', 'kept', NULL, '2026-11-22 12:09:01.901431+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (313, 'maria', 1, 'newest', 'prepared', 'published', 171, 174, 'publish', 'kept', NULL, '2026-11-22 12:09:02.086317+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (314, 'maria', 1, NULL, 'committed', 'published', 171, NULL, 'publish', 'kept', NULL, '2026-11-22 12:09:02.091799+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (315, 'maria', 1, NULL, 'published', 'cleaned', 171, NULL, 'cleanup', 'kept', NULL, '2026-11-22 12:09:02.268747+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (316, 'maria_again', 2, NULL, NULL, 'planned', 177, NULL, 'begin', 'kept', NULL, '2026-11-22 12:09:02.639428+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (317, 'maria_again', 2, 'repeated', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:09:02.640588+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (318, 'maria_again', 2, NULL, 'planned', 'staged', 177, NULL, 'stage', 'kept', NULL, '2026-11-22 12:09:10.378582+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (319, 'maria_again', 2, 'repeated', 'pending', 'prepared', 177, 179, 'prepare', 'kept', NULL, '2026-11-22 12:09:10.54707+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (320, 'maria_again', 2, NULL, 'staged', 'committed', 177, NULL, 'commit', 'kept', NULL, '2026-11-22 12:09:10.598823+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (321, 'maria', 2, NULL, NULL, 'planned', 180, NULL, 'begin', 'kept', NULL, '2026-11-22 12:09:10.977545+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (322, 'maria', 2, 'prepared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:09:10.982764+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (323, 'maria', 2, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:09:10.986933+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (324, 'maria', 2, NULL, 'planned', 'staged', 180, NULL, 'stage', 'kept', NULL, '2026-11-22 12:09:18.793269+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (325, 'maria', 2, 'prepared', 'pending', 'prepared', 180, 182, 'prepare', 'kept', NULL, '2026-11-22 12:09:18.980354+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (326, 'maria', 2, 'newest', 'pending', 'prepared', 180, 183, 'prepare', 'kept', NULL, '2026-11-22 12:09:19.06497+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (327, 'maria', 2, NULL, 'staged', 'committed', 180, NULL, 'commit', 'kept', NULL, '2026-11-22 12:09:19.108554+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (328, 'maria', 2, 'prepared', 'prepared', 'published', 180, 182, 'publish', 'kept', NULL, '2026-11-22 12:09:19.219682+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (329, 'maria', 2, 'newest', 'prepared', 'published', 180, 183, 'publish', 'kept', NULL, '2026-11-22 12:09:19.385073+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (330, 'maria', 2, NULL, 'committed', 'published', 180, NULL, 'publish', 'kept', NULL, '2026-11-22 12:09:19.38892+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (331, 'maria', 3, NULL, NULL, 'planned', 186, NULL, 'begin', 'kept', NULL, '2026-11-22 12:09:19.785882+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (332, 'maria', 3, 'prepared', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:09:19.79823+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (333, 'maria', 3, 'newest', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:09:19.801787+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (334, 'maria', 3, NULL, 'planned', 'staged', 186, NULL, 'stage', 'kept', NULL, '2026-11-22 12:09:24.745599+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (335, 'maria', 3, 'prepared', 'pending', 'prepared', 186, 188, 'prepare', 'kept', NULL, '2026-11-22 12:09:24.891012+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (336, 'maria', 3, 'newest', 'pending', 'prepared', 186, 189, 'prepare', 'kept', NULL, '2026-11-22 12:09:24.9639+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (337, 'maria', 3, NULL, 'staged', 'committed', 186, NULL, 'commit', 'kept', NULL, '2026-11-22 12:09:25.034535+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (338, 'events', 1, NULL, NULL, 'planned', 190, NULL, 'begin', 'kept', NULL, '2026-11-22 12:09:25.885383+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (339, 'events', 1, 'once', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:09:25.88678+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (340, 'events', 1, 'repeated', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:09:25.887843+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (341, 'events', 1, NULL, 'planned', 'staged', 190, NULL, 'stage', 'kept', NULL, '2026-11-22 12:09:35.269766+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (342, 'events', 1, 'once', 'pending', 'prepared', 190, 192, 'prepare', 'kept', NULL, '2026-11-22 12:09:35.417135+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (343, 'events', 1, 'repeated', 'pending', 'prepared', 190, 193, 'prepare', 'kept', NULL, '2026-11-22 12:09:35.463825+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (344, 'events', 1, NULL, 'staged', 'committed', 190, NULL, 'commit', 'kept', NULL, '2026-11-22 12:09:35.529932+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (345, 'events', 1, 'once', 'prepared', 'published', 190, 192, 'publish', 'kept', NULL, '2026-11-22 12:09:36.836966+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (346, 'events', 1, 'repeated', 'prepared', 'published', 190, 193, 'publish', 'kept', NULL, '2026-11-22 12:09:36.973312+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (347, 'events', 1, NULL, 'committed', 'published', 190, NULL, 'publish', 'kept', NULL, '2026-11-22 12:09:36.975005+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (348, 'events', 1, NULL, 'published', 'cleaned', 190, NULL, 'cleanup', 'kept', NULL, '2026-11-22 12:09:37.299457+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (349, 'events', 2, NULL, NULL, 'planned', 196, NULL, 'begin', 'kept', NULL, '2026-11-22 12:09:37.566507+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (350, 'events', 2, 'once', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:09:37.567609+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (351, 'events', 2, 'repeated', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:09:37.568516+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (352, 'events', 2, NULL, 'planned', 'staged', 196, NULL, 'stage', 'kept', NULL, '2026-11-22 12:09:40.570682+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (353, 'events', 2, 'once', 'pending', 'prepared', 196, 198, 'prepare', 'kept', NULL, '2026-11-22 12:09:40.802168+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (354, 'events', 2, 'repeated', 'pending', 'prepared', 196, 199, 'prepare', 'kept', NULL, '2026-11-22 12:09:40.832369+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (355, 'events', 2, NULL, 'staged', 'committed', 196, NULL, 'commit', 'kept', NULL, '2026-11-22 12:09:40.895914+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (356, 'events', 2, 'once', 'prepared', 'published', 196, 198, 'publish', 'kept', NULL, '2026-11-22 12:09:44.144056+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (357, 'events', 3, NULL, NULL, 'planned', 201, NULL, 'begin', 'kept', NULL, '2026-11-22 12:09:44.378197+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (358, 'events', 3, 'once', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:09:44.379573+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (359, 'events', 3, 'repeated', NULL, 'pending', NULL, NULL, 'begin', 'kept', NULL, '2026-11-22 12:09:44.385018+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (360, 'events', 3, NULL, 'planned', 'staged', 201, NULL, 'stage', 'kept', NULL, '2026-11-22 12:09:46.430574+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (361, 'events', 3, 'once', 'pending', 'prepared', 201, 203, 'prepare', 'kept', NULL, '2026-11-22 12:09:46.656204+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (362, 'events', 3, 'repeated', 'pending', 'prepared', 201, 204, 'prepare', 'kept', NULL, '2026-11-22 12:09:46.71033+00');
INSERT INTO lockstep.transition OVERRIDING SYSTEM VALUE VALUES (363, 'events', 3, NULL, 'staged', 'committed', 201, NULL, 'commit', 'kept', NULL, '2026-11-22 12:09:46.779821+00');
SELECT pg_catalog.setval('lockstep.pipeline_change_id_seq', 1, false);
SELECT pg_catalog.setval('lockstep.setting_override_id_seq', 1, true);
SELECT pg_catalog.setval('lockstep.token', 204, true);
SELECT pg_catalog.setval('lockstep.transition_id_seq', 363, true);
ALTER TABLE ONLY lockstep.claim
    ADD CONSTRAINT claim_pkey PRIMARY KEY (pipeline, source, path, starts);
ALTER TABLE ONLY lockstep.deployed_setting
    ADD CONSTRAINT deployed_setting_pkey PRIMARY KEY (pipeline, sink);
ALTER TABLE ONLY lockstep.deployment
    ADD CONSTRAINT deployment_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY lockstep.epoch
    ADD CONSTRAINT epoch_pipeline_span_excl EXCLUDE USING gist (pipeline WITH =, span WITH &&) WHERE ((span IS NOT NULL));
ALTER TABLE ONLY lockstep.epoch
    ADD CONSTRAINT epoch_pkey PRIMARY KEY (pipeline, id);
ALTER TABLE ONLY lockstep.execution
    ADD CONSTRAINT execution_pkey PRIMARY KEY (token);
ALTER TABLE ONLY lockstep.legal_transition
    ADD CONSTRAINT legal_transition_subject_source_state_target_state_role_key UNIQUE NULLS NOT DISTINCT (subject, source_state, target_state, role);
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
ALTER TABLE ONLY lockstep.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (dag_id, run_id);
ALTER TABLE ONLY lockstep.savepoint
    ADD CONSTRAINT savepoint_pkey PRIMARY KEY (pipeline);
ALTER TABLE ONLY lockstep.setting_override
    ADD CONSTRAINT setting_override_pkey PRIMARY KEY (id);
ALTER TABLE ONLY lockstep.transition
    ADD CONSTRAINT transition_pkey PRIMARY KEY (id);
CREATE INDEX claim_epoch ON lockstep.claim USING btree (pipeline, epoch);
CREATE INDEX claim_head ON lockstep.claim USING btree (pipeline, source, head) WHERE (head IS NOT NULL);
CREATE INDEX epoch_unfinished ON lockstep.epoch USING btree (pipeline, id) WHERE (state <> ALL (ARRAY['cleaned'::text, 'void'::text]));
CREATE INDEX epoch_with_state ON lockstep.epoch USING btree (pipeline, id) WHERE (based_on IS NOT NULL);
CREATE INDEX participant_unpublished ON lockstep.participant USING btree (pipeline, epoch) WHERE (state <> 'published'::text);
CREATE INDEX pipeline_change_last ON lockstep.pipeline_change USING btree (pipeline, change, id);
CREATE INDEX run_epoch ON lockstep.run USING btree (pipeline, epoch);
CREATE INDEX setting_override_sink ON lockstep.setting_override USING btree (pipeline, sink, id);
CREATE INDEX transition_epoch ON lockstep.transition USING btree (pipeline, epoch, id);
CREATE TRIGGER keep_deployment BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.deployment FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_epoch BEFORE DELETE OR TRUNCATE ON lockstep.epoch FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_execution BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.execution FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_override BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.setting_override FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_participant BEFORE TRUNCATE ON lockstep.participant FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_pipeline_change BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.pipeline_change FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_savepoint BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.savepoint FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER keep_transition BEFORE DELETE OR UPDATE OR TRUNCATE ON lockstep.transition FOR EACH STATEMENT EXECUTE FUNCTION lockstep.refuse();
CREATE TRIGGER watch_epoch BEFORE INSERT OR UPDATE ON lockstep.epoch FOR EACH ROW EXECUTE FUNCTION lockstep.watch_epoch();
CREATE TRIGGER watch_participant BEFORE INSERT OR DELETE OR UPDATE ON lockstep.participant FOR EACH ROW EXECUTE FUNCTION lockstep.watch_participant();
CREATE TRIGGER watch_pipeline BEFORE UPDATE ON lockstep.pipeline FOR EACH ROW EXECUTE FUNCTION lockstep.watch_pipeline();
CREATE TRIGGER watch_restage BEFORE UPDATE ON lockstep.epoch FOR EACH ROW WHEN ((((new.restaged_wal IS DISTINCT FROM old.restaged_wal) OR (new.restaged_hash IS DISTINCT FROM old.restaged_hash)) OR (new.reordered IS DISTINCT FROM old.reordered))) EXECUTE FUNCTION lockstep.watch_restage();
CREATE TRIGGER watch_state BEFORE UPDATE ON lockstep.epoch FOR EACH ROW EXECUTE FUNCTION lockstep.watch_state();
ALTER TABLE ONLY lockstep.claim
    ADD CONSTRAINT claim_pipeline_epoch_fkey FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch(pipeline, id);
ALTER TABLE ONLY lockstep.deployed_setting
    ADD CONSTRAINT deployed_setting_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.epoch
    ADD CONSTRAINT epoch_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.participant
    ADD CONSTRAINT participant_pipeline_epoch_fkey FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch(pipeline, id);
ALTER TABLE ONLY lockstep.pipeline_change
    ADD CONSTRAINT pipeline_change_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.planned_sink
    ADD CONSTRAINT planned_sink_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.run
    ADD CONSTRAINT run_pipeline_epoch_fkey FOREIGN KEY (pipeline, epoch) REFERENCES lockstep.epoch(pipeline, id);
ALTER TABLE ONLY lockstep.savepoint
    ADD CONSTRAINT savepoint_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
ALTER TABLE ONLY lockstep.setting_override
    ADD CONSTRAINT setting_override_pipeline_fkey FOREIGN KEY (pipeline) REFERENCES lockstep.pipeline(name);
