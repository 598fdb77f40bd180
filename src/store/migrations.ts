import type { Database } from "bun:sqlite";
import { ServiceError } from "../errors.ts";

/**
 * The schema's history: statement n takes a database from `user_version` n to n + 1. Entries are never
 * edited once released. The CHECKs repeat the rules of `jobs/transitions.ts`, so that a bug can't store a
 * state that has no meaning.
 */
export const MIGRATIONS: readonly string[] = [
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
  // Each change of a job writes its row anew and checks it, so the row keeps what the queue asks for and has one CHECK.
  `CREATE TABLE narrow_jobs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    task_kind TEXT NOT NULL,
    uses_sandbox INTEGER NOT NULL,
    needs_backend INTEGER NOT NULL,
    image TEXT,
    eval_from_record INTEGER NOT NULL,
    client TEXT NOT NULL,
    queue_key INTEGER NOT NULL,
    stage TEXT NOT NULL,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL CHECK (attempt >= 1),
    crashes INTEGER NOT NULL,
    ending TEXT CHECK (ending = 'cancel' OR ending = 'deadline' OR ending = 'shutdown'),
    created_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    deadline_ms INTEGER NOT NULL,
    stage_deadline_ms INTEGER,
    not_before_ms INTEGER,
    life TEXT NOT NULL,
    group_seq INTEGER REFERENCES groups (seq),
    sample INTEGER,
    rescore_of TEXT,
    lease_ms INTEGER,
    lease_until_ms INTEGER,
    callback_url TEXT,
    backend_id TEXT,
    isolation TEXT CHECK (isolation = 'A' OR isolation = 'B'),
    sampled_tokens INTEGER,
    peak_memory_bytes INTEGER,
    peak_processes INTEGER,
    error TEXT,
    reward REAL,
    verdict TEXT,
    finished_ms INTEGER,
    finished_seq INTEGER,
    CHECK ((sample IS NULL) = (group_seq IS NULL)),
    CHECK (stage = 'init' OR stage = 'run' OR stage = 'eval'),
    CHECK (CASE state
      WHEN 'pending' THEN
        coalesce(stage_deadline_ms, finished_ms, finished_seq, reward, verdict, error) IS NULL
      WHEN 'active' THEN stage_deadline_ms IS NOT NULL
        AND coalesce(not_before_ms, finished_ms, finished_seq, reward, verdict, error) IS NULL
      WHEN 'succeeded' THEN stage = 'eval' AND finished_ms IS NOT NULL AND finished_seq IS NOT NULL
        AND reward IS NOT NULL AND verdict IS NOT NULL
        AND coalesce(stage_deadline_ms, not_before_ms, error) IS NULL
      ELSE (state = 'failed' OR state = 'cancelled')
        AND finished_ms IS NOT NULL AND finished_seq IS NOT NULL AND error IS NOT NULL
        AND coalesce(stage_deadline_ms, not_before_ms, reward, verdict) IS NULL
    END)
  ) STRICT;
  CREATE TABLE job_bodies (
    job_seq INTEGER PRIMARY KEY REFERENCES jobs (seq),
    body_sha256 TEXT NOT NULL,
    instance TEXT NOT NULL,
    options TEXT NOT NULL,
    priority INTEGER NOT NULL,
    labels TEXT,
    outcome TEXT
  ) STRICT;
  INSERT INTO narrow_jobs SELECT
    seq, id, task_kind, uses_sandbox, needs_backend, image, eval_from_record, client, queue_key,
    stage, state, attempt, crashes, ending, created_ms, since_ms, deadline_ms, stage_deadline_ms,
    not_before_ms,
    json_object('numAttempts', num_attempts, 'limits', json(limits),
      'failures', json(coalesce(failures, '[]')), 'endingReason', ending_reason,
      'timings', json_object(
        'init', json_object('queuedMs', init_queued_ms, 'activeMs', init_active_ms),
        'run', json_object('queuedMs', run_queued_ms, 'activeMs', run_active_ms),
        'eval', json_object('queuedMs', eval_queued_ms, 'activeMs', eval_active_ms)),
      'visits', json(coalesce(visits, '[]'))),
    group_seq, sample, rescore_of, lease_ms, lease_until_ms, callback_url, backend_id, isolation,
    sampled_tokens, peak_memory_bytes, peak_processes, error, reward, verdict, finished_ms,
    finished_seq FROM jobs ORDER BY seq;
  INSERT INTO job_bodies
    SELECT seq, body_sha256, instance, options, priority, labels, outcome FROM jobs ORDER BY seq;
  DELETE FROM sqlite_sequence WHERE name = 'narrow_jobs';
  INSERT INTO sqlite_sequence SELECT 'narrow_jobs', seq FROM sqlite_sequence WHERE name = 'jobs';
  DROP TABLE jobs;
  ALTER TABLE narrow_jobs RENAME TO jobs;
  CREATE INDEX jobs_claimable ON jobs (stage, client, queue_key, seq, image)
    WHERE state = 'pending' AND not_before_ms IS NULL;
  CREATE INDEX jobs_delayed ON jobs (not_before_ms) WHERE not_before_ms IS NOT NULL;
  CREATE INDEX jobs_deadline ON jobs (deadline_ms) WHERE finished_ms IS NULL;
  CREATE INDEX jobs_leased ON jobs (lease_until_ms)
    WHERE lease_until_ms IS NOT NULL AND finished_ms IS NULL;
  CREATE INDEX jobs_unfinished ON jobs (seq) WHERE finished_ms IS NULL;
  CREATE INDEX jobs_final ON jobs (state, seq) WHERE finished_ms IS NOT NULL;
  CREATE UNIQUE INDEX jobs_finished ON jobs (finished_seq) WHERE finished_seq IS NOT NULL;
  CREATE INDEX jobs_kind ON jobs (task_kind, seq);
  CREATE INDEX jobs_of_group ON jobs (group_seq, seq) WHERE group_seq IS NOT NULL;
  CREATE INDEX jobs_rescores ON jobs (rescore_of) WHERE rescore_of IS NOT NULL;`,
  `CREATE TABLE paused_rollouts (
    job_seq INTEGER PRIMARY KEY REFERENCES jobs (seq),
    left_ms INTEGER NOT NULL,
    record BLOB
  ) STRICT;
  ALTER TABLE batches ADD COLUMN series TEXT;
  CREATE INDEX batches_of_series ON batches (series, seq) WHERE series IS NOT NULL;`,
  `CREATE TABLE past_turns (
    job_seq INTEGER NOT NULL REFERENCES jobs (seq) ON DELETE CASCADE,
    attempt INTEGER NOT NULL,
    turns TEXT NOT NULL,
    PRIMARY KEY (job_seq, attempt)
  ) STRICT, WITHOUT ROWID;`,
  `CREATE INDEX groups_finished ON groups (finished_ms) WHERE finished_ms IS NOT NULL;
  CREATE INDEX batches_finished ON batches (finished_ms) WHERE finished_ms IS NOT NULL;
  CREATE INDEX group_events_of_group ON group_events (group_seq);
  CREATE INDEX group_events_of_batch ON group_events (batch_seq);
  CREATE INDEX instances_updated ON instances (updated_ms);`,
  // Each submit paid for it, and a walk of the table in steps answers the same question.
  `DROP INDEX jobs_kind`,
  `ALTER TABLE weight_pause ADD COLUMN until_ms INTEGER NOT NULL DEFAULT 0`,
  `CREATE TABLE remains (
    group_seq INTEGER NOT NULL,
    sample INTEGER NOT NULL,
    job_seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    reward REAL,
    tokens INTEGER,
    PRIMARY KEY (group_seq, sample)
  ) STRICT, WITHOUT ROWID;`,
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
  if (version === MIGRATIONS.length) return;
  // Off, because a table that others refer to can't be replaced else; so it is looked afterwards.
  db.run("PRAGMA foreign_keys = OFF");
  for (const [index, sql] of MIGRATIONS.entries()) {
    if (index < version) continue;
    db.transaction(() => {
      db.run(sql);
      db.run(`PRAGMA user_version = ${index + 1}`);
      const [orphan] = db.query("PRAGMA foreign_key_check").values();
      if (orphan)
        throw new Error(`migration ${index + 1} leaves a row without its owner: ${orphan}`);
    }).immediate();
  }
  db.run("PRAGMA foreign_keys = ON");
}
