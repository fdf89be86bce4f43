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
CREATE TABLE public.entries_careless (
    id bigint,
    account bigint,
    amount numeric(10,2),
    lockstep_epoch bigint NOT NULL
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
INSERT INTO proofs.lockstep_marker VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'tables', 'entries', 1, 8, 'f41791177e6a4f218369c19c0aa83ecaec003affc96e0515df9ce55be3b30aef', '{"entries": 3}', '2026-11-29 01:20:17.748607+00');
INSERT INTO proofs.lockstep_target VALUES ('public.entries_copy', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'tables', 'entries', false);
INSERT INTO proofs.lockstep_target_id VALUES ('093f6416-2fda-4ab1-af33-b1417da68ce7', true);
INSERT INTO public.accounts VALUES (1, 'owner 1', '765');
INSERT INTO public.accounts VALUES (2, 'owner 2', '767');
INSERT INTO public.accounts VALUES (3, 'owner 3', '769');
INSERT INTO public.accounts VALUES (4, 'owner 4', '785');
INSERT INTO public.accounts VALUES (5, 'owner 5', '787');
INSERT INTO public.accounts VALUES (6, 'owner 6', '789');
INSERT INTO public.accounts VALUES (7, 'owner 7', '796');
INSERT INTO public.accounts VALUES (8, 'owner 8', '798');
INSERT INTO public.accounts VALUES (9, 'owner 9', '800');
INSERT INTO public.accounts VALUES (10, 'owner 10', '804');
INSERT INTO public.accounts VALUES (11, 'owner 11', '806');
INSERT INTO public.accounts VALUES (12, 'owner 12', '808');
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
INSERT INTO public.entries_careless VALUES (1, 1, 1.25, 1);
INSERT INTO public.entries_careless VALUES (2, 2, 2.25, 1);
INSERT INTO public.entries_careless VALUES (3, 3, 3.25, 1);
INSERT INTO public.entries_careless VALUES (4, 4, 4.25, 2);
INSERT INTO public.entries_careless VALUES (5, 5, 5.25, 2);
INSERT INTO public.entries_careless VALUES (6, 6, 6.25, 2);
INSERT INTO public.entries_copy VALUES (1, 1, 1.25, 1);
INSERT INTO public.entries_copy VALUES (2, 2, 2.25, 1);
INSERT INTO public.entries_copy VALUES (3, 3, 3.25, 1);
INSERT INTO public.lockstep_keys VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'customers', 'totals', 'public.totals', 1, 3);
INSERT INTO public.lockstep_keys VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'customers', 'totals', 'public.totals', 2, 1);
INSERT INTO public.lockstep_keys VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'customers', 'totals', 'public.totals', 3, 0);
INSERT INTO public.lockstep_keys VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'numbers', 'newest', 'public.numbers_sums', 1, 2);
INSERT INTO public.lockstep_keys VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'numbers', 'newest', 'public.numbers_sums', 2, 0);
INSERT INTO public.lockstep_marker VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'orders', 'warehouse', 1, 27, '1c93e86ecdd3917dc9e2a6f376b93acff2cbac52771abec40146eaacd3e7bf5a', '{"orders": 4, "refunds": 1}', '2026-11-29 01:20:32.823627+00');
INSERT INTO public.lockstep_marker VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'orders', 'warehouse', 2, 35, '288472c37b77db1064744dd8556f49dff7a8238d2c08e1f2fdf9c799ae8d8c1f', '{"orders": 4, "refunds": 1}', '2026-11-29 01:20:37.780824+00');
INSERT INTO public.lockstep_marker VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'orders', 'warehouse', 3, 43, '93d1c66f59c7cb7072f3cd56def1c637a5abcca3fa7ca70a55000b69ccf11ab2', '{"orders": 4, "refunds": 1}', '2026-11-29 01:20:42.727513+00');
INSERT INTO public.lockstep_marker VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'orders', 'warehouse', 6, 61, '38ed5563f23235ee48c45e0a7f3068329806a2bf7df5d1f90dffa4df56587a1d', '{"orders": 4, "refunds": 1}', '2026-11-29 01:20:57.966005+00');
INSERT INTO public.lockstep_marker VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'customers', 'totals', 1, 83, '4d65e4ad4894c3be204a89ad12ec89d990fadcffb64a26fee45e925a6e49e32d', '{"totals": 3}', '2026-11-29 01:21:15.370396+00');
INSERT INTO public.lockstep_marker VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'customers', 'totals', 2, 89, 'c3ac90d3ae3d2854570b3bfcdb2107b266dca947fe7282eae786cc9c0da7002b', '{"totals": 2}', '2026-11-29 01:21:20.380571+00');
INSERT INTO public.lockstep_marker VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'customers', 'totals', 3, 95, '17a3ddf5b69dedb2d1a6adb281f5bfc704f217c6ea9b928495f1bbe4a836631e', '{"totals": 2}', '2026-11-29 01:21:24.512222+00');
INSERT INTO public.lockstep_marker VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'numbers', 'shared', 1, 119, 'bd912a32fed7272293cce408dbdc867c2d17a6ae764f6845b134d1eda1e2412d', '{"numbers": 10}', '2026-11-29 01:22:10.450687+00');
INSERT INTO public.lockstep_marker VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'numbers', 'newest', 1, 124, 'bd912a32fed7272293cce408dbdc867c2d17a6ae764f6845b134d1eda1e2412d', '{"sums": 2}', '2026-11-29 01:22:10.852323+00');
INSERT INTO public.lockstep_marker VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'numbers', 'shared', 2, 129, '7ae52751a453a6a0c93012131fcf78de6c738bb74366dacb6f6e74102abb8faf', '{"numbers": 10}', '2026-11-29 01:22:37.588838+00');
INSERT INTO public.lockstep_marker VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'numbers', 'newest', 2, 134, '7ae52751a453a6a0c93012131fcf78de6c738bb74366dacb6f6e74102abb8faf', '{"sums": 2}', '2026-11-29 01:22:38.297413+00');
INSERT INTO public.lockstep_range VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'orders', 'warehouse', '2013-01-01T00:00:00+00:00/2013-01-02T00:00:00+00:00', 1, 27);
INSERT INTO public.lockstep_range VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'orders', 'warehouse', '2013-01-02T00:00:00+00:00/2013-01-03T00:00:00+00:00', 2, 35);
INSERT INTO public.lockstep_range VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'orders', 'warehouse', '2013-01-03T00:00:00+00:00/2013-01-04T00:00:00+00:00', 3, 43);
INSERT INTO public.lockstep_range VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'orders', 'warehouse', '2013-01-06T00:00:00+00:00/2013-01-07T00:00:00+00:00', 6, 61);
INSERT INTO public.lockstep_sent VALUES ('', '', 0, 0, 'b233b852-fe1e-422f-b65d-4f9fd8f8a0a2', '2026-11-29 01:20:03.706823+00');
INSERT INTO public.lockstep_sent VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3:tables', 'accounts', 1, 7, 'f41791177e6a4f218369c19c0aa83ecaec003affc96e0515df9ce55be3b30aef', '2026-11-29 01:20:17.66885+00');
INSERT INTO public.lockstep_sent VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3:tables', 'http', 1, 10, 'f41791177e6a4f218369c19c0aa83ecaec003affc96e0515df9ce55be3b30aef', '2026-11-29 01:20:17.925345+00');
INSERT INTO public.lockstep_sent VALUES ('b22cd34d-3a52-4455-b37a-32d9ed73c0e3:tables', 'accounts', 2, 17, 'ba16258af0b908cb69321a2e649079654a279376a347090879aceefc257fc91f', '2026-11-29 01:20:20.602942+00');
INSERT INTO public.lockstep_target VALUES ('public.accounts_copy', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'tables', 'accounts', false);
INSERT INTO public.lockstep_target VALUES ('public.entries_careless', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'tables', 'careless', false);
INSERT INTO public.lockstep_target VALUES ('public.orders', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'orders', 'warehouse', false);
INSERT INTO public.lockstep_target VALUES ('public.refunds', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'orders', 'warehouse', false);
INSERT INTO public.lockstep_target VALUES ('public.totals', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'customers', 'totals', false);
INSERT INTO public.lockstep_target VALUES ('public.numbers', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'numbers', 'shared', true);
INSERT INTO public.lockstep_target VALUES ('public.numbers_sums', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'numbers', 'newest', false);
INSERT INTO public.lockstep_target VALUES ('public.numbers', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'resumed', 'shared', true);
INSERT INTO public.lockstep_target VALUES ('public.resumed_sums', 'b22cd34d-3a52-4455-b37a-32d9ed73c0e3', 'resumed', 'newest', false);
INSERT INTO public.lockstep_target_id VALUES ('24ca9a1f-1a18-432c-a866-1bf67e9cfd4b', true);
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
CREATE INDEX entries_careless_lockstep_epoch_idx ON public.entries_careless USING brin (lockstep_epoch) WITH (pages_per_range='32');
CREATE INDEX entries_copy_lockstep_epoch_idx ON public.entries_copy USING brin (lockstep_epoch) WITH (pages_per_range='32');
CREATE INDEX numbers_lockstep_epoch_idx ON public.numbers USING brin (lockstep_epoch) WITH (pages_per_range='32');
CREATE INDEX orders_lockstep_epoch_idx ON public.orders USING brin (lockstep_epoch) WITH (pages_per_range='32');
CREATE INDEX refunds_lockstep_epoch_idx ON public.refunds USING brin (lockstep_epoch) WITH (pages_per_range='32');
