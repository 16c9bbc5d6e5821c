// @ts-check
/** Live state, fed by one stream: the project's questions, the mode, the connection, and every event for who listens. */

import { follow, get } from "./api.js";
import { computed, onCleanup, signal } from "./core.js";

/** @typedef {{ by: string, at: string, text: string | null }} Note */
/**
 * A question as the server shows it; every text in it is safe to show.
 * @typedef {{
 *   approval_id: string, tool_id: string, tool_name: string, status: "pending" | "approved" | "rejected" | "timeout",
 *   risk_level: "LOW" | "MEDIUM" | "HIGH", level: string, summary: string, message: string, digest: string,
 *   group: string, requester: string, user: string | null, run_id: string | null, session_id: string | null,
 *   reasons: string[], confidence: number | null, factors: string[], warnings: string[], must_expand: boolean,
 *   undoable: boolean, undo_ttl_s: number | null, requires_reason: boolean, needs_reason: boolean, approve_label: string,
 *   reject_label: string, quorum: number, approvers: string[][], including: string[][], lacks: string[][], escalates_to: string[], escalated_to: string[], votes: Note[],
 *   comments: Note[], edited_from: string | null, has_unknown_command: boolean, created_at: string, expires_at: string,
 *   decided_by: string | null, decided_at: string | null, reason: string | null,
 * }} Card
 */
/** @typedef {{ at: string, call_id: string | null, data: any, project: string, seq: number, type: string }} Event */
/** @typedef {"NORMAL" | "ALERT" | "DEGRADED" | "LOCKDOWN" | "RECOVERY"} Mode */
/** @typedef {{ mode: Mode, project: string | null, agent: string | null, run: string | null, by: string, at: string | null,
 *   reason: string, holds: string[] }} Brake */

/** Questions by id. The map is replaced, never changed; a card that is the same object has not changed. */
export const cards = signal(/** @type {ReadonlyMap<string, Card>} */ (new Map()));
/** What became of calls whose questions we know, by the id of the call: the name of the last event about it. */
export const outcomes = signal(/** @type {ReadonlyMap<string, string>} */ (new Map()));
export const mode = signal(/** @type {Mode} */ ("NORMAL"));
/** The brakes that are pulled over this project and in it. */
export const brakes = signal(/** @type {Brake[]} */ ([]));
/** The policy this project answers to, and the revision that waits for a person's word. */
export const policy = signal(/** @type {{ revision: string, held: string | null }} */ ({ revision: "", held: null }));
export const connection = signal(/** @type {"connecting" | "open" | "lost"} */ ("connecting"));
/** Whether the first list of questions has arrived. */
export const isReady = signal(false);
/** How far this machine's clock is behind the server's, in milliseconds. */
export let skew = 0;

/** How many of the questions we know wait. */
const open = computed(() => {
  let count = 0;
  for (const card of cards.value.values()) if (card.status === "pending") count++;
  return count;
});
/** How many wait at the server that were not fetched yet: less urgent than all that are shown. */
export const unshown = signal(0);
/** How many questions wait. */
export const waiting = computed(() => open.value + unshown.value);
/** The last question that was told in order. @type {string | null} */
let last = null;

/** Fetch more of the questions that wait, in order; with none, only count them. @param {number} [limit] */
export async function fetchWaiting(limit = 200) {
  const from = last && limit ? `&after=${encodeURIComponent(last)}` : "";
  const page = await get(`inbox/waiting?limit=${limit || 1}${from}`).catch((error) => {
    last = null; // it may be forgotten by now: the next try begins at the top
    throw error;
  });
  if (limit) {
    last = page.next ?? page.cards.at(-1)?.approval_id ?? last;
    putCards(...page.cards);
  }
  unshown.value = Math.max(0, page.waiting - open.peek());
}

/** @type {number | undefined} */
let counting;

/** Questions that are not shown were decided: count anew, once for many. */
function countSoon() {
  counting ??= setTimeout(() => {
    counting = undefined;
    fetchWaiting(open.peek() ? 0 : undefined).catch(() => {}); // the next one counts again
  }, 500);
}

