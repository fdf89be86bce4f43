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
CREATE SCHEMA proofs;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE proofs.lockstep_marker (
    deployment uuid NOT NULL,
    pipeline text NOT NULL,
    sink text NOT NULL,
    epoch bigint NOT NULL,
    token bigint NOT NULL,
    manifest_hash text NOT NULL,
    rows jsonb,
    published_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE proofs.lockstep_range (
    deployment uuid NOT NULL,
    pipeline text NOT NULL,
    sink text NOT NULL,
    span text NOT NULL,
    epoch bigint NOT NULL,
    token bigint NOT NULL
);
CREATE TABLE proofs.lockstep_target (
    relation text NOT NULL,
    deployment uuid NOT NULL,
    pipeline text NOT NULL,
    sink text NOT NULL,
    shared boolean NOT NULL
);
CREATE TABLE proofs.lockstep_target_id (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    only_one boolean DEFAULT true NOT NULL,
    CONSTRAINT lockstep_target_id_only_one_check CHECK (only_one)
);
CREATE TABLE public.accounts (
    id bigint,
    owner text,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL
);
CREATE TABLE public.accounts_copy (
    id bigint,
    owner text,
    lockstep_epoch bigint NOT NULL
);
CREATE TABLE public.entries (
    id bigint NOT NULL,
    account bigint,
    amount numeric(10,2)
);
CREATE TABLE public.entries_copy (
    id bigint,
    account bigint,
    amount numeric(10,2),
    lockstep_epoch bigint NOT NULL
);
CREATE SEQUENCE public.entries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.entries_id_seq OWNED BY public.entries.id;
CREATE TABLE public.lockstep_keys (
    deployment uuid NOT NULL,
    pipeline text NOT NULL,
    sink text NOT NULL,
    relation text NOT NULL,
    epoch bigint NOT NULL,
    new bigint NOT NULL
);
CREATE TABLE public.lockstep_marker (
    deployment uuid NOT NULL,
    pipeline text NOT NULL,
    sink text NOT NULL,
    epoch bigint NOT NULL,
    token bigint NOT NULL,
    manifest_hash text NOT NULL,
    rows jsonb,
    published_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.lockstep_range (
    deployment uuid NOT NULL,
    pipeline text NOT NULL,
    sink text NOT NULL,
    span text NOT NULL,
    epoch bigint NOT NULL,
    token bigint NOT NULL
);
CREATE TABLE public.lockstep_sent (
    job text NOT NULL,
    operator text NOT NULL,
    epoch bigint NOT NULL,
    token bigint NOT NULL,
    manifest text NOT NULL,
    sent_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.lockstep_sent_range (
    job text NOT NULL,
    operator text NOT NULL,
    span text NOT NULL,
    epoch bigint NOT NULL
);
CREATE TABLE public.lockstep_target (
    relation text NOT NULL,
    deployment uuid NOT NULL,
    pipeline text NOT NULL,
    sink text NOT NULL,
    shared boolean NOT NULL
);
CREATE TABLE public.lockstep_target_id (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    only_one boolean DEFAULT true NOT NULL,
    CONSTRAINT lockstep_target_id_only_one_check CHECK (only_one)
);
CREATE TABLE public.numbers (
    value bigint,
    parity integer,
    lockstep_epoch bigint NOT NULL
);
CREATE TABLE public.numbers_sums (
    parity integer NOT NULL,
    total bigint,
    lockstep_order bigint NOT NULL,
    lockstep_epoch bigint NOT NULL
);
CREATE TABLE public.orders (
    id bigint,
    customer text,
    amount numeric(10,2),
    paid boolean,
    day date,
    at timestamp with time zone,
    weight double precision,
    pieces integer,
    lockstep_epoch bigint NOT NULL
);
CREATE TABLE public.refunds (
    id bigint,
    customer text,
    day date,
    lockstep_epoch bigint NOT NULL
);
CREATE TABLE public.resumed_sums (
    parity integer NOT NULL,
    total bigint,
    lockstep_order bigint NOT NULL,
    lockstep_epoch bigint NOT NULL
);
CREATE TABLE public.totals (
    customer text NOT NULL,
    total bigint,
    lockstep_deleted boolean NOT NULL,
    lockstep_order bigint NOT NULL,
    lockstep_epoch bigint NOT NULL
);
ALTER TABLE ONLY public.entries ALTER COLUMN id SET DEFAULT nextval('public.entries_id_seq'::regclass);
INSERT INTO proofs.lockstep_marker VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'tables', 'entries', 1, 7, 'd7f63a2a0c5f6f3c7005e4803661d8bf1a55f48c1df47f51af90b2cb36a118da', '{"entries": 3}', '2026-11-29 10:33:34.98308+00');
INSERT INTO proofs.lockstep_target VALUES ('public.entries_copy', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'tables', 'entries', false);
INSERT INTO proofs.lockstep_target_id VALUES ('dea8b93c-70cf-4f50-82f2-53f6ad62fa6e', true);
INSERT INTO public.accounts VALUES (1, 'owner 1', '755');
INSERT INTO public.accounts VALUES (2, 'owner 2', '757');
INSERT INTO public.accounts VALUES (3, 'owner 3', '759');
INSERT INTO public.accounts VALUES (4, 'owner 4', '771');
INSERT INTO public.accounts VALUES (5, 'owner 5', '773');
INSERT INTO public.accounts VALUES (6, 'owner 6', '775');
INSERT INTO public.accounts VALUES (7, 'owner 7', '780');
INSERT INTO public.accounts VALUES (8, 'owner 8', '782');
INSERT INTO public.accounts VALUES (9, 'owner 9', '784');
INSERT INTO public.accounts VALUES (10, 'owner 10', '788');
INSERT INTO public.accounts VALUES (11, 'owner 11', '790');
INSERT INTO public.accounts VALUES (12, 'owner 12', '792');
INSERT INTO public.accounts_copy VALUES (1, 'owner 1', 1);
INSERT INTO public.accounts_copy VALUES (2, 'owner 2', 1);
INSERT INTO public.accounts_copy VALUES (3, 'owner 3', 1);
INSERT INTO public.accounts_copy VALUES (4, 'owner 4', 2);
INSERT INTO public.accounts_copy VALUES (5, 'owner 5', 2);
INSERT INTO public.accounts_copy VALUES (6, 'owner 6', 2);
INSERT INTO public.entries VALUES (1, 1, 1.25);
INSERT INTO public.entries VALUES (2, 2, 2.25);
INSERT INTO public.entries VALUES (3, 3, 3.25);
INSERT INTO public.entries VALUES (4, 4, 4.25);
INSERT INTO public.entries VALUES (5, 5, 5.25);
INSERT INTO public.entries VALUES (6, 6, 6.25);
INSERT INTO public.entries VALUES (7, 7, 7.25);
INSERT INTO public.entries VALUES (8, 8, 8.25);
INSERT INTO public.entries VALUES (9, 9, 9.25);
INSERT INTO public.entries VALUES (10, 10, 10.25);
INSERT INTO public.entries VALUES (11, 11, 11.25);
INSERT INTO public.entries VALUES (12, 12, 12.25);
INSERT INTO public.entries_copy VALUES (1, 1, 1.25, 1);
INSERT INTO public.entries_copy VALUES (2, 2, 2.25, 1);
INSERT INTO public.entries_copy VALUES (3, 3, 3.25, 1);
INSERT INTO public.lockstep_keys VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'customers', 'totals', 'public.totals', 1, 3);
INSERT INTO public.lockstep_keys VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'customers', 'totals', 'public.totals', 2, 1);
INSERT INTO public.lockstep_keys VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'customers', 'totals', 'public.totals', 3, 0);
INSERT INTO public.lockstep_keys VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'numbers', 'newest', 'public.numbers_sums', 1, 2);
INSERT INTO public.lockstep_keys VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'numbers', 'newest', 'public.numbers_sums', 2, 0);
INSERT INTO public.lockstep_marker VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'tables', 'accounts', 1, 6, 'd7f63a2a0c5f6f3c7005e4803661d8bf1a55f48c1df47f51af90b2cb36a118da', '{"accounts": 3}', '2026-11-29 10:33:34.87591+00');
INSERT INTO public.lockstep_marker VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'tables', 'accounts', 2, 14, 'a0cc3b2c4e9fff56df26fab93fecb701384145e5490a7501115e2c1a09fec51b', '{"accounts": 3}', '2026-11-29 10:33:37.678376+00');
INSERT INTO public.lockstep_marker VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'orders', 'warehouse', 1, 22, '55d0a6bd1b50b53923121a2217c2dc19db731ef7517ab5c3169358ea5d2d898f', '{"orders": 4, "refunds": 1}', '2026-11-29 10:33:49.711733+00');
INSERT INTO public.lockstep_marker VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'orders', 'warehouse', 2, 30, '55c92072172bde239f89e12604e50af1f9fadc4e0c4ba6582c66ea647d91dddd', '{"orders": 4, "refunds": 1}', '2026-11-29 10:33:53.208309+00');
INSERT INTO public.lockstep_marker VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'orders', 'warehouse', 3, 38, 'dacf7332d5dd96d660ec5fa571ea23176a9fff9cb2fdc2222830212b44509a3c', '{"orders": 4, "refunds": 1}', '2026-11-29 10:33:56.751815+00');
INSERT INTO public.lockstep_marker VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'orders', 'warehouse', 6, 56, '4d451fb6105b558bce14922a74cc1e167305eb2943d5dfa6cd2dcacc882d5cc5', '{"orders": 4, "refunds": 1}', '2026-11-29 10:34:11.055727+00');
INSERT INTO public.lockstep_marker VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'customers', 'totals', 1, 78, '19dbb40e75968a8a990db57a463ba36fada9884fde53fd01fb977c36a173d226', '{"totals": 3}', '2026-11-29 10:34:33.909851+00');
INSERT INTO public.lockstep_marker VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'customers', 'totals', 2, 84, 'b2448e9a61eb85caa38b16e564422b46210229eea246ef57e41b32e5e2099c2e', '{"totals": 2}', '2026-11-29 10:34:42.000186+00');
INSERT INTO public.lockstep_marker VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'customers', 'totals', 3, 90, 'b4057ad9465133f1b45c36f385d0e17c24da2b4e2d02fcfe12e7ebc1d223552c', '{"totals": 2}', '2026-11-29 10:34:49.297858+00');
INSERT INTO public.lockstep_marker VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'numbers', 'shared', 1, 114, 'a60a1a10c433c9429d30044d46aeab8a91c37c16503f12023853a211d854fa92', '{"numbers": 10}', '2026-11-29 10:35:31.356096+00');
INSERT INTO public.lockstep_marker VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'numbers', 'newest', 1, 119, 'a60a1a10c433c9429d30044d46aeab8a91c37c16503f12023853a211d854fa92', '{"sums": 2}', '2026-11-29 10:35:32.101225+00');
INSERT INTO public.lockstep_marker VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'numbers', 'shared', 2, 124, '69959e9b3ad02f30a3b8ee70c0950520b228018ea0c35691382010d58602f5ce', '{"numbers": 10}', '2026-11-29 10:36:02.129853+00');
INSERT INTO public.lockstep_marker VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'numbers', 'newest', 2, 129, '69959e9b3ad02f30a3b8ee70c0950520b228018ea0c35691382010d58602f5ce', '{"sums": 2}', '2026-11-29 10:36:04.31127+00');
INSERT INTO public.lockstep_range VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'orders', 'warehouse', '2013-01-01T00:00:00+00:00/2013-01-02T00:00:00+00:00', 1, 22);
INSERT INTO public.lockstep_range VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'orders', 'warehouse', '2013-01-02T00:00:00+00:00/2013-01-03T00:00:00+00:00', 2, 30);
INSERT INTO public.lockstep_range VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'orders', 'warehouse', '2013-01-03T00:00:00+00:00/2013-01-04T00:00:00+00:00', 3, 38);
INSERT INTO public.lockstep_range VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'orders', 'warehouse', '2013-01-06T00:00:00+00:00/2013-01-07T00:00:00+00:00', 6, 56);
INSERT INTO public.lockstep_sent VALUES ('', '', 0, 0, '3c48e509-afc3-4bba-a265-50851266d55a', '2026-11-29 10:33:22.114912+00');
INSERT INTO public.lockstep_sent VALUES ('dd26b102-bcf7-4f98-8bc1-33d55654ea6c:tables', 'http', 1, 8, 'd7f63a2a0c5f6f3c7005e4803661d8bf1a55f48c1df47f51af90b2cb36a118da', '2026-11-29 10:33:35.114757+00');
INSERT INTO public.lockstep_target VALUES ('public.accounts_copy', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'tables', 'accounts', false);
INSERT INTO public.lockstep_target VALUES ('public.orders', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'orders', 'warehouse', false);
INSERT INTO public.lockstep_target VALUES ('public.refunds', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'orders', 'warehouse', false);
INSERT INTO public.lockstep_target VALUES ('public.totals', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'customers', 'totals', false);
INSERT INTO public.lockstep_target VALUES ('public.numbers', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'numbers', 'shared', true);
INSERT INTO public.lockstep_target VALUES ('public.numbers_sums', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'numbers', 'newest', false);
INSERT INTO public.lockstep_target VALUES ('public.numbers', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'resumed', 'shared', true);
INSERT INTO public.lockstep_target VALUES ('public.resumed_sums', 'dd26b102-bcf7-4f98-8bc1-33d55654ea6c', 'resumed', 'newest', false);
INSERT INTO public.lockstep_target_id VALUES ('4321bb65-34c9-4d8d-a447-7f90258b1527', true);
INSERT INTO public.numbers VALUES (0, 0, 1);
INSERT INTO public.numbers VALUES (1, 1, 1);
INSERT INTO public.numbers VALUES (2, 0, 1);
INSERT INTO public.numbers VALUES (3, 1, 1);
INSERT INTO public.numbers VALUES (4, 0, 1);
INSERT INTO public.numbers VALUES (5, 1, 1);
INSERT INTO public.numbers VALUES (6, 0, 1);
INSERT INTO public.numbers VALUES (7, 1, 1);
INSERT INTO public.numbers VALUES (8, 0, 1);
INSERT INTO public.numbers VALUES (9, 1, 1);
INSERT INTO public.numbers VALUES (10, 0, 2);
INSERT INTO public.numbers VALUES (11, 1, 2);
INSERT INTO public.numbers VALUES (12, 0, 2);
INSERT INTO public.numbers VALUES (13, 1, 2);
INSERT INTO public.numbers VALUES (14, 0, 2);
INSERT INTO public.numbers VALUES (15, 1, 2);
INSERT INTO public.numbers VALUES (16, 0, 2);
INSERT INTO public.numbers VALUES (17, 1, 2);
INSERT INTO public.numbers VALUES (18, 0, 2);
INSERT INTO public.numbers VALUES (19, 1, 2);
INSERT INTO public.numbers_sums VALUES (0, 90, 90, 2);
INSERT INTO public.numbers_sums VALUES (1, 100, 100, 2);
INSERT INTO public.orders VALUES (1, 'name, 1', 0.00, false, '2013-01-01', '2013-01-01 01:30:00+00', 0.25, 1, 1);
INSERT INTO public.orders VALUES (2, 'name, 2', 1.00, true, '2013-01-01', '2013-01-01 02:30:00+00', 0.5, 2, 1);
INSERT INTO public.orders VALUES (3, 'name, 3', 2.00, false, '2013-01-01', '2013-01-01 03:30:00+00', 0.75, NULL, 1);
INSERT INTO public.orders VALUES (3, 'name, 3', 2.00, false, '2013-01-01', '2013-01-01 03:30:00+00', 0.75, NULL, 1);
INSERT INTO public.orders VALUES (11, 'name, 1', 0.01, false, '2013-01-02', '2013-01-02 01:30:00.000001+00', 0.25, 1, 2);
INSERT INTO public.orders VALUES (12, 'name, 2', 1.01, true, '2013-01-02', '2013-01-02 02:30:00.000001+00', 0.5, 2, 2);
INSERT INTO public.orders VALUES (13, 'name, 3', 2.01, false, '2013-01-02', '2013-01-02 03:30:00.000001+00', 0.75, NULL, 2);
INSERT INTO public.orders VALUES (13, 'name, 3', 2.01, false, '2013-01-02', '2013-01-02 03:30:00.000001+00', 0.75, NULL, 2);
INSERT INTO public.orders VALUES (21, 'name, 1', 0.02, false, '2013-01-03', '2013-01-03 01:30:00.000002+00', 0.25, 1, 3);
INSERT INTO public.orders VALUES (22, 'name, 2', 1.02, true, '2013-01-03', '2013-01-03 02:30:00.000002+00', 0.5, 2, 3);
INSERT INTO public.orders VALUES (23, 'name, 3', 2.02, false, '2013-01-03', '2013-01-03 03:30:00.000002+00', 0.75, NULL, 3);
INSERT INTO public.orders VALUES (23, 'name, 3', 2.02, false, '2013-01-03', '2013-01-03 03:30:00.000002+00', 0.75, NULL, 3);
INSERT INTO public.orders VALUES (51, 'name, 1', 0.05, false, '2013-01-06', '2013-01-06 01:30:00.000005+00', 0.25, 1, 6);
INSERT INTO public.orders VALUES (52, 'name, 2', 1.05, true, '2013-01-06', '2013-01-06 02:30:00.000005+00', 0.5, 2, 6);
INSERT INTO public.orders VALUES (53, 'name, 3', 2.05, false, '2013-01-06', '2013-01-06 03:30:00.000005+00', 0.75, NULL, 6);
INSERT INTO public.orders VALUES (53, 'name, 3', 2.05, false, '2013-01-06', '2013-01-06 03:30:00.000005+00', 0.75, NULL, 6);
INSERT INTO public.refunds VALUES (0, 'name, 0', '2013-01-01', 1);
INSERT INTO public.refunds VALUES (10, 'name, 0', '2013-01-02', 2);
INSERT INTO public.refunds VALUES (20, 'name, 0', '2013-01-03', 3);
INSERT INTO public.refunds VALUES (50, 'name, 0', '2013-01-06', 6);
INSERT INTO public.totals VALUES ('carl', 3, false, 1, 1);
INSERT INTO public.totals VALUES ('ann', 11, false, 2, 2);
INSERT INTO public.totals VALUES ('bob', 7, true, 3, 3);
INSERT INTO public.totals VALUES ('dora', 26, false, 3, 3);
SELECT pg_catalog.setval('public.entries_id_seq', 12, true);
ALTER TABLE ONLY proofs.lockstep_marker
    ADD CONSTRAINT lockstep_marker_pkey PRIMARY KEY (deployment, pipeline, sink, epoch);
