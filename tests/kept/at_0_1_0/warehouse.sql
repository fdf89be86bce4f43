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
INSERT INTO proofs.lockstep_marker VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'tables', 'entries', 1, 7, '2a0ff4c5c0ae59390fceabec4b102f6fb7b7e8dc1ec55d2ae6cef53c59bbb127', '{"entries": 3}', '2026-11-29 02:00:43.836111+00');
INSERT INTO proofs.lockstep_target VALUES ('public.entries_copy', '815ea124-ae84-4006-ab92-b0cd6027b1da', 'tables', 'entries', false);
INSERT INTO proofs.lockstep_target_id VALUES ('d7590284-d7d3-4d77-9ffe-63587827ae71', true);
INSERT INTO public.accounts VALUES (1, 'owner 1', '765');
INSERT INTO public.accounts VALUES (2, 'owner 2', '767');
INSERT INTO public.accounts VALUES (3, 'owner 3', '769');
INSERT INTO public.accounts VALUES (4, 'owner 4', '781');
INSERT INTO public.accounts VALUES (5, 'owner 5', '783');
INSERT INTO public.accounts VALUES (6, 'owner 6', '785');
INSERT INTO public.accounts VALUES (7, 'owner 7', '790');
INSERT INTO public.accounts VALUES (8, 'owner 8', '792');
INSERT INTO public.accounts VALUES (9, 'owner 9', '794');
INSERT INTO public.accounts VALUES (10, 'owner 10', '798');
INSERT INTO public.accounts VALUES (11, 'owner 11', '800');
INSERT INTO public.accounts VALUES (12, 'owner 12', '802');
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
INSERT INTO public.lockstep_keys VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'customers', 'totals', 'public.totals', 1, 3);
INSERT INTO public.lockstep_keys VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'customers', 'totals', 'public.totals', 2, 1);
INSERT INTO public.lockstep_keys VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'customers', 'totals', 'public.totals', 3, 0);
INSERT INTO public.lockstep_keys VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'numbers', 'newest', 'public.numbers_sums', 1, 2);
INSERT INTO public.lockstep_keys VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'numbers', 'newest', 'public.numbers_sums', 2, 0);
INSERT INTO public.lockstep_marker VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'tables', 'accounts', 1, 6, '2a0ff4c5c0ae59390fceabec4b102f6fb7b7e8dc1ec55d2ae6cef53c59bbb127', '{"accounts": 3}', '2026-11-29 02:00:43.760641+00');
INSERT INTO public.lockstep_marker VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'tables', 'accounts', 2, 14, '93c2732377bc9265e1cc87cef0ad6901464fdbca78be1e78d89519e8467224c8', '{"accounts": 3}', '2026-11-29 02:00:46.745531+00');
INSERT INTO public.lockstep_marker VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'orders', 'warehouse', 1, 22, '3cb43168ac5a67a562b26ed3855f330a1bfcf4b1562e818d360c14cc16dbc541', '{"orders": 4, "refunds": 1}', '2026-11-29 02:00:59.212444+00');
INSERT INTO public.lockstep_marker VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'orders', 'warehouse', 2, 30, '4f573761d4fbe1db4563bf53cd0d16452e4d04a8279d90e4f784d6e96f9a1a9b', '{"orders": 4, "refunds": 1}', '2026-11-29 02:01:02.833712+00');
INSERT INTO public.lockstep_marker VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'orders', 'warehouse', 3, 38, 'b3aedaff4fa59e8664db07cf30f99911397ea7fb11e17439616a4c24154f095b', '{"orders": 4, "refunds": 1}', '2026-11-29 02:01:06.849884+00');
INSERT INTO public.lockstep_marker VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'orders', 'warehouse', 6, 56, '608ecc39cc7f84329662540fa4d8ff813c294a47818d186638998e78f16e5247', '{"orders": 4, "refunds": 1}', '2026-11-29 02:01:19.150772+00');
INSERT INTO public.lockstep_marker VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'customers', 'totals', 1, 78, '35636cbbadcf2e4440105c3f601a9bdbc40036f7be9a1ec2868157dcdbcb9c08', '{"totals": 3}', '2026-11-29 02:01:34.233633+00');
INSERT INTO public.lockstep_marker VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'customers', 'totals', 2, 84, 'c56ce30ac4289d62acabbf61bc4c882263e46e1c11c7e4c8f43ecb39551f5dab', '{"totals": 2}', '2026-11-29 02:01:40.912603+00');
INSERT INTO public.lockstep_marker VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'customers', 'totals', 3, 90, 'e7c90868726f4772c399e6e33e72def6ff1844f1bd81fc1e7afc0f10a232474b', '{"totals": 2}', '2026-11-29 02:01:46.091597+00');
INSERT INTO public.lockstep_marker VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'numbers', 'shared', 1, 114, 'd7d67ff3e8440f2803f952a0f4cc0b9283dd21404200b8cf5e5bbf59f8e90c36', '{"numbers": 10}', '2026-11-29 02:02:37.532741+00');
INSERT INTO public.lockstep_marker VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'numbers', 'newest', 1, 119, 'd7d67ff3e8440f2803f952a0f4cc0b9283dd21404200b8cf5e5bbf59f8e90c36', '{"sums": 2}', '2026-11-29 02:02:38.694228+00');
INSERT INTO public.lockstep_marker VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'numbers', 'shared', 2, 124, 'e7c1dffbcbff670fa59c07300c9322b1c699c0a63283e92abbbdb63a0f99739a', '{"numbers": 10}', '2026-11-29 02:02:56.757847+00');
INSERT INTO public.lockstep_marker VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'numbers', 'newest', 2, 129, 'e7c1dffbcbff670fa59c07300c9322b1c699c0a63283e92abbbdb63a0f99739a', '{"sums": 2}', '2026-11-29 02:02:57.233892+00');
INSERT INTO public.lockstep_range VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'orders', 'warehouse', '2013-01-01T00:00:00+00:00/2013-01-02T00:00:00+00:00', 1, 22);
INSERT INTO public.lockstep_range VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'orders', 'warehouse', '2013-01-02T00:00:00+00:00/2013-01-03T00:00:00+00:00', 2, 30);
INSERT INTO public.lockstep_range VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'orders', 'warehouse', '2013-01-03T00:00:00+00:00/2013-01-04T00:00:00+00:00', 3, 38);
INSERT INTO public.lockstep_range VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da', 'orders', 'warehouse', '2013-01-06T00:00:00+00:00/2013-01-07T00:00:00+00:00', 6, 56);
INSERT INTO public.lockstep_sent VALUES ('', '', 0, 0, 'f71262d4-2ac5-4d21-84e5-ec8b9be96e6d', '2026-11-29 02:00:33.252988+00');
INSERT INTO public.lockstep_sent VALUES ('815ea124-ae84-4006-ab92-b0cd6027b1da:tables', 'http', 1, 8, '2a0ff4c5c0ae59390fceabec4b102f6fb7b7e8dc1ec55d2ae6cef53c59bbb127', '2026-11-29 02:00:43.932859+00');
INSERT INTO public.lockstep_target VALUES ('public.accounts_copy', '815ea124-ae84-4006-ab92-b0cd6027b1da', 'tables', 'accounts', false);
INSERT INTO public.lockstep_target VALUES ('public.orders', '815ea124-ae84-4006-ab92-b0cd6027b1da', 'orders', 'warehouse', false);
INSERT INTO public.lockstep_target VALUES ('public.refunds', '815ea124-ae84-4006-ab92-b0cd6027b1da', 'orders', 'warehouse', false);
INSERT INTO public.lockstep_target VALUES ('public.totals', '815ea124-ae84-4006-ab92-b0cd6027b1da', 'customers', 'totals', false);
INSERT INTO public.lockstep_target VALUES ('public.numbers', '815ea124-ae84-4006-ab92-b0cd6027b1da', 'numbers', 'shared', true);
INSERT INTO public.lockstep_target VALUES ('public.numbers_sums', '815ea124-ae84-4006-ab92-b0cd6027b1da', 'numbers', 'newest', false);
INSERT INTO public.lockstep_target VALUES ('public.numbers', '815ea124-ae84-4006-ab92-b0cd6027b1da', 'resumed', 'shared', true);
INSERT INTO public.lockstep_target VALUES ('public.resumed_sums', '815ea124-ae84-4006-ab92-b0cd6027b1da', 'resumed', 'newest', false);
INSERT INTO public.lockstep_target_id VALUES ('82f47b80-f92a-4003-a6ef-5caf575797e1', true);
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
