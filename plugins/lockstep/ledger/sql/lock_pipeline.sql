-- Whoever numbers epochs or claims files takes turns here. Always before lock_epoch, never after it.
SELECT * FROM lockstep.pipeline WHERE name = %(pipeline)s FOR NO KEY UPDATE
