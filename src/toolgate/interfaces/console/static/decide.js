// @ts-check
/** What a person does with a question, and what stands in the way of a yes. No view; the inbox and the card use it. */

import { Problem, get, may, post, wordsOf } from "./api.js";
import { isLocked } from "./brakes.js";
import { go, signal } from "./core.js";
import { closings, isUnderDialog } from "./keyboard.js";
import { announce, toast } from "./notify.js";
import { cards, putCards } from "./store.js";

/** @typedef {import("./store.js").Card} Card */
/** @typedef {{ title: string, text: string, style: "fact" | "code" | "diff" | "claim", warnings: string[], hidden: number, name: string }} Block */
/** @typedef {{ card: Card, blocks: Block[], arguments: any, arguments_text: string, input_schema: any,
 *   on_behalf_of: string[], has_no_own_vote: boolean, network: string | null }} Artifact */

/** What one person has seen and written about one question; kept while the page is open. */
export class Review {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.artifact = signal(/** @type {Artifact | null} */ (null));
    /** Whether every part was shown to its end. */
    this.isFull = signal(false);
    /** What was fetched of the parts that were cut, and where the next piece of each begins: null after the last.
     * @type {Map<string, { text: string, next: number | null, characters: number }>} */
    this.pieces = new Map();
    /** Whether the change was opened; at HIGH it is closed at first. */
    this.isOpened = signal(false);
    this.reason = signal("");
    /** Whose vote is given, where it was delegated to who looks; null for their own. */
    this.behalf = signal(/** @type {string | null} */ (null));
    this.panel = signal(/** @type {string | null} */ (null));
    this.problem = signal("");
    /** What changed since it was shown, in words. */
    this.changes = signal(/** @type {string[]} */ ([]));
    this.isBusy = signal(false);
    this.answersAll = signal(false);
    /** Whether a yes also gives the command a network, this once. */
    this.network = signal(false);
    /** Arguments that were changed as JSON, and whether anything was. */
    this.edited = signal(/** @type {string | null} */ (null));
    this.isEdited = signal(false);
  }

  /** Fetch what must be seen; what was expanded of it stays so. */
  async load() {
    try {
      /** @type {Artifact} */
      const fresh = await get(`approvals/${encodeURIComponent(this.id)}/artifact`);
      const before = this.artifact.peek();
      if (before && before.card.digest !== fresh.card.digest) {
        this.isOpened.value = false;
        this.isFull.value = false;
        this.network.value = false;
        this.pieces.clear();
      }
      this.pieces.delete("facts"); // what people said is among them
      const shown = this.opened(fresh);
      if (shown.blocks.some((one) => one.hidden)) this.isFull.value = false;
      this.artifact.value = shown;
      const mine = this.behalf.peek();
      const first = fresh.has_no_own_vote ? fresh.on_behalf_of[0] ?? null : null;
      this.behalf.value = mine !== null && fresh.on_behalf_of.includes(mine) ? mine : first;
      putCards(fresh.card);
      this.problem.value = "";
    } catch (error) {
      this.problem.value = error instanceof Problem && error.status === 404
        ? "This question is no longer here." : wordsOf(error);
    }
  }

  /** The server does not know that all of it was shown, because it was started again or is another one: show it anew. */
  forget() {
    this.pieces.clear();
    this.isFull.value = false;
    this.artifact.value = null;
  }

  /** The same with the pieces in it that were fetched. @param {Artifact} artifact @returns {Artifact} */
  opened(artifact) {
    const blocks = artifact.blocks.map((block) => {
      const known = this.pieces.get(block.name);
      return known ? { ...block, text: known.text, hidden: known.next === null ? 0 : known.characters - known.next } : block;
    });
    return { ...artifact, blocks };
  }

  /** Show another piece of every part that is cut; most parts have only one. */
  async expand() {
    const artifact = this.artifact.peek();
    if (!artifact) return;
    try {
      for (const block of artifact.blocks.filter((one) => one.hidden)) {
        const known = this.pieces.get(block.name);
        const at = `approvals/${encodeURIComponent(this.id)}/artifact/${encodeURIComponent(block.name)}?offset=${known?.next ?? 0}`;
        /** @type {{ text: string, next: number | null, characters: number }} */
        const piece = await get(at);
        this.pieces.set(block.name, { ...piece, text: (known?.text ?? "") + piece.text });
      }
      const fresh = this.opened(artifact);
      this.isFull.value = fresh.blocks.every((one) => !one.hidden);
      this.artifact.value = fresh;
    } catch (error) {
      toast(wordsOf(error), "bad");
    }
  }
}

/** How long a question must have been there before a press is for it: longer than people take for a double click. */
const SETTLE_MS = 800;
/** Whether what is there to be answered has been there for a moment. */
export const isSettled = signal(false);
let settling = 0;

/** Something else is there now: presses that come at once were meant for what was there before. */
export function unsettle() {
  isSettled.value = false;
  clearTimeout(settling);
  settling = setTimeout(() => { isSettled.value = true; }, SETTLE_MS);
}

closings.add(unsettle);

/**
 * What a control that answers a question listens to. A press counts only for the question that was there when it
 * began, by mouse, touch or key; a key that is held down counts once.
 * @param {() => string} what the question, and the digest of what is shown of it
 * @param {() => void} [run] what the press does; a form is sent by its button without one
 */
export function presses(what, run = () => {}) {
  /** @type {string | null} */
  let began = null;
  return {
    "aria-disabled": () => (isSettled.value ? null : "true"),
    onpointerdown: () => { began = isSettled.peek() ? what() : ""; },
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.repeat) event.preventDefault();
    },
    onclick: (/** @type {MouseEvent} */ event) => {
      const isMeant = isSettled.peek() && !isUnderDialog() && (event.detail === 0 || began === what());
      began = null;
      if (isMeant) return run();
      event.preventDefault();
      toast("This question has only just come up: look at it, then press again.");
    },
  };
}

