-- A claim also says what was claimed: a whole file as it was, or a range of the bytes of a file that grows.

ALTER TABLE lockstep.claim
    ADD COLUMN starts   bigint NOT NULL DEFAULT 0 CHECK (starts >= 0),
    ADD COLUMN ends     bigint CHECK (ends > starts),  -- the byte after the range; null: the whole file
    ADD COLUMN size     bigint,
    ADD COLUMN mtime_ns bigint,
    ADD COLUMN digest   text,
    DROP CONSTRAINT claim_pkey,
    ADD PRIMARY KEY (pipeline, source, path, starts);
