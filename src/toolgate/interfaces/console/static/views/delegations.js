// @ts-check
/** Delegations: whose vote is lent to whom, lending one's own, and ending that. */

import { attempt, get, may, post, session } from "../api.js";
import { h, list, signal } from "../core.js";
import { ago, countdown, said } from "../format.js";
import { toast } from "../notify.js";
import { confirm, distinct, empty, heading, loaded, soon, trouble } from "../parts.js";
import { onEvents } from "../store.js";

/** @typedef {{ delegation_id: string, giver: string, delegate: string, tools: string[], reason: string | null,
 *   created_at: string, expires_at: string, is_live: boolean, is_valid: boolean, invalid_because: string | null,
 *   ended_at: string | null, ended_by: string | null }} Delegation */

const SPANS = [["28800", "8 hours"], ["86400", "1 day"], ["259200", "3 days"], ["604800", "1 week"], ["1209600", "2 weeks"]];

/** @param {Delegation} one */
function stateOf(one) {
  if (one.ended_at) return h("span", { class: "status rejected" }, "ended");
  if (!one.is_valid) return h("span", { class: "status rejected" }, "not valid");
  return one.is_live ? h("span", { class: "status approved" }, "live") : h("span", { class: "status" }, "over");
}

/** @param {Delegation} one */
const isMine = (one) => one.giver === session.account || session.kind === "admin";

/** @param {Delegation} one @param {() => void} after */
function end(one, after) {
  confirm({
    title: "End this delegation?", does: "End it", danger: true, label: "Why? It is kept in the audit.",
    says: h("p", null, h("b", null, said(one.delegate)), " may then not give the vote of ", h("b", null, said(one.giver)), " any more. What was decided stands."),
    run: async (reason) => {
      await post(`delegations/${encodeURIComponent(one.delegation_id)}/end`, reason ? { reason } : {});
      toast("The delegation was ended.", "good");
      after();
    },
  });
}

/** Lend one's own vote. @param {() => void} after */
function giving(after) {
  const to = h("input", { id: "delegate-to", maxlength: 128, required: true, autocomplete: "off", spellcheck: "false" });
  const seconds = h("select", { id: "delegate-seconds" }, SPANS.map(([value, label]) => h("option", { value }, label)));
  const tools = h("input", { id: "delegate-tools", maxlength: 1000, autocomplete: "off", spellcheck: "false", placeholder: "all" });
  const reason = h("input", { id: "delegate-reason", maxlength: 1000, autocomplete: "off" });
  /** @param {string} id @param {string} label @param {HTMLElement} input */
  const field = (id, label, input) => h("div", { class: "field" }, h("label", { for: id }, label), input);
  return h("form", { class: "panel piece", "aria-label": "Lend your vote", onsubmit: async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const named = tools.value.split(/[\s,]+/).filter(Boolean);
    const given = await attempt(() => post("delegations", {
      to: to.value.trim(), seconds: Number(seconds.value), tools: named, reason: reason.value.trim() || null,
    }));
    if (!given) return;
    to.value = tools.value = reason.value = "";
    toast("Your vote is lent.", "good");
    after();
  } },
    h("h2", null, "Lend your vote"),
    h("div", { class: "two" }, field("delegate-to", "To", to), field("delegate-seconds", "For", seconds)),
    h("div", { class: "two" }, field("delegate-tools", "Only for these tools", tools), field("delegate-reason", "Reason", reason)),
    h("div", { class: "actions" }, h("button", { class: "primary" }, "Lend it")));
}

/** @returns {Node} */
export function view() {
  const isAll = signal(false);
  const { value, problem, refresh } = loaded(async () => {
    const found = await get(`delegations?live=${!isAll.peek()}&limit=1000`);
    return /** @type {Delegation[]} */ (found.delegations.reverse());
  });
  const again = soon(refresh, 500);
  onEvents((events) => {
    if (events.some((one) => one.type.startsWith("delegation."))) again();
  });
  const rows = h("ul", { class: "cards", "aria-label": "Delegations" });
  list(rows, () => value.value ?? [], (one) => one.delegation_id, (delegation) => {
    const shown = distinct(() => delegation.value);
    const fixed = delegation.peek();
    return h("li", { class: "panel piece" },
      h("div", { class: "heading" },
        h("div", null, h("h2", null, said(fixed.delegate), " for ", said(fixed.giver), " ", () => stateOf(shown.value)),
          h("p", { class: "soft" }, fixed.tools.length ? ["on ", said(fixed.tools.join(", "))] : "on every tool")),
        h("div", { class: "actions" }, may("decide") && isMine(fixed)
          ? h("button", { class: "danger", hidden: () => !!shown.value.ended_at, onclick: () => end(delegation.peek(), again) }, "End") : null)),
      () => (shown.value.is_valid ? null : h("p", { class: "notice bad" }, "It counts for nothing: ", said(shown.value.invalid_because ?? ""), ".")),
      h("p", { class: "faint" }, "lent ", ago(fixed.created_at), fixed.reason ? [": ", said(fixed.reason)] : null, " · ",
        () => (shown.value.ended_by ? ["ended by ", said(shown.value.ended_by)] : shown.value.is_live ? countdown(fixed.expires_at) : null)));
  });
  return h("div", { class: "page" },
    heading("Delegations", "Votes that people lend to others for a while. Each stays its giver's, and ends with their right to it.",
      h("button", { "aria-pressed": () => String(isAll.value), onclick: () => { isAll.value = !isAll.peek(); refresh(); } }, "Also ended ones")),
    trouble(() => problem.value, refresh),
    may("decide") ? giving(again) : null,
    rows,
    () => (value.value && !value.value.length ? empty("No vote is lent", "Who is away can lend their vote to another person who may decide here.") : null));
}
