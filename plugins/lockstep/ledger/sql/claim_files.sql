INSERT INTO lockstep.claim (pipeline, source, path, epoch)
SELECT DISTINCT %(pipeline)s, %(source)s, path, %(epoch)s FROM unnest(%(paths)s::text[]) AS path
