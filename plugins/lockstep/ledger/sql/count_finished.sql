-- Count once what is finished, up to the first epoch that isn't. Numbers are given out one after the other,
-- each in the transaction that inserts its epoch: none below a visible one can come later. Another one who counts at
-- this moment changes `below`, and then this does nothing.
WITH since AS (
    SELECT coalesce((SELECT below FROM lockstep.finished WHERE pipeline = %(pipeline)s), 0) AS id
), until AS (
    SELECT coalesce(
        (SELECT min(id) FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND state NOT IN ('cleaned', 'replaced', 'void')),
        (SELECT max(id) + 1 FROM lockstep.epoch WHERE pipeline = %(pipeline)s)) AS id
)
INSERT INTO lockstep.finished AS f (pipeline, below, cleaned, void, covered)
SELECT %(pipeline)s, until.id, count(*) FILTER (WHERE e.state IN ('cleaned', 'replaced')), count(*) FILTER (WHERE e.state = 'void'),
       coalesce(range_agg(e.span), '{}')
FROM since, until, lockstep.epoch e
WHERE e.pipeline = %(pipeline)s AND e.id >= since.id AND e.id < until.id GROUP BY until.id
ON CONFLICT (pipeline) DO UPDATE
    SET below = excluded.below, cleaned = f.cleaned + excluded.cleaned, void = f.void + excluded.void,
        covered = f.covered + excluded.covered
    WHERE f.below = (SELECT id FROM since)
