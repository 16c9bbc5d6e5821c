// @ts-check
/** The other ways to answer: with other arguments, with words, for a while, by others, later. */

import { Problem, attempt, get, post, wordsOf } from "../api.js";
import { h, onCleanup, signal } from "../core.js";
import { answer, missing, presses, send, unsettle } from "../decide.js";
import { time, visible } from "../format.js";
import { toast } from "../notify.js";
import { copier } from "../parts.js";
import { cards } from "../store.js";
import { diffTable, parse, tally } from "./diff.js";

/** @typedef {import("../store.js").Card} Card */
/** @typedef {import("../decide.js").Review} Review */
/** @typedef {{ members: () => Card[], next: () => void }} Around */

/** @param {string} id @param {string} label @param {HTMLElement} input @param {string} [hint] */
function field(id, label, input, hint) {
  input.id = id;
  return h("div", { class: "field" }, h("label", { for: id }, label), input, hint ? h("p", { class: "faint" }, hint) : null);
}

/** What a press in a panel is about: the question, and what of it is shown. @param {string} id */
const seenOf = (id) => `${id} ${now(id).digest}`;

/** @param {string} title @param {(event: SubmitEvent) => void} submit @param {...import("../core.js").Child} content */
function form(title, submit, ...content) {
  return h("form", { class: "panel", "aria-label": title, onsubmit: (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    submit(event);
  } }, h("h3", null, title), content);
}

/** @param {string | null} name @param {string} id @param {Review} review @param {Around} around @returns {Node | null} */
export function panels(name, id, review, around) {
  const make = name === null ? undefined : PANELS[name];
  if (!make) return null;
  const node = make(id, review, around);
  queueMicrotask(() => {
    const first = node.querySelector("textarea, input, select");
    if (first instanceof HTMLElement) first.focus();
  });
  return node;
}

/** @param {string} id @returns {Card} */
const now = (id) => /** @type {Card} */ (cards.peek().get(id));

/** Do something when typing has paused. @param {() => void} work @param {number} wait */
function pausing(work, wait) {
  let timer = 0;
  onCleanup(() => clearTimeout(timer));
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, wait);
  };
}

/** One argument as a person changes it: a text as it is, anything else as JSON. @typedef {{ node: Node, read: () => [string, any] }} Field */

/** @param {string} name @param {any} value @param {number} at @param {() => void} changed @returns {Field} */
function argument(name, value, at, changed) {
  const isText = typeof value === "string";
  const shown = isText ? value : JSON.stringify(value, null, 2);
  const rows = Math.min(12, shown.split("\n").length);
  const input = h("textarea", { rows, spellcheck: "false", autocomplete: "off", class: rows === 1 ? "single" : "", value: shown, oninput: changed });
  return {
    node: field(`edit-${at}`, name, input),
    read: () => [name, isText ? input.value : JSON.parse(input.value)],
  };
}

/** Approve with other arguments; the server says how they differ from what was asked.
 * @param {string} id @param {Review} review @param {Around} around */
function edit(id, review, around) {
  const artifact = review.artifact.peek();
  const asked = artifact?.arguments_text ?? "{}";
  const given = Object.entries(artifact?.arguments ?? {});
  const difference = signal(/** @type {{ diff: string, additions: number, deletions: number, warnings: string[] } | null} */ (null));
  const problem = signal("");
  // A text field would hide what only its code makes visible, and change line ends: such arguments are edited as JSON.
  const isPlain = given.length > 0 && !/\\(u[0-9a-f]{4}|r)/.test(asked);
  const asJson = signal(!isPlain || review.edited.peek() !== null);
  /** @type {() => any} */
  let read = () => ({});

  const compare = async () => {
    try {
      difference.value = await send(now(id), "difference", { tool_params: read() });
      problem.value = "";
    } catch (error) {
      difference.value = null;
      problem.value = error instanceof SyntaxError ? `This is not JSON yet: ${error.message}` : wordsOf(error);
    }
  };
  const soon = pausing(compare, 250);
  const changed = () => {
    review.isEdited.value = true;
    soon();
  };

  function whole() {
    const text = h("textarea", { rows: Math.min(14, asked.split("\n").length + 1), spellcheck: "false", autocomplete: "off", value: review.edited.peek() ?? asked });
    text.addEventListener("input", () => {
      review.edited.value = text.value;
      changed();
    });
    read = () => {
      const value = JSON.parse(text.value);
      if (value === null || typeof value !== "object" || Array.isArray(value)) throw new SyntaxError("the arguments are one JSON object");
      return value;
    };
    return field("edit-arguments", "Arguments", text);
  }

  function parts() {
    const fields = given.map(([name, value], at) => argument(name, value, at, changed));
    read = () => Object.fromEntries(fields.map((one) => one.read()));
    return fields.map((one) => one.node);
  }

  const reset = () => {
    review.edited.value = null;
    review.isEdited.value = false;
    review.panel.value = null;
  };
  const isSame = () => {
    const found = difference.value;
    return !found || found.additions + found.deletions === 0;
  };
  return form("Approve with other arguments", async () => {
    const card = now(id);
    if (missing(card, review).length || problem.peek() || isSame()) return;
    if (await answer(card, "edit", { tool_params: read(), reason: review.reason.peek().trim() || null })) {
      review.isEdited.value = false;
      around.next();
    }
  },
    () => {
      const node = asJson.value ? whole() : parts();
      queueMicrotask(compare);
      return node;
    },
    h("p", { class: "faint" }, "What is masked stays what it really is where you leave it as it is. ",
      isPlain ? h("button", { type: "button", class: "quiet", hidden: () => asJson.value, onclick: () => {
        try {
          review.edited.value = JSON.stringify(read(), null, 2);
        } catch {
          review.edited.value = null; // what cannot be read begins anew
        }
        asJson.value = true;
      } }, "Edit as JSON") : null),
    () => (problem.value ? h("p", { class: "notice bad", role: "alert" }, visible(problem.value)) : null),
    () => {
      const found = difference.value;
      if (!found) return null;
      if (isSame()) return h("p", { class: "faint" }, "Nothing is changed yet.");
      return [
        found.warnings.map((one) => h("p", { class: "notice bad" }, one)),
        h("p", null, "Your change ", tally({ added: found.additions, removed: found.deletions })),
        diffTable(parse(found.diff), "Your change of the arguments"),
      ];
    },
    h("div", { class: "actions" },
      h("button", { class: "primary", ...presses(() => seenOf(id)), disabled: () => isSame() || review.isBusy.value || missing(now(id), review).length > 0 }, "Approve with these arguments"),
      h("button", { type: "button", class: "quiet", onclick: reset }, "Discard")));
}

