INSERT INTO lockstep.claim (pipeline, source, path, starts, ends, size, mtime_ns, digest, head, epoch)
SELECT
    %(pipeline)s, %(source)s, w.path, w.starts, w.ends, w.size, w.mtime_ns, nullif(w.digest, ''), nullif(w.head, ''), %(epoch)s
FROM unnest(%(paths)s::text[], %(starts)s::bigint[], %(ends)s::bigint[], %(sizes)s::bigint[], %(mtimes)s::bigint[], %(digests)s::text[],
    %(heads)s::text[]) AS w (path, starts, ends, size, mtime_ns, digest, head)
