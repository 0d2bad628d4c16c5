-- IDEs that admins have asked the platform to install. One row for each: the coordinator does it, and writes down how far it
-- is, for pages that show it.
CREATE TABLE ide_installs (
    name text PRIMARY KEY,
    status text NOT NULL CHECK (status IN ('WAITING', 'RUNNING', 'DONE', 'FAILED', 'CANCELLED')),
    actor text NOT NULL,  -- who asked: a person's id, or the operator's name
    epoch bigint,  -- of the leader that does it
    attempts int NOT NULL DEFAULT 0,
    cancelled boolean NOT NULL DEFAULT false,  -- it is to end
    steps jsonb NOT NULL DEFAULT '[]',  -- that have begun, with when; so many at most
    lines jsonb NOT NULL DEFAULT '[]',  -- the last that its tools said
    problem jsonb,  -- why it failed: a code with data
    asked_at timestamptz NOT NULL,
    started_at timestamptz,
    ended_at timestamptz,
    CHECK ((status IN ('DONE', 'FAILED', 'CANCELLED')) = (ended_at IS NOT NULL)),
    CHECK ((status = 'FAILED') = (problem IS NOT NULL))
);
