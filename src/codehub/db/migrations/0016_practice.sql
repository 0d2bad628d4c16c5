-- What the coordinator is to do in a workspace for a run's PRACTICE: put starter files there, or run its checks. The API
-- writes one and waits for its end; the leader claims, runs and ends it. docs/sessions.md has the reasons.
CREATE TABLE practice_tasks (
    id text PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('files', 'checks')),
    run_id text NOT NULL REFERENCES session_runs ON DELETE CASCADE,
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    owner_id text NOT NULL REFERENCES users ON DELETE CASCADE,  -- of the workspace: no person has more than one at a time
    step_index int NOT NULL,
    fence bigint NOT NULL,
    request jsonb NOT NULL,  -- with the checks' commands, which are for nobody to read: emptied at the end
    status text NOT NULL DEFAULT 'WAITING' CHECK (status IN ('WAITING', 'RUNNING', 'DONE')),
    epoch bigint,  -- of the leader that runs it
    attempts int NOT NULL DEFAULT 0,
    result jsonb,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    ended_at timestamptz,
    taken_at timestamptz,  -- when a request got the result
    CHECK ((status = 'DONE') = (result IS NOT NULL AND ended_at IS NOT NULL))
);
-- Who asks for the same again joins what is under way.
CREATE UNIQUE INDEX practice_tasks_under_way ON practice_tasks (run_id, kind, step_index, fence) WHERE status <> 'DONE';
CREATE INDEX practice_tasks_by_run ON practice_tasks (run_id);
CREATE INDEX practice_tasks_in_order ON practice_tasks (created_at, id) WHERE status <> 'DONE';
CREATE INDEX practice_tasks_by_owner ON practice_tasks (owner_id) WHERE status <> 'DONE';
CREATE INDEX practice_tasks_ended ON practice_tasks (ended_at) WHERE status = 'DONE';

-- What was ever delivered at a path of a workspace's home, by SHA-256: such a file may be replaced, another is a person's.
CREATE TABLE delivered_files (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    path text NOT NULL,
    digest text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (workspace_id, path, digest)
);
