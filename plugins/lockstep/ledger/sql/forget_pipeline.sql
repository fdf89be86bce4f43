-- Where a prepare has ever begun, an old process may still leave something in a sink: recovery looks there for a while.
UPDATE lockstep.pipeline p
SET forgotten_at = now(), forgotten_by = %(actor)s, forgotten_why = %(reason)s,
    swept_until = now() + CASE WHEN EXISTS (
        SELECT FROM lockstep.execution x WHERE x.pipeline = p.name AND x.role = 'prepare'
    ) THEN interval '7 days' ELSE interval '0' END
WHERE name = %(pipeline)s AND forgotten_at IS NULL
