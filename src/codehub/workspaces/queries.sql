-- name: add
INSERT INTO workspaces (id, name, template, owner_id, created_at, updated_at, phase_changed_at, last_access_at, attention_at,
                        desired_state, desired_by, desired_at, standby_ttl_seconds, archive_ttl_seconds)
VALUES ($1, $2, $3, codehub_user_id($4), $5, $5, $5, $5, $5, $6, $7, $5, $8, $9)
RETURNING *, codehub_user_name(owner_id) AS owner;

-- name: find
SELECT *, codehub_user_name(owner_id) AS owner FROM workspaces WHERE id = $1;

-- name: lock
SELECT *, codehub_user_name(owner_id) AS owner FROM workspaces WHERE id = $1 FOR UPDATE;

-- name: lock_if_free
-- For the controller: a person's request holds the row only for a moment, the next tick looks again.
SELECT *, codehub_user_name(owner_id) AS owner FROM workspaces WHERE id = $1 FOR UPDATE SKIP LOCKED;

-- name: owned_by_admin
-- Of an owner who may do everything anyway.
SELECT EXISTS (
    SELECT FROM workspaces w JOIN users u ON u.id = w.owner_id
    WHERE w.id = $1 AND u.role = 'admin' AND u.deactivated_at IS NULL
);

-- name: page
SELECT *, codehub_user_name(owner_id) AS owner FROM workspaces
WHERE ($1::text IS NULL OR owner_id = (SELECT codehub_user_id($1)))
  AND ($2::text IS NULL OR phase = $2)
  AND ($3::text IS NULL OR template = $3)
  AND ((deleted_at IS NOT NULL) = $4)
  AND emptied_at IS NULL
  AND ($8::text IS NULL OR name = $8)
  AND ($9::text IS NULL OR owner_id IN (
        SELECT m.user_id FROM class_members m JOIN classes k ON k.id = m.class_id AND k.archived_at IS NULL
        JOIN users l ON l.id = m.user_id AND l.role = 'learner'
        WHERE m.class_id = $9 AND m.role = 'learner'))
  AND (created_at, id) > ($5, $6)
ORDER BY created_at, id
LIMIT $7;

-- name: owner_id
SELECT owner_id FROM workspaces WHERE id = $1;

-- name: teaches
SELECT EXISTS (SELECT FROM class_members WHERE class_id = $1 AND user_id = $2 AND role = 'teacher');

-- name: serialize_starts
-- Transactions that may raise the number of running workspaces go one after the other: the limit is exact.
SELECT pg_advisory_xact_lock(7235415);

-- name: one_at_a_time
-- Of what is counted for this person: the limits are exact.
SELECT pg_advisory_xact_lock(7235416, hashtext($1));

-- name: count_kept
SELECT count(*) AS kept, count(*) FILTER (WHERE deleted_at IS NOT NULL) AS in_trash
FROM workspaces WHERE owner_id = (SELECT codehub_user_id($1)) AND emptied_at IS NULL;

-- name: count_running
-- Besides one workspace. A swap whose first one no longer counts is one that runs; of its own two, the place is theirs.
WITH swapped AS (
    SELECT s.owner_id, $2 IN (s.open_id, s.sleep_id) AS own
    FROM workspace_swaps s JOIN workspaces o ON o.id = s.sleep_id
    WHERE NOT (o.observed_status = 'RUNNING' OR (o.health_status = 'OK' AND o.deleted_at IS NULL AND o.desired_state = 'RUNNING'))
), counted AS (
    SELECT owner_id FROM workspaces
    WHERE (observed_status = 'RUNNING' OR (health_status = 'OK' AND deleted_at IS NULL AND desired_state = 'RUNNING')) AND id <> $2
    UNION ALL SELECT owner_id FROM swapped WHERE NOT own
)
SELECT count(*) AS everywhere, count(*) FILTER (WHERE owner_id = (SELECT codehub_user_id($1))) AS of_owner,
       EXISTS (SELECT FROM swapped WHERE own) AS has_swap
