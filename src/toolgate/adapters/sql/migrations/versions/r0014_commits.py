"""Committing many changes in one round trip: a function of the server's, and the commits it made of late.

Two indexes that nobody needs are dropped, too.

`toolgate_commit` writes rows, numbers and chains their events and commits, all in one statement. Each column of many
rows comes as one text, whose values `toolgate_unpack` takes apart. The lock of a project is taken when its rows are
written and held only while its events are numbered and committed. `commits` holds the id of each commit for a while, so
that one whose answer was lost can be looked up.
"""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_UNPACK = """
CREATE FUNCTION toolgate_unpack(packed text) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT (string_to_array(packed, chr(31), chr(30)))[2:] $$
"""
_COMMIT = r"""
CREATE FUNCTION toolgate_commit(
  p_id uuid, p_projects text, p_mode text, p_written text, p_key text, p_locks int[], p_untold text[], p_runs text[],
  p_inserts text[], p_updates text[], p_params text[], p_approvals text[], p_undos text[], p_events text[],
  OUT refused int[], OUT told int[], OUT last_seq bigint
) LANGUAGE plpgsql AS $body$
DECLARE
  none int[];
  number int;
  event record;
  project text;
  prior bytea;
  leaf bytea;
  node bytea;
  seqs bigint[] := '{}';
  frames bytea[] := '{}';
  priors bytea[] := '{}';
  nodes bytea[] := '{}';
BEGIN
  refused := '{}';
  told := '{}';
  last_seq := 0;
  PERFORM set_config('toolgate.projects', p_projects, true), set_config('synchronous_commit', 'on', true);
  INSERT INTO commits (id) VALUES (p_id);
  PERFORM pg_advisory_xact_lock_shared(29800, 0);
  IF NOT EXISTS (
    SELECT 1 FROM (SELECT 1) AS one LEFT JOIN settings AS m ON m.name='mode' LEFT JOIN settings AS k ON k.name='keys'
    WHERE m.value IS NOT DISTINCT FROM p_mode AND m.xmin::text IS NOT DISTINCT FROM p_written
      AND p_key = ANY (string_to_array(k.value, ' '))
  ) THEN
    RAISE EXCEPTION 'the mode was changed, or the key was forgotten' USING ERRCODE='TG001';
  END IF;

  IF cardinality(p_untold) > 0 THEN
    SELECT coalesce(array_agg(DISTINCT v.change), '{}') INTO told
    FROM unnest(
      toolgate_unpack(p_untold[1])::int[], toolgate_unpack(p_untold[2]), toolgate_unpack(p_untold[3]),
      toolgate_unpack(p_untold[4])
    ) AS v(change, project_id, call_id, names)
    CROSS JOIN LATERAL (SELECT e.project_id, e.type FROM events AS e WHERE e.call_id=v.call_id OFFSET 0) AS e
    WHERE e.project_id=v.project_id AND e.type = ANY (string_to_array(v.names, ','));
    refused := told;
  END IF;

  IF cardinality(p_runs) > 0 THEN
    INSERT INTO runs (id, project_id, name, created_at)
    SELECT v.id, v.project_id, v.name::json #>> '{}', v.created_at::timestamp AT TIME ZONE 'UTC'
    FROM unnest(
      toolgate_unpack(p_runs[1])::int[], toolgate_unpack(p_runs[2])::uuid[], toolgate_unpack(p_runs[3]),
      toolgate_unpack(p_runs[4]), toolgate_unpack(p_runs[5])
    ) AS v(change, id, project_id, name, created_at)
    WHERE v.change <> ALL (refused) ON CONFLICT DO NOTHING;
  END IF;

  IF cardinality(p_inserts) > 0 THEN
    WITH v AS (
      SELECT * FROM unnest(
      toolgate_unpack(p_inserts[1])::int[], toolgate_unpack(p_inserts[2]),
      toolgate_unpack(p_inserts[3])::uuid[], toolgate_unpack(p_inserts[4]),
      toolgate_unpack(p_inserts[5])::uuid[], toolgate_unpack(p_inserts[6]), toolgate_unpack(p_inserts[7]),
      toolgate_unpack(p_inserts[8])::uuid[], toolgate_unpack(p_inserts[9]), toolgate_unpack(p_inserts[10]),
      toolgate_unpack(p_inserts[11]), toolgate_unpack(p_inserts[12]), toolgate_unpack(p_inserts[13])::uuid[],
      toolgate_unpack(p_inserts[14]), toolgate_unpack(p_inserts[15]), toolgate_unpack(p_inserts[16])::bool[],
      toolgate_unpack(p_inserts[17]), toolgate_unpack(p_inserts[18]), toolgate_unpack(p_inserts[19]),
      toolgate_unpack(p_inserts[20])::bigint[], toolgate_unpack(p_inserts[21]), toolgate_unpack(p_inserts[22]),
      toolgate_unpack(p_inserts[23]), toolgate_unpack(p_inserts[24]), toolgate_unpack(p_inserts[25])::int[],
      toolgate_unpack(p_inserts[26]), toolgate_unpack(p_inserts[27]), toolgate_unpack(p_inserts[28])
      ) AS v(
      change, project_id, id, call_id, user_id, principal, session_id, pipeline_run_id, tool_name, created_at,
      tool_params, sealed_params, approval_id, result, risk_level, requires_approval, status, error,
      error_type, execution_time_ms, started_at, approved_at, completed_at, due_at, version, owner, detail,
      sealed_result
      ) WHERE v.change <> ALL (refused)
    ), written AS (
      INSERT INTO tool_executions (
      project_id, id, call_id, user_id, principal, session_id, pipeline_run_id, tool_name, created_at,
      tool_params, sealed_params, approval_id, result, risk_level, requires_approval, status, error,
      error_type, execution_time_ms, started_at, approved_at, completed_at, due_at, version, owner, detail,
      sealed_result
      ) SELECT
      v.project_id, v.id, v.call_id, v.user_id, v.principal, v.session_id, v.pipeline_run_id, v.tool_name,
      v.created_at::timestamp AT TIME ZONE 'UTC', v.tool_params::json, decode(v.sealed_params, 'hex'),
      v.approval_id, v.result::json, v.risk_level, v.requires_approval, v.status, left(v.error, 1000),
      left(v.error_type, 100), least(v.execution_time_ms, 2147483647)::int,
      v.started_at::timestamp AT TIME ZONE 'UTC', v.approved_at::timestamp AT TIME ZONE 'UTC',
      v.completed_at::timestamp AT TIME ZONE 'UTC', v.due_at::timestamp AT TIME ZONE 'UTC', v.version, v.owner,
      v.detail::json, decode(v.sealed_result, 'hex')
      FROM v ON CONFLICT DO NOTHING RETURNING project_id, id
    )
    SELECT array_agg(v.change) INTO none FROM v
    WHERE NOT EXISTS (SELECT 1 FROM written AS w WHERE w.project_id=v.project_id AND w.id=v.id);
    refused := refused || coalesce(none, '{}');
  END IF;

  IF cardinality(p_updates) > 0 THEN
    WITH v AS (
      SELECT * FROM unnest(
      toolgate_unpack(p_updates[1])::int[], toolgate_unpack(p_updates[2])::uuid[],
      toolgate_unpack(p_updates[3]), toolgate_unpack(p_updates[4]), toolgate_unpack(p_updates[5])::bool[],
      toolgate_unpack(p_updates[6]), toolgate_unpack(p_updates[7]), toolgate_unpack(p_updates[8]),
      toolgate_unpack(p_updates[9])::bigint[], toolgate_unpack(p_updates[10]), toolgate_unpack(p_updates[11]),
      toolgate_unpack(p_updates[12]), toolgate_unpack(p_updates[13]), toolgate_unpack(p_updates[14])::int[],
      toolgate_unpack(p_updates[15]), toolgate_unpack(p_updates[16]), toolgate_unpack(p_updates[17]),
      toolgate_unpack(p_updates[18]), toolgate_unpack(p_updates[19])::uuid[],
      toolgate_unpack(p_updates[20])::int[]
      ) AS v(
      change, approval_id, result, risk_level, requires_approval, status, error, error_type, execution_time_ms,
      started_at, approved_at, completed_at, due_at, version, owner, detail, sealed_result, project_id, id,
      expected
      ) WHERE v.change <> ALL (refused)
    ), written AS (
      UPDATE tool_executions AS t SET
      approval_id=v.approval_id, result=v.result::json, risk_level=v.risk_level,
      requires_approval=v.requires_approval, status=v.status, error=left(v.error, 1000),
      error_type=left(v.error_type, 100), execution_time_ms=least(v.execution_time_ms, 2147483647)::int,
      started_at=v.started_at::timestamp AT TIME ZONE 'UTC',
      approved_at=v.approved_at::timestamp AT TIME ZONE 'UTC',
      completed_at=v.completed_at::timestamp AT TIME ZONE 'UTC', due_at=v.due_at::timestamp AT TIME ZONE 'UTC',
      version=v.version, owner=v.owner, detail=v.detail::json, sealed_result=decode(v.sealed_result, 'hex')
      FROM v WHERE t.project_id=v.project_id AND t.id=v.id AND t.version=v.expected
      RETURNING v.change
    )
    SELECT array_agg(v.change) INTO none FROM v WHERE v.change NOT IN (SELECT w.change FROM written AS w);
    refused := refused || coalesce(none, '{}');
  END IF;

  IF cardinality(p_params) > 0 THEN
    UPDATE tool_executions AS t SET
      tool_params=v.tool_params::json, sealed_params=decode(v.sealed_params, 'hex')
    FROM unnest(
      toolgate_unpack(p_params[1])::int[], toolgate_unpack(p_params[2]), toolgate_unpack(p_params[3]),
      toolgate_unpack(p_params[4]), toolgate_unpack(p_params[5])::uuid[]
    ) AS v(change, tool_params, sealed_params, project_id, id)
    WHERE t.project_id=v.project_id AND t.id=v.id AND v.change <> ALL (refused);
  END IF;

  IF cardinality(p_approvals) > 0 THEN
    INSERT INTO approval_requests (
      id, project_id, pipeline_run_id, action_id, call_id, tool_name, approval_message, created_at, digest,
      status, decided_by, decided_by_name, decided_at, expires_at, detail
    ) SELECT
      v.id, v.project_id, v.pipeline_run_id, v.action_id, v.call_id, v.tool_name,
      v.approval_message::json #>> '{}', v.created_at::timestamp AT TIME ZONE 'UTC', v.digest,
      v.status::approval_status, v.decided_by, v.decided_by_name::json #>> '{}',
      v.decided_at::timestamp AT TIME ZONE 'UTC', v.expires_at::timestamp AT TIME ZONE 'UTC', v.detail::json
    FROM unnest(
      toolgate_unpack(p_approvals[1])::int[], toolgate_unpack(p_approvals[2])::uuid[],
      toolgate_unpack(p_approvals[3]), toolgate_unpack(p_approvals[4])::uuid[],
      toolgate_unpack(p_approvals[5])::uuid[], toolgate_unpack(p_approvals[6]),
      toolgate_unpack(p_approvals[7]), toolgate_unpack(p_approvals[8]), toolgate_unpack(p_approvals[9]),
      toolgate_unpack(p_approvals[10]), toolgate_unpack(p_approvals[11]),
      toolgate_unpack(p_approvals[12])::uuid[], toolgate_unpack(p_approvals[13]),
      toolgate_unpack(p_approvals[14]), toolgate_unpack(p_approvals[15]), toolgate_unpack(p_approvals[16])
    ) AS v(
      change, id, project_id, pipeline_run_id, action_id, call_id, tool_name, approval_message, created_at,
      digest, status, decided_by, decided_by_name, decided_at, expires_at, detail
    ) WHERE v.change <> ALL (refused)
    ON CONFLICT (id) DO UPDATE SET
      status=excluded.status, decided_by=excluded.decided_by, decided_by_name=excluded.decided_by_name,
      decided_at=excluded.decided_at, expires_at=excluded.expires_at, detail=excluded.detail;
  END IF;

  IF cardinality(p_undos) > 0 THEN
    INSERT INTO undo_records (
      project_id, action_id, call_id, tool_name, state, sealed_data, claimed_by, created_at, expires_at
    ) SELECT
      v.project_id, v.action_id, v.call_id, v.tool_name, v.state, decode(v.sealed_data, 'hex'), v.claimed_by,
      v.created_at::timestamp AT TIME ZONE 'UTC', v.expires_at::timestamp AT TIME ZONE 'UTC'
    FROM unnest(
      toolgate_unpack(p_undos[1])::int[], toolgate_unpack(p_undos[2]), toolgate_unpack(p_undos[3])::uuid[],
      toolgate_unpack(p_undos[4]), toolgate_unpack(p_undos[5]), toolgate_unpack(p_undos[6]),
      toolgate_unpack(p_undos[7]), toolgate_unpack(p_undos[8]), toolgate_unpack(p_undos[9]),
      toolgate_unpack(p_undos[10])
    ) AS v(
      change, project_id, action_id, call_id, tool_name, state, sealed_data, claimed_by, created_at,
      expires_at
    ) WHERE v.change <> ALL (refused)
    ON CONFLICT (project_id, action_id) DO UPDATE SET
      call_id=excluded.call_id, tool_name=excluded.tool_name, state=excluded.state,
      sealed_data=excluded.sealed_data, claimed_by=excluded.claimed_by, created_at=excluded.created_at,
      expires_at=excluded.expires_at;
  END IF;

  IF cardinality(p_events) = 0 THEN
    RETURN;
  END IF;
  FOREACH number IN ARRAY p_locks LOOP
    PERFORM pg_advisory_xact_lock(29799, number);
  END LOOP;
  FOR event IN
    SELECT v.project_id, v.before, v.after FROM unnest(
      toolgate_unpack(p_events[1])::int[], toolgate_unpack(p_events[2]), toolgate_unpack(p_events[6]),
      toolgate_unpack(p_events[7])
    ) WITH ORDINALITY AS v(change, project_id, before, after, place)
    WHERE v.change <> ALL (refused) ORDER BY v.project_id COLLATE "C", v.place
  LOOP
    IF project IS DISTINCT FROM event.project_id THEN
      project := event.project_id;
      SELECT h.seq, h.hash INTO last_seq, node FROM chain_heads AS h WHERE h.project_id=project;
      IF NOT FOUND THEN
        last_seq := 0;
        node := sha256(convert_to('toolgate-chain-2', 'UTF8') || '\x00'::bytea || convert_to(project, 'UTF8'));
      END IF;
    END IF;
    last_seq := last_seq + 1;
    prior := node;
    leaf := convert_to(event.before || last_seq || event.after, 'UTF8');
    node := sha256('\x01'::bytea || prior || sha256('\x00'::bytea || leaf));
    seqs := seqs || last_seq;
    frames := frames || leaf;
    priors := priors || prior;
    nodes := nodes || node;
  END LOOP;
  IF cardinality(seqs) = 0 THEN
    RETURN;
  END IF;
  WITH v AS (
    SELECT row_number() OVER (ORDER BY v.project_id COLLATE "C", v.place) AS n, v.* FROM unnest(
      toolgate_unpack(p_events[1])::int[], toolgate_unpack(p_events[2]), toolgate_unpack(p_events[3]),
      toolgate_unpack(p_events[4]), toolgate_unpack(p_events[5]), toolgate_unpack(p_events[8])
    ) WITH ORDINALITY AS v(change, project_id, type, at, call_id, content, place)
    WHERE v.change <> ALL (refused)
  ), written AS (
    INSERT INTO events (project_id, seq, type, at, call_id, frame, content, prev, hash)
    SELECT v.project_id, seqs[v.n], v.type, v.at::timestamp AT TIME ZONE 'UTC', v.call_id, frames[v.n],
      decode(v.content, 'hex'), priors[v.n], nodes[v.n]
    FROM v ORDER BY v.n
  )
  INSERT INTO chain_heads (project_id, seq, hash)
  SELECT DISTINCT ON (v.project_id) v.project_id, seqs[v.n], nodes[v.n] FROM v ORDER BY v.project_id, v.n DESC
  ON CONFLICT (project_id) DO UPDATE SET seq=excluded.seq, hash=excluded.hash;
END
$body$
"""


def upgrade() -> None:
    # The key of the table begins with the project, and nobody looks for calls by their user alone. On PostgreSQL the
    # first was worse than useless: where it was taken instead of the key, a change looked at all rows of its project.
    op.drop_index("ix_tool_executions_project_id", table_name="tool_executions")
    op.drop_index("ix_tool_executions_user_id", table_name="tool_executions")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE TABLE commits (id uuid PRIMARY KEY, is_void boolean NOT NULL DEFAULT false)")
        op.execute(_UNPACK)
        op.execute(_COMMIT)


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION toolgate_commit")
        op.execute("DROP FUNCTION toolgate_unpack")
        op.execute("DROP TABLE commits")
    op.create_index("ix_tool_executions_user_id", "tool_executions", ["user_id"])
    op.create_index("ix_tool_executions_project_id", "tool_executions", ["project_id"])
