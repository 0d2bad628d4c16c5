-- name: add
INSERT INTO class_schedules (id, class_id, weekdays, local_time, time_zone, first_day, last_day, for_all, created_by,
                             created_at, done_through)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, codehub_actor_id($9), $10, $10);

-- name: add_learners
INSERT INTO class_schedule_learners (schedule_id, user_id) SELECT $1, unnest($2::text[]);

-- name: learner_ids
-- Of these names, those who are learners of the class.
SELECT u.id, u.name FROM class_members m JOIN users u ON u.id = m.user_id
WHERE m.class_id = $1 AND m.role = 'learner' AND u.name = ANY ($2::text[]);

-- name: count
SELECT count(*) FROM class_schedules WHERE class_id = $1;

-- name: find
SELECT id, class_id, weekdays, local_time, time_zone, first_day, last_day, for_all, codehub_actor_name(created_by) AS created_by,
       created_at, paused_at, done_through, skipped_through, due_at
FROM class_schedules WHERE id = $1;

-- name: lock
SELECT id, class_id, weekdays, local_time, time_zone, first_day, last_day, for_all, codehub_actor_name(created_by) AS created_by,
       created_at, paused_at, done_through, skipped_through, due_at
FROM class_schedules WHERE id = $1 FOR UPDATE;

-- name: page
SELECT id, class_id, weekdays, local_time, time_zone, first_day, last_day, for_all, codehub_actor_name(created_by) AS created_by,
       created_at, paused_at, done_through, skipped_through, due_at
FROM class_schedules WHERE class_id = $1 AND (created_at, id) > ($2, $3)
ORDER BY created_at, id
LIMIT $4;

-- name: save
UPDATE class_schedules SET paused_at = $2, done_through = $3, skipped_through = $4, due_at = $5 WHERE id = $1;

-- name: delete
DELETE FROM class_schedules WHERE id = $1;

-- name: wake
SELECT pg_notify('codehub_schedules', '');

-- name: of_class
SELECT title, archived_at IS NOT NULL AS archived FROM classes WHERE id = $1;

-- name: due
SELECT id FROM class_schedules WHERE due_at <= $1 ORDER BY due_at LIMIT $2;

-- name: due_starts
SELECT schedule_id, begins_at, user_id FROM class_lesson_starts
WHERE outcome IS NULL AND due_at <= $1 ORDER BY due_at LIMIT $2;

-- name: next_due
SELECT least((SELECT min(due_at) FROM class_schedules WHERE due_at IS NOT NULL),
             (SELECT min(due_at) FROM class_lesson_starts WHERE outcome IS NULL));

-- name: learners
-- Whom a schedule is for, or one person ($2), with the workspace that each used last.
WITH named AS (
    SELECT m.user_id FROM class_schedules s JOIN class_members m ON m.class_id = s.class_id AND m.role = 'learner'
    WHERE s.id = $1 AND s.for_all AND $2::text IS NULL
    UNION ALL
    SELECT l.user_id FROM class_schedules s JOIN class_schedule_learners l ON l.schedule_id = s.id
    WHERE s.id = $1 AND NOT s.for_all AND $2::text IS NULL
    UNION ALL
    SELECT $2::text WHERE $2::text IS NOT NULL
)
SELECT u.id AS user_id, u.name, u.display_name, u.deactivated_at IS NULL AS active,
       u.role = 'learner' AND EXISTS (
           SELECT FROM class_schedules s JOIN classes k ON k.id = s.class_id AND k.archived_at IS NULL
           JOIN class_members m ON m.class_id = k.id AND m.role = 'learner'
           WHERE s.id = $1 AND m.user_id = u.id) AS attends,
       w.id AS workspace_id, w.name AS workspace_name, w.template, w.phase
FROM named n JOIN users u ON u.id = n.user_id
LEFT JOIN LATERAL (
    SELECT id, name, template, phase FROM workspaces
    WHERE owner_id = u.id AND deleted_at IS NULL AND emptied_at IS NULL
    ORDER BY last_access_at DESC, id LIMIT 1
) w ON true
ORDER BY u.name;

-- name: add_lesson
-- None: it was prepared before.
INSERT INTO class_lessons (schedule_id, begins_at, missed) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING begins_at;

-- name: add_starts
INSERT INTO class_lesson_starts (schedule_id, begins_at, user_id, due_at)
SELECT $1, $2, s.user_id, s.due_at FROM unnest($3::text[], $4::timestamptz[]) AS s (user_id, due_at);

-- name: lock_start
SELECT user_id FROM class_lesson_starts
WHERE schedule_id = $1 AND begins_at = $2 AND user_id = $3 AND outcome IS NULL FOR UPDATE;

-- name: put_off
UPDATE class_lesson_starts SET due_at = $4 WHERE schedule_id = $1 AND begins_at = $2 AND user_id = $3;

-- name: settle
UPDATE class_lesson_starts SET outcome = $4, workspace_id = $5 WHERE schedule_id = $1 AND begins_at = $2 AND user_id = $3;

-- name: cancel
-- What is still to be started for lessons until then.
UPDATE class_lesson_starts SET outcome = 'canceled' WHERE schedule_id = $1 AND begins_at <= $2 AND outcome IS NULL;

-- name: last_lesson
SELECT begins_at, missed FROM class_lessons WHERE schedule_id = $1 ORDER BY begins_at DESC LIMIT 1;

-- name: starts
SELECT u.name, u.display_name, s.outcome, s.workspace_id
FROM class_lesson_starts s JOIN users u ON u.id = s.user_id
WHERE s.schedule_id = $1 AND s.begins_at = $2
ORDER BY u.name;

-- name: forget_learner
DELETE FROM class_schedule_learners WHERE user_id = $1;

-- name: forget_starts
DELETE FROM class_lesson_starts WHERE user_id = $1;

-- name: prune
DELETE FROM class_lessons
WHERE (schedule_id, begins_at) IN (SELECT schedule_id, begins_at FROM class_lessons WHERE begins_at < $1 ORDER BY begins_at LIMIT $2);
