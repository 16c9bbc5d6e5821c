// @ts-check
/** One map of keys for the page: views bind keys for as long as they last, and `?` shows what is bound. */

import { h, onCleanup } from "./core.js";

/** @typedef {{ key: string, does: string, run: (event: KeyboardEvent) => void }} Binding */

/** @type {Set<Binding>} */
const bindings = new Set();

/** Bind keys while the view that is being made lasts. @param {Binding[]} wanted */
export function bind(wanted) {
  for (const one of wanted) bindings.add(one);
  onCleanup(() => wanted.forEach((one) => bindings.delete(one)));
}

/** Whether a key is for what has the focus, and not for us. @param {EventTarget | null} target */
function isTyping(target) {
  if (document.querySelector("dialog[open]")) return true;
  if (target instanceof HTMLInputElement) return target.type !== "checkbox" && target.type !== "radio";
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Listen to keys; called once by the shell. */
export function listen() {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event.target)) return;
    const found = [...bindings].findLast((one) => one.key === event.key);
    if (!found) return;
    event.preventDefault();
    found.run(event);
  });
}

/** Show every key that is bound now. */
export function showHelp() {
  const rows = [...bindings].map((one) => h("div", null, h("dt", null, h("kbd", null, one.key)), h("dd", null, one.does)));
  const dialog = h("dialog", { "aria-labelledby": "help-title", class: "sheet" },
    h("h2", { id: "help-title" }, "Keyboard"),
    h("dl", { class: "keys" }, rows),
    h("p", { class: "faint" }, "Keys do nothing while you type. Enter confirms, Escape closes."),
    h("form", { method: "dialog", class: "actions" }, h("button", { class: "primary" }, "Close")));
  show(dialog);
}

/** What is done whenever a dialog closes. @type {Set<() => void>} */
export const closings = new Set();
/** How many dialogs have not told yet that they closed: the browser does so a moment after they are gone. */
let shown = 0;

/** Whether a press may still have been meant for a dialog, though it landed beside it. */
export const isUnderDialog = () => shown > 0;

/** Show a dialog until it is closed. @param {HTMLDialogElement} dialog */
export function show(dialog) {
  const before = document.activeElement;
  document.body.append(dialog);
  shown++;
  dialog.addEventListener("close", () => {
    shown--;
    dialog.remove();
    for (const one of closings) one();
    if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  });
  dialog.showModal();
}
