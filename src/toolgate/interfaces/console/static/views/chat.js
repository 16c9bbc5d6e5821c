// @ts-check
/** Chat: talk to the agent that lives on the server; its calls stand where it made them, each with its state. */

import { Problem, attempt, get, may, post, wordsOf } from "../api.js";
import { effect, go, h, link, list, route, signal } from "../core.js";
import { ago, said, statusBadge, time, visible } from "../format.js";
import { bind } from "../keyboard.js";
import { distinct, empty, soon, summary, trouble } from "../parts.js";
import { cards, connection, onChat, onEvents } from "../store.js";

/** @typedef {{ tool_id: string, tool_name: string, tool_params: any, status: string }} Tool */
/** @typedef {{ key: string, role: "person" | "agent" | "tools" | "error", text: string, at: string, tools: Tool[], isNotice?: boolean,
 *   isOpen?: boolean }} Entry */
/** @typedef {{ session_id: string, title: string, messages: number, updated_at: string }} Conversation */

/** What an event says of the state of its call. */
const STATES = /** @type {Record<string, string>} */ ({
  "tool.started": "executing", "tool.dispatched": "executing", "tool.progress": "executing", "tool.completed": "completed",
  "tool.failed": "failed", "tool.denied": "denied", "tool.cancelled": "cancelled", "approval.requested": "awaiting_approval",
});
const TICK = "\u0060";
const FENCE = TICK.repeat(3);
const OVER = new Set(["completed", "failed", "denied", "rejected", "timeout", "cancelled", "unknown"]);

/** What the agent said has one key, whether it was read or heard. @param {any} one @returns {Entry} */
function entryOf(one) {
  const key = one.role === "agent" ? `said-${one.run_id}-${one.position ?? one.timestamp}` : one.message_id;
  return { key, role: one.role, text: one.content ?? "", at: one.created_at, isNotice: Boolean(one.notice),
    tools: (one.tool_calls ?? []).map((/** @type {any} */ call) => ({ ...call, status: "" })) };
}

/** A text with what stands between backticks set as code; everything stays text. @param {string} text */
function prose(text) {
  return visible(text).split(FENCE).map((part, at, all) => (at % 2
    ? h("pre", { class: "value", tabindex: 0 }, part.replace(/^[\w+-]*\n/, "").replace(/\n$/, ""))
    : part.replace(at ? /^\n/ : /^$/, "").replace(at < all.length - 1 ? /\n+$/ : /^$/, "").split(TICK).map((each, place) => (place % 2 ? h("code", null, each) : each))));
}

/** The earlier calls that calls of the agent joined, by these. */
const joined = signal(/** @type {ReadonlyMap<string, string>} */ (new Map()));

/** @param {Tool} tool @param {() => ReadonlyMap<string, string>} states */
function toolItem(tool, states) {
  const state = () => states().get(tool.tool_id) || tool.status || "pending";
  const id = () => joined.value.get(tool.tool_id) ?? tool.tool_id;
  const question = () => [...cards.value.values()].find((card) => card.tool_id === id() && card.status === "pending");
  return h("li", { class: "made" },
    h("a", { href: () => link("call", id()), class: "calllink" }, () => statusBadge(state()), h("b", null, said(tool.tool_name)), h("span", { class: "what" }, said(summary(tool.tool_params)))),
    () => {
      const card = question();
      return card ? h("a", { class: "button small primary", href: link("inbox", card.approval_id) }, "Decide") : null;
    });
}

/** @param {import("../core.js").Signal<Entry>} entry @param {() => ReadonlyMap<string, string>} states */
function bubble(entry, states) {
  const fixed = entry.peek();
  const tools = h("ul", { class: "tools-made", "aria-label": "Tools it called", hidden: () => !entry.value.tools.length });
  list(tools, () => entry.value.tools, (one) => one.tool_id, (one) => toolItem(one.peek(), states));
  return h("li", { class: () => `said ${fixed.role} ${entry.value.isNotice ? "notice" : ""} ${entry.value.isOpen ? "open" : ""}` },
    h("p", { class: "by" }, fixed.role === "person" ? "You" : fixed.role === "error" ? "Problem" : "Agent", " ", time(fixed.at)),
    h("div", { class: "words", dir: "auto", hidden: () => !entry.value.text }, () => prose(entry.value.text)), tools);
}

