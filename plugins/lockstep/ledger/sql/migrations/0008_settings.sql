-- Operational arguments of sinks (timeouts, shards, tries): no plan holds them, so that a decided epoch can be helped.

-- Those of the definition that began last: recovery has no definition.
CREATE TABLE lockstep.deployed_setting (
    pipeline    text NOT NULL REFERENCES lockstep.pipeline,
    sink        text NOT NULL,
    spec        jsonb NOT NULL,
    deployed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pipeline, sink)
);

-- A person's word, which goes before them. The last row of a sink is in force; an empty one takes the ones before back.
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

CREATE TRIGGER keep_override BEFORE UPDATE OR DELETE OR TRUNCATE ON lockstep.setting_override EXECUTE FUNCTION lockstep.refuse();
