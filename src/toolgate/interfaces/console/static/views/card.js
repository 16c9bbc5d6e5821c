// @ts-check
/** One question in full: who asks, what would happen, why a person is asked, and the ways to answer. */

import { may, post, wordsOf } from "../api.js";
import { distinct, effect, h, link, onCleanup } from "../core.js";
import { answer, missing, obstacles, outcomeOf, presses, reviewOf, unsettle } from "../decide.js";
import { ago, countdown, duration, riskBadge, said, time } from "../format.js";
import { toast } from "../notify.js";
import { cards, outcomes } from "../store.js";
import { codeBlock, counts, diffTable, parse, tally } from "./diff.js";
import { panels } from "./panels.js";

/** @typedef {import("../store.js").Card} Card */
/** @typedef {import("../decide.js").Review} Review */

const EFFECT = "What it would change";
/** What one press shows more of a part; see `budget.py`. */
const PIECE = 65_536;

/** @param {string} title @param {import("../core.js").Child} content @param {string} [kind] */
function section(title, content, kind = "") {
  return h("section", { class: `part ${kind}` }, h("h3", null, title), content);
}

/** What is suspicious anywhere in the question. @param {string[]} found */
function warnings(found) {
  if (!found.length) return null;
  return h("div", { class: "notice bad", role: "note" }, h("strong", null, "Look closely: "), "some characters are hidden, move text or imitate others.",
    h("ul", null, found.map((one) => h("li", null, one))));
}

/** Who asks, for whom, in which run. @param {Card} card */
function who(card) {
  return h("p", { class: "soft" },
    h("b", null, h("bdi", null, card.requester)),
    card.user ? [" for ", h("b", null, h("bdi", null, card.user))] : null,
    " asked ", ago(card.created_at), " at ", time(card.created_at),
    card.run_id ? [" · ", h("a", { href: link("run", card.run_id) }, "its run")] : null,
    " · ", h("a", { href: link("call", card.tool_id) }, "the call"));
}

/** Why a person is asked, how sure the gate is, how long, and whether it can be taken back. @param {Card} card */
function facts(card) {
  const undo = !card.undoable ? "Cannot be undone"
    : card.undo_ttl_s ? `Can be undone for ${duration(card.undo_ttl_s)}` : "Can be undone";
  return h("dl", { class: "facts" },
    h("div", null, h("dt", null, "Why a person is asked"), h("dd", null,
      card.reasons.length ? h("ul", null, card.reasons.map((one) => h("li", null, h("bdi", null, one)))) : `The risk is ${card.risk_level}, and the policy asks`)),
    card.confidence === null ? null : h("div", null, h("dt", null, "Confidence"), h("dd", null,
      h("meter", { min: 0, max: 100, value: card.confidence, "aria-label": "Confidence" }), ` ${card.confidence} of 100`,
      card.factors.length ? h("ul", null, card.factors.map((one) => h("li", null, h("bdi", null, one)))) : null)),
    h("div", null, h("dt", null, "Undo"), h("dd", { class: card.undoable ? "" : "warned" }, undo)),
    h("div", null, h("dt", null, "Time"), h("dd", null, card.status === "pending" ? countdown(card.expires_at) : "—",
      h("span", { class: "faint" }, " until ", time(card.expires_at)))),
    card.quorum > 1 || card.lacks.length ? h("div", null, h("dt", null, "Votes"), h("dd", null, `${card.votes.length} of ${Math.max(card.quorum, card.votes.length)} people have approved`,
      card.lacks.map((roles) => `; nobody with role ${roles.join(" or ")} yet`).join(""))) : null,
    card.approvers.length ? h("div", null, h("dt", null, "Who may approve"), h("dd", null,
      card.approvers.map((roles) => roles.join(" or ")).join("; and "))) : null,
    card.including.length ? h("div", null, h("dt", null, "At least one of them"), h("dd", null,
      card.including.map((roles) => roles.join(" or ")).join("; and one "))) : null,
    card.escalated_to.length ? h("div", null, h("dt", null, "Escalated to"), h("dd", null, card.escalated_to.join(", "))) : null);
}

/** @param {import("../decide.js").Block} block */
function drawn(block) {
  return block.style === "diff" ? diffTable(parse(block.text), block.title) : codeBlock(block.text, block.title);
}

/** What would happen: the change, closed at HIGH until it is opened, then the arguments and the agent's own words.
 * @param {Card} card @param {Review} review */
