-- Not by its number: a person may have lifted the numbers above it.
SELECT * FROM lockstep.epoch WHERE pipeline = %(pipeline)s ORDER BY id DESC LIMIT 1
