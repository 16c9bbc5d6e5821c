// @ts-check
/** What the console says beside its views: short messages that stay a while, read out by screen readers. */

import { h, list, signal } from "./core.js";

/** @typedef {{ id: string, text: string, kind: "info" | "good" | "bad" }} Toast */

/** @type {import("./core.js").Signal<Toast[]>} */
const toasts = signal(/** @type {Toast[]} */ ([]));
const spoken = signal("");
let count = 0;

/** @param {string} id */
function drop(id) {
  toasts.value = toasts.peek().filter((one) => one.id !== id);
}

/** Show a message; bad news stays until it is closed. @param {string} text @param {Toast["kind"]} [kind] */
export function toast(text, kind = "info") {
  const id = String(++count);
  toasts.value = [...toasts.peek().slice(-4), { id, text, kind }];
  if (kind !== "bad") setTimeout(() => drop(id), 6000);
}

/** Have a screen reader say something that is to be seen elsewhere on the page. @param {string} text */
export function announce(text) {
  spoken.value = text;
}

/** The place where messages appear. */
export function toastArea() {
  const area = h("div", { class: "toasts", role: "status", "aria-live": "polite", "aria-label": "Messages" });
  list(area, () => toasts.value, (one) => one.id, (one) =>
    h("div", { class: () => `toast ${one.value.kind}` },
      h("span", null, () => one.value.text),
      h("button", { class: "quiet", "aria-label": "Close message", onclick: () => drop(one.peek().id) }, "✕")));
  return h("div", null, area, h("p", { class: "unseen", "aria-live": "polite" }, () => spoken.value));
}
