-- A run that resumes another one reads what was saved before it, instead of copying it: runs are for ever, copies too.
-- Runs from before have copies of their own, and inherit nothing.
ALTER TABLE session_runs
    ADD COLUMN inherits_from text REFERENCES session_runs ON DELETE RESTRICT,  -- has saved the last step before `first_step`
    ADD COLUMN first_step int NOT NULL DEFAULT 0 CHECK (first_step >= 0),  -- what was saved before it is the other run's
    ADD COLUMN snapshot_bytes bigint NOT NULL DEFAULT 0 CHECK (snapshot_bytes >= 0),  -- of all steps, the inherited ones too
    ADD CONSTRAINT session_runs_inherit CHECK ((inherits_from IS NULL) = (first_step = 0));
