// @ts-check
/** One call: what happened to it stage by stage, what it was given and gave back, what decided, and what can be done. */

import { get, may, post } from "../api.js";
import { stopButton } from "../brakes.js";
import { go, h, link, list } from "../core.js";
import { milliseconds, riskBadge, said, statusBadge, time, visible } from "../format.js";
import { toast } from "../notify.js";
import { FINAL, block, confirm, distinct, empty, facts, heading, loaded, recordButton, section, shortId, soon, trouble, unknownFor, whoOf } from "../parts.js";
import { onEvents } from "../store.js";

/** @typedef {import("../parts.js").Call} Call */
/** @typedef {{ stage: string, event: string | null, seq: number | null, at: string, after_ms: number, said: string,
 *   by: string | null, reason: string | null, data: any }} Step */

const STAGES = /** @type {Record<string, string>} */ ({
  resolve: "Resolve", validate: "Validate", permit: "Permit", assess: "Assess", approve: "Approve", execute: "Execute", record: "Record",
});
const BAD = new Set(["tool.denied", "tool.failed", "tool.undo_failed", "approval.undelivered"]);
const GOOD = new Set(["tool.completed", "tool.undone"]);
const QUOTED = new Set(["tool.still_unknown", "approval.commented", "approval.decided", "approval.voted", "approval.edited"]);

/** @param {Step} one */
const tone = (one) => (BAD.has(one.event ?? "") ? "bad" : GOOD.has(one.event ?? "") ? "good" : "");

/** @param {import("../core.js").Signal<Step>} step */
function stepItem(step) {
  const one = step.peek();
  return h("li", { class: `step ${tone(one)}` },
    h("span", { class: "stage" }, STAGES[one.stage] ?? one.stage),
    h("div", { class: "told" },
      h("p", null, h("b", null, said(one.said)), one.by ? h("span", { class: "soft" }, " · ", said(one.by)) : null),
      one.reason ? h("p", { class: QUOTED.has(one.event ?? "") ? "quote" : "soft" }, said(one.reason)) : null,
      Object.keys(one.data).length && one.event
        ? h("details", null, h("summary", null, h("code", null, one.event), one.seq === null ? "" : ` · event ${one.seq}`), block(one.data, `Data of ${one.event}`))
        : null),
    h("span", { class: "at" }, time(one.at), h("span", { class: "faint" }, one.after_ms >= 1 ? `+${milliseconds(one.after_ms)}` : "")));
}

/** @param {Call} call */
function actionsFor(call) {
  const id = call.tool_id;
  const at = `tools/${encodeURIComponent(id)}`;
  return {
    undo: () => confirm({
      title: "Undo this call?", does: "Undo", danger: true,
      says: h("p", null, "What ", h("b", null, said(call.tool_name)), " did is undone. The undo is a call of its own, and it is refused where the state has changed since, if the tool can see that."),
      run: async () => {
        const done = await post(`${at}/undo`);
        toast(done.success ? (done.unchecked ? "Undone, unchecked." : "Undone.") : visible(done.error ?? "Not undone."), done.success ? "good" : "bad");
        go("call", done.tool_id);
      },
    }),
    cancel: () => confirm({
      title: "Cancel this call?", does: "Cancel the call", danger: true, label: "Why? It is kept in the record.",
      says: h("p", null, "A call that waits ends at once; one that runs is asked to stop."),
      run: (reason) => post(`${at}/cancel`, reason ? { reason } : {}),
    }),
    settle: (/** @type {boolean | null} */ happened) => confirm({
      title: happened === null ? "Not known yet" : happened ? "It took effect" : "It did not take effect", does: happened === null ? "Say so" : "Settle",
      needs: true, label: `${happened === null ? "What did you see" : "How do you know"}? It is kept in the record.`,
      says: h("p", null, happened === null ? "The call stays unknown; others see what you say." : `Whoever waits for this call is told, and it counts as ${happened ? "completed" : "failed"}.`),
      run: (reason) => post(`${at}/settle`, { happened, reason }),
    }),
  };
}

