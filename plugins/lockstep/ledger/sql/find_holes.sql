-- What is missing between the first interval and the last. A void epoch is no hole: a person gave it up.
SELECT lower(hole) AS start, upper(hole) AS "end"
FROM unnest((SELECT tstzmultirange(tstzrange(min(lower(span)), max(upper(span)))) - range_agg(span)
             FROM lockstep.epoch WHERE pipeline = %(pipeline)s)) AS hole
