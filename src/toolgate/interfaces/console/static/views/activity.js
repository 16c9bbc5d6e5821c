// @ts-check
/** Activity: every call of the project, newest first, live; filters and search; one row opens the call. */

import { get, wordsOf } from "../api.js";
import { h, link, list, signal } from "../core.js";
import { localTime, milliseconds, riskBadge, said, statusBadge, time } from "../format.js";
import { bind } from "../keyboard.js";
import { announce } from "../notify.js";
import { choice, distinct, empty, heading, soon, unknownFor, whatOf, whoOf } from "../parts.js";
import { onEvents } from "../store.js";

/** @typedef {import("../parts.js").Call} Call */
/** @typedef {{ tools: Call[], next: string | null, reached: string | null }} Page */

const PAGE = 50;
const MOST = 500;
/** @type {[string, string][]} */
const STATUSES = [
  ["", "Any status"], ["awaiting_approval", "Waiting for a person"], ["executing", "Running"], ["completed", "Completed"],
  ["failed", "Failed, denied or unknown"], ["denied", "Denied by the policy"], ["rejected", "Rejected or cancelled"],
  ["timeout", "Nobody answered"], ["unknown", "Outcome unknown"],
];
/** @type {[string, string][]} */
const SPANS = [["", "Any time"], ["3600", "Last hour"], ["86400", "Last day"], ["604800", "Last week"]];

/** @param {import("../core.js").Signal<Call>} call */
function row(call) {
  const shown = distinct(() => call.value);
  return h("li", { class: () => `line-item ${shown.value.undo_of ? "undo" : ""}` },
    h("a", { class: "cells call-cells", href: link("call", call.peek().tool_id) },
      h("span", { class: "when" }, time(call.peek().created_at)),
      h("span", { class: "state" }, () => statusBadge(shown.value.internal_status)),
      h("span", { class: "main" }, h("b", null, shown.value.undo_of ? "undo " : "", said(call.peek().tool_name)),
        h("span", { class: "what" }, () => said(shown.value.error ?? whatOf(shown.value)))),
      h("span", { class: "side" }, () => (shown.value.risk_level === "LOW" ? null : riskBadge(shown.value.risk_level)),
        h("span", { class: "who" }, said(whoOf(call.peek()))),
        h("span", { class: "took" }, () => unknownFor(shown.value, "for ") ?? (shown.value.execution_time_ms === null ? "" : milliseconds(shown.value.execution_time_ms))))));
}

