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
