-- The epoch that a cursor epoch follows: void ones don't count.
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id < %(epoch)s AND state <> 'void' ORDER BY id DESC LIMIT 1
