-- In the transaction that decides the epoch which takes its place, after it.
UPDATE lockstep.epoch SET state = 'replaced' WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND state = 'cleaned' RETURNING *
