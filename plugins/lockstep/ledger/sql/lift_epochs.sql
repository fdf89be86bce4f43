-- Forward only; the next epoch's number is one above.
UPDATE lockstep.pipeline SET last_epoch = greatest(last_epoch, %(beyond)s) WHERE name = %(pipeline)s