/** @typedef {(events: Event[]) => void} EventListener */
/** @type {Set<EventListener>} */
const listeners = new Set();
/** @type {Set<(name: string, data: any) => void>} */
const chatListeners = new Set();

/** Hear every event of the project as it happens, for as long as the view lasts. @param {EventListener} listener */
export function onEvents(listener) {
  listeners.add(listener);
  onCleanup(() => listeners.delete(listener));
}

/** Hear what the agent says to this person. @param {(name: string, data: any) => void} listener */
export function onChat(listener) {
  chatListeners.add(listener);
  onCleanup(() => chatListeners.delete(listener));
}

/** How many decided questions are kept on a page that stays open all day. */
const KEPT = 200;

/** Take a card that was fetched or pushed. @param {...Card} fresh */
export function putCards(...fresh) {
  const next = new Map(cards.peek());
  for (const card of fresh) next.set(card.approval_id, card);
  const decided = [...next.values()].filter((card) => card.status !== "pending");
  decided.sort((one, other) => ((one.decided_at ?? "") < (other.decided_at ?? "") ? -1 : 1));
  for (const card of decided.slice(0, -KEPT)) next.delete(card.approval_id);
  cards.value = next;
}

/** Forget questions that are decided. */
export function clearDecided() {
  cards.value = new Map([...cards.peek()].filter(([, card]) => card.status === "pending"));
}

/** The questions this connection has told of. @type {Set<string>} */
const told = new Set();

/** @param {import("./api.js").Frame[]} frames */
function hear(frames) {
  /** @type {Map<string, Card>} */
  const fresh = new Map();
  /** @type {Event[]} */
  const events = [];
  let isAnew = false;
  let total = 0;
  for (const { name, data } of frames) {
    if (name === "inbox.card") {
      told.add(data.approval_id);
      // A question that was asked and answered in one step, as an edited one is, never waited for anybody.
      if (data.status === "pending" || fresh.has(data.approval_id) || cards.peek().has(data.approval_id)) {
        fresh.set(data.approval_id, data);
      }
      if (unshown.peek() && data.status !== "pending") countSoon();
    } else if (name === "inbox.policy") policy.value = data;
    else if (name === "inbox.mode") [mode.value, brakes.value] = [data.mode, data.brakes];
    else if (name === "stream.ready") {
      [mode.value, brakes.value] = [data.mode, data.brakes];
      skew = Date.parse(data.timestamp) - Date.now();
      isAnew = true;
      last = data.next;
      total = data.waiting;
    } else if (name.startsWith("chat.")) for (const one of chatListeners) one(name, data);
    else events.push(data);
  }
  if (fresh.size) putCards(...fresh.values());
  if (events.length) tell(events);
  if (isAnew) {
    unshown.value = last === null ? 0 : Math.max(0, total - open.peek());
    begin();
  }
}

/** @param {Event[]} events */
function tell(events) {
  const known = new Set([...cards.peek().values()].map((card) => card.tool_id));
  const about = events.filter((one) => one.call_id && known.has(one.call_id) && /^tool\.[a-z_]+$/.test(one.type));
  if (about.length) {
    const next = new Map(outcomes.peek());
    for (const one of about) next.set(/** @type {string} */ (one.call_id), one.type);
    outcomes.value = next;
  }
  for (const listener of listeners) listener(events);
}

/** A stream that began anew told every open question: what we knew besides may have been decided meanwhile. */
async function begin() {
  isReady.value = true;
  for (const card of cards.peek().values()) {
    if (card.status !== "pending" || told.has(card.approval_id)) continue;
    const found = await get(`approvals/${encodeURIComponent(card.approval_id)}/artifact`).catch(() => null);
    if (found) putCards(found.card);
  }
}

/** Begin to follow the project. */
export function connect() {
  return follow("inbox", {
    hear,
    state: (is) => {
      if (is === "open") told.clear();
      connection.value = is;
    },
  });
}
