// @ts-check
/** Runs: which there were; and one of them as a tree of calls, with undoing it all after a look at what that would do. */

import { attempt, get, may, post, wordsOf } from "../api.js";
import { stopButton } from "../brakes.js";
import { h, link, list, signal } from "../core.js";
import { ago, milliseconds, said, statusBadge, time, visible } from "../format.js";
import { show } from "../keyboard.js";
import { toast } from "../notify.js";
import { callLink, distinct, empty, heading, loaded, section, shortId, soon, trouble, whoOf } from "../parts.js";
import { onEvents } from "../store.js";

/** @typedef {import("../parts.js").Call} Call */
/** @typedef {{ run_id: string, calls: number, is_partial: boolean, statuses: Record<string, number>, tools: string[],
 *   requester: string, user: string | null, started_at: string, last_at: string }} Run */
/** @typedef {{ tool_id: string, tool_name: string, step: string, reason: string, unchecked: boolean }} UndoStep */

const MOST = 1000;

/** How many calls ended how. @param {Record<string, number>} statuses */
function tally(statuses) {
  return Object.entries(statuses).map(([status, count]) => h("span", { class: "ended" }, statusBadge(status), count > 1 ? ` ×${count}` : ""));
}

/** @param {import("../core.js").Signal<Run>} run */
function runRow(run) {
  const shown = distinct(() => run.value);
  return h("li", { class: "line-item" }, h("a", { class: "cells", href: link("run", run.peek().run_id) },
    h("span", { class: "when" }, () => ago(shown.value.last_at)),
    h("span", { class: "main" }, h("b", null, () => `${shown.value.calls}${shown.value.is_partial ? "+" : ""} ${shown.value.calls === 1 ? "call" : "calls"}`),
      h("span", { class: "what" }, () => said(shown.value.tools.join(", ")))),
    h("span", { class: "side" }, h("span", null, () => tally(shown.value.statuses)), h("span", { class: "who" }, said(whoOf(run.peek()))))));
}

function runs() {
  const older = signal(/** @type {Run[]} */ ([]));
  const after = signal(/** @type {string | null} */ (null));
  const { value, problem, refresh } = loaded(async () => {
    const found = await get("runs");
    if (!older.peek().length) after.value = found.next;
    return /** @type {Run[]} */ (found.runs);
  });
  onEvents(soon(refresh, 800));
  const all = () => {
    const newest = value.value ?? [];
    const known = new Set(newest.map((one) => one.run_id));
    return [...newest, ...older.value.filter((one) => !known.has(one.run_id))];
  };
  const rows = h("ul", { class: "lines", "aria-label": "Runs, the newest first" });
  list(rows, all, (one) => one.run_id, runRow);
  const more = () => attempt(async () => {
    const found = await get(`runs?after=${encodeURIComponent(after.peek() ?? "")}`);
    older.value = [...older.peek(), ...found.runs];
    after.value = found.next;
  });
  return h("div", { class: "page" },
    heading("Runs", "What an agent did about one request, call by call. A run can be undone as a whole."),
    trouble(() => problem.value, refresh),
    h("div", { class: "panel", hidden: () => !all().length }, rows),
    () => (value.value && !all().length && !after.value ? empty("No runs yet", "Calls that carry the same run id belong together. The server's own agent gives each message a run; a client sends `run_id` with its calls.") : null),
    h("div", { class: "more" }, h("button", { hidden: () => !after.value, onclick: more }, "Show older runs")));
}

/** Calls as a tree: under each call those its handler made, and what took it back. @param {Call[]} calls */
function treeOf(calls) {
  const known = new Set(calls.map((one) => one.tool_id));
  /** @type {Map<string, Call[]>} */
  const under = new Map();
  for (const one of calls) {
    const above = [one.undo_of, one.parent_id].find((id) => id && known.has(id) && id !== one.tool_id) ?? "";
    under.set(above, [...(under.get(above) ?? []), one]);
  }
  /** @type {{ call: Call, depth: number }[]} */
  const rows = [];
  /** @param {string} id @param {number} depth */
  function walk(id, depth) {
    for (const call of under.get(id) ?? []) {
      rows.push({ call, depth: Math.min(depth, 6) });
      if (depth < 50) walk(call.tool_id, depth + 1);
    }
  }
  walk("", 0);
  return rows;
}

/** @param {import("../core.js").Signal<{ call: Call, depth: number }>} row */
function treeRow(row) {
  const shown = distinct(() => row.value);
  return h("li", { class: () => `line-item cells depth-${shown.value.depth} ${shown.value.call.undo_of ? "undo" : ""}` },
    h("span", { class: "when" }, time(row.peek().call.created_at)),
    h("span", { class: "main" }, () => callLink(shown.value.call),
      h("span", { class: "what bad", hidden: () => !shown.value.call.error }, () => said(shown.value.call.error ?? ""))),
    h("span", { class: "side" }, h("span", { class: "faint" }, () => (shown.value.call.undo_of ? "undo" : "")),
      h("span", { class: "took" }, () => (shown.value.call.execution_time_ms === null ? "" : milliseconds(shown.value.call.execution_time_ms)))));
}

const STEPS = /** @type {Record<string, [string, string]>} */ ({
  undoable: ["will be undone", "approved"], undone: ["undone", "completed"], nothing: ["nothing to undo", ""],
  failed: ["cannot be undone", "failed"], left: ["left as it is", "timeout"],
});

