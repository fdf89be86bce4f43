-- Held until the session ends. Advisory: it spares work that two would do, and nothing safe rests on it.
SELECT pg_try_advisory_lock(hashtextextended(%(key)s, 0)) AS held
