// @ts-check
/** A policy that a sandboxed run may have written: what it says, and the word that lets it take effect. */

import { attempt, get, post } from "../api.js";
import { effect, h, signal } from "../core.js";
import { presses, unsettle } from "../decide.js";
import { said } from "../format.js";
import { toast } from "../notify.js";
import { empty, loaded, section, shortId, trouble } from "../parts.js";
import { policy } from "../store.js";
import { diffTable, parse } from "./diff.js";

/** @typedef {{ revision: string, kept: string, hidden: number, may_accept: boolean,
 *   files: { name: string, diff: string, warnings: string[] }[] }} Held */

/** @returns {Node} */
export function heldPane() {
  const { value, problem, refresh } = loaded(() => /** @type {Promise<{ held: Held | null }>} */ (get("policy/held")));
  const isBusy = signal(false);
  let known = policy.peek().held;
  effect(() => {
    if (policy.value.held === known) return;
    known = policy.value.held;
    refresh();
  });
  effect(() => {
    value.value;
    unsettle();
  });
  /** @param {Held} held */
  async function accept(held) {
    if (isBusy.peek()) return;
    isBusy.value = true;
    const done = await attempt(() => post("policy/accept", { revision: held.revision }));
    if (done) toast("Accepted: the policy files are followed from now on.", "good");
    await refresh();
    isBusy.value = false;
  }
  return h("div", null, trouble(() => problem.value, refresh), () => {
    const held = value.value?.held;
    if (!value.value) return null;
    if (!held) return empty("No policy waits for a word", "What the policy files say is followed.");
    return [
      h("p", { class: "soft" }, "These files changed while a sandboxed command could write them, so nobody can tell who wrote them. Revision ",
        shortId(held.kept), " stays in force until this is accepted; put the files back, and nothing waits any more."),
      held.files.map((file) => section(said(file.name), file.warnings.map((one) => h("p", { class: "notice bad" }, h("strong", null, "Look closely: "), one)),
        diffTable(parse(file.diff), file.name))),
      held.hidden ? h("p", { class: "notice" }, `${held.hidden} more changed ${held.hidden === 1 ? "file is" : "files are"} none of this project's; an admin sees them.`) : null,
      held.files.length || held.hidden ? null : h("p", { class: "notice warn" }, "The text from before is not known any more: look at the whole file where the server runs."),
      held.may_accept
        ? h("div", { class: "actions" }, h("button", { id: "accept-policy", class: "primary", disabled: () => isBusy.value, ...presses(() => held.revision, () => accept(held)) }, "Accept revision ", shortId(held.revision)))
        : h("p", { class: "notice" }, "Only an admin accepts it, here or with ", h("code", null, `toolgate policy accept ${held.revision.slice(0, 12)}`), " where the server runs."),
    ];
  });
}
