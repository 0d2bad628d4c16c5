-- A workspace is shared with a name. Whether somebody has it is not told to the owner, so names that nobody has are
-- kept like others; they let nobody in. When a guest first came is what tells a mistyped one.
ALTER TABLE workspace_shares DROP CONSTRAINT workspace_shares_user_name_fkey;
ALTER TABLE workspace_shares ADD COLUMN opened_at timestamptz;

-- What the bound on workspaces counts: everything that is not destroyed yet.
CREATE INDEX workspaces_kept ON workspaces (owner) WHERE emptied_at IS NULL;