function effects(card, review) {
  const artifact = review.artifact.value;
  if (!artifact) {
    return review.problem.value
      ? h("p", { class: "notice bad" }, review.problem.value, " ", h("button", { onclick: () => review.load() }, "Try again"))
      : h("div", { class: "part skeleton", "aria-busy": "true" }, h("p", { class: "faint" }, "Fetching what would run…"));
  }
  const change = artifact.blocks.filter((one) => one.title === EFFECT);
  const about = artifact.blocks.filter((one) => one.title === "About the change");
  const given = artifact.blocks.filter((one) => one.title === "Arguments");
  const found = artifact.blocks.filter((one) => one.name === "found");
  const claim = artifact.blocks.filter((one) => one.style === "claim");
  const others = artifact.blocks.filter((one) => (one.name === "question" || one.name === "facts") && (one.hidden || review.pieces.has(one.name)));
  const hidden = artifact.blocks.reduce((sum, one) => sum + one.hidden, 0);
  const main = change.length ? change : given;
  const rest = change.length ? [...given, ...about, ...found] : [...about, ...found];
  return [
    main.map((block) => opened(block, card, review)),
    rest.map((block) => section(block.title, drawn(block))),
    others.map((block) => section(block.title, drawn(block))),
    card.must_expand ? h("p", { class: "notice warn", role: "status", hidden: () => review.isFull.value },
      `${hidden.toLocaleString()} characters are not shown. `,
      h("button", { onclick: () => review.expand() }, hidden > PIECE ? "Show more" : "Show everything")) : null,
    claim.map((block) => h("section", { class: "part claim" },
      h("h3", null, "What the agent says ", h("span", { class: "faint" }, "— its claim, not checked")),
      h("blockquote", null, block.text.split("\n").map((line) => h("p", null, h("bdi", null, line)))))),
  ];
}

/** The part that matters most. @param {import("../decide.js").Block} block @param {Card} card @param {Review} review */
function opened(block, card, review) {
  const isDiff = block.style === "diff";
  const lines = isDiff ? parse(block.text) : [];
  const isShut = () => card.risk_level === "HIGH" && card.status === "pending" && !review.isOpened.value;
  return h("section", { class: "part effect" },
    h("h3", null, block.title === "Arguments" ? "What would run" : block.title, " ", isDiff ? tally(counts(lines)) : null),
    () => isShut()
      ? h("button", { class: "curtain", "aria-expanded": "false", onclick: () => { review.isOpened.value = true; } },
          "Open it to decide ", h("span", { class: "faint" }, `HIGH risk · ${block.text.split("\n").length} lines`))
      : isDiff ? diffTable(lines, block.title) : codeBlock(block.text, block.title));
}

/** What people said. @param {Card} card */
function talk(card) {
  if (!card.votes.length && !card.comments.length) return null;
  return section("What people said", h("ul", { class: "talk" },
    card.votes.map((note) => h("li", null, h("b", null, note.by), " approved ", ago(note.at), note.text ? h("p", null, h("bdi", null, note.text)) : null)),
    card.comments.map((note) => h("li", null, h("b", null, note.by), " ", ago(note.at), h("p", null, h("bdi", null, note.text ?? ""))))));
}

/** Take the effect of an approved call back. @param {Card} card */
export async function undo(card) {
  try {
    const done = await post(`tools/${encodeURIComponent(card.tool_id)}/undo`, {});
    const isAsked = done.status === "awaiting_approval";
    toast(done.success ? `Undone${done.unchecked ? ", unchecked" : ""}: ${card.tool_name}.` : isAsked ? "The undo waits for a person." : `Not undone: ${done.error ?? done.status}.`,
      done.success || isAsked ? "good" : "bad");
  } catch (error) {
    toast(wordsOf(error), "bad");
  }
}

/** Whether the call of a decided question can be taken back now. @param {Card} card */
export function canUndo(card) {
  return card.undoable && card.status === "approved" && may("ask") && outcomes.value.get(card.tool_id) === "tool.completed";
}

/** @type {Record<string, string>} */
const STEPS = {
  "tool.started": "It is running.", "tool.dispatched": "It is running.", "tool.progress": "It is running.",
  "tool.completed": "It ran.", "tool.failed": "It failed.", "tool.undone": "It was undone.", "tool.denied": "It did not run.",
  "tool.cancelled": "It was cancelled.", "tool.undo_failed": "Undoing it failed.", "tool.undo_started": "It is being undone.",
};

