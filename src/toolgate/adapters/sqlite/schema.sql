CREATE TABLE alembic_version (
  version_num VARCHAR(32) NOT NULL,
  CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE runs (
  project_id VARCHAR(128) NOT NULL,
  id CHAR(32) NOT NULL,
  name TEXT NOT NULL,
  created_at DATETIME NOT NULL,
  CONSTRAINT pk_runs PRIMARY KEY (project_id, id)
);
CREATE TABLE settings (
  name VARCHAR(64) NOT NULL,
  value TEXT NOT NULL,
  CONSTRAINT pk_settings PRIMARY KEY (name)
);
CREATE TABLE undo_records (
  project_id VARCHAR(128) NOT NULL,
  action_id CHAR(32) NOT NULL,
  call_id TEXT NOT NULL,
  tool_name VARCHAR(128) NOT NULL,
  state VARCHAR(16) NOT NULL,
  sealed_data BLOB NOT NULL,
  claimed_by TEXT,
  created_at DATETIME NOT NULL,
  expires_at DATETIME NOT NULL,
  CONSTRAINT pk_undo_records PRIMARY KEY (project_id, action_id)
);
CREATE INDEX ix_undo_records_expires_at ON undo_records (expires_at);
CREATE TABLE approval_requests (
  id CHAR(32) NOT NULL,
  project_id VARCHAR(128) NOT NULL,
  pipeline_run_id CHAR(32),
  action_id CHAR(32) NOT NULL,
  call_id TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  approval_message TEXT NOT NULL,
  status VARCHAR(8) NOT NULL,
  decided_by CHAR(32),
  decided_by_name TEXT,
  decided_at DATETIME,
  created_at DATETIME NOT NULL,
  expires_at DATETIME NOT NULL,
  digest VARCHAR(64) NOT NULL,
  detail TEXT NOT NULL,
  CONSTRAINT pk_approval_requests PRIMARY KEY (id),
  CONSTRAINT fk_approval_requests_project_id_pipeline_run_id FOREIGN KEY(project_id, pipeline_run_id) REFERENCES runs (project_id, id)
);
CREATE INDEX ix_approval_requests_action_id ON approval_requests (action_id);
CREATE INDEX ix_approval_requests_pipeline_run_id ON approval_requests (pipeline_run_id);
CREATE INDEX ix_approval_requests_project_id ON approval_requests (project_id);
CREATE INDEX ix_approval_requests_status ON approval_requests (status);
CREATE TABLE tool_executions (
  project_id VARCHAR(128) NOT NULL,
  id CHAR(32) NOT NULL,
  call_id TEXT NOT NULL,
  user_id CHAR(32),
  principal TEXT NOT NULL,
  session_id TEXT,
  pipeline_run_id CHAR(32),
  approval_id CHAR(32),
  tool_name VARCHAR(128) NOT NULL,
  tool_params TEXT,
  result TEXT,
  risk_level VARCHAR(20) NOT NULL,
  requires_approval BOOLEAN NOT NULL,
  status VARCHAR(50) NOT NULL,
  error VARCHAR(1000),
  error_type VARCHAR(100),
  execution_time_ms INTEGER,
  created_at DATETIME NOT NULL,
  started_at DATETIME,
  approved_at DATETIME,
  completed_at DATETIME,
  due_at DATETIME,
  version INTEGER NOT NULL,
  owner TEXT,
  detail TEXT NOT NULL,
  sealed_params BLOB,
  sealed_result BLOB,
  CONSTRAINT pk_tool_executions PRIMARY KEY (project_id, id),
  CONSTRAINT fk_tool_executions_project_id_pipeline_run_id FOREIGN KEY(project_id, pipeline_run_id) REFERENCES runs (project_id, id)
);
CREATE INDEX ix_tool_executions_created_at ON tool_executions (created_at);
CREATE INDEX ix_tool_executions_due_at ON tool_executions (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX ix_tool_executions_pipeline_run_id ON tool_executions (pipeline_run_id) WHERE pipeline_run_id IS NOT NULL;
CREATE INDEX ix_tool_executions_status ON tool_executions (status);
CREATE INDEX ix_tool_executions_tool_name ON tool_executions (tool_name);
CREATE TABLE "rate_uses" (
  id INTEGER NOT NULL,
  project_id VARCHAR(128) NOT NULL,
  "key" TEXT NOT NULL,
  at FLOAT NOT NULL,
  amount BIGINT DEFAULT 1 NOT NULL,
  CONSTRAINT pk_rate_uses PRIMARY KEY (id)
);
CREATE INDEX ix_rate_uses_project_id_key_at ON rate_uses (project_id, "key", at);
CREATE TABLE grants (
  id CHAR(32) NOT NULL,
  project_id VARCHAR(128) NOT NULL,
  tool_name VARCHAR(128) NOT NULL,
  requester TEXT NOT NULL,
  granted_by TEXT NOT NULL,
  created_at DATETIME NOT NULL,
  expires_at DATETIME NOT NULL,
  revoked_at DATETIME,
  uses_left INTEGER NOT NULL,
  version INTEGER NOT NULL,
  detail TEXT NOT NULL,
  CONSTRAINT pk_grants PRIMARY KEY (id)
);
CREATE INDEX ix_grants_project_id_tool_name ON grants (project_id, tool_name);
CREATE TABLE accounts (
  name VARCHAR(128) NOT NULL,
  kind VARCHAR(16) NOT NULL,
  acts_for TEXT,
  roles TEXT NOT NULL, told BIGINT, mark TEXT,
  CONSTRAINT pk_accounts PRIMARY KEY (name)
);
CREATE TABLE tokens (
  id VARCHAR(64) NOT NULL,
  account VARCHAR(128) NOT NULL,
  digest BLOB NOT NULL,
  used_as VARCHAR(16) NOT NULL,
  label TEXT NOT NULL,
  scope TEXT NOT NULL,
  created_at DATETIME NOT NULL,
  expires_at DATETIME,
  revoked_at DATETIME,
  parent VARCHAR(64), told BIGINT, mark TEXT,
  CONSTRAINT pk_tokens PRIMARY KEY (id),
  CONSTRAINT fk_tokens_account FOREIGN KEY(account) REFERENCES accounts (name),
  CONSTRAINT uq_tokens_digest UNIQUE (digest)
);
CREATE INDEX ix_tokens_parent ON tokens (parent);
CREATE TABLE conversations (
  project_id VARCHAR(128) NOT NULL,
  account VARCHAR(128) NOT NULL,
  id VARCHAR(128) NOT NULL,
  title TEXT NOT NULL,
  size INTEGER NOT NULL,
  created_at DATETIME NOT NULL,
  updated_at DATETIME NOT NULL,
  CONSTRAINT pk_conversations PRIMARY KEY (project_id, account, id)
);
CREATE TABLE messages (
  project_id VARCHAR(128) NOT NULL,
  id VARCHAR(64) NOT NULL,
  account VARCHAR(128) NOT NULL,
  conversation_id VARCHAR(128) NOT NULL,
  run_id VARCHAR(64) NOT NULL,
  position INTEGER NOT NULL,
  role VARCHAR(16) NOT NULL,
  created_at DATETIME NOT NULL,
  shown TEXT,
  sealed_content BLOB,
  CONSTRAINT pk_messages PRIMARY KEY (project_id, id),
  CONSTRAINT uq_messages_project_id_account_conversation_id_position UNIQUE (project_id, account, conversation_id, position)
);
CREATE TABLE agent_runs (
  project_id VARCHAR(128) NOT NULL,
  id VARCHAR(64) NOT NULL,
  account VARCHAR(128) NOT NULL,
  conversation_id VARCHAR(128) NOT NULL,
  message_id VARCHAR(64) NOT NULL,
  created_at DATETIME NOT NULL,
  status VARCHAR(16) NOT NULL,
  version INTEGER NOT NULL,
  owner TEXT,
  updated_at DATETIME NOT NULL,
  ended_at DATETIME,
  detail TEXT NOT NULL,
  CONSTRAINT pk_agent_runs PRIMARY KEY (project_id, id)
);
CREATE INDEX ix_agent_runs_status ON agent_runs (status);
CREATE INDEX ix_agent_runs_project_id_account_conversation_id ON agent_runs (project_id, account, conversation_id);
CREATE TABLE owners (
  owner TEXT NOT NULL,
  host TEXT NOT NULL,
  started_at DATETIME NOT NULL,
  alive_until DATETIME NOT NULL,
  CONSTRAINT pk_owners PRIMARY KEY (owner)
);
CREATE TABLE "chain_heads" (
  project_id VARCHAR(128) NOT NULL,
  seq BIGINT NOT NULL,
  hash BLOB NOT NULL,
  base_seq BIGINT DEFAULT 0 NOT NULL,
  base_hash BLOB,
  CONSTRAINT pk_chain_heads PRIMARY KEY (project_id)
);
CREATE INDEX ix_approval_requests_created_at_id ON approval_requests (created_at, id) WHERE status = 'pending';
CREATE TABLE sink_cursors (
  project_id VARCHAR(128) NOT NULL,
  sink VARCHAR(128) NOT NULL,
  seq BIGINT NOT NULL,
  owner TEXT,
  CONSTRAINT pk_sink_cursors PRIMARY KEY (project_id, sink)
);
CREATE TABLE "events" (
  position INTEGER NOT NULL,
  project_id VARCHAR(128) NOT NULL,
  seq BIGINT NOT NULL,
  type VARCHAR(64) NOT NULL,
  at DATETIME NOT NULL,
  call_id TEXT,
  frame BLOB NOT NULL,
  prev BLOB NOT NULL,
  hash BLOB NOT NULL,
  content BLOB,
  CONSTRAINT pk_events PRIMARY KEY (position),
  CONSTRAINT uq_events_project_id_seq UNIQUE (project_id, seq)
);
CREATE INDEX ix_events_call_id ON events (call_id);
CREATE TABLE large_params (
  project_id VARCHAR(128) NOT NULL,
  action_id CHAR(32) NOT NULL,
  call_id TEXT NOT NULL,
  tool_params TEXT,
  sealed_params BLOB NOT NULL,
  CONSTRAINT pk_large_params PRIMARY KEY (project_id, action_id)
);
CREATE TABLE large_undo (
  project_id VARCHAR(128) NOT NULL,
  action_id CHAR(32) NOT NULL,
  call_id TEXT NOT NULL,
  sealed_data BLOB NOT NULL,
  CONSTRAINT pk_large_undo PRIMARY KEY (project_id, action_id)
);
CREATE TABLE delegations (
  id CHAR(32) NOT NULL,
  project_id VARCHAR(128) NOT NULL,
  giver TEXT NOT NULL,
  delegate TEXT NOT NULL,
  created_at DATETIME NOT NULL,
  expires_at DATETIME NOT NULL,
  ended_at DATETIME,
  version INTEGER NOT NULL,
  detail TEXT NOT NULL,
  CONSTRAINT pk_delegations PRIMARY KEY (id)
);
CREATE INDEX ix_delegations_project_id_delegate ON delegations (project_id, delegate);
CREATE TABLE effect_keys (
  project_id VARCHAR(128) NOT NULL,
  effect_key TEXT NOT NULL,
  call_id TEXT NOT NULL,
  held_until DATETIME,
  CONSTRAINT pk_effect_keys PRIMARY KEY (project_id, effect_key)
);
