-- The platform's figures over time, and how long workspaces stayed idle before work went on.

-- Counters that cost what changes, not what exists. Whoever changes a row adds a line to `counter_changes`, which waits for
-- no other transaction; the leader adds them up into `counters` once a minute, and counts anew when it begins to lead.
CREATE TABLE counters (
    name text PRIMARY KEY,
    value bigint NOT NULL
);
CREATE TABLE counter_changes (
    name text NOT NULL,
    change bigint NOT NULL
);

-- Workspaces by phase, without those in the trash.
CREATE FUNCTION workspaces_count_phase() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.deleted_at IS NULL THEN
        INSERT INTO counter_changes VALUES ('phase:' || OLD.phase, -1);
    END IF;
    IF NEW.deleted_at IS NULL THEN
        INSERT INTO counter_changes VALUES ('phase:' || NEW.phase, 1);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER workspaces_count_phase_new AFTER INSERT ON workspaces
    FOR EACH ROW EXECUTE FUNCTION workspaces_count_phase();
CREATE TRIGGER workspaces_count_phase AFTER UPDATE ON workspaces
    FOR EACH ROW WHEN (OLD.phase <> NEW.phase OR (OLD.deleted_at IS NULL) <> (NEW.deleted_at IS NULL))
    EXECUTE FUNCTION workspaces_count_phase();

-- Bytes of all archives that one can go back to.
CREATE FUNCTION restore_points_count_bytes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO counter_changes
    SELECT 'archive_bytes', CASE TG_OP WHEN 'INSERT' THEN sum(size) ELSE -sum(size) END FROM touched HAVING count(*) > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER restore_points_count_new AFTER INSERT ON restore_points
    REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION restore_points_count_bytes();
CREATE TRIGGER restore_points_count_gone AFTER DELETE ON restore_points
    REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION restore_points_count_bytes();

-- Every minute, every quarter of an hour and every hour in one row each; each kind for its own time (`monitoring.rules`).
CREATE TABLE samples (
    resolution int NOT NULL CHECK (resolution IN (60, 900, 3600)),  -- seconds
    at timestamptz NOT NULL,  -- the beginning of what it is about
    taken_at timestamptz NOT NULL,  -- its newest figures
    minutes int NOT NULL,  -- of how many it is made
    running real NOT NULL,
    asleep real NOT NULL,
    stored real NOT NULL,
    pending real NOT NULL,
    broken real NOT NULL,
    active_workspaces int NOT NULL,
    active_people int NOT NULL,
    waiting int,  -- null: not known then
    archive_bytes bigint NOT NULL,
    disk_free_bytes bigint,
    loop_lag_seconds real,
    slowest_loop text,
    wakes int[] NOT NULL DEFAULT '{}',  -- how many took how long: a histogram, so that hours are as exact as minutes
    PRIMARY KEY (resolution, at)
);

-- Stretches of five minutes and more in which nothing happened in a running workspace, by the same clock that puts it to
-- sleep, with how they ended: by work, or by its no longer running. What another time would have done is told from them.
CREATE TABLE idle_periods (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    began_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL,
    kept_awake_until timestamptz
);
CREATE INDEX idle_periods_by_end ON idle_periods (ended_at);
-- From when on no such stretch is missing.
ALTER TABLE platform ADD COLUMN idle_periods_since timestamptz NOT NULL DEFAULT now();

CREATE FUNCTION workspaces_note_idle_period() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO idle_periods (workspace_id, began_at, ended_at, kept_awake_until)
    VALUES (NEW.id, OLD.idle_since, NEW.idle_since, OLD.keep_awake_until);
    RETURN NULL;
END $$;
CREATE TRIGGER workspaces_note_idle_period AFTER UPDATE ON workspaces
    FOR EACH ROW WHEN (OLD.phase = 'RUNNING' AND NEW.idle_since >= OLD.idle_since + interval '5 minutes')
    EXECUTE FUNCTION workspaces_note_idle_period();
