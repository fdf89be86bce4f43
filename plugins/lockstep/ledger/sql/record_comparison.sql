-- Somebody has read a sink back; of what nobody has published there is nothing to compare.
UPDATE lockstep.participant SET unproven = %(unproven)s, compared_at = now(), compared_by = %(actor)s
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND sink = %(sink)s AND state = 'published'