ALTER TABLE ONLY proofs.lockstep_range
    ADD CONSTRAINT lockstep_range_deployment_pipeline_sink_token_epoch_key UNIQUE (deployment, pipeline, sink, token, epoch);
ALTER TABLE ONLY proofs.lockstep_range
    ADD CONSTRAINT lockstep_range_pkey PRIMARY KEY (deployment, pipeline, sink, span);
ALTER TABLE ONLY proofs.lockstep_target_id
    ADD CONSTRAINT lockstep_target_id_pkey PRIMARY KEY (only_one);
ALTER TABLE ONLY proofs.lockstep_target
    ADD CONSTRAINT lockstep_target_pkey PRIMARY KEY (relation, deployment, pipeline, sink);
ALTER TABLE ONLY public.entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.lockstep_keys
    ADD CONSTRAINT lockstep_keys_pkey PRIMARY KEY (deployment, pipeline, sink, relation, epoch);
ALTER TABLE ONLY public.lockstep_marker
    ADD CONSTRAINT lockstep_marker_pkey PRIMARY KEY (deployment, pipeline, sink, epoch);
ALTER TABLE ONLY public.lockstep_range
    ADD CONSTRAINT lockstep_range_deployment_pipeline_sink_token_epoch_key UNIQUE (deployment, pipeline, sink, token, epoch);
