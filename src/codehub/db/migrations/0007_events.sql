-- The outbox of all capabilities: what changed, for whom. Written in the transaction of the change, read by every API
-- process and every proxy worker (`codehub.events`). docs/decisions/0007-events-outbox.md has the reasons.

-- Positions are given at commit. A database that is restored or made anew goes on above what any client can hold of an
-- older one, so that such a client is told to begin again: hence the start by time, in thousandths of a second.
CREATE SEQUENCE event_positions AS bigint;
DO $$ BEGIN
    EXECUTE format('ALTER SEQUENCE event_positions START WITH %s RESTART',
                   floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint);
END $$;

CREATE TABLE events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    position bigint,
    at timestamptz NOT NULL,
    audience text NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    data jsonb NOT NULL DEFAULT '{}'
);
CREATE UNIQUE INDEX events_in_order ON events (position) WHERE position IS NOT NULL;
CREATE INDEX events_by_audience ON events (audience, position) WHERE position IS NOT NULL;

-- The newest position that was removed: who has not read that far has missed something.
CREATE TABLE event_floor (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    position bigint NOT NULL
);
INSERT INTO event_floor (position) SELECT seqstart - 1 FROM pg_sequence WHERE seqrelid = 'event_positions'::regclass;

-- Runs within COMMIT, and nothing of ours comes after it: the lock is held for the length of a commit, and released
-- once its rows can be seen. So positions become visible in their order, and an open transaction holds up no reader.
-- NOTIFY takes such a lock anyway; several in one transaction are one.
CREATE FUNCTION events_number() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7235417);
    UPDATE events SET position = nextval('event_positions') WHERE id = NEW.id;
    PERFORM pg_notify('codehub_events', '');
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER events_number AFTER INSERT ON events
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION events_number();

-- As of the calling statement's snapshot: two readings of a row are ordered by what this says beside them.
CREATE FUNCTION events_newest() RETURNS bigint LANGUAGE sql STABLE
RETURN (SELECT greatest((SELECT max(position) FROM events), (SELECT position FROM event_floor)));

-- Workspaces write theirs by triggers: statements of several modules change them, some by the hundred, and none can
-- forget to. What the event says is read by the reader (`workspaces.changes`): it depends on settings that only
-- processes know.
DROP TRIGGER workspaces_announce_new ON workspaces;
DROP TRIGGER workspaces_announce_change ON workspaces;
DROP TRIGGER workspace_shares_announce ON workspace_shares;
DROP FUNCTION workspaces_announce();
DROP FUNCTION workspace_shares_announce();
DROP TABLE workspace_events;

CREATE FUNCTION workspaces_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.owner <> NEW.owner THEN
        INSERT INTO events (at, audience, kind, subject, data)
        VALUES (NEW.updated_at, 'user:' || OLD.owner, 'workspace_left', NEW.id, jsonb_build_object('workspace_id', NEW.id));
    END IF;
    IF TG_OP = 'INSERT' OR OLD.owner <> NEW.owner THEN
        INSERT INTO events (at, audience, kind, subject, data)
        VALUES (NEW.updated_at, 'user:' || NEW.owner, 'workspace_joined', NEW.id, jsonb_build_object('workspace_id', NEW.id));
    END IF;
    INSERT INTO events (at, audience, kind, subject)
    VALUES (NEW.updated_at, 'workspace:' || NEW.id, 'workspace_updated', NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER workspaces_announce_new AFTER INSERT ON workspaces
    FOR EACH ROW EXECUTE FUNCTION workspaces_announce();
-- Activity and disk figures move all the time and are not announced.
CREATE TRIGGER workspaces_announce_change AFTER UPDATE ON workspaces
    FOR EACH ROW
    WHEN ((OLD.name, OLD.owner, OLD.phase, OLD.observed_status, OLD.operation, OLD.desired_state, OLD.error_info,
           OLD.progress, OLD.deleted_at, OLD.keep_awake_until, OLD.standby_ttl_seconds, OLD.archive_ttl_seconds,
           OLD.address)
          IS DISTINCT FROM
          (NEW.name, NEW.owner, NEW.phase, NEW.observed_status, NEW.operation, NEW.desired_state, NEW.error_info,
           NEW.progress, NEW.deleted_at, NEW.keep_awake_until, NEW.standby_ttl_seconds, NEW.archive_ttl_seconds,
           NEW.address))
    EXECUTE FUNCTION workspaces_announce();

-- A guest joins before the workspace's own event, and leaves before it: what follows is for those who may see it.
CREATE FUNCTION workspace_shares_announce() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    share workspace_shares := coalesce(NEW, OLD);
    kind text := CASE TG_OP WHEN 'INSERT' THEN 'workspace_joined' ELSE 'workspace_left' END;
    moment timestamptz := (SELECT updated_at FROM workspaces WHERE id = share.workspace_id);
BEGIN
    IF moment IS NOT NULL THEN
        INSERT INTO events (at, audience, kind, subject, data) VALUES
            (moment, 'user:' || share.user_name, kind, share.workspace_id,
             jsonb_build_object('workspace_id', share.workspace_id)),
            (moment, 'workspace:' || share.workspace_id, 'workspace_updated', share.workspace_id, '{}');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER workspace_shares_announce AFTER INSERT OR DELETE ON workspace_shares
    FOR EACH ROW EXECUTE FUNCTION workspace_shares_announce();

-- A user who is deactivated has no guests until they are active again.
CREATE FUNCTION users_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (at, audience, kind, subject, data)
    SELECT coalesce(NEW.deactivated_at, now()), 'user:' || s.user_name,
           CASE WHEN NEW.deactivated_at IS NULL THEN 'workspace_joined' ELSE 'workspace_left' END,
           w.id, jsonb_build_object('workspace_id', w.id)
    FROM workspaces w JOIN workspace_shares s ON s.workspace_id = w.id
    WHERE w.owner = NEW.name AND w.emptied_at IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER users_announce AFTER UPDATE OF deactivated_at ON users
    FOR EACH ROW WHEN ((OLD.deactivated_at IS NULL) <> (NEW.deactivated_at IS NULL))
    EXECUTE FUNCTION users_announce();
