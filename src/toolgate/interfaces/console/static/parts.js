// @ts-check
/** Parts several views are made of: loading and refreshing, pages of a list, facts, values, empty states, dialogs. */

import { Problem, attempt, download, path, wordsOf } from "./api.js";
import { effect, h, link, onCleanup, signal } from "./core.js";
import { age, json, said, statusBadge, visible } from "./format.js";
import { show } from "./keyboard.js";

/**
 * A call as the server lists it.
 * @typedef {{
 *   tool_id: string, tool_name: string, status: string, internal_status: string, risk_level: string, requester: string,
 *   user: string | null, run_id: string | null, session_id: string | null, tool_params: any, result: any,
 *   error: string | null, error_type: string | null, approval_id: string | null, approved_by: string | null,
 *   undo_of: string | null, unchecked: boolean, parent_id: string | null, effect_key: string | null, repeat_of: string | null,
 *   settled_by: string | null, step_id: string | null, runner: string | null, attempt: number,
 *   execution_time_ms: number | null, created_at: string, started_at: string | null, completed_at: string | null,
 * }} Call
 */

export const FINAL = new Set(["COMPLETED", "FAILED", "DENIED", "REJECTED", "TIMEOUT", "CANCELLED", "UNKNOWN"]);

/** For how long nobody has known the outcome of a call. @param {Call} call @param {string} words */
export function unknownFor(call, words) {
  return call.internal_status === "UNKNOWN" ? h("span", { class: "warned" }, words, age(call.completed_at ?? call.created_at)) : null;
}

/** A signal that changes only when its value does, so that what shows it, and its focus, stays. @template T
 * @param {() => T} work @returns {import("./core.js").Signal<T>} */
export function distinct(work) {
  /** @type {import("./core.js").Signal<any>} */
  const held = signal(undefined);
  let last = "";
  effect(() => {
    const value = work();
    const text = JSON.stringify(value) ?? "";
    if (text === last) return;
    last = text;
    held.value = value;
  });
  return held;
}

/** Run something soon, once for many asks, and never twice at a time; ends with the view.
 * @param {() => Promise<any>} work @param {number} [ms] */
export function soon(work, ms = 400) {
  let timer = 0;
  let isBusy = false;
  let isAsked = false;
  let isOver = false;
  async function run() {
    isBusy = true;
    isAsked = false;
    await work().catch(() => {});
    isBusy = false;
    if (isAsked && !isOver) ask();
  }
  function ask() {
    isAsked = true;
    if (isBusy || isOver) return;
    clearTimeout(timer);
    timer = setTimeout(run, ms);
  }
  onCleanup(() => {
    isOver = true;
    clearTimeout(timer);
  });
  return ask;
}

/**
 * Something fetched for a view: its value, what went wrong, and a way to fetch it again. What arrives after a later
 * fetch, or after the view, is dropped. @template T @param {() => Promise<T>} fetcher
 */
export function loaded(fetcher) {
  const value = signal(/** @type {T | null} */ (null));
  const problem = signal("");
  const isMissing = signal(false);
  let turn = 0;
  onCleanup(() => {
    turn = -1;
  });
  async function refresh() {
    if (turn < 0) return;
    const mine = ++turn;
    try {
      const found = await fetcher();
      if (mine !== turn) return;
      value.value = found;
      problem.value = "";
    } catch (error) {
      if (mine !== turn) return;
      isMissing.value = error instanceof Problem && error.status === 404;
      problem.value = isMissing.peek() ? "" : wordsOf(error);
    }
  }
  refresh();
  return { value, problem, isMissing, refresh };
}

/** The head of a page: its title, what it is for, and what can be done. @param {any} title @param {any} about
 * @param {...any} actions */
export function heading(title, about, ...actions) {
  return h("div", { class: "heading" }, h("div", null, h("h1", null, title), about ? h("p", { class: "soft" }, about) : null),
    h("div", { class: "actions" }, actions));
}

/** A titled part of a page. @param {any} title @param {...any} children */
export function section(title, ...children) {
  return h("section", { class: "panel piece" }, h("h2", null, title), children);
}

/** What a page says where there is nothing yet. @param {string} title @param {...any} words */
export function empty(title, ...words) {
  return h("div", { class: "empty" }, h("h2", null, title), words.map((one) => (one instanceof Node ? one : h("p", null, one))));
}

