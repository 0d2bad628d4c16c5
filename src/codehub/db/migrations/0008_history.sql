-- History and audit are codes with data: sentences are made for the reader, in their language. The names of codes and
-- data are those of `workspaces/history.py`, `audit/codes.py` and `retention/rules.py`.

ALTER TABLE audit_log RENAME COLUMN action TO code;
ALTER TABLE audit_log RENAME COLUMN detail TO data;
ALTER TABLE orphans RENAME COLUMN reason TO rule;

-- Why something was collected, from the sentence that was kept before.
CREATE FUNCTION pg_temp.rule(reason text) RETURNS text LANGUAGE sql AS $$
SELECT CASE
    WHEN reason = 'no workspace has its id' THEN 'no_workspace'
    WHEN reason = 'its workspace was purged' THEN 'workspace_purged'
    WHEN reason = 'its workspace is deleted' THEN 'workspace_deleted'
    WHEN reason = 'it was never finished' THEN 'unfinished'
    WHEN reason = 'another leader''s copy of the same operation is the one in use' THEN 'duplicate'
    WHEN reason ~ '^there are \d+ newer restore points$' THEN 'newer_points'
    WHEN reason = 'a restore that was given up has left it' THEN 'restore_given_up'
    WHEN reason = 'a leader that came late has made it: it is not the workspace''s home' THEN 'late_leader'
END $$;

-- Only what is condemned keeps it; the others are looked at again, and get it then.
UPDATE orphans SET rule = coalesce(pg_temp.rule(rule), 'late_leader');
UPDATE audit_log SET data = data - 'reason' || jsonb_build_object('rule', pg_temp.rule(data ->> 'reason'))
WHERE code IN ('archive.collect', 'volume.collect') AND pg_temp.rule(data ->> 'reason') IS NOT NULL;
UPDATE audit_log
SET data = data - 'reason'
    || jsonb_build_object('why', CASE WHEN data ->> 'reason' = 'purged' THEN 'purged' ELSE 'trash_expired' END)
WHERE code = 'workspace.destroy' AND data ->> 'reason' IN ('purged', 'its time in the trash is over');

ALTER TABLE workspace_history ADD COLUMN code text, ADD COLUMN data jsonb NOT NULL DEFAULT '{}';

-- What an operation began for: the rows of `workspaces.rules.PLANS`, as they were said.
CREATE FUNCTION pg_temp.plan(reason text) RETURNS text LANGUAGE sql AS $$
SELECT CASE reason
    WHEN 'deleted, and PENDING or in ERROR' THEN 'delete'
    WHEN 'deleted, RUNNING' THEN 'stop_deleted'
    WHEN 'deleted with purge, STANDBY' THEN 'purge'
    WHEN 'deleted, STANDBY' THEN 'archive_deleted'
    WHEN 'PENDING, its volume in the trash' THEN 'unpark'
    WHEN 'PENDING, wanted above, to go back to a restore point' THEN 'restore_point'
    WHEN 'PENDING, wanted above, no archive' THEN 'provision'
    WHEN 'PENDING, wanted above, archive' THEN 'restore'
    WHEN 'RUNNING, to go back to a restore point' THEN 'stop_for_restore'
    WHEN 'STANDBY, to go back to a restore point' THEN 'archive_for_restore'
    WHEN 'STANDBY, wanted RUNNING' THEN 'start'
    WHEN 'STANDBY, wanted ARCHIVED' THEN 'archive'
    WHEN 'RUNNING, wanted below' THEN 'stop'
END $$;

UPDATE workspace_history SET code = 'created', data = jsonb_build_object('desired_state', substring(reason FROM '\w+$'))
WHERE event = 'created' AND reason ~ '^created, to be (RUNNING|STANDBY|ARCHIVED)$';

UPDATE workspace_history SET code = 'idle_sleep', data = detail
WHERE event = 'wish' AND actor = 'ttl' AND to_state = 'STANDBY' AND detail ?& ARRAY['idle_since', 'seconds'];

UPDATE workspace_history SET code = 'idle_archive', data = detail
WHERE event = 'wish' AND actor = 'ttl' AND to_state = 'ARCHIVED' AND detail ?& ARRAY['asleep_since', 'seconds'];

UPDATE workspace_history SET code = 'owner_deactivated'
WHERE event = 'wish' AND reason = 'its owner was deactivated';

UPDATE workspace_history SET code = 'woken'
WHERE event = 'wish' AND reason = 'asked by wake';

UPDATE workspace_history
SET code = CASE to_state
        WHEN 'RUNNING' THEN 'start_requested'
        WHEN 'STANDBY' THEN 'sleep_requested'
        ELSE 'archive_requested'
    END,
    data = jsonb_build_object('by', substring(reason FROM '\w+$'))
WHERE event = 'wish' AND reason ~ '^asked by (user|session|admin)$' AND to_state IN ('RUNNING', 'STANDBY', 'ARCHIVED');

