-- What was told last of one sink's part in an epoch, by whom, and how long ago.
SELECT id, clock_timestamp() - at AS age, token, role, actor, reason FROM lockstep.transition
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s ORDER BY id DESC LIMIT 1
