INSERT INTO lockstep.kept_wal (pipeline, epoch, wal, bytes) VALUES (%(pipeline)s, %(epoch)s, %(wal)s, %(bytes)s)
