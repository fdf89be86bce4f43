-- A statement of its own: what follows sees what the row's last writer did.
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id = %(epoch)s FOR UPDATE