FROM counted;

-- name: count_all_running
SELECT (SELECT count(*) FROM workspaces
        WHERE (observed_status = 'RUNNING' OR (health_status = 'OK' AND deleted_at IS NULL AND desired_state = 'RUNNING')))
     + (SELECT count(*) FROM workspace_swaps s JOIN workspaces o ON o.id = s.sleep_id
        WHERE NOT (o.observed_status = 'RUNNING' OR (o.health_status = 'OK' AND o.deleted_at IS NULL AND o.desired_state = 'RUNNING')));

-- name: usage
-- How much of the limits is used: by all together, and by who uses the most.
WITH counted AS (
    SELECT owner_id, count(*) AS n FROM workspaces
    WHERE observed_status = 'RUNNING' OR (health_status = 'OK' AND deleted_at IS NULL AND desired_state = 'RUNNING')
    GROUP BY owner_id
)
SELECT (SELECT coalesce(sum(n), 0) FROM counted)::int AS running,
       (SELECT coalesce(max(n), 0) FROM counted)::int AS running_of_one,
       (SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM workspaces WHERE emptied_at IS NULL GROUP BY owner_id) AS kept)::int AS kept_of_one,
       (SELECT count(*) FROM workspaces WHERE operation = 'STARTING')::int AS starting,
       (SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM workspace_shares GROUP BY workspace_id) AS shared)::int AS shares_of_one;

-- name: running_since
SELECT desired_at FROM workspaces
WHERE observed_status = 'RUNNING' OR (health_status = 'OK' AND deleted_at IS NULL AND desired_state = 'RUNNING');

-- name: counted
SELECT id FROM workspaces
WHERE id = ANY ($1::text[])
  AND (observed_status = 'RUNNING' OR (health_status = 'OK' AND deleted_at IS NULL AND desired_state = 'RUNNING'));

-- name: running_of
SELECT id, name FROM workspaces
WHERE (observed_status = 'RUNNING' OR (health_status = 'OK' AND deleted_at IS NULL AND desired_state = 'RUNNING'))
  AND owner_id = (SELECT codehub_user_id($1))
ORDER BY desired_at
LIMIT 50;

-- name: set_desired
-- Compare-and-set on what the verdict was made from.
UPDATE workspaces
SET desired_state = $2, desired_by = $3, desired_at = $4, updated_at = $4, attention_at = $4,
    last_access_at = CASE WHEN $2 = 'RUNNING' THEN greatest(last_access_at, $4) ELSE last_access_at END
WHERE id = $1 AND operation = 'NONE' AND health_status = 'OK' AND deleted_at IS NULL
RETURNING *, codehub_user_name(owner_id) AS owner;

-- name: stay_awake
UPDATE workspaces SET keep_awake_until = $2, keep_awake_reason = $3, updated_at = $4
WHERE id = $1 AND coalesce(keep_awake_until, '-infinity') < $2;

-- name: change_details
UPDATE workspaces
SET name = coalesce($2, name),
    standby_ttl_seconds = CASE WHEN $3 THEN $4 ELSE standby_ttl_seconds END,
    archive_ttl_seconds = CASE WHEN $5 THEN $6 ELSE archive_ttl_seconds END,
    keep_awake_until = CASE WHEN $7 THEN $8 ELSE keep_awake_until END,
    keep_awake_reason = CASE WHEN $7 THEN NULL ELSE keep_awake_reason END,
    updated_at = $9
WHERE id = $1
RETURNING *, codehub_user_name(owner_id) AS owner;

-- name: mark_deleted
UPDATE workspaces
SET deleted_at = coalesce(deleted_at, $2), purge = purge OR $3, updated_at = $2, attention_at = $2
WHERE id = $1
RETURNING *, codehub_user_name(owner_id) AS owner;

-- name: mark_undeleted
UPDATE workspaces
SET deleted_at = NULL, purge = false, desired_state = $2, desired_by = $3, desired_at = $4, updated_at = $4,
    attention_at = $4
