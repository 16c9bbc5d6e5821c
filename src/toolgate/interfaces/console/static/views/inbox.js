// @ts-check
/** The inbox: every question that waits, the riskiest first, and the one that is looked at beside the list. */

import { attempt, may, prefix } from "../api.js";
import { computed, distinct, effect, followAddress, go, h, link, list, onCleanup, route, signal } from "../core.js";
import { answer, outcomeOf, reviewOf, whyNotTogether } from "../decide.js";
import { ago, countdown, riskBadge } from "../format.js";
import { bind, show } from "../keyboard.js";
import { announce, toast } from "../notify.js";
import { cards, clearDecided, fetchWaiting, isReady, unshown, waiting } from "../store.js";
import { aims, canUndo, cardView, undo } from "./card.js";

/** @typedef {import("../store.js").Card} Card */
/** @typedef {{ key: string, card: Card, members: Card[] }} Row */

const RANK = { HIGH: 0, MEDIUM: 1, LOW: 2 };

/** @param {Card} one @param {Card} other */
function byRisk(one, other) {
  return (
    RANK[one.risk_level] - RANK[other.risk_level] ||
    (one.expires_at < other.expires_at ? -1 : one.expires_at > other.expires_at ? 1 : 0) ||
    (one.approval_id < other.approval_id ? -1 : 1)
  );
}

/** @type {Map<string, Row>} */
let known = new Map();

/** Open questions that look exactly alike share a row; decided ones stay where they were, each by itself.
 * A row whose questions have not changed is the same object as before. */
const rows = computed(() => {
  /** @type {Map<string, Row>} */
  const groups = new Map();
  for (const card of [...cards.value.values()].sort(byRisk)) {
    const key = card.status === "pending" ? card.group : card.approval_id;
    const row = groups.get(key);
    if (row) row.members.push(card);
    else groups.set(key, { key: card.approval_id, card, members: [card] });
  }
  const all = [...groups.values()].map((row) => {
    const before = known.get(row.key);
    const isSame = before?.members.length === row.members.length && row.members.every((card, at) => card === before.members[at]);
    return isSame && before ? before : row;
  });
  known = new Map(all.map((row) => [row.key, row]));
  return all;
});

/** Rows that are chosen to be answered together, by key. */
const marked = signal(/** @type {ReadonlySet<string>} */ (new Set()));

/** The open questions of the rows that are chosen. */
const chosen = computed(() => rows.value.filter((row) => marked.value.has(row.key)).flatMap((row) => row.members.filter((card) => card.status === "pending")));

/** The row that is looked at: of a group, whichever of its questions the address names. */
const current = computed(() => {
  const id = route.value.params[0];
  return rows.value.find((row) => row.members.some((card) => card.approval_id === id));
});

const here = distinct(() => current.value?.key);

/** Choose a row, or choose it no more. @param {string} key */
function mark(key) {
  const next = new Set(marked.peek());
  if (!next.delete(key)) {
    next.add(key);
    const together = rows.peek().filter((row) => next.has(row.key)).flatMap((row) => row.members);
    const why = whyNotTogether(together);
    if (why) {
      toast(why);
      marked.value = new Set(marked.peek());
      return false;
    }
  }
  marked.value = next;
  return true;
}

/** @param {Card} card @param {number} count */
function inside(card, count) {
  const isOpen = card.status === "pending";
  return [
    h("span", { class: "line" }, riskBadge(card.risk_level), h("b", null, card.tool_name),
      count > 1 ? h("span", { class: "chip" }, `×${count}`) : null,
      isOpen ? countdown(card.expires_at) : h("span", { class: `outcome ${card.status}` }, outcomeOf(card))),
    h("span", { class: "what" }, card.summary),
    h("span", { class: "who" },
      isOpen ? `${card.requester}${card.user ? ` for ${card.user}` : ""} · ` : card.decided_by ? `by ${card.decided_by} · ` : "",
      ago(isOpen ? card.created_at : card.decided_at ?? card.created_at),
      card.warnings.length && isOpen ? h("span", { class: "flag" }, "⚠ hidden characters") : null,
      card.votes.length && isOpen ? h("span", { class: "flag" }, `${card.votes.length} of ${card.quorum} votes`) : null,
      card.comments.length ? h("span", { class: "flag" }, `${card.comments.length} comment${card.comments.length > 1 ? "s" : ""}`) : null),
  ];
}

