// @ts-check
/** Audit: is the chain of events whole, what was written last, and where one call stands in it. */

import { get, post, project, wordsOf } from "../api.js";
import { go, h, link, list, signal } from "../core.js";
import { said, time, visible } from "../format.js";
import { block, copier, distinct, empty, heading, loaded, recordButton, section, shortId, soon, trouble } from "../parts.js";
import { onEvents } from "../store.js";

/** @typedef {{ events: number, verified: number, is_whole: boolean, problem: string | null, head_hash: string | null,
 *   checked_at: string | null, differences: { kind: string, id: string, what: string }[] }} Chain */
/** @typedef {{ seq: number, type: string, at: string, tool_id: string | null, data: any }} Event */

/** The call an event is about; those of a delegation name that instead. @param {Event} one */
const callOf = (one) => (one.type.startsWith("delegation.") ? null : one.tool_id);

const LATEST = 30;
const KEPT = `toolgate.head.${project}`;

/** What this browser saw of the chain the last time it was whole. @returns {{ seq: number, hash: string } | null} */
function kept() {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "null");
  } catch {
    return null;
  }
}

/** @param {Chain} chain */
function keep(chain) {
  try {
    localStorage.setItem(KEPT, JSON.stringify({ seq: chain.verified, hash: chain.head_hash }));
  } catch {
    // Without storage there is nothing to compare with the next time.
  }
}

/** Whether an event this browser saw before is still what it was. @returns {Promise<string>} */
async function compare() {
  const seen = kept();
  if (!seen) return "";
  const found = (await get(`events?after=${seen.seq - 1}&limit=1`)).events[0];
  if (!found) return `Event ${seen.seq}, which this browser saw before, is no longer there.`;
  const call = callOf(found);
  const record = call ? await get(`tools/${encodeURIComponent(call)}/record`) : null;
  const event = record?.events.find((/** @type {any} */ one) => one.seq === seen.seq);
  return event && event.hash !== seen.hash ? `Event ${seen.seq} is another one than this browser saw before.` : "";
}

/** @param {number} number */
const grouped = (number) => number.toLocaleString();

/** @param {import("../core.js").Signal<Event>} event */
function eventRow(event) {
  const one = event.peek(), call = callOf(one);
  const about = ["tool_name", "decision", "decided_by", "approved_by", "granted_by", "giver", "delegate", "reason", "error_code", "by"]
    .filter((name) => one.data[name]).map((name) => String(one.data[name])).join(" · ");
  return h("li", { class: "line-item cells event-cells" }, h("span", { class: "when" }, time(one.at)), h("span", { class: "seq" }, one.seq),
    h("span", { class: "main" }, h("b", null, one.type), h("span", { class: "what" }, said(about))),
    h("span", { class: "side" }, call ? h("a", { href: link("audit", call), "aria-label": `Record of call ${visible(call)}` }, shortId(call)) : null));
}

