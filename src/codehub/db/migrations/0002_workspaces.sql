-- Workspaces: what is observed, what is wished, what is being done about the difference.

-- The one definition of phase; the generated column and the trigger below both use it.
CREATE FUNCTION codehub_phase(observed_status text, health_status text, archive_key text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN observed_status = 'DELETED' THEN 'DELETED'
    WHEN health_status = 'ERROR' THEN 'ERROR'
    WHEN observed_status = 'PENDING' AND archive_key IS NOT NULL THEN 'ARCHIVED'
    ELSE observed_status
END;

CREATE TABLE workspaces (
    id text PRIMARY KEY CHECK (id ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
    name text NOT NULL,
    template text NOT NULL,
    owner text NOT NULL REFERENCES users,
    created_at timestamptz NOT NULL,
    -- Written with every change, from the writer's clock; the trigger dates the phase by it.
    updated_at timestamptz NOT NULL,

    -- Observed: the controller's columns.
    observed_status text NOT NULL DEFAULT 'PENDING'
        CHECK (observed_status IN ('PENDING', 'STANDBY', 'RUNNING', 'DELETED')),
    health_status text NOT NULL DEFAULT 'OK' CHECK (health_status IN ('OK', 'ERROR')),
    archive_key text,
    operation text NOT NULL DEFAULT 'NONE'
        CHECK (operation IN ('NONE', 'PROVISIONING', 'RESTORING', 'STARTING', 'STOPPING', 'ARCHIVING', 'DELETING')),
    op_id text,
    op_started_at timestamptz,
    -- The generation of the volume that exists, and whether it lies in the trash.
    volume_generation text,
    volume_parked boolean NOT NULL DEFAULT false,
    error_info jsonb,
    -- Failures in a row; an IDE that starts well and dies soon after goes on counting.
    failures int NOT NULL DEFAULT 0,
    progress jsonb,
    address jsonb,
    disk_bytes bigint,
    disk_measured_at timestamptz,
    phase text NOT NULL GENERATED ALWAYS AS (codehub_phase(observed_status, health_status, archive_key)) STORED,
    phase_changed_at timestamptz NOT NULL,
    -- When the controller should look next; null: nothing to do.
    attention_at timestamptz,

    -- Wished: the service's columns.
    desired_state text NOT NULL CHECK (desired_state IN ('RUNNING', 'STANDBY', 'ARCHIVED')),
    desired_by text NOT NULL CHECK (desired_by IN ('user', 'wake', 'ttl', 'session', 'admin')),
    desired_at timestamptz NOT NULL,
    deleted_at timestamptz,
    purge boolean NOT NULL DEFAULT false,
    standby_ttl_seconds int CHECK (standby_ttl_seconds >= 0),
    archive_ttl_seconds int CHECK (archive_ttl_seconds >= 0),
    keep_awake_until timestamptz,

    last_access_at timestamptz NOT NULL,

    -- The states and operations that exist at all.
    CHECK (health_status = 'OK' OR operation IN ('NONE', 'DELETING')),
    CHECK (operation <> 'PROVISIONING' OR observed_status = 'PENDING'),
    CHECK (operation <> 'RESTORING' OR (observed_status = 'PENDING' AND archive_key IS NOT NULL)),
    CHECK (operation NOT IN ('STARTING', 'ARCHIVING') OR observed_status = 'STANDBY'),
    CHECK (operation <> 'DELETING' OR observed_status IN ('PENDING', 'STANDBY')
        OR (observed_status = 'RUNNING' AND health_status = 'ERROR')),
    CHECK (operation <> 'STOPPING' OR observed_status = 'RUNNING'),
    CHECK (operation = 'NONE' OR op_id IS NOT NULL)
);
CREATE INDEX workspaces_by_owner ON workspaces (owner, created_at, id);
CREATE INDEX workspaces_by_age ON workspaces (created_at, id);
CREATE INDEX workspaces_due ON workspaces (attention_at) WHERE attention_at IS NOT NULL;
CREATE INDEX workspaces_with_container ON workspaces (id) WHERE observed_status = 'RUNNING';
-- Exactly what the running limits count.
CREATE INDEX workspaces_counted ON workspaces (owner)
    WHERE observed_status = 'RUNNING'
       OR (health_status = 'OK' AND deleted_at IS NULL AND desired_state = 'RUNNING');
CREATE INDEX workspaces_waiting_to_start ON workspaces (desired_at)
    WHERE desired_state = 'RUNNING' AND observed_status IN ('PENDING', 'STANDBY') AND health_status = 'OK'
      AND deleted_at IS NULL;

-- A generated column's new value is not visible in a BEFORE trigger, hence the function.
CREATE FUNCTION workspaces_date_phase() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF codehub_phase(NEW.observed_status, NEW.health_status, NEW.archive_key)
       IS DISTINCT FROM codehub_phase(OLD.observed_status, OLD.health_status, OLD.archive_key) THEN
        NEW.phase_changed_at := NEW.updated_at;
    ELSE
        NEW.phase_changed_at := OLD.phase_changed_at;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER workspaces_date_phase BEFORE UPDATE ON workspaces
    FOR EACH ROW EXECUTE FUNCTION workspaces_date_phase();

-- Every transition with who, when, why and how long.
CREATE TABLE workspace_history (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id text NOT NULL REFERENCES workspaces,
    at timestamptz NOT NULL,
    actor text NOT NULL,
    event text NOT NULL,
    from_state text,
    to_state text,
    reason text NOT NULL,
    took_seconds double precision,
    detail jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX workspace_history_by_workspace ON workspace_history (workspace_id, id);
CREATE INDEX workspace_history_by_time ON workspace_history (at);

-- What to tell subscribers. `xact` orders by commit safety: readers only go as far as no older transaction is open.
CREATE TABLE workspace_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xact xid8 NOT NULL DEFAULT pg_current_xact_id(),
    at timestamptz NOT NULL,
    workspace_id text NOT NULL,
    owner text NOT NULL
);
CREATE INDEX workspace_events_in_order ON workspace_events (xact, id);
CREATE INDEX workspace_events_by_time ON workspace_events (at);

CREATE FUNCTION workspaces_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO workspace_events (at, workspace_id, owner) VALUES (NEW.updated_at, NEW.id, NEW.owner);
    PERFORM pg_notify('codehub_workspaces', '');
    RETURN NULL;
END $$;
CREATE TRIGGER workspaces_announce_new AFTER INSERT ON workspaces
    FOR EACH ROW EXECUTE FUNCTION workspaces_announce();
-- Activity and disk figures move all the time and are not news.
CREATE TRIGGER workspaces_announce_change AFTER UPDATE ON workspaces
    FOR EACH ROW
    WHEN ((OLD.name, OLD.phase, OLD.observed_status, OLD.operation, OLD.desired_state, OLD.error_info, OLD.progress,
           OLD.deleted_at, OLD.keep_awake_until, OLD.standby_ttl_seconds, OLD.archive_ttl_seconds, OLD.address)
          IS DISTINCT FROM
          (NEW.name, NEW.phase, NEW.observed_status, NEW.operation, NEW.desired_state, NEW.error_info, NEW.progress,
           NEW.deleted_at, NEW.keep_awake_until, NEW.standby_ttl_seconds, NEW.archive_ttl_seconds, NEW.address))
    EXECUTE FUNCTION workspaces_announce();
