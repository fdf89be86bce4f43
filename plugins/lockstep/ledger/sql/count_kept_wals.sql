SELECT pipeline, count(*) AS epochs, sum(bytes)::bigint AS bytes, min(kept_at) AS oldest
FROM lockstep.kept_wal WHERE pipeline = ANY(%(pipelines)s::text[]) AND expired_at IS NULL GROUP BY pipeline
