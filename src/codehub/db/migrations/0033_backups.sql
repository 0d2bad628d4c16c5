-- Backups that admins ask for on a page. The coordinator makes them into files of the data directory; a row is what is
-- known of one. Rows are not part of a backup: the files they speak of lie on this machine.
CREATE TABLE backups (
    id text PRIMARY KEY,
    state text NOT NULL CHECK (state IN ('asked', 'running', 'cancelling', 'done', 'failed', 'cancelled', 'deleting')),
    asked_by text NOT NULL, -- an id of a person, or what else can act; 'codehub' for a file that was found
    asked_at timestamptz NOT NULL,
    begun_at timestamptz,
    ended_at timestamptz,
    epoch bigint, -- of the leader that makes it
    things_done bigint NOT NULL DEFAULT 0, -- tables, archives and homes
    things bigint NOT NULL DEFAULT 0,
    bytes_done bigint NOT NULL DEFAULT 0, -- of what is read, as far as that is known before
    bytes bigint NOT NULL DEFAULT 0,
    file_bytes bigint,
    contents jsonb NOT NULL DEFAULT '{}', -- how many rows, homes and archives; how many homes were in use
    failure text, -- a code
    detail text
);
-- One at a time, whoever clicks, and however often.
CREATE UNIQUE INDEX backups_one_at_a_time ON backups ((true)) WHERE state IN ('asked', 'running', 'cancelling');