WHERE id = $1
RETURNING *, codehub_user_name(owner_id) AS owner;

-- name: mark_recovered
UPDATE workspaces
SET health_status = 'OK', error_info = NULL, failures = 0, updated_at = $2, attention_at = $2, archive_key = $3
WHERE id = $1
RETURNING *, codehub_user_name(owner_id) AS owner;

-- name: start_position
SELECT count(*) FROM workspaces
WHERE desired_state = 'RUNNING' AND observed_status IN ('PENDING', 'STANDBY') AND health_status = 'OK'
  AND deleted_at IS NULL AND operation <> 'STARTING' AND desired_at < $1;

-- name: add_history
INSERT INTO workspace_history (workspace_id, at, actor, code, data, from_state, to_state, took_seconds)
VALUES ($1, $2, codehub_actor_id($3), $4, codehub_data_with_ids($5), $6, $7, $8);

-- name: page_history
SELECT id, workspace_id, at, codehub_actor_name(actor) AS actor, code, codehub_data_with_names(data) AS data,
       from_state, to_state, took_seconds
FROM workspace_history
WHERE workspace_id = $1 AND id < $2 AND ($4::text[] IS NULL OR code = ANY ($4))
ORDER BY id DESC LIMIT $3;

-- name: due_to_run
-- What is under way, and what is to run. Apart from the rest: thousands that are to be stored away are in no one's way.
SELECT *, codehub_user_name(owner_id) AS owner FROM workspaces
WHERE attention_at <= $1 AND NOT (id = ANY ($2::text[])) AND coalesce(node, $4) = $4
  AND (operation <> 'NONE' OR (desired_state = 'RUNNING' AND deleted_at IS NULL))
ORDER BY attention_at, desired_at LIMIT $3;

-- name: due_deleted
SELECT *, codehub_user_name(owner_id) AS owner FROM workspaces
WHERE attention_at <= $1 AND NOT (id = ANY ($2::text[])) AND coalesce(node, $4) = $4
  AND operation = 'NONE' AND deleted_at IS NOT NULL
ORDER BY attention_at, desired_at LIMIT $3;

-- name: due_to_sleep
SELECT *, codehub_user_name(owner_id) AS owner FROM workspaces
WHERE attention_at <= $1 AND NOT (id = ANY ($2::text[])) AND coalesce(node, $4) = $4
  AND operation = 'NONE' AND desired_state <> 'RUNNING' AND deleted_at IS NULL
ORDER BY attention_at, desired_at LIMIT $3;

-- name: running
SELECT id FROM workspaces WHERE observed_status = 'RUNNING';

-- name: unreadable
-- Of these, of whose containers it cannot be said what they are.
SELECT *, codehub_user_name(owner_id) AS owner FROM workspaces
WHERE id = ANY ($1::text[]) AND NOT (id = ANY ($2::text[])) AND coalesce(node, $3) = $3;

-- name: sweep
-- A rotating look at volumes that nothing is done with, a bounded number at a time.
SELECT *, codehub_user_name(owner_id) AS owner FROM workspaces
WHERE observed_status IN ('STANDBY', 'RUNNING') AND operation = 'NONE' AND health_status = 'OK' AND id > $1
  AND NOT (id = ANY ($2::text[])) AND coalesce(node, $4) = $4
ORDER BY id LIMIT $3;

-- name: without_node
-- Of which it is not known where their files are: rows of an earlier version, or of a backup.
SELECT id, volume_generation FROM workspaces WHERE node IS NULL AND volume_generation IS NOT NULL ORDER BY id;

-- name: claim
UPDATE workspaces SET node = $1 WHERE id = ANY ($2::text[]) AND node IS NULL;

-- name: elsewhere
SELECT count(*) FROM workspaces WHERE node <> $1;

