// @ts-check
/** Policy: what is in force, what it says of a call, and what another text would have done with recorded calls. */

import { get, may, post, wordsOf } from "../api.js";
import { effect, h, link, list, route, signal } from "../core.js";
import { localTime, said, visible } from "../format.js";
import { announce } from "../notify.js";
import { heldPane } from "./held.js";
import { block, choice, distinct, empty, facts, heading, loaded, section, shortId, trouble } from "../parts.js";
import { mode, policy } from "../store.js";

/** @typedef {{ name: string, layer: string, text: string, is_masked: boolean }} PolicyFile */
/** @typedef {{ tool_name: string, risk_level: string, modes: Record<string, string>, rules: { rule: string, where: string, asks?: string }[],
 *   rates: any[] }} Stance */
/** @typedef {{ revision: string, default: string, files: PolicyFile[], tools: Stance[] }} Source */
/** @typedef {{ tool: string, from: string, to: string, count: number, is_stricter: boolean,
 *   reasons: { reason: string, count: number }[], examples: string[] }} Group */
/** @typedef {{ calls: number, changed: number, groups: Group[], skipped: Record<string, number>, changes: any[], shifts: any[],
 *   problems: any[], revision: string | null, reached: string | null, isOver: boolean }} Outcome */

const MODES = ["NORMAL", "ALERT", "DEGRADED", "LOCKDOWN", "RECOVERY"];
const TABS = /** @type {[string, string][]} */ ([["", "In force"], ["explain", "Explain a call"], ["try", "Try a change"], ["held", "Held"]]);
const WORDS = /** @type {Record<string, string>} */ ({ allow: "completed", ask: "awaiting_approval", deny: "denied" });

/** allow, ask or deny in its colour. @param {string} text */
const word = (text) => h("span", { class: `status ${WORDS[text] ?? ""}` }, text);
/** @param {string} name */
const base = (name) => visible(name.split("/").at(-1) ?? name);

/** @param {() => Source | null} source */
function inForce(source) {
  const files = distinct(() => source()?.files ?? []);
  const tools = distinct(() => source()?.tools ?? []);
  return h("div", null,
    section("What each tool gets", h("p", { class: "soft" }, "As far as the mode alone decides; arguments, roles and rates may make it stricter."),
      h("div", { class: "wide-table", tabindex: 0, role: "group", "aria-label": "Tools and modes" }, () => h("table", null,
        h("thead", null, h("tr", null, h("th", { scope: "col" }, "Tool"), MODES.map((name) => h("th", { scope: "col", class: () => (mode.value === name ? "now" : null) }, name.toLowerCase())), h("th", { scope: "col" }, "Rules"))),
        h("tbody", null, tools.value.map((one) => h("tr", null, h("th", { scope: "row" }, said(one.tool_name)),
          MODES.map((name) => h("td", { class: () => (mode.value === name ? "now" : null) }, word(one.modes[name] ?? ""))),
          h("td", null, h("details", null, h("summary", null, `${one.rules.length + one.rates.length}`),
            h("ul", { class: "plain-list" }, one.rules.map((rule) => h("li", null, h("b", null, said(rule.rule)), " ", rule.asks ? [said(rule.asks), " "] : null, h("span", { class: "faint" }, said(rule.where)))),
              one.rates.map((rate) => h("li", null, visible(`${rate.limit} in ${rate.window_s} s per ${rate.per}`)))))))))))),
    () => files.value.map((file) => section(base(file.name), h("p", { class: "soft" }, said(file.name), ` · layer ${file.layer}`, file.is_masked ? " · something in it is hidden" : ""), numbered(file.text))),
    () => (source() && !files.value.length ? h("p", { class: "notice" }, "This server's policy comes from no file: every tool follows its own definition and risk.") : null));
}

/** A text with the numbers of its lines. @param {string} text */
function numbered(text) {
  return h("pre", { class: "value source", tabindex: 0, role: "group", "aria-label": "Text of the file" },
    text.replace(/\n$/, "").split("\n").map((line) => h("span", { class: "code-line" }, visible(line), "\n")));
}