/** @returns {Node} */
export function view() {
  const conversations = signal(/** @type {Conversation[]} */ ([]));
  const keeps = signal(true);
  const hasAgent = signal(true);
  const entries = signal(/** @type {Entry[]} */ ([]));
  const states = signal(/** @type {ReadonlyMap<string, string>} */ (new Map()));
  const running = signal(/** @type {string | null} */ (null));
  const waitingFor = signal(/** @type {string[]} */ ([]));
  const isSending = signal(false);
  const problem = signal("");
  let session = "";
  let shownSession = "";
  let run = "";

  const refreshList = soon(async () => {
    try {
      conversations.value = (await get("chat/conversations?limit=50")).conversations;
    } catch (error) {
      if (error instanceof Problem && (error.status === 501 || error.status === 404)) keeps.value = false;
    }
  }, 50);
  refreshList();

  /** @param {string} id @param {string} status @param {string | null} [first] the earlier call that it joined */
  function put(id, status, first) {
    if (first && joined.peek().get(id) !== first) joined.value = new Map([...joined.peek(), [id, first]]);
    const known = states.peek().get(id);
    if (known === status || (known && OVER.has(known) && !OVER.has(status))) return;
    states.value = new Map([...states.peek(), [id, status]]);
  }

  /** @param {string} id */
  async function open(id) {
    session = id;
    if (id !== shownSession) entries.value = [];
    shownSession = id;
    [problem.value, running.value, waitingFor.value] = ["", null, []];
    if (!id) return;
    const shown = new Set(entries.peek());
    try {
      /** @type {Entry[]} */
      let all = [];
      let after = 0;
      do {
        const found = await get(`chat/conversations/${encodeURIComponent(id)}/messages?after=${after}&limit=500`);
        if (session !== id) return;
        for (const one of found.messages) for (const result of one.tool_results ?? []) put(result.tool_id, result.status, result.joined);
        all = [...all, ...found.messages.filter((/** @type {any} */ one) => one.role !== "tools").map(entryOf)].slice(-500);
        after = found.next ?? 0;
      } while (after);
      // What was heard while this was read came after it.
      const read = new Set(all.map((one) => one.key));
      entries.value = [...all, ...entries.peek().filter((one) => !shown.has(one) && !read.has(one.key))];
      const last = (await get(`chat/runs?session_id=${encodeURIComponent(id)}&limit=1`)).runs[0];
      if (session === id && last && (last.status === "running" || last.status === "waiting")) {
        [running.value, waitingFor.value, run] = [last.status, last.waiting_for, last.run_id];
      }
      for (const one of all.flatMap((entry) => entry.tools).slice(-50)) {
        if (states.peek().has(one.tool_id)) continue;
        get(`tools/${encodeURIComponent(one.tool_id)}`).then((call) => put(one.tool_id, call.internal_status.toLowerCase())).catch(() => {});
      }
      bottom(true);
    } catch (error) {
      if (session === id) problem.value = wordsOf(error);
    }
  }

  /** Change the entry of this key, or make it. @param {string} key @param {(one: Entry) => Entry} change */
  function amend(key, change) {
    const all = entries.peek();
    const at = all.findIndex((one) => one.key === key);
    const fresh = change(all[at] ?? { key, role: "agent", text: "", at: new Date().toISOString(), tools: [] });
    entries.value = at < 0 ? [...all, fresh] : all.with(at, fresh);
    bottom(false);
  }

  onChat((name, data) => {
    if (!session && isSending.peek()) session = data.session_id;
    if (data.session_id !== session) return refreshList();
    run = data.run_id ?? run;
    const draft = `draft-${data.run_id ?? data.message_id}-${data.step ?? ""}`;
    if (name === "chat.delta") amend(draft, (one) => ({ ...one, text: one.text + data.delta, isOpen: true }));
    else if (name === "chat.retry") entries.value = entries.peek().filter((one) => !one.isOpen);
    else if (name === "chat.run") [running.value, waitingFor.value] = [data.status, data.waiting_for ?? []];
    else if (name === "chat.tool") put(data.tool_id, data.status, data.joined);
    else if (name === "chat.error") {
      amend(`error-${data.timestamp}`, (one) => ({ ...one, role: "error", text: data.error }));
      running.value = null;
    } else if (name === "chat.message") hearMessage(data);
  });

  /** A whole message takes the place of the pieces it came in. @param {any} data */
  function hearMessage(data) {
    for (const one of data.tool_results ?? []) put(one.tool_id, one.status, one.joined);
    const said = entryOf({ ...data, role: "agent", created_at: data.timestamp });
    const rest = entries.peek().filter((one) => !one.isOpen && one.key !== said.key);
    entries.value = said.text || said.tools.length ? [...rest, said] : rest;
    if (data.final !== false) [running.value, waitingFor.value] = [null, []];
    bottom(false);
    refreshList();
  }

  onEvents((events) => {
    for (const one of events) {
      const status = STATES[one.type];
      if (!status || !one.call_id) continue;
      if (states.peek().has(one.call_id) || entries.peek().some((entry) => entry.tools.some((tool) => tool.tool_id === one.call_id))) put(one.call_id, status);
    }
  });

  const thread = h("ol", { class: "thread", "aria-label": "Conversation", "aria-live": "polite", "aria-relevant": "additions", tabindex: 0 });
  list(thread, () => entries.value, (one) => one.key, (one) => bubble(one, () => states.value));
  /** Keep the newest words in sight, unless somebody reads further up. @param {boolean} anyway */
  function bottom(anyway) {
    const isNear = thread.scrollHeight - thread.scrollTop - thread.clientHeight < 120;
    if (anyway || isNear) requestAnimationFrame(() => { thread.scrollTop = thread.scrollHeight; });
  }

  const words = h("textarea", { id: "chat-words", rows: 2, maxlength: 100_000, placeholder: "Ask for something…", "aria-label": "Message to the agent", class: "prose" });
  words.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    }
  });
  async function send() {
    const content = words.value.trim();
    if (!content || isSending.peek()) return;
    isSending.value = true;
    problem.value = "";
    try {
      const answer = await post("chat/messages", { content, ...(session ? { session_id: session } : {}) });
      words.value = "";
      const isNew = session !== answer.session_id || !route.peek().params[0];
      session = shownSession = answer.session_id;
      run = answer.run_id ?? run;
      const mine = /** @type {Entry} */ ({ key: answer.message_id, role: "person", text: content, at: new Date().toISOString(), tools: [] });
      const heard = entries.peek().findIndex((one) => one.isOpen);
      entries.value = heard < 0 ? [...entries.peek(), mine] : entries.peek().toSpliced(heard, 0, mine);
      if (running.peek() === null) running.value = "running";
      if (isNew) go("chat", session);
      bottom(true);
      refreshList();
    } catch (error) {
      if (error instanceof Problem && error.status === 501) hasAgent.value = false;
      else problem.value = wordsOf(error);
    }
    isSending.value = false;
    words.focus();
  }
  const cancel = () => attempt(async () => {
    await post(`chat/runs/${encodeURIComponent(run)}/cancel`);
    running.value = null;
  });
  effect(() => {
    const { name, params } = route.value;
    const wanted = params[0] ?? "";
    if (name === "chat" && wanted !== session) open(wanted);
  });
  let wasLost = false;
  effect(() => {
    const is = connection.value;
    if (is === "open" && wasLost && session) open(session); // what was said meanwhile is kept there
    wasLost = is === "lost";
  });
  bind([{ key: "c", does: "Write a message", run: () => words.focus() }]);

  const sides = h("ul", { class: "plain-list" });
  list(sides, () => conversations.value, (one) => one.session_id, (one) => h("li", null,
    h("a", { href: link("chat", one.peek().session_id), "aria-current": () => (route.value.params[0] === one.value.session_id ? "true" : null) },
      h("b", null, () => said(one.value.title || "Conversation")), h("span", { class: "faint" }, () => ago(one.value.updated_at)))));
  const isEmpty = distinct(() => !entries.value.length);

  return h("div", { class: "chat" },
    h("h1", { class: "unseen" }, "Chat"),
    h("nav", { class: "talks", "aria-label": "Conversations", hidden: () => !keeps.value },
      h("button", { onclick: () => { go("chat"); words.focus(); } }, "New conversation"), sides),
    h("div", { class: "dialogue" },
      trouble(() => problem.value, () => open(session)),
      h("div", { class: "welcome", hidden: () => !isEmpty.value || !hasAgent.value }, empty("Talk to the agent",
        "It works with this project's tools. What needs a person waits in the inbox, and appears here with its state.",
        h("p", null, h("button", { onclick: () => { words.value = "What can you do?"; send(); } }, "What can you do?")))),
      h("div", { class: "welcome", hidden: () => hasAgent.value }, empty("No agent is configured on this server", "Other agents use the same tools over HTTP. To run one here, start the server with:",
        h("pre", null, "TOOLGATE_AGENT=true toolgate serve"))),
      thread,
      h("p", { class: "working", role: "status" }, () => (running.value === "waiting" ? `Waits for ${waitingFor.value.length > 1 ? `${waitingFor.value.length} calls` : "a call"}…` : running.value ? "Working…" : ""),
        h("button", { class: "quiet small", hidden: () => !running.value || !keeps.value, onclick: cancel }, "Cancel")),
      h("form", { class: "compose", hidden: () => !hasAgent.value, onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); send(); } },
        words, h("button", { class: "primary", disabled: () => isSending.value || !may("ask") }, "Send"))));
}
