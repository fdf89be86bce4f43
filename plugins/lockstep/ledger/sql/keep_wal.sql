-- Once: whoever cleans up later goes by it. What doesn't stay has a row, too, until cleanup is recorded.
INSERT INTO lockstep.kept_wal (pipeline, epoch, wal, bytes, expired_at)
VALUES (%(pipeline)s, %(epoch)s, %(wal)s, %(bytes)s, CASE WHEN NOT %(stays)s THEN now() END)
ON CONFLICT (pipeline, epoch) DO NOTHING