ALTER TABLE ONLY public.lockstep_range
    ADD CONSTRAINT lockstep_range_pkey PRIMARY KEY (deployment, pipeline, sink, span);
ALTER TABLE ONLY public.lockstep_sent
    ADD CONSTRAINT lockstep_sent_pkey PRIMARY KEY (job, operator, epoch);
ALTER TABLE ONLY public.lockstep_sent_range
    ADD CONSTRAINT lockstep_sent_range_job_operator_epoch_key UNIQUE (job, operator, epoch);
ALTER TABLE ONLY public.lockstep_sent_range
    ADD CONSTRAINT lockstep_sent_range_pkey PRIMARY KEY (job, operator, span);
ALTER TABLE ONLY public.lockstep_target_id
    ADD CONSTRAINT lockstep_target_id_pkey PRIMARY KEY (only_one);
ALTER TABLE ONLY public.lockstep_target
    ADD CONSTRAINT lockstep_target_pkey PRIMARY KEY (relation, deployment, pipeline, sink);
ALTER TABLE ONLY public.numbers_sums
    ADD CONSTRAINT numbers_sums_pkey PRIMARY KEY (parity);
ALTER TABLE ONLY public.resumed_sums
    ADD CONSTRAINT resumed_sums_pkey PRIMARY KEY (parity);
ALTER TABLE ONLY public.totals
    ADD CONSTRAINT totals_pkey PRIMARY KEY (customer);
CREATE INDEX accounts_copy_lockstep_epoch_idx ON public.accounts_copy USING brin (lockstep_epoch) WITH (pages_per_range='32');
CREATE INDEX accounts_xid_idx ON public.accounts USING btree (xid);
CREATE INDEX entries_copy_lockstep_epoch_idx ON public.entries_copy USING brin (lockstep_epoch) WITH (pages_per_range='32');
CREATE INDEX numbers_lockstep_epoch_idx ON public.numbers USING brin (lockstep_epoch) WITH (pages_per_range='32');
CREATE INDEX orders_lockstep_epoch_idx ON public.orders USING brin (lockstep_epoch) WITH (pages_per_range='32');
CREATE INDEX refunds_lockstep_epoch_idx ON public.refunds USING brin (lockstep_epoch) WITH (pages_per_range='32');
