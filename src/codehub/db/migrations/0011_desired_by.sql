-- On whose behalf a state was asked for: every word of `workspaces.model.DesiredBy`.
ALTER TABLE workspaces DROP CONSTRAINT workspaces_desired_by_check;
ALTER TABLE workspaces ADD CONSTRAINT workspaces_desired_by_check CHECK (
    desired_by IN ('user', 'guest', 'teacher', 'admin', 'operator', 'wake', 'ttl', 'session', 'waiting-room')
);
