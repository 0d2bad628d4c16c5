-- name: tables
-- Every table of ours except $1, with what its COPY reads: columns that are not generated, in the primary key's order.
-- Text is sorted by bytes, because two machines need not agree on a language's order.
SELECT c.relname::text AS name, pg_table_size(c.oid) AS size,
       array_agg(a.attname::text ORDER BY a.attnum) AS columns,
       string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) AS selection,
       string_agg(
           quote_ident(a.attname) || CASE WHEN a.attcollation <> 0 THEN ' COLLATE "C"' ELSE '' END,
           ', ' ORDER BY array_position(i.indkey::int2[], a.attnum)
       ) FILTER (WHERE a.attnum = ANY (i.indkey)) AS ordering
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE c.relnamespace = 'public'::regnamespace
  AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND c.relname <> ALL ($1::text[])
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
GROUP BY c.oid, c.relname
ORDER BY c.relname;

-- name: references
SELECT child.relname::text AS child, parent.relname::text AS parent
FROM pg_constraint k
JOIN pg_class child ON child.oid = k.conrelid
JOIN pg_class parent ON parent.oid = k.confrelid
WHERE k.contype = 'f' AND child.relnamespace = 'public'::regnamespace;

-- name: sequences
SELECT c.relname::text AS name, quote_ident(c.relname) AS quoted, s.seqincrement AS step
FROM pg_sequence s
JOIN pg_class c ON c.oid = s.seqrelid
WHERE c.relnamespace = 'public'::regnamespace
ORDER BY c.relname;

-- name: company
-- Processes of CodeHub other than this one that are connected to this database.
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name IN ('codehub', 'codehub-listener');

-- name: archives
-- Every archive that its owner may want back.
SELECT key, max(size)::bigint AS size FROM (
    SELECT p.archive_key AS key, p.size FROM restore_points p JOIN workspaces w ON w.id = p.workspace_id WHERE NOT w.purge
    UNION ALL
    SELECT w.archive_key, 0 FROM workspaces w WHERE w.archive_key IS NOT NULL AND NOT w.purge
) AS wanted GROUP BY key ORDER BY key;

-- name: homes
SELECT id, volume_generation, coalesce(disk_bytes, 0) AS size FROM workspaces
WHERE volume_generation IS NOT NULL AND NOT purge AND emptied_at IS NULL
  AND (observed_status IN ('STANDBY', 'RUNNING') OR volume_parked)
ORDER BY id;

-- name: rename_platform
-- What comes back from a backup is another platform: it collects nothing in the old one's object store unasked.
UPDATE platform SET id = gen_random_uuid()::text;

-- name: forget_nodes
-- The coordinator that starts next finds out which of these files it sees.
UPDATE workspaces SET node = NULL WHERE node IS NOT NULL;