/** @param {string[]} params @returns {Node} */
export function view(params) {
  const id = params[0] ?? "";
  const at = `tools/${encodeURIComponent(id)}`;
  const { value, problem, isMissing, refresh } = loaded(async () => {
    const [kept, told] = await Promise.all([get(`${at}/record`), get(`${at}/timeline`)]);
    return { kept, told };
  });
  const again = soon(refresh, 200);
  onEvents((events) => {
    if (events.some((one) => one.call_id === id || one.data?.action_id === id)) again();
  });
  const call = distinct(() => /** @type {Call | undefined} */ (value.value?.kept.call));
  const decided = distinct(() => value.value?.kept.decided);
  const approvals = distinct(() => value.value?.kept.approvals ?? []);
  const canUndo = distinct(() => Boolean(value.value?.told.can_undo));
  const steps = h("ol", { class: "timeline" });
  list(steps, () => /** @type {Step[]} */ (value.value?.told.steps ?? []), (one) => `${one.seq ?? ""}${one.stage}${one.said}`, stepItem);

  const is = (/** @type {string} */ status) => call.value?.internal_status === status;
  /** What can be done stays where it is, with its focus, while the call changes. */
  const head = heading(h("span", { class: "title" }, () => {
    const one = call.value;
    return one ? [one.undo_of ? "undo " : "", said(one.tool_name), " ", statusBadge(one.internal_status), " ", riskBadge(one.risk_level)] : "Call";
  }), () => (call.value ? [said(whoOf(call.value)), " · ", time(call.value.created_at)] : null),
  h("a", { class: "button primary", hidden: () => !is("AWAITING_APPROVAL"), href: () => link("inbox", call.value?.approval_id ?? "") }, "Decide"),
  h("a", { class: "button", hidden: () => !call.value?.run_id, href: () => link("run", call.value?.run_id ?? "") }, "Its run"),
  stopButton(() => (call.value ? { agent: call.value.requester } : null), "agent"),
  may("ask") ? [
    h("button", { hidden: () => !canUndo.value, onclick: () => act((one) => one.undo()) }, "Undo"),
    h("button", { class: "danger", hidden: () => !call.value || FINAL.has(call.value.internal_status), onclick: () => act((one) => one.cancel()) }, "Cancel"),
  ] : null);
  /** @param {(actions: ReturnType<typeof actionsFor>) => void} choose */
  function act(choose) {
    const one = call.peek();
    if (one) choose(actionsFor(one));
  }

  const doubt = h("div", { class: "notice warn", hidden: () => !is("UNKNOWN") },
    h("p", null, h("b", null, "Nobody knows whether this took effect", () => (call.value ? unknownFor(call.value, ", for ") : null), ". "), () => said(call.value?.error ?? ""), " Look at the state, then say so."),
    may("decide") ? h("div", { class: "actions" }, h("button", { onclick: () => act((one) => one.settle(true)) }, "It took effect"),
      h("button", { onclick: () => act((one) => one.settle(false)) }, "It did not"),
      h("button", { class: "quiet", onclick: () => act((one) => one.settle(null)) }, "I do not know yet")) : null);

  function given() {
    const one = call.value;
    if (!one) return null;
    return [
      one.undo_of ? h("p", null, "Undoes ", h("a", { href: link("call", one.undo_of) }, "call ", shortId(one.undo_of)), one.unchecked ? ", unchecked: nobody can see whether the state had changed." : ".") : null,
      one.repeat_of ? h("p", null, "Repeats ", h("a", { href: link("call", one.repeat_of) }, "call ", shortId(one.repeat_of)), ".") : null,
      one.parent_id ? h("p", null, "Made by ", h("a", { href: link("call", one.parent_id) }, "call ", shortId(one.parent_id)), ".") : null,
      h("h3", null, "Arguments"), one.tool_params === null ? h("p", { class: "faint" }, "Deleted, or never usable.") : block(one.tool_params, "Arguments"),
      one.error ? [h("h3", null, "Error"), h("p", { class: "notice bad" }, said(one.error))] : null,
      one.result === null || one.result === undefined ? null : [h("h3", null, "Result"), block(one.result, "Result")],
    ];
  }

  function why() {
    const [one, word] = [call.value, decided.value];
    if (!one || !word) return null;
    const explain = new URLSearchParams({ tool: one.tool_name, params: JSON.stringify(one.tool_params ?? {}) });
    return [
      facts([
        ["Allowed by", one.approved_by === "policy:auto" ? "the policy" : one.approved_by],
        ["Level", word.level], ["Confidence", word.confidence === null ? null : String(word.confidence)],
        ["Agent's claim", word.claim], ["Runs", word.placement + (one.runner ? ` (${one.runner})` : "")],
        ["Effect key", one.effect_key], ["Outcome settled by", one.settled_by], ["Step", one.step_id],
        ["Policy", shortId(word.policy_revision)], ["Call", shortId(one.tool_id)],
      ]),
      word.reasons.length ? [h("h3", null, "What the rules said"), h("ul", { class: "plain-list" }, word.reasons.map((/** @type {string} */ reason) => h("li", null, said(reason))))] : null,
      word.facts && Object.keys(word.facts).length ? h("details", null, h("summary", null, "What the arguments pointed at"), block(word.facts, "Facts")) : null,
      h("p", null, h("a", { href: `${link("policy", "explain")}?${explain}` }, "What would the policy say now?")),
    ];
  }

  function asked() {
    return approvals.value.map((/** @type {any} */ one) => h("div", { class: "asked" },
      h("p", null, statusBadge(one.status), " ", said(one.description), one.decided_by ? h("span", { class: "soft" }, " · ", said(one.decided_by), " ", time(one.decided_at)) : null),
      one.reason ? h("p", { class: "quote" }, said(one.reason)) : null,
      one.difference ? h("details", null, h("summary", null, "What the approver changed"), block(one.difference, "Edited arguments")) : null));
  }

  return h("div", { class: "page" }, head,
    trouble(() => problem.value, refresh),
    () => (isMissing.value && !call.value ? empty("There is no such call here", h("p", null, h("a", { href: link("activity") }, "Look at all calls"))) : null),
    h("div", { hidden: () => !call.value }, doubt,
      h("div", { class: "columns" },
        h("div", null, section("What happened", steps, h("p", { class: "faint", hidden: () => !value.value?.told.is_partial }, "Only the first 1,000 events are shown."))),
        h("div", null,
          section("What it was about", given),
          h("div", { hidden: () => !approvals.value.length }, section("Who was asked", asked)),
          section("What decided", why),
          section("Record",
            h("p", { class: "soft" }, "Each event is linked to the one before it by its hash."),
            h("div", { class: "actions" },
              h("a", { class: "button", href: link("audit", id) }, "Show its links"),
              recordButton(id)))))));
}
