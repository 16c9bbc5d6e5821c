// @ts-check
/** The inbox: every question that waits, the riskiest first, and the one that is looked at beside the list. */

import { computed, go, h, link, list, route } from "../core.js";
import { ago, countdown, riskBadge } from "../format.js";
import { bind } from "../keyboard.js";
import { cards, clearDecided, isReady, waiting } from "../store.js";

/** @typedef {import("../store.js").Card} Card */
/** @typedef {{ key: string, card: Card, members: Card[] }} Row */

const RANK = { HIGH: 0, MEDIUM: 1, LOW: 2 };

/** @param {Card} one @param {Card} other */
function byRisk(one, other) {
  return (
    RANK[one.risk_level] - RANK[other.risk_level] ||
    Date.parse(one.expires_at) - Date.parse(other.expires_at) ||
    (one.approval_id < other.approval_id ? -1 : 1)
  );
}

/** Open questions that look exactly alike share a row; decided ones stay where they were, each by itself. */
const rows = computed(() => {
  /** @type {Map<string, Row>} */
  const groups = new Map();
  for (const card of [...cards.value.values()].sort(byRisk)) {
    const key = card.status === "pending" ? card.group : card.approval_id;
    const row = groups.get(key);
    if (row) row.members.push(card);
    else groups.set(key, { key: card.approval_id, card, members: [card] });
  }
  return [...groups.values()];
});

/** @param {import("../core.js").Signal<Row>} row */
function item(row) {
  const card = () => row.value.card;
  return h("li", { class: () => `row ${card().status}` },
    h("a", { href: link("inbox", row.peek().key), "aria-current": () => (route.value.params[0] === row.value.key ? "true" : null) },
      h("span", { class: "line" }, () => riskBadge(card().risk_level), h("b", null, () => card().tool_name), () => countdown(card().expires_at)),
      h("span", { class: "what" }, () => card().summary),
      h("span", { class: "who" }, () => card().requester, " · ", () => ago(card().created_at))));
}

/** @param {number} step */
function move(step) {
  const all = rows.peek();
  const at = all.findIndex((row) => row.key === route.peek().params[0]);
  const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  if (next) go("inbox", next.key);
}

/** @returns {Node} */
export function view() {
  bind([
    { key: "j", does: "Next question", run: () => move(1) },
    { key: "k", does: "Previous question", run: () => move(-1) },
  ]);
  const all = h("ul", { class: "rows", "aria-label": "Questions" });
  list(all, () => rows.value, (row) => row.key, item);
  return h("div", { class: "inbox" },
    h("div", { class: "listing" }, h("h1", null, () => `${waiting.value} waiting`),
      h("button", { class: "quiet", onclick: clearDecided }, "Clear decided"), all,
      h("p", { hidden: () => !isReady.value || rows.value.length > 0 }, "Nothing waits for you.")));
}
