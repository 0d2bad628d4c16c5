-- What the coordinator could not do for one object, and when it tries again. Others of the same kind go on meanwhile.
CREATE TABLE setbacks (
    kind text NOT NULL,
    name text NOT NULL,
    failures integer NOT NULL DEFAULT 1,
    error text NOT NULL,
    since timestamptz NOT NULL,
    retry_at timestamptz NOT NULL,
    PRIMARY KEY (kind, name)
);
