-- Idleness: since when, and an index for every way in which it runs out.

ALTER TABLE workspaces
    -- What keep-awake is for, in somebody's own words.
    ADD COLUMN keep_awake_reason text,
    -- Nobody has been at work, nor asked for anything, since.
    ADD COLUMN idle_since timestamptz NOT NULL
        GENERATED ALWAYS AS (greatest(last_access_at, phase_changed_at, desired_at)) STORED;

-- Immutable as it stands here: a number of seconds does not depend on anybody's time zone.
CREATE FUNCTION codehub_after(moment timestamptz, seconds int) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN moment + make_interval(secs => seconds);

-- Those that live by the template's or the platform's time, and those that have one of their own.
CREATE INDEX workspaces_awake ON workspaces (template, idle_since)
    WHERE phase = 'RUNNING' AND desired_state = 'RUNNING' AND operation = 'NONE' AND deleted_at IS NULL
      AND standby_ttl_seconds IS NULL;
CREATE INDEX workspaces_awake_by_own_time ON workspaces (codehub_after(idle_since, standby_ttl_seconds))
    WHERE phase = 'RUNNING' AND desired_state = 'RUNNING' AND operation = 'NONE' AND deleted_at IS NULL
      AND standby_ttl_seconds > 0;
CREATE INDEX workspaces_asleep ON workspaces (template, phase_changed_at)
    WHERE phase = 'STANDBY' AND desired_state = 'STANDBY' AND operation = 'NONE' AND deleted_at IS NULL
      AND archive_ttl_seconds IS NULL;
CREATE INDEX workspaces_asleep_by_own_time ON workspaces (codehub_after(phase_changed_at, archive_ttl_seconds))
    WHERE phase = 'STANDBY' AND desired_state = 'STANDBY' AND operation = 'NONE' AND deleted_at IS NULL
      AND archive_ttl_seconds > 0;
