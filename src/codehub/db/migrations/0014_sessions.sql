-- Learning sessions: plans, their sessions, and runs, the attempts at a session. docs/sessions.md has the model.

-- Canonical JSON, by the SHA-256 of it: never changed, shared by all sessions and runs that have the same.
CREATE TABLE blueprints (
    hash text PRIMARY KEY CHECK (hash ~ '^[0-9a-f]{64}$'),
    body text NOT NULL,
    created_at timestamptz NOT NULL,
    view_hash text NOT NULL CHECK (view_hash ~ '^[0-9a-f]{64}$')  -- of what learners see of it: the other is no one's to know
);

CREATE TABLE plans (
    id text PRIMARY KEY,
    owner_id text NOT NULL REFERENCES users ON DELETE RESTRICT,
    title text NOT NULL,
    created_by text NOT NULL,  -- a person's id, or who it was otherwise, as in the audit log
    created_at timestamptz NOT NULL,
    course_id text,
    course_version int,
    starts_on date,
    CHECK ((course_id IS NULL) = (course_version IS NULL))
);
CREATE INDEX plans_by_owner ON plans (owner_id, created_at, id);
CREATE INDEX plans_by_course ON plans (course_id) WHERE course_id IS NOT NULL;

CREATE TABLE sessions (
    id text PRIMARY KEY,
    plan_id text NOT NULL REFERENCES plans ON DELETE RESTRICT,
    position int NOT NULL CHECK (position >= 0),
    key text NOT NULL,  -- of the course's session, the same over its versions; else made from the position
    title text NOT NULL,
    scheduled_for_date date NOT NULL,
    blueprint_hash text NOT NULL REFERENCES blueprints ON DELETE RESTRICT,
    status text NOT NULL DEFAULT 'SCHEDULED'
        CHECK (status IN ('SCHEDULED', 'IN_PROGRESS', 'COMPLETED', 'SKIPPED', 'CANCELED')),
    changed_at timestamptz NOT NULL,
    UNIQUE (plan_id, position),
    UNIQUE (plan_id, key)
);

CREATE TABLE session_runs (
    id text PRIMARY KEY,
    session_id text NOT NULL REFERENCES sessions ON DELETE RESTRICT,
    status text NOT NULL DEFAULT 'RUNNING' CHECK (status IN ('RUNNING', 'COMPLETED', 'ABANDONED')),
    step_index int NOT NULL DEFAULT 0 CHECK (step_index >= 0),  -- to be done next
    fence bigint NOT NULL DEFAULT 1 CHECK (fence >= 1),  -- one higher with every recovery; every write carries it
    blueprint_hash text NOT NULL REFERENCES blueprints ON DELETE RESTRICT,
    predecessor_id text REFERENCES session_runs ON DELETE RESTRICT,
    workspace_id text REFERENCES workspaces ON DELETE RESTRICT,
    started_at timestamptz NOT NULL,
    last_activity_at timestamptz NOT NULL,
    ended_at timestamptz,
    end_reason text CHECK (end_reason IN ('completed', 'inactive', 'by_learner', 'session_skipped', 'session_canceled')),
    end_note text,  -- what the learner said
    CHECK ((status = 'RUNNING') = (ended_at IS NULL)),
    CHECK ((status = 'RUNNING') = (end_reason IS NULL)),
    CHECK ((status = 'COMPLETED') = (end_reason IS NOT NULL AND end_reason = 'completed'))
);
-- One of two locks against a second running run; the other is the service's own check.
CREATE UNIQUE INDEX idx_running_run_per_session ON session_runs (session_id) WHERE status = 'RUNNING';
CREATE INDEX session_runs_by_session ON session_runs (session_id, started_at, id);
CREATE INDEX session_runs_by_activity ON session_runs (last_activity_at) WHERE status = 'RUNNING';

CREATE TABLE run_snapshots (
    run_id text NOT NULL REFERENCES session_runs ON DELETE RESTRICT,
    step_index int NOT NULL CHECK (step_index >= 0),
    state json NOT NULL,  -- the text as it was measured: jsonb writes 1e308 as 309 digits, and -0.0 as 0
    digest bytea NOT NULL,  -- of the request's state: the same again is a replay
    at timestamptz NOT NULL,
    PRIMARY KEY (run_id, step_index)
);

-- Failed tries of a CHECK or PRACTICE: how many, and what the last one said.
CREATE TABLE run_tries (
    run_id text NOT NULL REFERENCES session_runs ON DELETE RESTRICT,
    step_index int NOT NULL,
    tries int NOT NULL CHECK (tries >= 1),
    last_at timestamptz NOT NULL,
    last_result jsonb NOT NULL,
    PRIMARY KEY (run_id, step_index)
);

CREATE TABLE idempotency_keys (
    principal text NOT NULL,  -- a person's id, or who it was otherwise
    key text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    fingerprint bytea NOT NULL,  -- of the request that it was used for
    status int NOT NULL,
    body text NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (principal, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

CREATE TABLE plan_workspaces (
    plan_id text NOT NULL REFERENCES plans ON DELETE RESTRICT,
    template text NOT NULL,
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE RESTRICT,
    PRIMARY KEY (plan_id, template)
);

-- What was learnt, and when, stays: runs and their snapshots are never removed, and what has ended is never changed.
CREATE FUNCTION sessions_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is kept for ever: % is refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER session_runs_keep BEFORE DELETE OR TRUNCATE ON session_runs
    FOR EACH STATEMENT EXECUTE FUNCTION sessions_keep();
CREATE TRIGGER run_snapshots_keep BEFORE DELETE OR UPDATE OR TRUNCATE ON run_snapshots
    FOR EACH STATEMENT EXECUTE FUNCTION sessions_keep();
CREATE TRIGGER session_runs_ended BEFORE UPDATE ON session_runs
    FOR EACH ROW WHEN (OLD.status <> 'RUNNING') EXECUTE FUNCTION sessions_keep();
CREATE TRIGGER sessions_ended BEFORE UPDATE OF status ON sessions
    FOR EACH ROW WHEN (OLD.status IN ('COMPLETED', 'SKIPPED', 'CANCELED') AND NEW.status <> OLD.status)
    EXECUTE FUNCTION sessions_keep();