/** @param {() => Source | null} source */
function explaining(source) {
  const answer = signal(/** @type {any} */ (null));
  const problem = signal("");
  const names = distinct(() => (source()?.tools ?? []).map((one) => one.tool_name));
  const tool = h("input", { id: "explain-tool", list: "explain-tools", required: true, autocomplete: "off", spellcheck: "false", maxlength: 128 });
  const params = h("textarea", { id: "explain-params", rows: 6, spellcheck: "false", value: "{}" });
  const behavior = h("input", { id: "explain-behavior", autocomplete: "off", maxlength: 128, placeholder: "none" });
  let inMode = "";
  effect(() => {
    const { params: at, query } = route.value;
    if (at[0] !== "explain" || !query.get("tool")) return;
    tool.value = query.get("tool") ?? "";
    try {
      params.value = JSON.stringify(JSON.parse(query.get("params") ?? "{}"), null, 2);
    } catch {
      params.value = "{}";
    }
    ask();
  });
  async function ask() {
    let given;
    try {
      given = JSON.parse(params.value || "{}");
    } catch (error) {
      problem.value = `The arguments are not JSON: ${error instanceof Error ? error.message : ""}`;
      return;
    }
    try {
      const body = { tool_name: tool.value.trim(), tool_params: given, ...(inMode ? { mode: inMode } : {}), ...(behavior.value ? { behavior: behavior.value } : {}) };
      answer.value = (await post("policy/explain", body)).explanation;
      problem.value = "";
      announce(`The policy says ${answer.peek().verdict}`);
    } catch (error) {
      problem.value = wordsOf(error);
    }
  }
  function told() {
    const one = answer.value;
    if (!one) return h("p", { class: "faint" }, "Nothing is asked, reserved or run: you see what the policy makes of a call by you.");
    return [
      h("p", { class: "verdict-line" }, word(one.verdict), " ", said(one.decided_by)),
      facts([["Level", one.level], ["Risk", one.risk], ["Confidence", one.confidence === null ? null : String(one.confidence)],
        ["Asked", one.approval ? `${one.approval.who}, within ${one.approval.timeout_s} s` : null], ["Policy", shortId(one.policy_revision)]]),
      one.rules.length ? [h("h3", null, "Rules that applied"), h("ul", { class: "plain-list" }, one.rules.map((/** @type {any} */ rule) =>
        h("li", null, word(rule.says), " ", h("b", null, said(rule.rule)), " ", said(rule.reason), " ", h("span", { class: "faint" }, said(rule.where)))))] : null,
      one.rates.length ? [h("h3", null, "Limits"), h("ul", { class: "plain-list" }, one.rates.map((/** @type {any} */ rate) => h("li", null, visible(`${rate.limit} in ${rate.window_s} s per ${rate.per} (${rate.section})`))))] : null,
      one.silent.length ? h("p", { class: "faint" }, "Silent: ", said(one.silent.join(", "))) : null,
      Object.keys(one.facts ?? {}).length ? h("details", null, h("summary", null, "What the arguments point at"), block(one.facts, "Facts")) : null,
    ];
  }
  return h("div", { class: "columns even" },
    section("A test call", h("form", { onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); ask(); } },
      h("div", { class: "field" }, h("label", { for: "explain-tool" }, "Tool"), tool, () => h("datalist", { id: "explain-tools" }, names.value.map((name) => h("option", { value: name })))),
      h("div", { class: "field" }, h("label", { for: "explain-params" }, "Arguments (JSON)"), params),
      h("div", { class: "pair" },
        h("div", { class: "field" }, h("span", { class: "label", "aria-hidden": "true" }, "Mode"), choice("Mode", [["", "As it is now"], ...MODES.map((name) => /** @type {[string, string]} */ ([name, name]))], "", (value) => { inMode = value; })),
        h("div", { class: "field" }, h("label", { for: "explain-behavior" }, "Behavior"), behavior)),
      h("p", { class: "notice bad", role: "alert", hidden: () => !problem.value }, () => problem.value),
      h("div", { class: "actions" }, h("button", { class: "primary" }, "Explain")))),
    section("What the policy says", told));
}

