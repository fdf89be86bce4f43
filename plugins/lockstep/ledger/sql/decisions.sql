-- stage, audit, prepare and commit: seals, verdicts, votes, turns, the decision.

-- name: seal_epoch
-- planned -> staged: sets the WAL, once.
UPDATE lockstep.epoch
SET state = 'staged', wal = %(wal)s, manifest_hash = %(manifest_hash)s, summary = %(summary)s, code_version = %(code_version)s,
    based_on = %(based_on)s
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'planned' AND attempt = %(attempt)s AND wal IS NULL
RETURNING *

-- name: discard_seal
-- staged -> planned: the sealed WAL fails its checks, or an operator replans. Requires a new attempt, before the decision.
UPDATE lockstep.epoch SET state = 'planned', wal = NULL, manifest_hash = NULL, summary = NULL, code_version = NULL, based_on = NULL
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'staged' AND attempt = %(attempt)s RETURNING *

-- name: insert_verdict
-- Under the lock of lock_epoch, after the audited WAL was compared with the sealed one.
INSERT INTO lockstep.verdict (pipeline, epoch, manifest_hash, outcome, results, actor)
VALUES (%(pipeline)s, %(epoch)s, %(manifest_hash)s, %(outcome)s, %(results)s, %(actor)s) RETURNING *

-- name: find_verdict
-- The verdict on the WAL that is sealed now; verdicts on earlier seals are ignored.
SELECT v.* FROM lockstep.epoch e
JOIN lockstep.verdict v ON (v.pipeline, v.epoch, v.manifest_hash) = (e.pipeline, e.id, e.manifest_hash)
WHERE e.pipeline = %(pipeline)s AND e.id = %(epoch)s

-- name: release_verdict
-- held -> released, by an operator.
UPDATE lockstep.verdict SET outcome = 'released', actor = %(actor)s, reason = %(reason)s, at = clock_timestamp()
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND manifest_hash = %(manifest_hash)s AND outcome = 'held' RETURNING *

-- name: list_measured_epochs
-- The last decided epochs before one, newest first, with the seal's counts and the audits' measures.
-- Epochs that replace several are left out: their counts are sums.
SELECT e.id, e.summary, v.results
FROM (
    SELECT pipeline, id, manifest_hash, summary FROM lockstep.epoch
    WHERE pipeline = %(pipeline)s AND id < %(epoch)s AND state IN ('committed', 'published', 'cleaned')
      AND replaces_to IS NULL
    ORDER BY id DESC LIMIT %(limit)s
) e
LEFT JOIN LATERAL (
    SELECT results FROM lockstep.verdict WHERE (pipeline, epoch, manifest_hash) = (e.pipeline, e.id, e.manifest_hash)
) v ON true
ORDER BY e.id DESC

-- name: take_turn
-- Only by the youngest execution; void_votes ends the turn with the attempt.
UPDATE lockstep.participant SET turn = true
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state IN ('pending', 'prepared')
  AND execution = %(token)s
RETURNING sink

-- name: find_turn_holder
-- Votes without a turn count, too: the sink had no unique key when it voted.
SELECT * FROM lockstep.participant
WHERE pipeline = %(pipeline)s AND epoch <> %(epoch)s AND state <> 'published'
  AND (turn OR (sink = %(sink)s AND state = 'prepared'))
ORDER BY epoch LIMIT 1

-- name: record_vote
-- pending -> prepared. Only by the youngest execution, and only with a higher token.
UPDATE lockstep.participant
SET state = 'prepared', attempt = %(attempt)s, token = %(token)s, handle = %(handle)s, target_id = %(target_id)s, rows = %(rows)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state IN ('pending', 'prepared')
  AND (token IS NULL OR token < %(token)s) AND (execution IS NULL OR execution <= %(token)s)
RETURNING sink

-- name: list_participants
-- All sinks of an epoch.
SELECT *, now() - changed_at AS age FROM lockstep.participant WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s ORDER BY sink

-- name: commit_epoch
-- The decision. Under the lock of lock_epoch, after a later statement counted this attempt's votes.
UPDATE lockstep.epoch SET state = 'committed', lease_until = NULL
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'staged' AND attempt = %(attempt)s
RETURNING *

-- name: replace_epoch
-- cleaned -> replaced: after commit_epoch of the replacing epoch, in the same transaction.
UPDATE lockstep.epoch SET state = 'replaced' WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'cleaned' RETURNING *