UPDATE workspace_history SET code = event || '_requested'
WHERE event IN ('delete', 'purge', 'undelete', 'recover') AND reason = 'asked for';

UPDATE workspace_history
SET code = 'restore_requested',
    data = jsonb_build_object(
        'created_at', to_timestamp(substring(reason FROM 'of (.*) UTC$') || ' +00', 'YYYY-MM-DD HH24:MI TZH'))
WHERE event = 'restore' AND reason ~ '^to the restore point of \d{4}-\d\d-\d\d \d\d:\d\d UTC$';

UPDATE workspace_history SET code = 'archive_restore_requested'
WHERE event = 'restore' AND reason = 'to the restore point that it was archived to';

UPDATE workspace_history SET code = event, data = jsonb_build_object('user', substring(reason FROM '\S+$'))
WHERE (event = 'shared' AND reason ~ '^with \S+$') OR (event = 'unshared' AND reason ~ '^from \S+$');

UPDATE workspace_history SET code = 'guest_deactivated', data = jsonb_build_object('user', substring(reason FROM '\S+$'))
WHERE event = 'unshared' AND reason ~ '^deactivated: from \S+$';

UPDATE workspace_history
SET code = 'held', data = jsonb_build_object('purpose', nullif(reason, 'asked for from inside'))
WHERE event = 'hold';

-- Only the time of day was kept: that of the same day, or of the evening before.
UPDATE workspace_history
SET code = 'work_resumed',
    data = jsonb_build_object(
        'active_at',
        (SELECT CASE WHEN moment > at + interval '1 hour' THEN moment - interval '1 day' ELSE moment END
         FROM (SELECT (((at AT TIME ZONE 'UTC')::date + substring(reason FROM '\S+$')::time) AT TIME ZONE 'UTC')) AS same
             (moment)))
WHERE event = 'kept awake' AND reason ~ '^somebody was at work at \d\d:\d\d:\d\d$';

UPDATE workspace_history
SET code = 'operation_begun',
    data = detail || jsonb_build_object('operation', substring(event FROM '^\w+'), 'plan', pg_temp.plan(reason))
WHERE event ~ '^[A-Z]+ begins$' AND pg_temp.plan(reason) IS NOT NULL;

UPDATE workspace_history
SET code = CASE event
        WHEN 'PROVISIONING' THEN 'provisioned'
        WHEN 'RESTORING' THEN 'restored'
        WHEN 'STARTING' THEN 'started'
        WHEN 'STOPPING' THEN 'stopped'
        WHEN 'ARCHIVING' THEN 'archived'
        ELSE 'deleted'
    END,
    data = detail
WHERE event IN ('PROVISIONING', 'RESTORING', 'STARTING', 'STOPPING', 'ARCHIVING', 'DELETING')
  AND reason = 'observed to be done';

UPDATE workspace_history
SET code = CASE WHEN event LIKE '% given up' THEN 'operation_given_up' ELSE 'operation_retried' END,
    data = jsonb_build_object(
        'operation', substring(event FROM '^\w+'),
        'reason', substring(reason FROM '^\w+'),
        'message', substring(reason FROM '^\w+: (.*)$'))
WHERE event ~ '^[A-Z]+ (will be tried again|given up)$' AND reason ~ '^[A-Z]\w+: ';

UPDATE workspace_history SET code = 'ide_gone'
WHERE event = 'IDE ended' AND reason IN ('the IDE is gone', '');

UPDATE workspace_history
SET code = 'ide_ended',
    data = jsonb_build_object(
        'exit_code', nullif(substring(reason FROM 'exit code (-?\w+)'), 'unknown')::int,
        'log_tail', btrim(substring(reason FROM '^the IDE ended by itself \(exit code -?\w+\)\.(.*)$')))
WHERE event = 'IDE ended' AND reason ~ '^the IDE ended by itself \(exit code (-?\d+|unknown)\)\.';

UPDATE workspace_history SET code = 'problem_found', data = jsonb_build_object('reason', event)
WHERE event IN ('DataLost', 'ContainerWithoutVolume');

UPDATE workspace_history SET code = 'observed' WHERE event = 'observed';

UPDATE workspace_history SET code = CASE reason WHEN 'purged' THEN 'purged' ELSE 'trash_expired' END
WHERE event = 'emptied' AND reason IN ('purged', 'its time in the trash is over');

UPDATE workspace_history
SET code = replace(event, ' ', '_'), data = detail - 'reason' || jsonb_build_object('rule', pg_temp.rule(reason))
WHERE event IN ('archive collected', 'volume collected') AND pg_temp.rule(reason) IS NOT NULL;

-- Whatever else was written stays as it was.
UPDATE workspace_history SET code = 'note', data = detail || jsonb_build_object('event', event, 'text', reason)
WHERE code IS NULL;

ALTER TABLE workspace_history
    ALTER COLUMN code SET NOT NULL, DROP COLUMN event, DROP COLUMN reason, DROP COLUMN detail;