/** Answer the agent instead of running the call. @param {string} id @param {Review} review @param {Around} around */
function respond(id, review, around) {
  const text = h("textarea", { rows: 4, required: true, maxlength: 100_000 });
  return form("Answer the agent instead of running it", async () => {
    if (await answer(now(id), "respond", { response: text.value })) around.next();
  },
    field("respond-text", "What the agent gets as the result", text, "The call does not run; it ends as rejected with your answer."),
    h("div", { class: "actions" }, h("button", { class: "primary", ...presses(() => seenOf(id)), disabled: () => review.isBusy.value }, "Send the answer")));
}

const SPANS = [["900", "15 minutes"], ["3600", "1 hour"], ["28800", "8 hours"], ["86400", "1 day"], ["604800", "1 week"]];

/** Have a yes remembered: how often, how long, for which arguments; and what that would have let through.
 * @param {string} id @param {Review} review @param {Around} around */
function remember(id, review, around) {
  const given = Object.entries(review.artifact.peek()?.arguments ?? {});
  const uses = h("input", { type: "number", min: 1, max: 1000, value: "10", required: true });
  const seconds = h("select", null, SPANS.map(([value, label]) => h("option", { value, selected: value === "3600" }, label)));
  const found = signal("");
  const examples = signal(/** @type {string[]} */ ([]));
  const rows = given.map(([name, value], at) => {
    const kind = h("select", { id: `pattern-${at}`, onchange: () => { words.hidden = kind.value !== "like"; bounds.hidden = kind.value !== "between"; soon(); } },
      h("option", { value: "exact" }, "exactly this"),
      typeof value === "string" ? h("option", { value: "like" }, "like…") : null,
      typeof value === "number" ? h("option", { value: "between" }, "between…") : null,
      h("option", { value: "any" }, "anything"));
    const words = h("input", { "aria-label": `Pattern for ${visible(name)}`, value: String(value), hidden: true, oninput: () => soon() });
    /** @param {string} label @param {number} end */
    const bound = (label, end) => h("input", { type: "number", step: "any", "aria-label": `${label} for ${visible(name)}`, value: String(end), oninput: () => soon() });
    const lowest = bound("Lowest", Math.min(0, Number(value)));
    const highest = bound("Highest", Number(value));
    const bounds = h("span", { class: "bounds", hidden: true }, lowest, " and ", highest);
    return { name, kind, words, lowest, highest, node: h("div", { class: "pattern" }, h("label", { for: `pattern-${at}` }, h("code", null, visible(name))), kind, words, bounds) };
  });
  const wanted = () => {
    /** @type {Record<string, any>} */
    const pattern = {};
    for (const { name, kind, words, lowest, highest } of rows) {
      if (kind.value === "any") pattern[name] = "any";
      else if (kind.value === "like") pattern[name] = { like: words.value };
      else if (kind.value === "between") pattern[name] = { at_least: Number(lowest.value), at_most: Number(highest.value) };
    }
    return { uses: Number(uses.value), seconds: Number(seconds.value), pattern: Object.keys(pattern).length ? pattern : null };
  };
  const look = async () => {
    try {
      const seen = await post(`approvals/${encodeURIComponent(id)}/grant-preview`, wanted());
      found.value = `Would have matched ${seen.matched} of the last ${seen.looked_at} calls` + (seen.asked ? `; a person was asked about ${seen.asked} of them.` : ".");
      examples.value = seen.examples;
    } catch (error) {
      examples.value = [];
      found.value = error instanceof Problem && error.status === 404 ? "" : wordsOf(error);
    }
  };
  const soon = pausing(look, 250);
  for (const input of [uses, seconds]) input.addEventListener("input", soon);
  look();
  const card = () => /** @type {Card} */ (cards.value.get(id));
  return form("Approve, and remember it", async () => {
    if (missing(now(id), review).length) return;
    if (await answer(now(id), "approve", { reason: review.reason.peek().trim() || null, remember: wanted() })) around.next();
  },
    h("div", { class: "two" }, field("remember-uses", "At most this many times", uses), field("remember-seconds", "For", seconds)),
    rows.length ? h("fieldset", null, h("legend", null, "For which arguments"), rows.map((row) => row.node)) : null,
    h("p", { class: "notice", role: "status", hidden: () => !found.value }, () => found.value),
    () => (examples.value.length ? h("ul", { class: "examples" }, examples.value.slice(0, 5).map((one) => h("li", null, h("code", null, visible(one))))) : null),
    h("div", { class: "actions" }, h("button", { class: "primary", ...presses(() => seenOf(id)), disabled: () => review.isBusy.value || missing(card(), review).length > 0 }, "Approve and remember")));
}