/** @param {import("../core.js").Signal<Row>} row */
function item(row) {
  const key = row.peek().key;
  const box = h("input", { type: "checkbox", "aria-label": `Choose ${row.peek().card.summary}`,
    onchange: () => { if (!mark(key)) box.checked = marked.peek().has(key); } });
  const anchor = h("a", { href: link("inbox", key) }, () => inside(row.value.card, row.value.members.length));
  const element = h("li", null, box, anchor);
  effect(() => {
    const { card } = row.value;
    const isHere = here.value === key;
    element.className = `row ${card.status}${isHere ? " here" : ""}`;
    if (isHere) anchor.setAttribute("aria-current", "true");
    else anchor.removeAttribute("aria-current");
    box.hidden = card.status !== "pending" || card.risk_level === "HIGH" || !may("decide");
  });
  effect(() => {
    box.checked = marked.value.has(key);
  });
  return element;
}

/** @param {Row | undefined} row */
function open(row) {
  if (!row) return;
  go("inbox", row.key);
  const anchor = [...document.querySelectorAll(".row a")].find((one) => one.getAttribute("href") === link("inbox", row.key));
  if (anchor instanceof HTMLElement) {
    anchor.focus({ preventScroll: true });
    anchor.scrollIntoView({ block: "nearest" });
  }
}

/** @param {number} step */
function move(step) {
  const all = rows.peek();
  const at = all.findIndex((row) => row.key === current.peek()?.key);
  open(all[at < 0 ? 0 : Math.min(Math.max(at + step, 0), all.length - 1)]);
}

/** Go on to the next question that waits; stay where none does. */
function next() {
  const all = rows.peek();
  const at = Math.max(all.findIndex((row) => row.members.some((card) => card.approval_id === route.peek().params[0])), 0);
  const isOther = (/** @type {Row} */ row) => row.card.status === "pending" && row.key !== all[at]?.key;
  open(all.slice(at).find(isOther) ?? all.find(isOther));
}

