// Runs a client script that expects a browser-like world (EventSource, fetch, two functions of its own) under Node.
// Usage: node document_client.mjs SCRIPT BASE_URL TOKEN PROJECT. Prints what the script did, one JSON object a line.
import { readFileSync } from "node:fs";

const [script, base, token, projectId] = process.argv.slice(2);
const auth = { Authorization: `Bearer ${token}` };
const say = (what) => console.log(JSON.stringify(what));

class EventSource {
  constructor(path) {
    this.listeners = {};
    this.open(base + path.replace("{projectId}", projectId));
  }

  addEventListener(name, listener) {
    (this.listeners[name] ??= []).push(listener);
  }

  async open(url) {
    const response = await globalThis.plainFetch(url, { headers: auth });
    say({ did: "open", status: response.status });
    let text = "";
    for await (const chunk of response.body) {
      text += Buffer.from(chunk).toString();
      let end;
      while ((end = text.indexOf("\n\n")) >= 0) {
        this.dispatch(text.slice(0, end));
        text = text.slice(end + 2);
      }
    }
  }

  dispatch(frame) {
    const fields = Object.fromEntries(frame.split("\n").map((line) => line.split(/:\s?(.*)/s).slice(0, 2)));
    for (const listener of this.listeners[fields.event] ?? []) listener({ data: fields.data, lastEventId: fields.id });
    if (fields.event) say({ did: "event", name: fields.event });
  }
}

globalThis.plainFetch = globalThis.fetch;
const fetch = async (path, options) => {
  const response = await globalThis.plainFetch(base + path, {
    ...options,
    headers: { ...auth, ...(options.headers ?? {}) },
  });
  say({ did: "fetch", path, status: response.status, answer: await response.clone().json() });
  return response;
};
const showApprovalDialog = (name, risk, timeout) => {
  say({ did: "dialog", name, risk, timeout });
  return name !== "write_file";
};
const executeToolLocally = async (name, params) => {
  say({ did: "execute", name, params });
  if (params.command === "missing") throw new Error("Command not found: missing");
  return { success: true, stdout: `${name} ran`, stderr: null, exit_code: 0 };
};
const consoleStub = { log: (...words) => say({ did: "log", words }) };

const names = ["EventSource", "fetch", "showApprovalDialog", "executeToolLocally", "projectId", "console"];
new Function(...names, readFileSync(script, "utf8"))(
  EventSource, fetch, showApprovalDialog, executeToolLocally, projectId, consoleStub,
);
