-- The sealed WALs that are there, youngest epoch first: of epochs that aren't finished, and those that are kept.
SELECT e.*, k.kept_at, k.expired_at, k.wal AS kept_wal, k.bytes AS kept_bytes
FROM (
    (SELECT epoch AS id FROM lockstep.kept_wal WHERE pipeline = %(pipeline)s ORDER BY epoch DESC LIMIT %(limit)s)
    UNION SELECT id FROM lockstep.epoch
    WHERE pipeline = %(pipeline)s AND state NOT IN ('cleaned', 'replaced', 'void') AND wal IS NOT NULL
) i
JOIN lockstep.epoch e ON e.pipeline = %(pipeline)s AND e.id = i.id
LEFT JOIN lockstep.kept_wal k ON k.pipeline = e.pipeline AND k.epoch = e.id
ORDER BY e.id DESC LIMIT %(limit)s
