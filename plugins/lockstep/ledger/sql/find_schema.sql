SELECT coalesce(max(version), 0) AS version, current_setting('fsync') AS fsync,
       current_setting('full_page_writes') AS full_page_writes
FROM lockstep.migration
