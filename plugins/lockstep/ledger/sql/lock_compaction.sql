-- Held until the session ends. Advisory: it is the table's own fence that keeps two compactions apart.
SELECT pg_try_advisory_lock(hashtextextended(%(key)s, 0)) AS held
