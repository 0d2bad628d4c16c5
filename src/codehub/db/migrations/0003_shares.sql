-- Whom the owner of a workspace lets in.
CREATE TABLE workspace_shares (
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    user_name text NOT NULL REFERENCES users,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (workspace_id, user_name)
);
CREATE INDEX workspace_shares_by_user ON workspace_shares (user_name, workspace_id);

-- The proxy reads workspaces that are news, with whom they are shared.
CREATE FUNCTION workspace_shares_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO workspace_events (at, workspace_id, owner)
        SELECT updated_at, id, owner FROM workspaces WHERE id = coalesce(NEW.workspace_id, OLD.workspace_id);
    PERFORM pg_notify('codehub_workspaces', '');
    RETURN NULL;
END $$;
CREATE TRIGGER workspace_shares_announce AFTER INSERT OR DELETE ON workspace_shares
    FOR EACH ROW EXECUTE FUNCTION workspace_shares_announce();

-- What was revoked lately is read by every proxy.
CREATE INDEX browser_sessions_revoked ON browser_sessions (revoked_at) WHERE revoked_at IS NOT NULL;
CREATE INDEX access_tokens_revoked ON access_tokens (revoked_at) WHERE revoked_at IS NOT NULL;
