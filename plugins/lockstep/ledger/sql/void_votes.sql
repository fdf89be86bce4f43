UPDATE lockstep.participant
SET state = 'pending', execution = NULL, attempt = NULL, token = NULL, handle = NULL, target_id = NULL, rows = NULL, turn = false
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND state IN ('pending', 'prepared')
