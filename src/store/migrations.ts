import type { Database } from "bun:sqlite";
import { ServiceError } from "../errors.ts";

/**
 * The schema's history: statement n takes a database from `user_version` n to n + 1. Entries are never
 * edited once released. The CHECKs repeat the rules of `jobs/transitions.ts`, so that a bug can't store a
 * state that has no meaning.
 */
const MIGRATIONS: string[] = [
  `CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    body_sha256 TEXT NOT NULL,
    task_kind TEXT NOT NULL,
    uses_sandbox INTEGER NOT NULL,
    needs_backend INTEGER NOT NULL,
    instance TEXT NOT NULL,
    options TEXT NOT NULL,
    stage TEXT NOT NULL CHECK (stage IN ('init', 'run', 'eval')),
    state TEXT NOT NULL CHECK (state IN ('pending', 'active', 'succeeded', 'failed', 'cancelled')),
    attempt INTEGER NOT NULL CHECK (attempt >= 1),
    crashes INTEGER NOT NULL,
    ending TEXT CHECK (ending IN ('cancel', 'deadline', 'shutdown')),
    limits TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    stage_deadline_ms INTEGER,
    deadline_ms INTEGER NOT NULL,
    init_queued_ms INTEGER NOT NULL,
    init_active_ms INTEGER NOT NULL,
    run_queued_ms INTEGER NOT NULL,
    run_active_ms INTEGER NOT NULL,
    eval_queued_ms INTEGER NOT NULL,
    eval_active_ms INTEGER NOT NULL,
    backend_id TEXT,
    outcome TEXT,
    error TEXT,
    reward REAL,
    verdict TEXT,
    finished_ms INTEGER,
    finished_seq INTEGER UNIQUE,
    CHECK ((state = 'active') = (stage_deadline_ms IS NOT NULL)),
    CHECK ((state IN ('succeeded', 'failed', 'cancelled')) = (finished_ms IS NOT NULL)),
    CHECK ((finished_ms IS NULL) = (finished_seq IS NULL)),
    CHECK ((state = 'succeeded') = (verdict IS NOT NULL)),
    CHECK ((reward IS NULL) = (verdict IS NULL)),
    CHECK ((state IN ('failed', 'cancelled')) = (error IS NOT NULL)),
    CHECK (state != 'succeeded' OR stage = 'eval')
  ) STRICT;
  CREATE INDEX jobs_pending ON jobs (stage, seq) WHERE state = 'pending';
  CREATE INDEX jobs_pending_deadline ON jobs (deadline_ms) WHERE state = 'pending';
  CREATE INDEX jobs_active ON jobs (seq) WHERE state = 'active';
  CREATE TABLE trajectories (
    job_seq INTEGER PRIMARY KEY REFERENCES jobs (seq),
    attempt INTEGER NOT NULL,
    record BLOB NOT NULL
  ) STRICT;
  CREATE TABLE backends (
    id TEXT PRIMARY KEY,
    url TEXT NOT NULL UNIQUE,
    model TEXT NOT NULL,
    api_key_env TEXT,
    added_ms INTEGER NOT NULL
  ) STRICT;`,
  `ALTER TABLE backends ADD COLUMN profile TEXT;`,
  `ALTER TABLE backends ADD COLUMN model_dir TEXT;`,
  `ALTER TABLE jobs ADD COLUMN isolation TEXT CHECK (isolation IN ('A', 'B'))`,
  `ALTER TABLE jobs ADD COLUMN num_attempts INTEGER NOT NULL DEFAULT 1;
  ALTER TABLE jobs ADD COLUMN failures TEXT;
  ALTER TABLE jobs ADD COLUMN not_before_ms INTEGER CHECK (not_before_ms IS NULL OR state = 'pending');
  DROP INDEX jobs_pending;
  CREATE INDEX jobs_claimable ON jobs (stage, seq) WHERE state = 'pending' AND not_before_ms IS NULL;
  CREATE INDEX jobs_delayed ON jobs (not_before_ms) WHERE not_before_ms IS NOT NULL;`,
  `ALTER TABLE jobs ADD COLUMN eval_from_record INTEGER NOT NULL DEFAULT 0;
   ALTER TABLE jobs ADD COLUMN rescore_of TEXT;
   CREATE INDEX jobs_rescores ON jobs (rescore_of) WHERE rescore_of IS NOT NULL;`,
  `CREATE TABLE batches (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    body_sha256 TEXT NOT NULL,
    options TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'complete', 'exhausted', 'failed', 'cancelled')),
    closed INTEGER NOT NULL,
    source TEXT,
    created_ms INTEGER NOT NULL,
    finished_ms INTEGER,
    error TEXT,
    CHECK ((state = 'running') = (finished_ms IS NULL)),
    CHECK ((state IN ('exhausted', 'failed', 'cancelled')) = (error IS NOT NULL))
  ) STRICT;
  CREATE TABLE groups (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    body_sha256 TEXT NOT NULL,
    batch_seq INTEGER REFERENCES batches (seq),
    position INTEGER,
    instance_key TEXT NOT NULL,
    instance TEXT NOT NULL,
    template TEXT NOT NULL,
    rules TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN
      ('waiting', 'running', 'carried', 'complete', 'pruned', 'ended', 'failed', 'cancelled')),
    informative INTEGER,
    delivered INTEGER,
    created_ms INTEGER NOT NULL,
    started_ms INTEGER,
    finished_ms INTEGER,
    error TEXT,
    CHECK ((state IN ('waiting', 'running', 'carried')) = (finished_ms IS NULL)),
    CHECK ((state IN ('complete', 'pruned')) = (informative IS NOT NULL)),
    CHECK (delivered IS NULL OR (informative = 1 AND batch_seq IS NOT NULL)),
    CHECK ((state IN ('ended', 'failed', 'cancelled')) = (error IS NOT NULL)),
    UNIQUE (batch_seq, position),
    UNIQUE (batch_seq, delivered)
  ) STRICT;
  CREATE INDEX groups_unfinished ON groups (state, seq) WHERE finished_ms IS NULL;
  CREATE INDEX groups_of_batch ON groups (batch_seq, state, position);
  CREATE TABLE instances (
    key TEXT PRIMARY KEY,
    data_source TEXT NOT NULL,
    groups INTEGER NOT NULL,
    informative INTEGER NOT NULL,
    rollouts INTEGER NOT NULL,
    reward_sum REAL NOT NULL,
    reward_squares REAL NOT NULL,
    tokens INTEGER NOT NULL,
    last_mean REAL NOT NULL,
    updated_ms INTEGER NOT NULL
  ) STRICT;
  ALTER TABLE jobs ADD COLUMN group_seq INTEGER REFERENCES groups (seq);
  ALTER TABLE jobs ADD COLUMN sample INTEGER CHECK ((sample IS NULL) = (group_seq IS NULL));
  ALTER TABLE jobs ADD COLUMN sampled_tokens INTEGER;
  CREATE INDEX jobs_of_group ON jobs (group_seq, seq) WHERE group_seq IS NOT NULL;`,
  `ALTER TABLE jobs ADD COLUMN client TEXT NOT NULL DEFAULT '';
  ALTER TABLE jobs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE jobs ADD COLUMN queue_key INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE jobs ADD COLUMN labels TEXT;
  ALTER TABLE jobs ADD COLUMN lease_ms INTEGER;
  ALTER TABLE jobs ADD COLUMN lease_until_ms INTEGER;
  ALTER TABLE jobs ADD COLUMN callback_url TEXT;
  ALTER TABLE jobs ADD COLUMN ending_reason TEXT;
  UPDATE jobs SET queue_key = created_ms;
  DROP INDEX jobs_claimable;
  CREATE INDEX jobs_claimable ON jobs (stage, client, queue_key, seq)
    WHERE state = 'pending' AND not_before_ms IS NULL;
  DROP INDEX jobs_pending_deadline;
  CREATE INDEX jobs_deadline ON jobs (deadline_ms) WHERE finished_ms IS NULL;
  CREATE INDEX jobs_leased ON jobs (lease_until_ms)
    WHERE lease_until_ms IS NOT NULL AND finished_ms IS NULL;
  DROP INDEX jobs_active;
  CREATE INDEX jobs_unfinished ON jobs (seq) WHERE finished_ms IS NULL;
  CREATE INDEX jobs_final ON jobs (state, seq) WHERE finished_ms IS NOT NULL;
  CREATE INDEX jobs_kind ON jobs (task_kind, seq);
  CREATE TABLE labels (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    job_seq INTEGER NOT NULL REFERENCES jobs (seq),
    PRIMARY KEY (name, value, job_seq)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX labels_of_job ON labels (job_seq);
  CREATE TABLE callbacks (
    job_seq INTEGER PRIMARY KEY REFERENCES jobs (seq),
    attempts INTEGER NOT NULL,
    due_ms INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX callbacks_due ON callbacks (due_ms);`,
  `ALTER TABLE backends ADD COLUMN routed INTEGER NOT NULL DEFAULT 0`,
  // The image is in the index, so that jobs whose image is fetched are passed over without being read.
  `ALTER TABLE jobs ADD COLUMN image TEXT;
  DROP INDEX jobs_claimable;
  CREATE INDEX jobs_claimable ON jobs (stage, client, queue_key, seq, image)
    WHERE state = 'pending' AND not_before_ms IS NULL;`,
  `CREATE TABLE weight_versions (
    ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
    version TEXT NOT NULL,
    announced_ms INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE weight_pause (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    mode TEXT NOT NULL CHECK (mode IN ('drain', 'abort', 'keep'))
  ) STRICT;
  ALTER TABLE backends ADD COLUMN leaving TEXT CHECK (leaving IN ('finish', 'move'))`,
  `ALTER TABLE jobs ADD COLUMN peak_memory_bytes INTEGER;
  ALTER TABLE jobs ADD COLUMN peak_processes INTEGER;`,
  `ALTER TABLE jobs ADD COLUMN visits TEXT`,
  `CREATE TABLE group_events (
    ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
    event TEXT NOT NULL,
    group_seq INTEGER REFERENCES groups (seq),
    batch_seq INTEGER REFERENCES batches (seq),
    CHECK ((group_seq IS NULL) != (batch_seq IS NULL))
  ) STRICT;
  CREATE INDEX batches_unfinished ON batches (state) WHERE finished_ms IS NULL;`,
  `CREATE TABLE paused_rollouts (
    job_seq INTEGER PRIMARY KEY REFERENCES jobs (seq),
    left_ms INTEGER NOT NULL,
    record BLOB
  ) STRICT;
  ALTER TABLE batches ADD COLUMN series TEXT;
  CREATE INDEX batches_of_series ON batches (series, seq) WHERE series IS NOT NULL;`,
];

/** Brings the schema to this version's. @throws ServiceError when a newer rolloutd wrote the file. */
export function migrate(db: Database): void {
  const { user_version: version } = db.query("PRAGMA user_version").get() as {
    user_version: number;
  };
  if (version > MIGRATIONS.length) {
    throw new ServiceError(
      "data_dir_unusable",
      `the database has schema ${version}; this rolloutd knows up to ${MIGRATIONS.length}`,
      { mend: "use the newer rolloutd that wrote it, or another --data-dir" },
    );
  }
  for (const [index, sql] of MIGRATIONS.entries()) {
    if (index < version) continue;
    db.transaction(() => {
      db.run(sql);
      db.run(`PRAGMA user_version = ${index + 1}`);
    }).immediate();
  }
}