/** @param {Outcome} sum @param {any} part @returns {Outcome} */
function add(sum, part) {
  const groups = new Map(sum.groups.map((one) => [`${one.tool} ${one.from} ${one.to} ${one.is_stricter}`, { ...one }]));
  for (const one of part.groups) {
    const key = `${one.tool} ${one.from} ${one.to} ${one.is_stricter}`;
    const known = groups.get(key);
    if (!known) {
      groups.set(key, one);
      continue;
    }
    known.count += one.count;
    known.examples = [...known.examples, ...one.examples].slice(0, 5);
    const reasons = new Map(known.reasons.map((reason) => [reason.reason, reason.count]));
    for (const { reason, count } of one.reasons) reasons.set(reason, (reasons.get(reason) ?? 0) + count);
    known.reasons = [...reasons].map(([reason, count]) => ({ reason, count }));
  }
  const skipped = { ...sum.skipped };
  for (const [why, count] of Object.entries(part.skipped)) skipped[why] = (skipped[why] ?? 0) + Number(count);
  return {
    ...sum, calls: sum.calls + part.calls, changed: sum.changed + part.changed, skipped, reached: part.reached ?? sum.reached,
    groups: [...groups.values()].sort((one, other) => other.count - one.count), isOver: !part.next,
    revision: part.revision, changes: sum.changes.length ? sum.changes : part.changes, shifts: sum.shifts.length ? sum.shifts : part.shifts,
  };
}

/** @type {Outcome} */
const NOTHING = { calls: 0, changed: 0, groups: [], skipped: {}, changes: [], shifts: [], problems: [], revision: null, reached: null, isOver: false };

/** @param {() => Source | null} source */
function trying(source) {
  const outcome = signal(/** @type {Outcome | null} */ (null));
  const problem = signal("");
  const isBusy = signal(false);
  let span = "2592000";
  let against = "current";
  let turn = 0;
  /** What a person wrote, by file; kept while the page lasts. @type {Map<string, string>} */
  const drafts = new Map();
  const files = distinct(() => {
    const one = source();
    return !one ? [] : one.files.length ? one.files : [{ name: "policy.yaml", layer: "project", text: "default: by_risk\n", is_masked: false }];
  });
  async function start() {
    const mine = ++turn;
    isBusy.value = true;
    [outcome.value, problem.value] = [null, ""];
    const changed = Object.fromEntries([...drafts].filter(([name, text]) => files.peek().find((one) => one.name === name)?.text !== text));
    const wanted = Object.keys(changed).length ? changed : Object.fromEntries(files.peek().slice(0, 1).map((one) => [one.name, one.text]));
    try {
      let sum = NOTHING;
      let after;
      do {
        const part = /** @type {any} */ (await post("policy/simulate", { files: wanted, against, since_seconds: Number(span), ...(after ? { after } : {}) }));
        if (mine !== turn) return;
        if (!part.success) {
          outcome.value = { ...NOTHING, problems: part.problems, isOver: true };
          break;
        }
        sum = add(sum, part);
        outcome.value = sum;
        after = part.next;
      } while (after);
      announce(outcome.peek()?.problems.length ? "The text is not a valid policy" : `${outcome.peek()?.changed} of ${outcome.peek()?.calls} calls would be decided differently`);
    } catch (error) {
      if (mine === turn) problem.value = wordsOf(error);
    }
    if (mine === turn) isBusy.value = false;
  }
  const stop = () => { turn++; isBusy.value = false; };
  const groups = h("ul", { class: "plain-list groups" });
  list(groups, () => outcome.value?.groups ?? [], (one) => `${one.tool} ${one.from} ${one.to} ${one.is_stricter}`, (group) => h("li", null,
    h("p", null, h("b", null, () => `${group.value.count.toLocaleString()} × `, said(group.peek().tool)), " ", word(group.peek().from), " → ", word(group.peek().to),
      h("span", { class: `tone ${group.peek().is_stricter ? "bad" : "good"}` }, group.peek().is_stricter ? " stricter" : " looser")),
    h("ul", { class: "plain-list soft" }, () => group.value.reasons.slice(0, 3).map((one) => h("li", null, said(one.reason), one.count > 1 ? ` (${one.count.toLocaleString()})` : ""))),
    h("p", { class: "faint" }, "such as ", () => group.value.examples.map((id, at) => [at ? ", " : "", h("a", { href: link("call", id) }, shortId(id))]))));
  function result() {
    const one = outcome.value;
    if (!one) return h("p", { class: "faint" }, isBusy.value ? "Reading the text…" : "Recorded calls are judged again under your text; nothing is asked, run or changed. Rates and budgets are not replayed.");
    if (one.problems.length) return h("div", { class: "notice bad" }, h("p", null, h("b", null, "This text is not a valid policy:")),
      h("ul", { class: "plain-list" }, one.problems.map((each) => h("li", null, h("code", null, `${base(each.file)}:${each.line}`), " ", said(each.path), ": ", said(each.message)))));
    const skipped = Object.entries(one.skipped);
    return [
      h("p", { class: "big" }, h("b", null, one.changed.toLocaleString()), ` of ${one.calls.toLocaleString()} calls would be decided differently`),
      h("p", { class: "faint" }, one.reached ? `${one.isOver ? "Back to" : "So far back to"} ${localTime(one.reached)}` : "There were no calls in this time.",
        skipped.length ? ` · not judged: ${skipped.map(([why, count]) => `${count} ${why.replaceAll("_", " ")}`).join(", ")}` : ""),
      one.changes.length ? h("details", null, h("summary", null, `${one.changes.length} changed ${one.changes.length === 1 ? "key" : "keys"}`),
        h("ul", { class: "plain-list" }, one.changes.map((each) => h("li", null, h("code", null, visible(each.path)), ": ", said(JSON.stringify(each.old)), " → ", said(JSON.stringify(each.new)))))) : null,
      one.shifts.length ? h("details", null, h("summary", null, "What tools get in each mode"), h("ul", { class: "plain-list" },
        one.shifts.map((each) => h("li", null, h("b", null, said(each.tool)), ` in ${each.mode}: `, word(each.old), " → ", word(each.new))))) : null,
    ];
  }
  return h("div", { class: "columns even" },
    section("Changed text", h("form", { onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); start(); } },
      () => files.value.map((file, at) => h("div", { class: "field" }, h("label", { for: `try-${at}`, title: visible(file.name) }, base(file.name)),
        file.is_masked ? h("p", { class: "notice warn" }, "Something in this file is hidden from you, so it cannot be tried from here.") : textArea(`try-${at}`, file, drafts))),
      h("div", { class: "pair" },
        choice("Calls of", [["86400", "the last day"], ["604800", "the last week"], ["2592000", "the last 30 days"], ["31536000", "the last year"]], span, (value) => { span = value; }),
        choice("Compared with", [["current", "against the policy in force"], ["recorded", "against what was decided"]], against, (value) => { against = value; })),
      h("p", { class: "notice bad", role: "alert", hidden: () => !problem.value }, () => problem.value),
      h("div", { class: "actions" }, h("button", { class: "primary", disabled: () => isBusy.value }, () => (isBusy.value ? "Replaying…" : "Try it on recorded calls")),
        h("button", { type: "button", class: "quiet", hidden: () => !isBusy.value, onclick: stop }, "Stop")),
      h("p", { class: "faint" }, "To put a change in force, change the file where the server runs: it is read again by itself, and the change is recorded."))),
    section("What it would have done", h("progress", { hidden: () => !isBusy.value, "aria-label": "Replaying" }), result, groups));
}

