-- Schedules: a class's workspaces are started before its lesson begins.
CREATE TABLE class_schedules (
    id text PRIMARY KEY,
    class_id text NOT NULL REFERENCES classes ON DELETE CASCADE,
    weekdays text[] NOT NULL CHECK (cardinality(weekdays) BETWEEN 1 AND 7
                                    AND weekdays <@ ARRAY['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']),
    local_time time NOT NULL,  -- when the lesson begins, by the clock on the wall
    time_zone text NOT NULL,  -- of that clock
    first_day date,  -- null: from now on
    last_day date,  -- null: for ever
    for_all boolean NOT NULL,  -- who is a learner of the class then; else those who are named in class_schedule_learners
    created_by text NOT NULL,  -- a person's id, or who it was otherwise, as in the audit log
    created_at timestamptz NOT NULL,
    paused_at timestamptz,
    done_through timestamptz NOT NULL,  -- lessons that begin until then were looked after, or are before its time
    skipped_through timestamptz,  -- lessons that begin until then are left out: asked for by a teacher
    due_at timestamptz  -- when it is to be looked at; null: never again, or not while it is paused
);
CREATE INDEX class_schedules_due ON class_schedules (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX class_schedules_by_class ON class_schedules (class_id, created_at, id);

CREATE TABLE class_schedule_learners (
    schedule_id text NOT NULL REFERENCES class_schedules ON DELETE CASCADE,
    user_id text NOT NULL REFERENCES users,
    PRIMARY KEY (schedule_id, user_id)
);
CREATE INDEX class_schedule_learners_by_user ON class_schedule_learners (user_id);

-- One lesson of a schedule, from when its starts begin. A row here is why it happens once.
CREATE TABLE class_lessons (
    schedule_id text NOT NULL REFERENCES class_schedules ON DELETE CASCADE,
    begins_at timestamptz NOT NULL,
    missed boolean NOT NULL,  -- the platform did not run when it was to be prepared
    PRIMARY KEY (schedule_id, begins_at)
);
CREATE INDEX class_lessons_by_age ON class_lessons (begins_at);

-- One person's start for a lesson.
CREATE TABLE class_lesson_starts (
    schedule_id text NOT NULL,
    begins_at timestamptz NOT NULL,
    user_id text NOT NULL REFERENCES users,
    due_at timestamptz NOT NULL,
    outcome text CHECK (outcome IN ('started', 'running', 'no_workspace', 'inactive', 'left', 'in_error', 'no_place',
                                    'own_limit', 'busy', 'canceled', 'missed')),  -- null: still to be done
    workspace_id text REFERENCES workspaces ON DELETE SET NULL,
    PRIMARY KEY (schedule_id, begins_at, user_id),
    FOREIGN KEY (schedule_id, begins_at) REFERENCES class_lessons ON DELETE CASCADE
);
CREATE INDEX class_lesson_starts_due ON class_lesson_starts (due_at) WHERE outcome IS NULL;
CREATE INDEX class_lesson_starts_by_user ON class_lesson_starts (user_id);
CREATE INDEX class_lesson_starts_by_workspace ON class_lesson_starts (workspace_id) WHERE workspace_id IS NOT NULL;

ALTER TABLE workspaces DROP CONSTRAINT workspaces_desired_by_check;
ALTER TABLE workspaces ADD CONSTRAINT workspaces_desired_by_check CHECK (
    desired_by IN ('user', 'guest', 'teacher', 'admin', 'operator', 'wake', 'ttl', 'session', 'waiting-room', 'schedule')
);

-- Which templates are kept ready: those of people who are here, and of what was started lately.
CREATE INDEX browser_sessions_by_sight ON browser_sessions (seen_at) WHERE revoked_at IS NULL;
CREATE INDEX workspaces_started_lately ON workspaces (desired_at) WHERE desired_state = 'RUNNING' AND deleted_at IS NULL;
-- Who logs in will open something soon.
CREATE FUNCTION browser_sessions_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('codehub_warming', '');
    RETURN NULL;
END $$;
CREATE TRIGGER browser_sessions_announce AFTER INSERT ON browser_sessions
    FOR EACH STATEMENT EXECUTE FUNCTION browser_sessions_announce();