/** @param {string[]} _params @param {URLSearchParams} query @returns {Node} */
export function view(_params, query) {
  const filters = { status: "", tool_name: "", requester: "", since: "", text: "", run_id: "" };
  for (const name of /** @type {(keyof typeof filters)[]} */ (Object.keys(filters))) filters[name] = query.get(name) ?? "";
  const calls = signal(/** @type {Call[]} */ ([]));
  const fresh = signal(/** @type {Call[]} */ ([]));
  const next = signal(/** @type {string | null} */ (null));
  const reached = signal(/** @type {string | null} */ (null));
  const isLoaded = signal(false);
  const isBusy = signal(false);
  const problem = signal("");
  let turn = 0;

  /** @param {string | null} after @returns {Promise<Page>} */
  function page(after) {
    const wanted = new URLSearchParams({ order: "newest", limit: String(PAGE) });
    for (const [name, value] of Object.entries(filters)) {
      if (!value) continue;
      wanted.set(name, name === "since" ? new Date(Date.now() - Number(value) * 1000).toISOString() : value);
    }
    if (after) wanted.set("after", after);
    return get(`tools?${wanted}`);
  }

  /** @param {(mine: () => boolean) => Promise<void>} work */
  async function busy(work) {
    const mine = turn;
    isBusy.value = true;
    try {
      await work(() => mine === turn);
      problem.value = "";
    } catch (error) {
      if (mine === turn) problem.value = wordsOf(error);
    }
    if (mine === turn) isBusy.value = false;
  }

  function restart() {
    turn++;
    const chosen = new URLSearchParams(Object.entries(filters).filter(([, value]) => value));
    history.replaceState(null, "", `${link("activity")}${chosen.size ? `?${chosen}` : ""}`);
    return busy(async (isMine) => {
      const found = await page(null);
      if (!isMine()) return;
      [calls.value, fresh.value, next.value, reached.value] = [found.tools, [], found.next, found.reached];
      isLoaded.value = true;
      announce(`${found.tools.length} calls`);
    });
  }

  const older = () => busy(async (isMine) => {
    const found = await page(next.peek());
    if (!isMine()) return;
    const known = new Set(calls.peek().map((one) => one.tool_id));
    calls.value = [...calls.peek(), ...found.tools.filter((one) => !known.has(one.tool_id))];
    [next.value, reached.value] = [found.next, found.reached];
  });

  /** Calls that something happened to since they were fetched. @type {Set<string>} */
  const changed = new Set();
  const refresh = soon(async () => {
    const mine = turn;
    const touched = [...changed];
    changed.clear();
    const known = new Map(calls.peek().map((one) => [one.tool_id, one]));
    const found = (await page(null)).tools;
    const newest = new Map(found.map((one) => [one.tool_id, one]));
    for (const id of touched.filter((one) => known.has(one) && !newest.has(one)).slice(0, 20)) {
      const call = await get(`tools/${encodeURIComponent(id)}`).catch(() => null);
      if (call) newest.set(id, call);
    }
    if (mine !== turn) return;
    calls.value = calls.peek().map((one) => newest.get(one.tool_id) ?? one);
    fresh.value = found.filter((one) => !known.has(one.tool_id));
    if (isCalm()) takeFresh();
  });
  onEvents((events) => {
    for (const one of events) if (one.call_id) changed.add(one.call_id);
    if (changed.size && isLoaded.peek()) refresh();
  });

  const rows = h("ul", { class: "lines", "aria-label": "Calls, newest first" });
  list(rows, () => calls.value, (one) => one.tool_id, row);

  /** Nobody is looking closer at a row, so that rows may move. */
  function isCalm() {
    return scrollY < 60 && !rows.contains(document.activeElement) && !rows.matches(":hover");
  }

  function takeFresh() {
    calls.value = [...fresh.peek(), ...calls.peek()].slice(0, MOST);
    fresh.value = [];
  }

  const search = h("input", { type: "search", "aria-label": "Search calls", placeholder: "Search tools, arguments, people, ids", value: filters.text, maxlength: 200 });
  const who = h("input", { "aria-label": "Who asked", placeholder: "Who asked", value: filters.requester, maxlength: 128 });
  const type = soon(async () => {
    [filters.text, filters.requester] = [search.value.trim(), who.value.trim()];
    await restart();
  }, 250);
  for (const one of [search, who]) one.addEventListener("input", type);

  const tools = signal(/** @type {string[]} */ ([]));
  get("tools/available").then((found) => { tools.value = found.tools.map((/** @type {any} */ one) => one.name); }).catch(() => {});

  /** @param {number} step */
  function move(step) {
    const links = [...rows.querySelectorAll("a")];
    const at = links.findIndex((one) => one === document.activeElement);
    links[Math.min(Math.max(at + step, 0), links.length - 1)]?.focus();
  }
  bind([
    { key: "/", does: "Search", run: () => search.focus() },
    { key: "j", does: "Next call", run: () => move(1) },
    { key: "k", does: "Previous call", run: () => move(-1) },
  ]);

  const isFiltered = () => Object.values(filters).some(Boolean);
  function clear() {
    for (const name of /** @type {(keyof typeof filters)[]} */ (Object.keys(filters))) filters[name] = "";
    search.value = who.value = "";
    form.querySelectorAll("select").forEach((one) => { one.value = ""; });
    restart();
  }
  const form = h("form", { class: "filters", role: "search", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    search,
    choice("Status", STATUSES, filters.status, (value) => { filters.status = value; restart(); }),
    () => choice("Tool", [["", "Any tool"], ...[...new Set([...tools.value, ...(filters.tool_name ? [filters.tool_name] : [])])].map((name) => /** @type {[string, string]} */ ([name, name]))],
      filters.tool_name, (value) => { filters.tool_name = value; restart(); }),
    who,
    choice("Since", SPANS, filters.since, (value) => { filters.since = value; restart(); }));
  restart();

  return h("div", { class: "page" },
    heading("Activity", "Every call agents make here, as it happens."),
    form,
    h("div", { class: "notice bad", role: "alert", hidden: () => !problem.value }, () => problem.value, " ",
      h("button", { class: "quiet", onclick: restart }, "Try again")),
    h("div", { class: "freshness" },
      h("button", { class: "primary small", hidden: () => !fresh.value.length, onclick: () => { takeFresh(); scrollTo({ top: 0 }); } },
        () => `Show ${fresh.value.length === PAGE ? `${PAGE} or more` : fresh.value.length} new`)),
    h("div", { class: "panel", hidden: () => !calls.value.length }, rows),
    () => (isLoaded.value && !calls.value.length && !isBusy.value
      ? isFiltered()
        ? empty("No calls match", h("p", null, reached.value && next.value ? `Nothing found back to ${localTime(reached.value)}.` : "Try fewer words, or another filter."),
          h("p", null, h("button", { onclick: clear }, "Clear filters")))
        : empty("No calls yet", "When an agent asks for a tool, the call appears here at once: what it wants, what the policy said, who allowed it and how it ended.",
          "Try one:", h("pre", null, "toolgate demo"))
      : null),
    h("div", { class: "more" },
      h("button", { hidden: () => !next.value || calls.value.length >= MOST, disabled: () => isBusy.value, onclick: older },
        () => (isFiltered() && reached.value ? `Search before ${localTime(reached.value)}` : "Show older calls")),
      h("p", { class: "faint", hidden: () => calls.value.length < MOST }, `The newest ${MOST} are shown; narrow the filters to see others.`)));
}
