-- name: soon
-- Templates that a start may ask for soon, by why: of people's last used workspaces, and of what was started lately.
WITH people AS (
    SELECT 'offered' AS why, p.person AS user_id FROM waiting_places p
    WHERE p.event_id = 'lab' AND p.state IN ('offered', 'reserved')
    UNION
    SELECT 'lesson', m.user_id FROM class_schedules s
    JOIN class_members m ON m.class_id = s.class_id AND m.role = 'learner'
    WHERE s.due_at <= $2
      AND (s.for_all OR EXISTS (SELECT FROM class_schedule_learners l WHERE l.schedule_id = s.id AND l.user_id = m.user_id))
    UNION
    SELECT 'lesson', user_id FROM class_lesson_starts WHERE outcome IS NULL AND due_at <= $2
    UNION
    SELECT 'here', user_id FROM browser_sessions WHERE seen_at > $1 AND revoked_at IS NULL
)
SELECT p.why, w.template, count(*)::int AS starts FROM people p
CROSS JOIN LATERAL (
    SELECT template FROM workspaces
    WHERE owner_id = p.user_id AND deleted_at IS NULL AND emptied_at IS NULL
    ORDER BY last_access_at DESC, id LIMIT 1
) w
GROUP BY p.why, w.template
UNION ALL
SELECT 'started', template, count(*)::int FROM workspaces
WHERE desired_state = 'RUNNING' AND deleted_at IS NULL AND desired_at > $1
GROUP BY template;
