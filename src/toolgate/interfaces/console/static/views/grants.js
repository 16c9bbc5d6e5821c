// @ts-check
/** Grants: every remembered yes, what it covers, how often it was used, and taking it back. */

import { attempt, get, may, post } from "../api.js";
import { h, link, list, signal } from "../core.js";
import { ago, countdown, said, visible } from "../format.js";
import { toast } from "../notify.js";
import { confirm, distinct, empty, heading, loaded, soon, trouble } from "../parts.js";
import { onEvents } from "../store.js";

/** @typedef {{ grant_id: string, tool_name: string, requester: string, user: string | null, pattern: Record<string, any>,
 *   level: string, approval_id: string, granted_by: string, created_at: string, expires_at: string, max_uses: number,
 *   uses: number, is_live: boolean, is_valid: boolean, invalid_because: string | null, revoked_at: string | null, revoked_by: string | null, reason: string | null }} Grant */

/** What a grant allows of one argument, in words. @param {string} name @param {any} wanted */
function condition(name, wanted) {
  if (wanted === "any") return `${name}: anything`;
  if ("like" in wanted) return `${name} like ${wanted.like}`;
  if ("at_most" in wanted) return `${name} from ${wanted.at_least} to ${wanted.at_most}`;
  return `${name} is ${JSON.stringify(wanted.is)}`;
}

/** @param {Grant} one */
function stateOf(one) {
  if (one.revoked_at) return h("span", { class: "status rejected" }, "revoked");
  if (!one.is_valid) return h("span", { class: "status rejected" }, "not valid");
  if (one.is_live) return h("span", { class: "status approved" }, "live");
  return h("span", { class: "status" }, one.uses >= one.max_uses ? "used up" : "expired");
}

/** Whether there is something to take back: who lost the right to give a grant may get it again. @param {Grant} one */
const isOpen = (one) => one.is_live || (!one.is_valid && !one.revoked_at);

/** @param {Grant} grant @param {() => void} after */
function revoke(grant, after) {
  confirm({
    title: "Revoke this grant?", does: "Revoke", danger: true, label: "Why? It is kept in the audit.",
    says: h("p", null, "From now on ", h("b", null, said(grant.tool_name)), " asks a person again. What already started goes on."),
    run: async (reason) => {
      await post(`grants/${encodeURIComponent(grant.grant_id)}/revoke`, reason ? { reason } : {});
      toast("The grant was revoked.", "good");
      after();
    },
  });
}

/** @returns {Node} */
export function view() {
  const isAll = signal(false);
  const { value, problem, refresh } = loaded(async () => {
    const found = await get(`grants?live=${!isAll.peek()}&limit=1000`);
    return /** @type {Grant[]} */ (found.grants.reverse());
  });
  const again = soon(refresh, 500);
  onEvents((events) => {
    if (events.some((one) => one.type.startsWith("grant.") || String(one.data?.approved_by ?? "").startsWith("grant:"))) again();
  });
  const rows = h("ul", { class: "cards", "aria-label": "Grants" });
  list(rows, () => value.value ?? [], (one) => one.grant_id, (grant) => {
    const shown = distinct(() => grant.value);
    const fixed = grant.peek();
    const openCall = () => attempt(async () => {
      const found = await get(`approvals/${encodeURIComponent(fixed.approval_id)}`);
      location.hash = link("call", found.approval.tool_id);
    });
    return h("li", { class: "panel piece grant" },
      h("div", { class: "heading" },
        h("div", null, h("h2", null, said(fixed.tool_name), " ", () => stateOf(shown.value)),
          h("p", { class: "soft" }, "for ", said(fixed.requester), fixed.user && fixed.user !== fixed.requester ? [" acting for ", said(fixed.user)] : null)),
        h("div", { class: "actions" }, h("button", { class: "quiet", onclick: openCall }, "The call"),
          may("decide") ? h("button", { class: "danger", hidden: () => !isOpen(shown.value), onclick: () => revoke(grant.peek(), again) }, "Revoke") : null)),
      h("ul", { class: "plain-list" }, Object.entries(fixed.pattern).map(([name, wanted]) => h("li", null, h("code", null, said(visible(condition(name, wanted))))))),
      h("p", { class: "uses" },
        h("progress", { max: fixed.max_uses, value: () => shown.value.uses, "aria-label": "Uses" }),
        h("span", null, () => `${shown.value.uses} of ${fixed.max_uses} uses`),
        h("span", { class: "soft" }, () => (shown.value.is_live ? countdown(fixed.expires_at) : null))),
      () => (shown.value.is_valid ? null : h("p", { class: "notice bad" }, "It covers nothing: ", said(shown.value.invalid_because ?? ""), ".")),
      h("p", { class: "faint" }, "given by ", said(fixed.granted_by), " ", ago(fixed.created_at),
        () => (shown.value.revoked_by ? [" · revoked by ", said(shown.value.revoked_by), shown.value.reason ? [": ", said(shown.value.reason)] : null] : null)));
  });
  return h("div", { class: "page" },
    heading("Grants", "Answers that are remembered: each covers one tool as it is defined now, one requester, some arguments, a time and a number of uses.",
      h("button", { "aria-pressed": () => String(isAll.value), onclick: () => { isAll.value = !isAll.peek(); refresh(); } }, "Also ended ones")),
    trouble(() => problem.value, refresh),
    rows,
    () => (value.value && !value.value.length
      ? empty(isAll.value ? "No grants" : "No live grants", "Tired of the same question? Open it in the inbox and choose “Remember”: you set what it covers, how often and how long, and see which past calls it would have matched.",
        h("p", null, h("a", { href: link("inbox") }, "Go to the inbox")))
      : null));
}
