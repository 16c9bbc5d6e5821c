// @ts-check
/** The shell: menu, mode and brake, connection, messages, keys, and the view the address names. */

import { attempt, may, prefix, project, put, session, signOut } from "./api.js";
import { pulledHere, stopButton } from "./brakes.js";
import { effect, h, link, route, scoped, signal } from "./core.js";
import { visible } from "./format.js";
import { bind, listen, show, showHelp } from "./keyboard.js";
import { toast, toastArea } from "./notify.js";
import { connect, connection, mode, policy, waiting } from "./store.js";
import { views } from "./views/index.js";

const BY_POLICY = "Calls are judged by the policy's rules for this mode.";
const MODES = {
  NORMAL: "",
  ALERT: BY_POLICY,
  DEGRADED: BY_POLICY,
  LOCKDOWN: "Nothing new runs and nothing can be decided, in every project.",
  RECOVERY: BY_POLICY,
};

/** Ask for a reason, then change the mode. @param {string} wanted @param {string} title @param {string} says */
function changeMode(wanted, title, says) {
  const reason = h("input", { id: "mode-reason", name: "reason", required: true, maxlength: 500, autocomplete: "off" });
  const dialog = h("dialog", { class: "sheet", "aria-labelledby": "mode-title" },
    h("h2", { id: "mode-title" }, title),
    h("p", null, says),
    h("form", { method: "dialog", onsubmit: () => {
      attempt(async () => {
        await put("mode", { mode: wanted, reason: reason.value });
        mode.value = /** @type {import("./store.js").Mode} */ (wanted);
        toast(`The mode is ${wanted}.`, "good");
      });
    } },
      h("label", { for: "mode-reason" }, "Why? It is kept in the audit."), reason,
      h("div", { class: "actions" },
        h("button", { class: wanted === "LOCKDOWN" ? "danger" : "primary" }, title),
        h("button", { class: "quiet", type: "button", onclick: () => dialog.close() }, "Cancel"))));
  show(dialog);
}

const pull = () => changeMode("LOCKDOWN", "Lock down", "Everything stops at once, for everybody and in every project: " +
  "what runs is stopped where it can be, and nothing new starts until an admin ends the lockdown.");
const lift = () => changeMode("NORMAL", "Back to normal", "Calls run and questions can be decided again, in every project.");

function banner() {
  return h("div", { class: () => `banner ${mode.value.toLowerCase()}`, role: "status", hidden: () => mode.value === "NORMAL" },
    h("strong", null, () => mode.value), " ",
    h("span", null, () => MODES[mode.value]),
    may("admin") ? h("button", { class: "quiet", onclick: lift }, "Back to normal") : null);
}

/** Everybody sees that a policy waits; who decides also what it says. */
function heldBanner() {
  return h("div", { class: "banner", role: "status", hidden: () => !policy.value.held },
    h("strong", null, "Policy held"),
    h("span", null, "The policy files changed while a sandboxed command could write them. What was in force stays so until an admin accepts the change."),
    may("decide") ? h("a", { href: link("policy", "held") }, "Look at it") : null);
}

function brake() {
  return h("span", { class: "brake" },
    h("span", { class: "mode", title: "The operator's mode" }, () => mode.value),
    may("admin")
      ? h("button", { class: "danger", title: "Stop everything", disabled: () => mode.value === "LOCKDOWN", onclick: pull }, "Lockdown")
      : null,
    stopButton(() => ({}), "project"));
}

const WORDS = { connecting: "Connecting", open: "Live", lost: "Reconnecting" };

function projects() {
  if (session.projects.length < 2) return h("span", { class: "project" }, visible(project));
  const names = session.projects.map((one) => one.project_id);
  const choice = h("select", { "aria-label": "Project", onchange: () => {
    location.assign(`${prefix}/?project=${encodeURIComponent(choice.value)}`);
  } }, (names.includes(project) ? names : [project, ...names]).map((name) => h("option", { value: name, selected: name === project }, visible(name))));
  return choice;
}

function menu() {
  const nav = h("nav", { "aria-label": "Views" }, views.filter((one) => one.label).map((one) =>
    h("a", { href: link(one.name), "aria-current": () => (route.value.name === one.name ? "page" : null) }, one.label,
      one.name === "inbox" ? h("span", { class: "count", hidden: () => !waiting.value }, () => waiting.value) : null)));
  effect(() => {
    route.value;
    queueMicrotask(() => nav.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }));
  });
  return nav;
}

/** The place of the view: made anew when the address changes, but for a view that follows the address by itself. */
function place() {
  const main = h("main", { id: "main", tabindex: -1 });
  const shown = signal("");
  /** @type {() => void} */
  let end = () => {};
  let former = "";
  effect(() => {
    const { name, params, query } = route.value;
    const follows = views.find((one) => one.name === name)?.follows;
    if (name !== former) end(); // before a view that follows the address can take another view's for its own
    former = name;
    shown.value = follows ? name : [name, ...params, query].join("/");
  });
  effect(() => {
    shown.value;
    const wanted = views.find((one) => one.name === route.peek().name);
    document.title = `${wanted?.label ?? "Toolgate"} · Toolgate`;
    end();
    end = () => {};
    if (!wanted) {
      main.replaceChildren(h("div", { class: "empty" }, h("h1", null, "There is no such page"),
        h("p", null, h("a", { href: link("inbox") }, "Go to the inbox"))));
      return;
    }
    wanted.load().then(({ view }) => {
      if (route.peek().name !== wanted.name) return;
      const [node, cleanup] = scoped(() => view(route.peek().params, route.peek().query));
      end();
      end = cleanup;
      main.replaceChildren(node);
    });
  });
  return main;
}

scoped(() => {
  connect();
  listen();
  bind([{ key: "?", does: "Show these keys", run: showHelp }]);
  document.body.append(
    h("a", { class: "skip", href: "#main", onclick: (/** @type {Event} */ event) => {
      event.preventDefault();
      document.getElementById("main")?.focus();
    } }, "Skip to the content"),
    h("header", { class: "top" },
      h("a", { class: "brand", href: link("inbox") }, h("span", { class: "mark", "aria-hidden": "true" }), "Toolgate"),
      menu(),
      h("div", { class: "tools" },
        projects(),
        h("span", { class: () => `live ${connection.value}`, role: "status" }, () => WORDS[connection.value]),
        brake(),
        h("button", { class: "quiet help", title: "Keyboard (?)", "aria-label": "Keyboard help", onclick: showHelp }, "?"),
        h("button", { class: "quiet", title: "Sign out", onclick: signOut }, visible(session.account), h("span", { class: "unseen" }, ": sign out")))),
    banner(),
    heldBanner(),
    pulledHere(),
    place(),
    toastArea());
  effect(() => {
    const count = waiting.value;
    document.title = document.title.replace(/^(\(\d+\) )?/, count ? `(${count}) ` : "");
  });
  if (!location.hash) history.replaceState(null, "", link("inbox"));
});