/** @type {Map<string, Review>} */
const reviews = new Map();

/** @param {string} id @returns {Review} */
export function reviewOf(id) {
  let found = reviews.get(id);
  if (!found) reviews.set(id, (found = new Review(id)));
  return found;
}

/** What stands in the way of any answer. @param {Card} card */
export function obstacles(card) {
  const found = [];
  if (!may("decide")) found.push("You may look at this question, but not decide it.");
  if (isLocked(card)) found.push("Nothing can be decided in LOCKDOWN.");
  if (card.status !== "pending") found.push("It is decided.");
  return found;
}

/**
 * What a person must still do before a yes: see everything, at HIGH open the change, and give a reason where one is due.
 * The server asks for the same.
 * @param {Card} card @param {Review} review @returns {{ step: "wait" | "expand" | "open" | "reason" | "no", says: string }[]}
 */
export function missing(card, review) {
  /** @type {{ step: "wait" | "expand" | "open" | "reason" | "no", says: string }[]} */
  const found = obstacles(card).map((says) => ({ step: "no", says }));
  const artifact = review.artifact.value;
  if (!artifact) found.push({ step: "wait", says: "What would run is being fetched." });
  else if (artifact.card.digest !== card.digest) found.push({ step: "wait", says: "It has changed; look again." });
  if (card.must_expand && !review.isFull.value) found.push({ step: "expand", says: "Show what is hidden." });
  if (card.risk_level === "HIGH" && !review.isOpened.value) found.push({ step: "open", says: "Open what it would change." });
  if (card.needs_reason && !review.reason.value.trim()) {
    const why = card.risk_level === "HIGH" ? "the risk is HIGH" : "it is asked at level full";
    found.push({ step: "reason", says: `Give a reason: ${why}.` });
  }
  return found;
}

/** Whether questions may be answered together: the same tool, not HIGH, and nothing of them hidden.
 * @param {Card[]} chosen @returns {string} why not; "" where they may */
export function whyNotTogether(chosen) {
  if (chosen.some((card) => card.risk_level === "HIGH")) return "HIGH risk is answered one by one.";
  if (new Set(chosen.map((card) => card.tool_name)).size > 1) return "Only questions about the same tool are answered together.";
  if (chosen.some((card) => card.must_expand && !reviewOf(card.approval_id).isFull.peek())) {
    return "One of them hides a part: open and expand it first.";
  }
  return "";
}

/** @param {Card} card @param {string} verb @param {any} body */
export function send(card, verb, body) {
  return post(`approvals/${encodeURIComponent(card.approval_id)}/${verb}`, body);
}

/** Answer a question, bound to the digest that was shown. Returns whether it was taken.
 * @param {Card} card @param {"approve" | "reject" | "edit" | "respond"} verb @param {any} body */
export async function answer(card, verb, body) {
  const review = reviewOf(card.approval_id);
  review.isBusy.value = true;
  try {
    const given = await send(card, verb, { ...body, digest: card.digest });
    const isAnew = given.approval_id !== card.approval_id;
    const words = given.status !== "pending" ? DONE[verb]
      : isAnew ? "Your change waits as a question of its own" : "Your yes is counted; more people must approve";
    toast(`${words}: ${card.tool_name}.`, "good");
    announce(`${words}: ${card.tool_name}.`);
    review.panel.value = null;
    if (isAnew) go("inbox", given.approval_id);
    return !isAnew;
  } catch (error) {
    if (error instanceof Problem && error.status === 409) await conflict(card, review, error);
    else toast(wordsOf(error), "bad");
    return false;
  } finally {
    review.isBusy.value = false;
    unsettle();
  }
}

const DONE = { approve: "Approved", reject: "Rejected", edit: "Approved with your changes", respond: "Answered" };

/** Somebody was first, or what was shown is not what is asked: fetch it again and say what differs.
 * @param {Card} shown @param {Review} review @param {Problem} problem */
async function conflict(shown, review, problem) {
  if (problem.code === "not_shown") review.forget();
  await review.load();
  const fresh = cards.peek().get(shown.approval_id);
  review.changes.value = fresh ? differences(shown, fresh) : [];
  const decided = problem.told.decided;
  const words = decided && decided.status !== "pending"
    ? `Too late: ${OUTCOMES[/** @type {Card["status"]} */ (decided.status)]}${decided.decided_by ? ` by ${decided.decided_by}` : ""}.`
    : `Not accepted: ${problem.message}`;
  toast(words, "bad");
}

const OUTCOMES = { pending: "waiting", approved: "approved", rejected: "rejected", timeout: "closed without an answer" };

/** What became of a question, in words. One that was edited closed for another. @param {Card} card */
export function outcomeOf(card) {
  return card.status === "timeout" && card.reason?.startsWith("edited by ") ? "edited" : OUTCOMES[card.status];
}

/** What differs between a card as it was shown and as it is. @param {Card} before @param {Card} after */
function differences(before, after) {
  const found = [];
  if (before.digest !== after.digest) found.push("What would run is not what was shown.");
  if (before.status !== after.status) found.push(`It is now ${OUTCOMES[after.status]}.`);
  if (before.votes.length !== after.votes.length) found.push(`${after.votes.length} of ${after.quorum} people have approved.`);
  if (before.comments.length !== after.comments.length) found.push("There are new comments.");
  if (before.expires_at !== after.expires_at) found.push("Its time was changed.");
  return found;
}
