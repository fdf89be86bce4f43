-- A process that prepares for a plan of long ago is not to be feared any more; its target may be gone, too.
SELECT spec FROM lockstep.planned_sink
WHERE pipeline = %(pipeline)s AND planned_at > now() - interval '7 days' ORDER BY sink, planned_at
