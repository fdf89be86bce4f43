-- Void ones too.
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id < %(epoch)s ORDER BY id DESC LIMIT 1
