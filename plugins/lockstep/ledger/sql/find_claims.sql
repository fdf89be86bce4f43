SELECT c.* FROM unnest(%(paths)s::text[]) AS w (path) CROSS JOIN LATERAL (
    SELECT path, starts, ends, size, mtime_ns, digest FROM lockstep.claim
    WHERE pipeline = %(pipeline)s AND source = %(source)s AND path = w.path AND epoch <> ALL(%(but)s::bigint[])
    ORDER BY starts DESC LIMIT 1
) c
