-- Dense numbers: taken in the transaction that inserts the epoch, under the pipeline's row lock.
UPDATE lockstep.pipeline SET last_epoch = last_epoch + 1 WHERE name = %(pipeline)s RETURNING last_epoch
