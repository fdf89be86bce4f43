-- News go only where somebody has looked for them in Airflow, in vain, for as long as recovery has patience: since when is
-- kept. And whoever records a publication leaves news, also a task of an older version that had begun before the migration.

ALTER TABLE lockstep.untold ADD COLUMN missed_at timestamptz;  -- since when Airflow is told of it in vain; null: nobody has looked

-- Of a pipeline that no DAG has begun one of the youngest original epochs of, no asset is there to be told of anything. The
-- condition stands here, and in no function of its own: whoever updates the table would need a right to that.
CREATE FUNCTION lockstep.note_untold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO lockstep.untold (pipeline, epoch, sink, shown_by)
    SELECT NEW.pipeline, NEW.epoch, NEW.sink, coalesce(nullif(current_setting('lockstep.actor', true), ''), session_user)
    WHERE EXISTS (
        SELECT FROM (SELECT e.id FROM lockstep.epoch e WHERE e.pipeline = NEW.pipeline AND e.root IS NULL
                     ORDER BY e.id DESC LIMIT 10) young
        JOIN lockstep.run r ON r.pipeline = NEW.pipeline AND r.epoch = young.id
        WHERE r.dag_id NOT IN ('run_epoch', 'lockstep restate', 'lockstep restore')
    )
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER note_untold AFTER UPDATE ON lockstep.participant FOR EACH ROW
    WHEN (NEW.state = 'published' AND OLD.state = 'prepared') EXECUTE FUNCTION lockstep.note_untold();

-- A worker of a version without this table that died between what it showed and its success left nothing here. So what was
-- published in the last week is looked for in Airflow as if it were news; older versions' events name their epochs, too.
-- A ledger that was rebuilt has recorded nothing that way: its epochs were published before.
INSERT INTO lockstep.untold (pipeline, epoch, sink, shown_at, shown_by)
SELECT p.pipeline, p.epoch, p.sink, p.changed_at, 'a version before'
FROM lockstep.participant p JOIN lockstep.epoch e ON (e.pipeline, e.id) = (p.pipeline, p.epoch)
WHERE p.state = 'published' AND p.changed_at > now() - interval '7 days' AND e.state <> 'replaced'
  AND p.pipeline IN (
      SELECT moved.name FROM lockstep.pipeline moved WHERE EXISTS (
          SELECT FROM (SELECT e.id FROM lockstep.epoch e WHERE e.pipeline = moved.name AND e.root IS NULL
                       ORDER BY e.id DESC LIMIT 10) young
          JOIN lockstep.run r ON r.pipeline = moved.name AND r.epoch = young.id
          WHERE r.dag_id NOT IN ('run_epoch', 'lockstep restate', 'lockstep restore')
      )
  )
  AND EXISTS (SELECT FROM lockstep.transition t WHERE (t.pipeline, t.epoch, t.sink) = (p.pipeline, p.epoch, p.sink)
                AND t.source_state = 'prepared' AND t.target_state = 'published')
ON CONFLICT DO NOTHING;
