-- The partitions of the history, the oldest first; the last one is written to. The first has no start, the last no end.
SELECT name, starts, ends, pg_total_relation_size(oid) AS bytes
FROM (
    SELECT c.oid, c.relname AS name,
           substring(b.bounds FROM 'FROM \(''([^'']+)''\)')::timestamptz AS starts,
           substring(b.bounds FROM 'TO \(''([^'']+)''\)')::timestamptz AS ends
    FROM pg_inherits i
    JOIN pg_class c ON c.oid = i.inhrelid
    CROSS JOIN LATERAL (SELECT pg_get_expr(c.relpartbound, c.oid) AS bounds) b
    WHERE i.inhparent = 'lockstep.transition'::regclass
) p ORDER BY starts NULLS FIRST
