INSERT INTO lockstep.claim (pipeline, source, path, epoch)
SELECT %(pipeline)s, %(source)s, path, %(epoch)s FROM unnest(%(paths)s::text[]) AS path