/** @param {UndoStep[]} steps */
function stepList(steps) {
  return h("ol", { class: "undo-steps" }, steps.map((one) => {
    const [words, kind] = STEPS[one.step] ?? [one.step, ""];
    return h("li", null, h("span", { class: `status ${kind}` }, words), " ", h("b", null, said(one.tool_name)), " ", shortId(one.tool_id),
      one.unchecked ? h("span", { class: "warned" }, " · unchecked: nobody can see whether the state has changed") : null,
      one.reason ? h("span", { class: "soft" }, " · ", said(one.reason)) : null);
  }));
}

/** Show what undoing would do, and do it if that is wanted. @param {string} id @param {() => void} after */
function undoRun(id, after) {
  const steps = signal(/** @type {UndoStep[] | null} */ (null));
  const problem = signal("");
  const isDone = signal(false);
  const isBusy = signal(false);
  const at = `runs/${encodeURIComponent(id)}/undo`;
  const skip = h("input", { type: "checkbox", id: "undo-skip", onchange: () => look() });
  /** @param {boolean} preview */
  async function send(preview) {
    isBusy.value = true;
    try {
      const answer = await post(at, { preview, skip_failures: skip.checked });
      steps.value = answer.steps;
      problem.value = "";
      return answer;
    } catch (error) {
      problem.value = wordsOf(error);
      return null;
    } finally {
      isBusy.value = false;
    }
  }
  const look = () => send(true);
  const count = () => (steps.value ?? []).filter((one) => one.step === "undoable").length;
  const stuck = () => (steps.value ?? []).some((one) => one.step === "failed");
  const dialog = h("dialog", { class: "sheet wide", "aria-labelledby": "undo-title" },
    h("h2", { id: "undo-title" }, () => (isDone.value ? "What was undone" : "Undo this run?")),
    h("p", { hidden: () => isDone.value }, "Effects are undone in this order, the last one first. Nothing has been changed yet."),
    h("p", { class: "notice bad", role: "alert", hidden: () => !problem.value }, () => problem.value),
    () => (steps.value ? (steps.value.length ? stepList(steps.value) : h("p", null, "No call of this run did anything.")) : problem.value ? null : h("p", { class: "faint" }, "Looking…")),
    h("div", { class: "tick", hidden: () => isDone.value || !(stuck() || skip.checked) }, skip,
      h("label", { for: "undo-skip" }, "Go on past what cannot be undone")),
    h("div", { class: "actions" },
      h("button", { class: "danger", hidden: () => isDone.value, disabled: () => isBusy.value || !count(), onclick: async () => {
        const answer = await send(false);
        if (!answer) return;
        isDone.value = true;
        toast(answer.success ? "The run was undone." : "Some effects are left; see why.", answer.success ? "good" : "bad");
        after();
      } }, () => (count() ? `Undo ${count()} ${count() === 1 ? "call" : "calls"}` : "Nothing to undo")),
      h("button", { class: "quiet", onclick: () => dialog.close() }, () => (isDone.value ? "Close" : "Cancel"))));
  show(dialog);
  look();
}

/** @param {string} id */
function one(id) {
  const { value, problem, isMissing, refresh } = loaded(async () => {
    /** @type {Call[]} */
    let calls = [];
    let after = "";
    do {
      const found = await get(`runs/${encodeURIComponent(id)}?limit=500${after}`);
      calls = [...calls, ...found.tools];
      after = found.next ? `&after=${encodeURIComponent(found.next)}` : "";
    } while (after && calls.length < MOST);
    return { calls, isPartial: Boolean(after) };
  });
  const again = soon(refresh, 300);
  onEvents((events) => {
    const known = new Set(value.peek()?.calls.map((call) => call.tool_id));
    if (events.some((event) => event.data?.pipeline_run_id === id || (event.call_id && known.has(event.call_id)))) again();
  });
  const calls = () => value.value?.calls ?? [];
  const rows = h("ul", { class: "lines tree", "aria-label": "Calls of the run" });
  list(rows, () => treeOf(calls()), (row) => row.call.tool_id, treeRow);
  const statuses = distinct(() => {
    /** @type {Record<string, number>} */
    const found = {};
    for (const call of calls()) found[call.internal_status] = (found[call.internal_status] ?? 0) + 1;
    return found;
  });
  const first = distinct(() => calls()[0] ?? null);
  return h("div", { class: "page" },
    heading(h("span", { class: "title" }, "Run ", shortId(id)),
      () => (first.value ? h("span", null, said(whoOf(first.value)), " · ", time(first.value.created_at)) : null),
      h("a", { class: "button", href: `${link("activity")}?${new URLSearchParams({ run_id: id })}` }, "In activity"),
      stopButton(() => (calls().length ? { run: id } : null), "run"),
      may("decide") ? h("button", { class: "danger", disabled: () => !calls().length, onclick: () => undoRun(id, again) }, "Undo run…") : null),
    trouble(() => problem.value, refresh),
    () => (isMissing.value && !value.value ? empty("There is no such run here", h("p", null, h("a", { href: link("run") }, "Look at all runs"))) : null),
    h("div", { hidden: () => !calls().length },
      h("p", { class: "endings" }, () => tally(statuses.value)),
      section("Calls, in order", rows),
      h("p", { class: "faint", hidden: () => !value.value?.isPartial }, visible(`Only the first ${MOST} calls are shown.`))));
}

/** @param {string[]} params @returns {Node} */
export function view(params) {
  return params[0] ? one(params[0]) : runs();
}
