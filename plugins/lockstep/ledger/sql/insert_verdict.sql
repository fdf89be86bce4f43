-- Under the row lock of lock_epoch, after its WAL was compared with the one that was audited.
INSERT INTO lockstep.verdict (pipeline, epoch, manifest_hash, outcome, results, actor)
VALUES (%(pipeline)s, %(epoch)s, %(manifest_hash)s, %(outcome)s, %(results)s, %(actor)s) RETURNING *
