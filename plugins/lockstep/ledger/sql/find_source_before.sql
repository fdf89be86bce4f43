-- Where a cursor source ended last before an epoch. Void epochs count: their ranges were given up, not handed on.
SELECT id, plan -> 'sources' -> %(source)s -> 'end' AS "end" FROM lockstep.epoch
WHERE pipeline = %(pipeline)s AND id < %(epoch)s AND plan -> 'sources' ? %(source)s ORDER BY id DESC LIMIT 1