function chainPage() {
  const chain = loaded(() => /** @type {Promise<Chain>} */ (get("audit")));
  const isBusy = signal(false);
  const memory = signal("");
  const latest = loaded(async () => {
    const { events } = await get("audit");
    const found = await get(`events?after=${Math.max(0, events - LATEST)}&limit=${LATEST}`);
    return /** @type {Event[]} */ (found.events.reverse());
  });
  onEvents(soon(async () => {
    if (!isBusy.peek()) await chain.refresh();
    await latest.refresh();
  }, 700));

  /** @param {boolean} restart */
  async function check(restart) {
    isBusy.value = true;
    try {
      let anew = restart;
      for (;;) {
        const found = /** @type {Chain} */ (await post("audit/verify", { restart: anew }));
        anew = false;
        chain.value.value = found;
        chain.problem.value = "";
        if (found.problem || found.is_whole) break;
      }
      memory.value = await compare();
      const whole = chain.value.peek();
      if (whole?.is_whole && !memory.peek()) keep(whole);
    } catch (error) {
      chain.problem.value = wordsOf(error);
    }
    isBusy.value = false;
  }

  const state = distinct(() => {
    const one = chain.value.value;
    if (!one) return ["", "Looking…"];
    if (one.problem || memory.value) return ["bad", "The chain is broken"];
    if (one.differences.length) return ["bad", "Rows differ from their events"];
    if (one.is_whole) return ["good", one.events ? "The chain is whole" : "Nothing is recorded yet"];
    return ["", one.verified ? "New events are not checked yet" : "Not checked yet"];
  });
  const rows = h("ul", { class: "lines", "aria-label": "Latest events" });
  list(rows, () => latest.value.value ?? [], (one) => String(one.seq), eventRow);
  const wanted = h("input", { id: "audit-call", placeholder: "Id of a call", maxlength: 128, required: true, autocomplete: "off" });
  return h("div", { class: "page" },
    heading("Audit", "Whatever happens is written down once, and each event carries the hash of the one before it: nothing can be changed or left out unnoticed."),
    trouble(() => chain.problem.value, chain.refresh),
    h("section", { class: () => `panel piece standing ${state.value[0]}`, "aria-live": "polite" },
      h("h2", null, () => state.value[1]),
      h("p", { class: "notice bad", hidden: () => !chain.value.value?.problem && !memory.value }, () => said(chain.value.value?.problem ?? memory.value)),
      h("ul", { class: "lines", hidden: () => !chain.value.value?.differences.length },
        () => (chain.value.value?.differences ?? []).map((one) => h("li", null, `${one.kind} ${visible(one.id)}: ${visible(one.what)}`))),
      h("p", null, () => `${grouped(chain.value.value?.verified ?? 0)} of ${grouped(chain.value.value?.events ?? 0)} events checked`,
        () => (chain.value.value?.checked_at ? [" · ", time(chain.value.value.checked_at)] : null)),
      h("progress", { max: () => chain.value.value?.events || 1, value: () => chain.value.value?.verified ?? 0, "aria-label": "Events checked" }),
      () => (chain.value.value?.head_hash ? h("p", { class: "hash" }, h("span", { class: "faint" }, "Hash of the last: "), h("code", null, chain.value.value.head_hash), copier(chain.value.value.head_hash, "Copy")) : null),
      h("div", { class: "actions" },
        h("button", { class: "primary", disabled: () => isBusy.value, onclick: () => check(false) }, () => (isBusy.value ? "Checking…" : "Check now")),
        h("button", { disabled: () => isBusy.value, onclick: () => check(true) }, "Check everything again")),
      h("p", { class: "faint" }, "Keep the hash in another place: as long as it stays the same for its event, nothing before it was changed. ",
        h("code", null, "toolgate audit verify"), " checks the file itself.")),
    section("The record of a call",
      h("form", { class: "inline", onsubmit: (/** @type {SubmitEvent} */ event) => { event.preventDefault(); go("audit", wanted.value.trim()); } },
        h("label", { for: "audit-call", class: "unseen" }, "Id of a call"), wanted, h("button", null, "Show"))),
    section("Latest events", rows, h("p", { class: "faint", hidden: () => !latest.value.value || latest.value.value.length > 0 }, "None yet.")));
}

/** @param {string} id */
function recordPage(id) {
  const { value, problem, isMissing, refresh } = loaded(() => get(`tools/${encodeURIComponent(id)}/record`));
  onEvents((events) => {
    if (events.some((one) => one.call_id === id)) refresh();
  });
  const links = h("ol", { class: "chain" });
  list(links, () => /** @type {any[]} */ (value.value?.events ?? []), (one) => String(one.seq), (event) => {
    const one = event.peek();
    return h("li", { class: one.is_sound ? "good" : "bad" },
      h("p", null, h("b", null, `${one.seq} · ${visible(one.type)}`), " ", time(one.at), " ",
        h("span", { class: `status ${one.is_sound ? "completed" : "failed"}` }, one.is_sound ? "hash fits" : "altered")),
      hashes([["before", one.prev], ["hash", one.hash]]),
      h("details", null, h("summary", null, "What was hashed"), block(one.data, `Body of event ${one.seq}`)));
  });
  return h("div", { class: "page" },
    heading(h("span", { class: "title" }, "Record of ", () => said(value.value?.call.tool_name ?? "a call")), h("span", null, "Call ", shortId(id)),
      h("a", { class: "button", href: link("call", id) }, "What happened"),
      recordButton(id),
      h("a", { class: "button", href: link("audit") }, "The chain")),
    trouble(() => problem.value, refresh),
    () => (isMissing.value && !value.value ? empty("There is no such call here", "Copy the id from its page, or from the log of your client.") : null),
    h("div", { hidden: () => !value.value }, section("Its events in the chain", links)));
}

/** @param {[string, string][]} rows */
function hashes(rows) {
  return h("dl", { class: "hashes" }, rows.map(([name, hash]) => h("div", null, h("dt", null, name), h("dd", null, h("code", null, hash)))));
}

/** @param {string[]} params @returns {Node} */
export function view(params) {
  return params[0] ? recordPage(params[0]) : chainPage();
}
