-- In which order runs began, whatever the clock said: it may have been set back, or stood still. Those of before are
-- numbered by their time; that is no change of what has ended.
ALTER TABLE session_runs ADD COLUMN number bigint;
ALTER TABLE session_runs DISABLE TRIGGER session_runs_ended;
UPDATE session_runs r SET number = n.number
FROM (SELECT id, row_number() OVER (ORDER BY started_at, id) AS number FROM session_runs) n WHERE n.id = r.id;
ALTER TABLE session_runs ENABLE TRIGGER session_runs_ended;
ALTER TABLE session_runs ALTER COLUMN number SET NOT NULL, ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY;
SELECT setval(pg_get_serial_sequence('session_runs', 'number'), (SELECT coalesce(max(number), 0) + 1 FROM session_runs), false);
DROP INDEX session_runs_by_session;
CREATE UNIQUE INDEX session_runs_by_session ON session_runs (session_id, number);