/** A decided question says who decided. @param {Card} card */
function verdict(card) {
  if (card.status === "pending") return null;
  const kind = card.status === "approved" ? "good" : card.status === "rejected" ? "bad" : "warn";
  const word = outcomeOf(card);
  return h("div", { class: `notice verdict ${kind}`, role: "status" },
    h("strong", null, word[0]?.toUpperCase() + word.slice(1), card.decided_by ? [" by ", h("bdi", null, card.decided_by)] : null),
    card.decided_at ? [" ", ago(card.decided_at)] : null,
    card.reason ? [": ", h("bdi", null, card.reason)] : null,
    ". ", () => STEPS[outcomes.value.get(card.tool_id) ?? ""] ?? "", " ",
    () => (canUndo(card) ? h("button", { onclick: () => undo(card) }, "Undo", h("kbd", { "aria-hidden": "true" }, "u")) : null));
}

/**
 * The card of a question.
 * @param {string} id
 * @param {{ members: () => Card[], next: () => void }} around the identical questions, and how to go on
 */
export function cardView(id, around) {
  const review = reviewOf(id);
  if (!review.artifact.peek()) review.load();
  const held = distinct(() => cards.value.get(id));
  const card = () => held.value;
  const isPending = distinct(() => held.value?.status === "pending");
  const seen = distinct(() => `${review.artifact.value?.card.digest} ${isPending.value} ${review.behalf.value}`);
  effect(() => {
    seen.value;
    unsettle();
  });
  return h("article", { class: "card", "aria-labelledby": "card-title" },
    () => {
      const shown = card();
      if (!shown) return h("div", { class: "empty" }, h("p", null, () => review.problem.value || "Fetching the question…"));
      return [
        h("header", null,
          h("p", { class: "line" }, riskBadge(shown.risk_level), h("code", { class: "tool" }, shown.tool_name),
            shown.edited_from ? h("span", { class: "chip" }, "edited") : null,
            h("span", { class: "grow" }), shown.status === "pending" ? countdown(shown.expires_at) : null),
          h("h2", { id: "card-title" }, h("bdi", null, shown.message)),
          who(shown)),
        verdict(shown),
        () => review.changes.value.length ? h("div", { class: "notice warn", role: "alert" }, h("strong", null, "Changed since you looked: "), review.changes.value.join(" ")) : null,
        warnings(shown.warnings),
        h("div", { class: "body" }, h("div", { class: "main" }, () => effects(shown, review)), h("aside", null, facts(shown), talk(shown))),
      ];
    },
    () => (isPending.value ? footer(id, held, review, around) : null));
}

/** Where a question is answered. It keeps its inputs while the card above changes.
 * @param {string} id @param {import("../core.js").Signal<Card | undefined>} held @param {Review} review
 * @param {{ members: () => Card[], next: () => void }} around */
