SELECT lower(hole), upper(hole)
FROM unnest((SELECT tstzmultirange(tstzrange(min(lower(span)), max(upper(span)))) - range_agg(span)
             FROM lockstep.epoch WHERE pipeline = %(pipeline)s)) AS hole
