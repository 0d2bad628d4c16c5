-- A git repository that a new workspace begins with. It is cloned inside of the workspace, as its user, once it runs: the
-- leader claims, runs and ends it. One of each workspace; asked for again, the row begins anew.
CREATE TABLE workspace_repositories (
    workspace_id text PRIMARY KEY REFERENCES workspaces ON DELETE CASCADE,
    fetch_id text NOT NULL,  -- of this request: what was cloned is marked with it, so that a second leader knows it
    url text NOT NULL,
    branch text,  -- null: the repository's own
    folder text NOT NULL,  -- below the home
    status text NOT NULL DEFAULT 'WAITING' CHECK (status IN ('WAITING', 'RUNNING', 'DONE', 'FAILED')),
    epoch bigint,  -- of the leader that runs it
    attempts int NOT NULL DEFAULT 0,
    cause text,  -- why the last attempt did not work, as a code
    said text,  -- and git's own words
    asked_at timestamptz NOT NULL,
    again_at timestamptz NOT NULL,
    started_at timestamptz,
    ended_at timestamptz,
    CHECK ((status IN ('DONE', 'FAILED')) = (ended_at IS NOT NULL)),
    CHECK (status <> 'FAILED' OR cause IS NOT NULL)
);
CREATE INDEX workspace_repositories_open ON workspace_repositories (again_at) WHERE status IN ('WAITING', 'RUNNING');

-- Pages that show the workspace look again.
CREATE FUNCTION workspace_repositories_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (at, audience, kind, subject)
    VALUES (coalesce(NEW.ended_at, NEW.started_at, NEW.asked_at), 'workspace:' || NEW.workspace_id, 'workspace_updated', NEW.workspace_id);
    RETURN NULL;
END $$;
CREATE TRIGGER workspace_repositories_announce AFTER UPDATE ON workspace_repositories
    FOR EACH ROW WHEN ((OLD.status, OLD.cause) IS DISTINCT FROM (NEW.status, NEW.cause))
    EXECUTE FUNCTION workspace_repositories_announce();
