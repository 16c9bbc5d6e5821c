// @ts-check
/** Brakes: which are pulled over what is shown, and pulling and releasing them. */

import { may, project, put } from "./api.js";
import { h } from "./core.js";
import { ago, said } from "./format.js";
import { toast } from "./notify.js";
import { confirm } from "./parts.js";
import { brakes, mode } from "./store.js";

/** @typedef {import("./store.js").Brake} Brake */
/** @typedef {{ agent?: string, run?: string }} Scope */

const WHY = "Why? It is kept in the audit.";

/** What a brake is over, in words. @param {{ project: string | null, agent: string | null, run: string | null }} one */
function over(one) {
  if (one.project === null) return "everybody";
  if (one.agent !== null) return `agent ${one.agent}`;
  return one.run === null ? "this project" : `run ${one.run}`;
}

/** Set the mode of the project, or of an agent or a run in it. @param {string} wanted @param {Scope} scope @param {string} reason */
async function setBrake(wanted, scope, reason) {
  const told = await put("brakes", { mode: wanted, reason, ...scope });
  brakes.value = told.brakes;
  toast(wanted === "NORMAL" ? "The brake is released." : "The brake is pulled.", "good");
}

/** Ask for a reason, then stop what a scope holds. @param {Scope} scope @param {string} what */
export function stop(scope, what) {
  confirm({
    title: `Stop ${what}?`, does: `Stop ${what}`, danger: true, needs: true, label: WHY,
    says: h("p", null, "Nothing of it starts any more, nothing about it can be decided, and what runs is stopped where it can be. An admin releases it."),
    run: (reason) => setBrake("LOCKDOWN", scope, reason),
  });
}

/** @param {Brake} one */
function release(one) {
  const scope = one.agent !== null ? { agent: one.agent } : one.run !== null ? { run: one.run } : {};
  confirm({
    title: "Release this brake?", does: "Release", needs: true, label: WHY, says: h("p", null, "What it holds goes on."),
    run: (reason) => setBrake("NORMAL", scope, reason),
  });
}

/** The brake of exactly this scope, if it is pulled. @param {Scope} scope */
export function pulled(scope) {
  return brakes.value.find((one) => one.project === project && one.agent === (scope.agent ?? null) && one.run === (scope.run ?? null));
}

/** Whether a call or question cannot be decided or run now. @param {{ requester: string, user: string | null, run_id: string | null }} one */
export function isLocked(one) {
  if (mode.value === "LOCKDOWN") return true;
  return brakes.value.some((brake) => brake.mode === "LOCKDOWN" && (brake.project === null
    || (brake.agent === null && brake.run === null)
    || (brake.agent !== null && (brake.agent === one.requester || brake.agent === one.user))
    || (brake.run !== null && (brake.run === one.run_id || brake.holds.includes(one.requester)))));
}

/** A button that stops a scope, for who may; it is gone while the scope is stopped. @param {() => Scope | null} scope @param {string} what */
export function stopButton(scope, what) {
  if (!may("decide")) return null;
  const current = () => scope();
  return h("button", { class: "danger", hidden: () => { const one = current(); return !one || pulled(one)?.mode === "LOCKDOWN"; },
    onclick: () => { const one = current(); if (one) stop(one, what); } }, `Stop ${what}`);
}

/** The brakes in this project, each with its reason; shown on every page. */
export function pulledHere() {
  return h("div", { class: "braked", role: "status", hidden: () => !brakes.value.some((one) => one.project !== null) },
    h("ul", { class: "plain-list", "aria-label": "Brakes in this project" }, () => brakes.value.filter((one) => one.project !== null).map((one) =>
      h("li", null, h("strong", null, one.mode), " over ", said(over(one)),
        h("span", { class: "soft" }, " · ", said(one.by), one.at ? [" ", ago(one.at)] : null, one.reason ? [" · ", said(one.reason)] : null,
          one.holds.length ? [" · holds ", said(one.holds.join(", "))] : null), " ",
        may("admin") ? h("button", { class: "quiet small", onclick: () => release(one) }, "Release") : null))));
}
