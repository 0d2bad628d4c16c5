-- "Put this one to sleep and open that one": from when the first no longer runs until the second is started, its place is
-- the second's, and no other's. While the first counts as running, a swap counts nothing; afterwards, one running workspace.
CREATE TABLE workspace_swaps (
    open_id text PRIMARY KEY REFERENCES workspaces ON DELETE CASCADE,
    sleep_id text NOT NULL UNIQUE REFERENCES workspaces ON DELETE CASCADE,  -- one place has one successor
    owner_id text NOT NULL REFERENCES users,  -- of both
    desired_by text NOT NULL,
    actor text NOT NULL,  -- who asked, as history names them
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    CHECK (open_id <> sleep_id)
);
CREATE INDEX workspace_swaps_by_owner ON workspace_swaps (owner_id);