-- name: begin
UPDATE workspaces
SET operation = $2, op_id = $3, op_started_at = $4, updated_at = $4, attention_at = $4, progress = NULL,
    node = CASE WHEN $2 IN ('PROVISIONING', 'RESTORING') THEN $5 ELSE node END,
    archive_key = CASE WHEN $2 = 'RESTORING' THEN coalesce(restore_from, archive_key) ELSE archive_key END,
    restore_from = CASE WHEN $2 = 'RESTORING' THEN NULL ELSE restore_from END
WHERE id = $1 AND operation = 'NONE'
RETURNING *, codehub_user_name(owner_id) AS owner;

-- name: observe
-- What was seen, with whatever it ends: the operation, the error, the need to look again.
UPDATE workspaces
SET observed_status = $2, operation = $3, health_status = $4, error_info = $5, volume_generation = $6,
    volume_parked = $7, address = $8, progress = CASE WHEN $3 = 'NONE' THEN NULL ELSE progress END,
    attention_at = $9, updated_at = $10, failures = $13,
    node = CASE WHEN $6::text IS NULL THEN NULL ELSE coalesce(node, $14) END
WHERE id = $1 AND operation = $11 AND op_id IS NOT DISTINCT FROM $12
RETURNING *, codehub_user_name(owner_id) AS owner;

-- name: commit_archive
UPDATE workspaces SET archive_key = $3, updated_at = $4
WHERE id = $1 AND op_id = $2 AND operation = 'ARCHIVING'
RETURNING *, codehub_user_name(owner_id) AS owner;

-- name: note_progress
UPDATE workspaces SET progress = $3, updated_at = $4 WHERE id = $1 AND op_id = $2 AND operation <> 'NONE';

-- name: note_disk
-- Not `updated_at`: a figure is not a change that a decision could have missed.
UPDATE workspaces SET disk_bytes = coalesce($2, disk_bytes), disk_measured_at = $3 WHERE id = $1;

-- name: oldest_disk_figures
-- A home that nobody runs stays as it is: it is measured once, after what it was last in. One that could not be measured is
-- tried again.
SELECT id FROM workspaces
WHERE observed_status IN ('STANDBY', 'RUNNING')
  AND (disk_measured_at IS NULL
       OR (disk_measured_at < $1 AND (observed_status = 'RUNNING' OR disk_bytes IS NULL))
       OR (observed_status = 'STANDBY' AND disk_measured_at < phase_changed_at))
ORDER BY disk_measured_at NULLS FIRST LIMIT $2;

-- name: seen_by
-- What a user owns, and what others share with them. What lies in the trash is its owner's alone.
SELECT id FROM workspaces WHERE owner_id = (SELECT codehub_user_id($1)) AND emptied_at IS NULL
UNION ALL
SELECT w.id FROM workspace_shares s JOIN workspaces w ON w.id = s.workspace_id JOIN users u ON u.id = w.owner_id
WHERE s.user_id = (SELECT codehub_user_id($1)) AND u.deactivated_at IS NULL AND w.deleted_at IS NULL;

-- name: find_many
SELECT *, codehub_user_name(owner_id) AS owner FROM workspaces WHERE id = ANY ($1::text[]);

-- name: prune_history
DELETE FROM workspace_history WHERE id IN (SELECT id FROM workspace_history WHERE at < $1 ORDER BY at LIMIT $2);

-- name: note_failure
UPDATE workspaces
SET operation = $2, health_status = $3, error_info = $4, failures = $5, attention_at = $6, updated_at = $7,
    progress = CASE WHEN $2 = 'NONE' THEN NULL ELSE progress END
WHERE id = $1
RETURNING *, codehub_user_name(owner_id) AS owner;

-- name: clear_attention
UPDATE workspaces SET attention_at = NULL WHERE id = $1 RETURNING *, codehub_user_name(owner_id) AS owner;

-- name: next_due
SELECT min(attention_at) FROM workspaces WHERE attention_at IS NOT NULL AND NOT (id = ANY ($1::text[]))
  AND coalesce(node, $2) = $2;

-- name: owner_is_active
SELECT deactivated_at IS NULL FROM users WHERE name = $1;

