SELECT lease_until FROM lockstep.epoch WHERE pipeline = %(pipeline)s AND id = %(epoch)s AND lease_until > now()