/** What went wrong, with a way to try again. @param {() => string} text @param {() => void} again */
export function trouble(text, again) {
  return h("div", { class: "notice bad", role: "alert", hidden: () => !text() }, h("span", null, text), " ",
    h("button", { class: "quiet", onclick: again }, "Try again"));
}

/** Names and values; what has no value is left out. @param {[string, any][]} rows */
export function facts(rows) {
  return h("dl", { class: "pairs" }, rows.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, typeof value === "string" ? said(value) : value))));
}

/** A JSON value, scrolled rather than endless. @param {unknown} value @param {string} label */
export function block(value, label) {
  return h("pre", { class: "value", tabindex: 0, role: "group", "aria-label": label }, json(value));
}

/** An id, short, with the whole of it on hover. @param {string} id */
export function shortId(id) {
  const text = visible(id);
  return h("code", { title: text }, text.length > 14 ? `…${text.slice(-10)}` : text);
}

const WIDTH = 140;

/** What a call does, in one line. @param {any} params */
export function summary(params) {
  if (params === null || params === undefined) return "";
  const text = typeof params === "object" && !Array.isArray(params)
    ? Object.entries(params).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`).join("  ")
    : JSON.stringify(params);
  const line = visible(text.replace(/\s+/g, " ").slice(0, 4 * WIDTH));
  return line.length > WIDTH ? `${line.slice(0, WIDTH)}…` : line;
}

/** What a call is about, in one line. @param {Call} call */
export function whatOf(call) {
  return call.undo_of ? `undoes …${visible(call.undo_of.slice(-10))}` : summary(call.tool_params);
}

/** Who asked, and for whom. @param {{ requester: string, user: string | null }} call */
export function whoOf(call) {
  return visible(call.user && call.user !== call.requester ? `${call.requester} for ${call.user}` : call.requester);
}

/** A call as a link with its state. @param {Call} call */
export function callLink(call) {
  return h("a", { href: link("call", call.tool_id), class: "calllink" },
    statusBadge(call.internal_status), unknownFor(call, "for "), h("b", null, said(call.tool_name)), h("span", { class: "what" }, said(whatOf(call))));
}

/**
 * Ask before doing: a dialog with a text to give and a button that does it.
 * @param {{ title: string, says: any, label?: string, needs?: boolean, does: string, danger?: boolean,
 *   run: (text: string) => Promise<any> }} wanted
 */
export function confirm(wanted) {
  const text = h("input", { id: "confirm-text", maxlength: 1000, autocomplete: "off", required: wanted.needs ?? false });
  const dialog = h("dialog", { class: "sheet", "aria-labelledby": "confirm-title" },
    h("h2", { id: "confirm-title" }, wanted.title), h("div", null, wanted.says),
    h("form", { method: "dialog", onsubmit: () => { attempt(() => wanted.run(text.value.trim())); } },
      wanted.label ? h("div", { class: "field" }, h("label", { for: "confirm-text" }, wanted.label), text) : null,
      h("div", { class: "actions" },
        h("button", { class: wanted.danger ? "danger" : "primary" }, wanted.does),
        h("button", { class: "quiet", type: "button", onclick: () => dialog.close() }, "Cancel"))));
  show(dialog);
}

/** A labelled choice. @param {string} label @param {[string, string][]} options @param {string} value
 * @param {(value: string) => void} onchange */
export function choice(label, options, value, onchange) {
  const select = h("select", { "aria-label": label, onchange: () => onchange(select.value) },
    options.map(([name, words]) => h("option", { value: name, selected: name === value }, words)));
  return select;
}

/** Copy a text and say so. @param {string} text @param {string} label */
export function copier(text, label) {
  const button = h("button", { class: "quiet small", onclick: async () => {
    await navigator.clipboard.writeText(text).catch(() => {});
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  } }, label);
  return button;
}

/** Keeps everything about a call as a file. @param {string} id */
export function recordButton(id) {
  const name = `call-${id.replace(/[^\w-]/g, "_")}.json`;
  return h("button", { onclick: () => attempt(() => download(`${path("tools", id)}/record`, name)) }, "Download as JSON");
}