-- name: hold_owner
-- As above; and a deactivation waits until this transaction has said what it adds.
SELECT deactivated_at IS NULL FROM users WHERE name = $1 FOR KEY SHARE;

-- name: lock_all_of
SELECT id FROM workspaces WHERE owner_id = (SELECT codehub_user_id($1)) AND deleted_at IS NULL ORDER BY id FOR UPDATE;

-- name: sleep_all_of
-- Also in the middle of an operation, and also what a timer's request keeps asleep: that one could be withdrawn.
WITH before AS (
    SELECT id, desired_state FROM workspaces
    WHERE owner_id = (SELECT codehub_user_id($1)) AND deleted_at IS NULL
      AND (desired_state = 'RUNNING' OR observed_status = 'RUNNING' OR keep_awake_until IS NOT NULL)
), slept AS (
    UPDATE workspaces w
    SET desired_state = CASE WHEN w.desired_state = 'RUNNING' THEN 'STANDBY' ELSE w.desired_state END,
        desired_by = $4, desired_at = $2::timestamptz, updated_at = $2, attention_at = $2,
        keep_awake_until = NULL, keep_awake_reason = NULL
    FROM before WHERE w.id = before.id
    RETURNING w.id, before.desired_state AS desired_before
)
INSERT INTO workspace_history (workspace_id, at, actor, code, from_state, to_state)
SELECT id, $2, codehub_actor_id($3), 'owner_deactivated', 'RUNNING', 'STANDBY' FROM slept WHERE desired_before = 'RUNNING';

-- name: end_shares_with
WITH ended AS (DELETE FROM workspace_shares WHERE user_id = (SELECT codehub_user_id($1)) RETURNING workspace_id)
INSERT INTO workspace_history (workspace_id, at, actor, code, data)
SELECT workspace_id, $2, codehub_actor_id($3), 'guest_deactivated', jsonb_build_object('user', codehub_user_id($1)) FROM ended;

-- name: trash_all_of
-- Also in the middle of an operation, which is carried on and looked at afterwards.
WITH trashed AS (
    UPDATE workspaces SET deleted_at = $2::timestamptz, updated_at = $2, attention_at = $2
    WHERE owner_id = (SELECT codehub_user_id($1)) AND deleted_at IS NULL
    RETURNING id, phase
)
INSERT INTO workspace_history (workspace_id, at, actor, code, from_state)
SELECT id, $2, codehub_actor_id($3), 'delete_requested', phase FROM trashed;

-- name: end_shares_of
DELETE FROM workspace_shares s USING workspaces w WHERE w.id = s.workspace_id AND w.owner_id = (SELECT codehub_user_id($1));

-- name: forget_shares
-- A share is made with a name that was typed: before there was a person of that name it lets nobody in.
DELETE FROM workspace_shares WHERE user_name = ANY ($1::text[]);

-- name: named_of
SELECT id, name FROM workspaces WHERE owner_id = $1;

-- name: forget_name
UPDATE workspaces SET name = $2 WHERE id = $1;

-- name: history_mentioning
SELECT h.id, h.data, h.actor = $1 OR w.owner_id = $1 AS about
FROM workspace_history h JOIN workspaces w ON w.id = h.workspace_id
WHERE h.data <> '{}' AND (h.actor = $1 OR w.owner_id = $1 OR h.data::text LIKE ANY ($2::text[]));

-- name: replace_history
UPDATE workspace_history SET data = $2 WHERE id = $1;

-- name: wake_controller
-- Sent only with a request for another state, so that the controller's own writes do not wake it.
SELECT pg_notify('codehub_requests', '');

-- name: routes_in_use
-- What runs or is about to: the proxy always has these in memory, the others when a client asks for them.
SELECT w.id, codehub_user_name(w.owner_id) AS owner, w.template, w.phase, w.operation, w.desired_state, w.address,
       w.deleted_at IS NOT NULL AS deleted, w.standby_ttl_seconds, codehub_guests(w.id, w.owner_id) AS guests,
       codehub_teachers(w.owner_id) AS teachers,
       events_newest() AS as_of