function footer(id, held, review, around) {
  const card = () => /** @type {Card} */ (held.value);
  const now = () => /** @type {Card} */ (held.peek());
  const alike = distinct(() => around.members().length);
  const together = () => (review.answersAll.peek() && !review.network.peek() && now().risk_level !== "HIGH" ? around.members() : [now()]);

  /** @param {"approve" | "reject"} verb */
  async function give(verb) {
    const reason = review.reason.peek().trim() || null;
    const behalf = review.behalf.peek();
    const network = verb === "approve" && review.network.peek() ? { network: true } : {};
    const body = behalf === null ? { reason, ...network } : { reason, on_behalf_of: behalf };
    for (const one of together()) if (!(await answer(one, verb, body))) return;
    around.next();
  }

  const reason = h("input", {
    id: "reason", "aria-label": "Reason", maxlength: 4000, autocomplete: "off", value: review.reason.peek(),
    placeholder: () => (card().needs_reason ? "Reason (needed)" : "Reason"),
    oninput: () => { review.reason.value = reason.value; },
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault(); // or the same stroke would press the button it moves to
      document.getElementById(aimed)?.focus();
    },
  });
  let aimed = "approve";
  // Whoever has changed the arguments must not approve the old ones by habit.
  const lacks = () => (review.isEdited.value
    ? [{ step: "no", says: "Your changes are approved above; discard them to approve what was asked." }]
    : missing(card(), review));
  const refusal = () => (card().requires_reason && !review.reason.value.trim() ? "Rejecting this tool needs a reason." : "");
  const can = () => obstacles(card()).length === 0 && !review.isBusy.value;
  const what = () => `${id} ${now().digest} ${review.behalf.peek() ?? ""} ${review.network.peek()}`;

  /** Do the next thing that a yes needs, or aim at the button. */
  function aim(/** @type {"approve" | "reject"} */ verb) {
    aimed = verb;
    const next = verb === "approve" ? lacks()[0]?.step : refusal() ? "reason" : undefined;
    if (next === "expand") review.expand();
    else if (next === "open") review.isOpened.value = true;
    else if (next === "reason") reason.focus();
    else document.getElementById(verb)?.focus();
  }
  aims.set(id, aim);
  onCleanup(() => aims.delete(id));

  /** @param {string} name @param {string} label @param {string} [key] */
  const tab = (name, label, key) => h("button", {
    class: "tab quiet", type: "button", "aria-expanded": () => String(review.panel.value === name), disabled: () => !can(),
    onclick: () => {
      review.network.value = false; // what a panel sends is what it shows
      review.panel.value = review.panel.peek() === name ? null : name;
    },
  }, label, key ? h("kbd", { "aria-hidden": "true" }, key) : null);

  return h("footer", { class: "answer" },
    () => panels(review.panel.value, id, review, around),
    () => {
      const count = alike.value;
      if (count < 2) return null;
      if (card().risk_level === "HIGH") return h("p", { class: "faint" }, `${count} identical questions wait; at HIGH each is answered by itself.`);
      return h("label", { class: "check" }, h("input", { type: "checkbox", checked: review.answersAll.peek(), onchange: (/** @type {any} */ event) => { review.answersAll.value = event.target.checked; } }),
        `Answer all ${count} identical questions the same way`);
    },
    () => votes(review),
    () => network(review),
    h("p", { class: "todo", role: "status" }, () => {
      const first = lacks()[0];
      return first ? `Before you approve: ${first.says}` : "";
    }),
    h("div", { class: "bar" },
      reason,
      h("button", { id: "approve", class: "primary", disabled: () => lacks().length > 0 || !can(), ...presses(what, () => give("approve")) }, () => card().approve_label, h("kbd", { "aria-hidden": "true" }, "a")),
      h("button", { id: "reject", class: "danger", title: refusal, disabled: () => !can() || refusal() !== "", ...presses(what, () => give("reject")) }, () => card().reject_label, h("kbd", { "aria-hidden": "true" }, "d"))),
    h("div", { class: "bar tabs" }, tab("edit", "Edit", "e"), tab("respond", "Respond"), tab("remember", "Remember"),
      tab("escalate", "Escalate"), tab("extend", "Extend"), tab("comment", "Comment"),
      () => (card().has_unknown_command ? tab("learn", "Always allow") : null)));
}

/** Give the command a network, where it has none and one's own yes may. @param {Review} review */
function network(review) {
  const reach = review.artifact.value?.network;
  if (!reach || review.panel.value !== null || review.behalf.value !== null) return null;
  return h("label", { class: "check" }, h("input", { id: "network", type: "checkbox", checked: review.network.peek(),
    onchange: (/** @type {any} */ event) => { review.network.value = event.target.checked; } }),
    h("span", null, "Let it use the network, this once. It reaches ", said(reach), " through the gate's proxy, and can send there whatever it can read."));
}

/** Whose vote is given, where others' were lent to who looks. @param {Review} review */
function votes(review) {
  const artifact = review.artifact.value;
  if (!artifact?.on_behalf_of.length) return null;
  const choose = h("select", { id: "behalf", onchange: () => { review.behalf.value = choose.value || null; } },
    artifact.has_no_own_vote ? null : h("option", { value: "", selected: review.behalf.peek() === null }, "yourself"),
    artifact.on_behalf_of.map((name) => h("option", { value: name, selected: review.behalf.peek() === name }, name)));
  return h("p", { class: "notice" }, h("label", { for: "behalf" }, "You decide for "), choose,
    artifact.has_no_own_vote ? " You have no vote of your own on this." : null);
}

/** How the keyboard reaches the answers of the card that is shown. @type {Map<string, (verb: "approve" | "reject") => void>} */
export const aims = new Map();
