UPDATE lockstep.verdict SET outcome = 'released', actor = %(actor)s, reason = %(reason)s, at = clock_timestamp()
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND manifest_hash = %(manifest_hash)s AND outcome = 'held' RETURNING *