/** Answer the chosen questions together, after one more look at all of them. @param {"approve" | "reject"} verb */
function together(verb) {
  const every = chosen.peek();
  const why = whyNotTogether(every);
  if (why || !every.length) {
    toast(why || "Select questions first, with x.");
    return;
  }
  const word = verb === "approve" ? "Approve" : "Reject";
  const reason = h("input", { id: "bulk-reason", maxlength: 4000, autocomplete: "off", required: every.some((card) => (verb === "reject" ? card.requires_reason : card.needs_reason)) });
  const dialog = h("dialog", { class: "sheet", "aria-labelledby": "bulk-title" },
    h("h2", { id: "bulk-title" }, `${word} ${every.length} × ${every[0]?.tool_name}`),
    h("ul", { class: "examples", tabindex: 0, "aria-label": "Questions" }, every.map((card) => h("li", null, riskBadge(card.risk_level), " ", h("code", null, h("bdi", null, card.summary))))),
    h("form", { method: "dialog", onsubmit: () => run(verb, every, reason.value.trim() || null) },
      h("label", { for: "bulk-reason" }, "Reason"), reason,
      h("div", { class: "actions" },
        h("button", { class: verb === "approve" ? "primary" : "danger" }, `${word} ${every.length}`),
        h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel"))));
  show(dialog);
}

/** @param {"approve" | "reject"} verb @param {Card[]} every @param {string | null} reason */
async function run(verb, every, reason) {
  marked.value = new Set();
  for (const card of every) await answer(card, verb, { reason });
}

/** What the keys do with the question that is looked at. @param {"approve" | "reject"} verb */
function aim(verb) {
  if (marked.peek().size) together(verb);
  else aims.get(route.peek().params[0] ?? "")?.(verb);
}

function bindKeys() {
  const card = () => current.peek()?.card;
  bind([
    { key: "j", does: "Next question", run: () => move(1) },
    { key: "k", does: "Previous question", run: () => move(-1) },
    { key: "x", does: "Select the question, to answer several together", run: () => {
      const row = current.peek();
      if (row?.card.status === "pending") mark(row.key);
    } },
    { key: "a", does: "Approve: what is missing first, then the button; Enter confirms", run: () => aim("approve") },
    { key: "d", does: "Reject: the reason if one is needed, then the button; Enter confirms", run: () => aim("reject") },
    { key: "e", does: "Edit the arguments", run: () => {
      if (card()?.status === "pending" && may("decide")) reviewOf(route.peek().params[0] ?? "").panel.value = "edit";
    } },
    { key: "u", does: "Undo the call that was approved", run: () => {
      const shown = card();
      if (shown && canUndo(shown)) undo(shown);
      else toast("Nothing to undo: the question must be approved, its call done, and its effect undoable.");
    } },
    { key: "Escape", does: "Clear the selection; back to the list", run: () => {
      if (marked.peek().size) marked.value = new Set();
      else if (!isWide()) go("inbox");
    } },
  ]);
}

function nothing() {
  return h("div", { class: "empty" },
    h("h2", null, "Nothing waits for you"),
    h("p", null, "Questions appear here by themselves when an agent calls a tool that needs a person. To see one now:"),
    h("pre", { tabindex: 0, "aria-label": "How an agent asks" }, "curl -H \"Authorization: Bearer $TOKEN\" \\\n  -d '{\"tool_name\": \"...\", \"tool_params\": {}, \"wait\": false}' \\\n  " + `${location.origin}${prefix}/my/projects/.../tools/execute`));
}

const isWide = () => matchMedia("(min-width: 900px)").matches;

/** @returns {Node} */
export function view() {
  bindKeys();
  const all = h("ul", { class: "rows", "aria-label": "Questions" });
  const scroller = h("div", { class: "scroller" }, all);
  list(all, () => rows.value, (row) => row.key, item, scroller);

  // On a wide page something is always looked at; a phone shows the list first.
  effect(() => {
    const first = rows.value[0];
    if (isReady.value && first && route.value.name === "inbox" && !route.value.params[0] && isWide()) {
      history.replaceState(null, "", link("inbox", first.key));
      followAddress();
    }
  });
  let before = waiting.peek();
  effect(() => {
    const now = waiting.value;
    if (now > before) announce(`${now} question${now === 1 ? "" : "s"} waiting.`);
    before = now;
  });
  onCleanup(() => { marked.value = new Set(); });

  const decided = distinct(() => [...cards.value.values()].filter((card) => card.status !== "pending").length);
  const isEmpty = distinct(() => rows.value.length === 0);
  const looked = distinct(() => route.value.params[0] ?? "");
  return h("div", { class: () => `inbox${looked.value ? " looking" : ""}` },
    h("h1", { class: "unseen" }, "Inbox"),
    h("section", { class: "listing", "aria-label": "Inbox" },
      h("header", null,
        h("h2", null, () => (isReady.value ? `${waiting.value.toLocaleString()} waiting` : "Inbox")),
        h("button", { class: "quiet", hidden: () => !decided.value, onclick: clearDecided }, () => `Clear ${decided.value} decided`)),
      scroller,
      h("p", { class: "rest", hidden: () => !unshown.value },
        h("span", null, () => `${unshown.value.toLocaleString()} less urgent not shown`),
        h("button", { class: "quiet", onclick: () => attempt(() => fetchWaiting()) }, "Show more")),
      h("div", { class: "bulk", hidden: () => !chosen.value.length },
        h("span", null, () => `${chosen.value.length} chosen`), h("span", { class: "grow" }),
        h("button", { class: "primary", onclick: () => together("approve") }, "Approve…"),
        h("button", { class: "danger", onclick: () => together("reject") }, "Reject…"),
        h("button", { class: "quiet", "aria-label": "Clear selection", onclick: () => { marked.value = new Set(); } }, "✕"))),
    h("div", { class: "looked" },
      h("a", { class: "back", href: link("inbox") }, "← All questions"),
      () => {
        const id = looked.value;
        if (!id) return isReady.value && isEmpty.value ? nothing() : null;
        return cardView(id, { members: () => current.value?.members ?? [], next });
      }));
}
