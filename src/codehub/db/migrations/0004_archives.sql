-- Archives that one can go back to, the end of the trash, and what nobody needs any more.

-- One line for each verified archive, written in the transaction that names it in the workspace's row. What an operation
-- stored counts once, under whichever leader.
CREATE TABLE restore_points (
    archive_key text PRIMARY KEY,
    workspace_id text NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    op_id text NOT NULL,
    created_at timestamptz NOT NULL,
    size bigint NOT NULL,
    content_bytes bigint NOT NULL,
    files bigint NOT NULL,
    UNIQUE (workspace_id, op_id)
);
CREATE INDEX restore_points_in_order ON restore_points (workspace_id, created_at, archive_key);

ALTER TABLE workspaces
    -- Wished: the restore point to go back to. The controller takes it over into `archive_key` when it begins to restore.
    ADD COLUMN restore_from text,
    -- When the trash was emptied of it: nothing of it is left but this row.
    ADD COLUMN emptied_at timestamptz;
CREATE INDEX workspaces_in_trash ON workspaces (deleted_at) WHERE deleted_at IS NOT NULL AND emptied_at IS NULL;

-- What the garbage collection has seen and nobody seems to need. It goes when it has been so for long enough; once it is
-- condemned it is never used again, so that a collector who comes late destroys nothing that was taken up meanwhile.
CREATE TABLE orphans (
    kind text NOT NULL CHECK (kind IN ('archive', 'volume')),
    name text NOT NULL,
    workspace_id text NOT NULL,
    reason text NOT NULL,
    bytes bigint NOT NULL,
    seen_at timestamptz NOT NULL,
    condemned_at timestamptz,
    PRIMARY KEY (kind, name)
);
CREATE INDEX orphans_by_age ON orphans (seen_at);

-- Who we are: an object store that carries another platform's name is read and written, and nothing in it is collected.
CREATE TABLE platform (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id text NOT NULL DEFAULT gen_random_uuid()::text
);
INSERT INTO platform DEFAULT VALUES;