/** Change a question without answering it. @param {string} id @param {Review} review @param {string} verb
 * @param {() => any} body @param {string} done */
async function change(id, review, verb, body, done) {
  const given = await attempt(() => send(now(id), verb, body()));
  if (!given) return;
  if (review.panel.peek() === verb) review.panel.value = null;
  toast(done, "good");
  await review.load();
}

/** @param {string} id @param {Review} review */
function escalate(id, review) {
  const named = () => now(id).escalates_to.join(", ");
  return form("Ask others too", () => change(id, review, "escalate", () => ({}), "Others are asked too."),
    h("p", null, () => (named() ? `Whoever has one of the roles the policy names may decide as well: ${named()}.` : "The policy names nobody to ask instead.")),
    h("div", { class: "actions" }, h("button", { class: "primary", disabled: () => !named() }, "Escalate")));
}

/** @param {string} id @param {Review} review */
function extend(id, review) {
  const seconds = h("select", null, SPANS.map(([value, label]) => h("option", { value }, label)));
  return form("Extend the time", () => change(id, review, "extend", () => ({ seconds: Number(seconds.value) }), "The time was extended."),
    field("extend-seconds", "From now", seconds), h("p", { class: "faint" }, "It now expires at ", time(now(id).expires_at), "."),
    h("div", { class: "actions" }, h("button", { class: "primary" }, "Extend")));
}

/** @param {string} id @param {Review} review */
function comment(id, review) {
  const text = h("textarea", { rows: 3, required: true, maxlength: 4000 });
  return form("Discuss it", () => change(id, review, "comment", () => ({ text: text.value }), "Your comment was added."),
    field("comment-text", "Comment", text, "Everybody who can see the question reads it; the agent does not."),
    h("div", { class: "actions" }, h("button", { class: "primary" }, "Comment")));
}

/** Have the policy know an unknown command line to the letter: the change is shown before anything is written.
 * @param {string} id @param {Review} review */
function learn(id, review) {
  const at = `tools/${encodeURIComponent(now(id).tool_id)}/learn`;
  const found = signal(/** @type {any} */ (null));
  const problem = signal("");
  const isBusy = signal(false);
  get(at).then((told) => {
    found.value = told;
    unsettle();
  }, (error) => { problem.value = wordsOf(error); });
  async function write() {
    if (isBusy.peek()) return;
    isBusy.value = true;
    const done = await attempt(() => post(at, { revised: found.peek().revised }));
    isBusy.value = false;
    if (!done) return;
    review.panel.value = null;
    toast(done.is_followed ? "The policy knows this line from now on. This question still waits for your answer."
      : "It is written, but a sandboxed command could write the file just now: accept it under Policy.", "good");
  }
  return form("Allow this exact line from now on", write, () => {
    const told = found.value;
    if (problem.value) return h("p", { class: "notice bad", role: "alert" }, visible(problem.value));
    if (!told) return h("p", { class: "faint" }, "Looking for the narrowest change…");
    return [
      h("p", null, told.then === "allow" ? "With this change of the policy these very words run unasked, and no others; each on its own, from any directory of the workspace:"
        : `With this change the policy knows these very words; it still says ${told.then} (${visible(told.because)}):`),
      h("ul", { class: "examples" }, told.lines.map((/** @type {string} */ line) => h("li", null, h("code", null, line)))),
      diffTable(parse(told.diff), "The change of the policy"),
      told.may_write
        ? h("div", { class: "actions" }, h("button", { class: "primary", ...presses(() => told.revised), disabled: () => isBusy.value }, "Write it into the policy"))
        : h("div", { class: "actions" }, copier(told.diff, "Copy the change"), h("span", { class: "faint" }, "It is written by an admin, or with ",
          h("code", null, visible(`toolgate policy learn ${now(id).tool_id} --write`)), " where the server runs.")),
    ];
  });
}

/** @type {Record<string, (id: string, review: Review, around: Around) => HTMLElement>} */
const PANELS = { edit, respond, remember, escalate, extend, comment, learn };
