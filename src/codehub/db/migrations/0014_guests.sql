-- Who may enter as a guest: those with whom it is shared, while its owner is active.
CREATE FUNCTION codehub_guests(workspace text, owner text) RETURNS text[] LANGUAGE sql STABLE
RETURN ARRAY(
    SELECT u.name FROM workspace_shares s JOIN users u ON u.id = s.user_id
    WHERE s.workspace_id = workspace
      AND EXISTS (SELECT FROM users o WHERE o.id = owner AND o.deactivated_at IS NULL)
);

-- The proxy's routes name the guests: they are read again when the owner is deactivated, active again, or renamed.
CREATE OR REPLACE FUNCTION users_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.deactivated_at IS NULL) <> (NEW.deactivated_at IS NULL) THEN
        INSERT INTO events (at, audience, kind, subject, data)
        SELECT coalesce(NEW.deactivated_at, now()), 'user:' || s.user_id,
               CASE WHEN NEW.deactivated_at IS NULL THEN 'workspace_joined' ELSE 'workspace_left' END,
               w.id, jsonb_build_object('workspace_id', w.id)
        FROM workspaces w JOIN workspace_shares s ON s.workspace_id = w.id
        WHERE w.owner_id = NEW.id AND w.emptied_at IS NULL AND s.user_id IS NOT NULL;
    END IF;
    INSERT INTO events (at, audience, kind, subject, data)
    SELECT now(), 'workspace:' || w.id, 'workspace_updated', w.id, '{}'
    FROM workspaces w
    WHERE w.emptied_at IS NULL
      AND (w.owner_id = NEW.id
           OR EXISTS (SELECT FROM workspace_shares s WHERE s.workspace_id = w.id AND s.user_id = NEW.id));
    RETURN NULL;
END $$;
DROP TRIGGER users_announce ON users;
CREATE TRIGGER users_announce AFTER UPDATE OF deactivated_at, name ON users
    FOR EACH ROW WHEN (OLD.name <> NEW.name OR (OLD.deactivated_at IS NULL) <> (NEW.deactivated_at IS NULL))
    EXECUTE FUNCTION users_announce();
