-- stage, audit, prepare and commit: seals, verdicts, votes, turns, the decision.

-- name: seal_epoch
UPDATE lockstep.epoch
SET state = 'staged', wal = %(wal)s, manifest_hash = %(manifest_hash)s, summary = %(summary)s, code_version = %(code_version)s,
    based_on = %(based_on)s
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'planned' AND attempt = %(attempt)s AND wal IS NULL
RETURNING *

-- name: discard_seal
-- The sealed WAL fails its checks, or a person replans: only in a new attempt, only before the decision.
UPDATE lockstep.epoch SET state = 'planned', wal = NULL, manifest_hash = NULL, summary = NULL, code_version = NULL, based_on = NULL
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'staged' AND attempt = %(attempt)s RETURNING *

-- name: insert_verdict
-- Under the row lock of lock_epoch, after its WAL was compared with the one that was audited.
INSERT INTO lockstep.verdict (pipeline, epoch, manifest_hash, outcome, results, actor)
VALUES (%(pipeline)s, %(epoch)s, %(manifest_hash)s, %(outcome)s, %(results)s, %(actor)s) RETURNING *

-- name: find_verdict
-- Of the WAL that is sealed now: what was staged before it has verdicts of its own.
SELECT v.* FROM lockstep.epoch e
JOIN lockstep.verdict v ON (v.pipeline, v.epoch, v.manifest_hash) = (e.pipeline, e.id, e.manifest_hash)
WHERE e.pipeline = %(pipeline)s AND e.id = %(epoch)s

-- name: release_verdict
UPDATE lockstep.verdict SET outcome = 'released', actor = %(actor)s, reason = %(reason)s, at = clock_timestamp()
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND manifest_hash = %(manifest_hash)s AND outcome = 'held' RETURNING *

-- name: list_measured_epochs
-- The last decided epochs before one, the youngest first, with what the seal counted and the audits measured. None that
-- may have taken the place of several: its numbers are theirs together.
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
-- Only the youngest execution; void_votes ends it with the attempt.
UPDATE lockstep.participant SET turn = true
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state IN ('pending', 'prepared')
  AND execution = %(token)s
RETURNING sink

-- name: find_turn
-- Whoever voted in this sink without a turn, before there were turns or unique keys, counts too.
SELECT * FROM lockstep.participant
WHERE pipeline = %(pipeline)s AND epoch <> %(epoch)s AND state <> 'published'
  AND (turn OR (sink = %(sink)s AND state = 'prepared'))
ORDER BY epoch LIMIT 1

-- name: record_vote
UPDATE lockstep.participant
SET state = 'prepared', attempt = %(attempt)s, token = %(token)s, handle = %(handle)s, target_id = %(target_id)s, rows = %(rows)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state IN ('pending', 'prepared')
  AND (token IS NULL OR token < %(token)s) AND (execution IS NULL OR execution <= %(token)s)
RETURNING sink

-- name: list_participants
SELECT *, now() - changed_at AS age FROM lockstep.participant WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s ORDER BY sink

-- name: commit_epoch
-- The decision. Runs under the row lock of lock_epoch, after this attempt's votes were counted in a later statement.
UPDATE lockstep.epoch SET state = 'committed', lease_until = NULL
WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'staged' AND attempt = %(attempt)s
RETURNING *

-- name: replace_epoch
-- In the transaction that decides the epoch which takes its place, after it.
UPDATE lockstep.epoch SET state = 'replaced' WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'cleaned' RETURNING *
