-- Where a workspace's files are, for runtimes that see only their own machine. NULL: nowhere, or not known yet.
ALTER TABLE workspaces ADD COLUMN node text;
CREATE INDEX workspaces_by_node ON workspaces (node) WHERE node IS NOT NULL;