/** @param {string} id @param {PolicyFile} file @param {Map<string, string>} drafts */
function textArea(id, file, drafts) {
  const area = h("textarea", { id, rows: Math.min(24, file.text.split("\n").length + 2), spellcheck: "false", wrap: "off", value: drafts.get(file.name) ?? file.text });
  area.addEventListener("input", () => drafts.set(file.name, area.value));
  return area;
}

/** @returns {Node} */
export function view() {
  if (!may("decide")) return h("div", { class: "page" }, empty("Only people who decide see the policy", "Ask an operator for an account that may decide in this project."));
  const { value, problem, refresh } = loaded(() => /** @type {Promise<Source>} */ (get("policy/source")));
  const source = () => value.value;
  let known = policy.peek().revision;
  effect(() => {
    if (policy.value.revision === known) return;
    known = policy.value.revision;
    refresh();
  });
  const tab = distinct(() => (route.value.name === "policy" ? route.value.params[0] ?? "" : ""));
  /** @param {string} name @param {Node} content */
  const pane = (name, content) => h("div", { hidden: () => tab.value !== name }, content);
  return h("div", { class: "page" },
    heading("Policy", () => (source() ? ["Revision ", shortId(source()?.revision ?? ""), ". Where no rule applies: ", h("b", null, (source()?.default ?? "").replace("_", " ")), "."] : "Looking…")),
    h("nav", { class: "subnav", "aria-label": "Policy" }, TABS.map(([name, label]) => h("a", { hidden: () => name === "held" && !policy.value.held && tab.value !== name, href: name ? link("policy", name) : link("policy"), "aria-current": () => (tab.value === name ? "page" : null) }, label))),
    trouble(() => problem.value, refresh),
    pane("", inForce(source)), pane("explain", explaining(source)), pane("try", trying(source)), pane("held", heldPane()));
}