FROM workspaces w
WHERE w.observed_status = 'RUNNING'
   OR (w.health_status = 'OK' AND w.deleted_at IS NULL AND w.desired_state = 'RUNNING');

-- name: routes_of
SELECT w.id, codehub_user_name(w.owner_id) AS owner, w.template, w.phase, w.operation, w.desired_state, w.address,
       w.deleted_at IS NOT NULL AS deleted, w.standby_ttl_seconds, codehub_guests(w.id, w.owner_id) AS guests,
       codehub_teachers(w.owner_id) AS teachers,
       events_newest() AS as_of
FROM workspaces w
WHERE w.id = ANY ($1::text[]);

-- name: is_guest
-- A deactivated owner has no guests.
SELECT EXISTS (
    SELECT FROM workspace_shares s JOIN workspaces w ON w.id = s.workspace_id JOIN users u ON u.id = w.owner_id
    WHERE s.workspace_id = $1 AND s.user_id = (SELECT codehub_user_id($2)) AND u.deactivated_at IS NULL
);

-- name: add_share
INSERT INTO workspace_shares (workspace_id, user_name, user_id, created_at) VALUES ($1, $2, codehub_user_id($2), $3)
ON CONFLICT DO NOTHING;

-- name: count_shares
-- (of this workspace, of everything its owner shares with this person, whether it is shared with them already)
WITH shares AS (
    SELECT s.workspace_id, s.user_name = $3 OR s.user_id = (SELECT codehub_user_id($3)) AS with_them
    FROM workspace_shares s JOIN workspaces w ON w.id = s.workspace_id
    WHERE w.owner_id = (SELECT codehub_user_id($2))
)
SELECT count(*) FILTER (WHERE workspace_id = $1) AS of_workspace, count(*) FILTER (WHERE with_them) AS with_one,
       coalesce(bool_or(workspace_id = $1 AND with_them), false) AS there
FROM shares;

-- name: note_opened
UPDATE workspace_shares SET opened_at = $3 WHERE workspace_id = $1 AND user_id = (SELECT codehub_user_id($2)) AND opened_at IS NULL;

-- name: entered_since
SELECT EXISTS (
    SELECT FROM workspace_history WHERE workspace_id = $1 AND actor = codehub_actor_id($2) AND code = 'entered' AND at > $3
);

-- name: remove_share
DELETE FROM workspace_shares
WHERE workspace_id = $1
  AND (user_id = (SELECT codehub_user_id($2)) OR (user_name = $2 AND (user_id IS NULL OR codehub_user_id($2) IS NULL)));

-- name: page_shares
SELECT * FROM (
    SELECT coalesce(codehub_user_name(user_id), user_name) AS user_name, created_at, opened_at
    FROM workspace_shares WHERE workspace_id = $1
) AS named
WHERE user_name > $2
ORDER BY user_name
LIMIT $3;

-- name: page_shared_with
SELECT w.*, u.name AS owner FROM workspace_shares s JOIN workspaces w ON w.id = s.workspace_id JOIN users u ON u.id = w.owner_id
WHERE s.user_id = (SELECT codehub_user_id($1)) AND u.deactivated_at IS NULL AND w.deleted_at IS NULL AND w.observed_status <> 'DELETED' AND (w.created_at, w.id) > ($2, $3)
ORDER BY w.created_at, w.id
LIMIT $4;

-- name: usual_start_seconds
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY took_seconds)
FROM (SELECT took_seconds FROM workspace_history
      WHERE workspace_id = $1 AND code = 'started' AND took_seconds IS NOT NULL
      ORDER BY id DESC LIMIT 10) AS lately;

-- name: last_activity
SELECT last_access_at FROM workspaces WHERE id = $1;

-- name: names_of
SELECT id, name FROM workspaces WHERE id = ANY ($1::text[]);
