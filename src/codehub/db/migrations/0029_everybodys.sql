-- Everybody's workspaces, as admins look through them: one index for each order of the list, and one that counts phases.
CREATE INDEX workspaces_listed_by_phase ON workspaces (phase, created_at, id)
    WHERE deleted_at IS NULL AND emptied_at IS NULL;
CREATE INDEX workspaces_listed_by_name ON workspaces (name, id) WHERE deleted_at IS NULL AND emptied_at IS NULL;
CREATE INDEX workspaces_listed_by_change ON workspaces (phase_changed_at, id)
    WHERE deleted_at IS NULL AND emptied_at IS NULL;
CREATE INDEX workspaces_listed_by_size ON workspaces (coalesce(disk_bytes, -1), id)
    WHERE deleted_at IS NULL AND emptied_at IS NULL;

-- The audit log is searched by who, about whom, and by what was done.
CREATE INDEX audit_log_by_actor ON audit_log (actor, id);
CREATE INDEX audit_log_by_subject ON audit_log (subject, id);
CREATE INDEX audit_log_by_code ON audit_log (code, id);

-- One thing asked of many workspaces at once. The coordinator does it, one after the other.
CREATE TABLE bulk_actions (
    id text PRIMARY KEY,
    verb text NOT NULL CHECK (verb IN ('start', 'sleep', 'archive', 'recover', 'delete', 'undelete')),
    actor text NOT NULL,  -- a person's id, or the operator's name
    matched int NOT NULL,  -- how many there were, when it was asked for; no more than a bound were taken
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,  -- what is still busy then is given up
    finished_at timestamptz
);
CREATE INDEX bulk_actions_by_age ON bulk_actions (created_at);
CREATE INDEX bulk_actions_open ON bulk_actions (created_at) WHERE finished_at IS NULL;
CREATE TABLE bulk_items (
    bulk_id text NOT NULL REFERENCES bulk_actions ON DELETE CASCADE,
    place int NOT NULL,
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    again_at timestamptz NOT NULL,
    outcome text CHECK (outcome IN ('done', 'same', 'refused')),  -- null: still to be done
    code text,  -- why it was refused
    PRIMARY KEY (bulk_id, place)
);
CREATE INDEX bulk_items_open ON bulk_items (again_at) WHERE outcome IS NULL;
CREATE INDEX bulk_items_by_workspace ON bulk_items (workspace_id);

-- What the garbage collection would remove: asked for by admins, looked for by the coordinator. One row, once it was asked.
CREATE TABLE storage_preview (
    is_the_one boolean PRIMARY KEY DEFAULT true CHECK (is_the_one),
    asked_at timestamptz,
    made_at timestamptz,
    things jsonb NOT NULL DEFAULT '[]',
    total int NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0
);
