-- Kept WALs that the pipeline's retention keeps no longer, and those that somebody has begun to delete; oldest first. None
-- that an epoch reads which isn't finished, nor one that another refers to which isn't, or whose WAL is kept.
SELECT k.* FROM lockstep.kept_wal k JOIN lockstep.pipeline p ON p.name = k.pipeline
WHERE k.pipeline = %(pipeline)s
  AND (k.expired_at IS NOT NULL
       OR num_nonnulls(p.keep_wal_time, p.keep_wal_epochs) = 0
       OR k.kept_at < now() - p.keep_wal_time
       OR (p.keep_wal_epochs IS NOT NULL
           AND k.epoch <= (SELECT n.epoch FROM lockstep.kept_wal n WHERE n.pipeline = k.pipeline
                           ORDER BY n.epoch DESC OFFSET p.keep_wal_epochs LIMIT 1)))
  AND NOT EXISTS (SELECT FROM lockstep.epoch e
                  WHERE e.pipeline = k.pipeline AND e.state IN ('planned', 'staged', 'committed', 'published')
                    AND k.wal IN (e.wal, e.restaged_wal))
  AND NOT EXISTS (SELECT FROM lockstep.epoch e LEFT JOIN lockstep.kept_wal h ON h.pipeline = e.pipeline AND h.epoch = e.id
                  WHERE e.pipeline = k.pipeline AND e.restores = k.epoch
                    AND (e.state IN ('planned', 'staged', 'committed', 'published')
                         OR (h.epoch IS NOT NULL AND h.expired_at IS NULL)))
ORDER BY k.epoch
