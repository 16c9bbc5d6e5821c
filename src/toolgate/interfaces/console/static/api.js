// @ts-check
/** Talking to the server: requests with the session's key, problems as errors, and one stream that resumes. */

import { forget, kept } from "./key.js";
import { toast } from "./notify.js";

/** @typedef {{ project_id: string, abilities: string[] }} Membership */
/** @typedef {{ account: string, kind: string, projects: Membership[] }} Session */

/** @returns {Session} */
function readSession() {
  const told = document.querySelector('meta[name="toolgate"]')?.getAttribute("content");
  return JSON.parse(told ?? '{"account":"","kind":"","projects":[]}');
}

/** What stands before every path of the server, where it is mounted or served under a prefix. */
export const prefix = new URL(import.meta.url).pathname.replace(/\/console\/[^/]+\/api\.js$/, "");

/** Who is signed in, as the page was told when it was made. */
export const session = readSession();

/** The project the page is about. */
export const project =
  new URLSearchParams(location.search).get("project") ?? session.projects[0]?.project_id ?? "default";

/** What the person may do in the project. @param {string} ability */
export function may(ability) {
  return session.projects.some((one) => one.project_id === project && one.abilities.includes(ability));
}

/** An error the server answered with. */
export class Problem extends Error {
  /** @param {number} status @param {any} told */
  constructor(status, told) {
    super(told?.detail ?? `The server answered ${status}.`);
    this.status = status;
    this.code = String(told?.code ?? "");
    /** @type {any} */
    this.told = told ?? {};
  }
}

/** The path of something in the project. @param {...string} parts */
export function path(...parts) {
  return [`${prefix}/my/projects`, project, ...parts].map((part, at) => (at ? encodeURIComponent(part) : part)).join("/");
}

/**
 * Send a request and return its answer; raises Problem. A path that does not begin with a slash is of the project.
 * @param {string} method @param {string} where @param {any} [body] @param {AbortSignal} [abort] @returns {Promise<any>}
 */
export async function request(method, where, body, abort) {
  const response = await send(where.startsWith("/") ? where : `${path()}/${where}`, {
    method,
    headers: { "Content-Type": "application/json" },
    body: body === undefined ? null : JSON.stringify(body),
    signal: abort ?? null,
  });
  const answer = await response.json().catch(() => null);
  if (response.ok) return answer;
  if (response.status === 401) signIn();
  throw new Problem(response.status, answer);
}

/** The key as it was last read: another page of this browser may have signed in since. */
let key = kept(prefix);

/** Send something with the session's key. @param {string} where @param {RequestInit} options */
async function send(where, options) {
  const shown = await key;
  const fetchWith = (/** @type {string} */ text) =>
    fetch(where, { ...options, headers: { ...options.headers, "X-Toolgate-Key": text }, redirect: "error", cache: "no-store" });
  const response = await fetchWith(shown);
  if (response.status !== 401) return response;
  key = kept(prefix);
  const newer = await key;
  return newer && newer !== shown ? fetchWith(newer) : response;
}

/** Have the browser keep an answer as a file; a link to it would carry no key. @param {string} where @param {string} name */
export async function download(where, name) {
  const response = await send(where, {});
  if (!response.ok) throw new Problem(response.status, await response.json().catch(() => null));
  const kept = document.createElement("a");
  kept.href = URL.createObjectURL(await response.blob());
  kept.download = name;
  kept.click();
  setTimeout(() => URL.revokeObjectURL(kept.href), 60_000);
}

/** @param {string} where @param {AbortSignal} [abort] */
export const get = (where, abort) => request("GET", where, undefined, abort);
/** @param {string} where @param {any} [body] @param {AbortSignal} [abort] */
export const post = (where, body, abort) => request("POST", where, body ?? {}, abort);
/** @param {string} where @param {any} [body] */
export const put = (where, body) => request("PUT", where, body ?? {});

/** Run something a person asked for; a problem is shown. @template T @param {() => Promise<T>} work
 * @returns {Promise<T | undefined>} */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    toast(wordsOf(error), "bad");
    return undefined;
  }
}

/** What to tell a person of an error. @param {unknown} error */
export function wordsOf(error) {
  if (error instanceof Problem) return error.message;
  return "The server cannot be reached; nothing was changed. Try again.";
}

function signIn() {
  location.assign(`${prefix}/login${location.search}${location.hash}`);
}

/** End the session. */
export async function signOut() {
  await attempt(() => request("DELETE", `${prefix}/session`));
  await forget(prefix);
  location.assign(`${prefix}/login`);
}

/** @typedef {{ name: string, id: number | null, data: any }} Frame */

/** Read server-sent events out of text that arrives in parts. @returns {(text: string) => Frame[]} */
export function reader() {
  let rest = "";
  return (text) => {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop() ?? "";
    const frames = [];
    for (const block of blocks) {
      let name = "", id = null, data = "";
      for (const line of block.split("\n")) {
        if (line.startsWith("event: ")) name = line.slice(7);
        else if (line.startsWith("id: ")) id = Number(line.slice(4));
        else if (line.startsWith("data: ")) data += line.slice(6);
      }
      if (name) frames.push({ name, id, data: data ? JSON.parse(data) : null });
    }
    return frames;
  };
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const SILENCE_MS = 45_000; // the server breaks silence every 15 s

/**
 * Follow a stream for ever: after a break it resumes behind the last event it saw. Returns what ends it.
 * @param {string} where
 * @param {{ hear: (frames: Frame[]) => void, state: (is: "open" | "lost") => void }} listener
 */
export function follow(where, listener) {
  const over = new AbortController();
  /** @type {number | null} */
  let last = null;
  let wait = FIRST_WAIT_MS;

  /** A listener's own defect is reported, and must not end the stream. @param {Frame[]} frames */
  function tell(frames) {
    try {
      listener.hear(frames);
    } catch (error) {
      reportError(error);
    }
  }

  async function once() {
    const cut = new AbortController();
    over.signal.addEventListener("abort", () => cut.abort());
    let silence = setTimeout(() => cut.abort(), SILENCE_MS);
    try {
      const response = await send(`${path()}/${where}`, {
        headers: { Accept: "text/event-stream", ...(last === null ? {} : { "Last-Event-ID": String(last) }) },
        signal: cut.signal,
      });
      if (response.status === 401) return signIn();
      if (!response.ok || !response.body) throw new Problem(response.status, null);
      listener.state("open");
      wait = FIRST_WAIT_MS;
      const parse = reader();
      const decoder = new TextDecoder();
      const chunks = response.body.getReader();
      for (;;) {
        const { done, value } = await chunks.read();
        if (done) return;
        clearTimeout(silence);
        silence = setTimeout(() => cut.abort(), SILENCE_MS);
        const frames = parse(decoder.decode(value, { stream: true }));
        for (const frame of frames) if (frame.id !== null) last = frame.id;
        if (frames.length) tell(frames);
      }
    } finally {
      clearTimeout(silence);
    }
  }

  (async () => {
    while (!over.signal.aborted) {
      try {
        await once();
      } catch (error) {
        const isBreak = error instanceof TypeError || error instanceof Problem || error instanceof DOMException;
        if (!isBreak) reportError(error);
      }
      if (over.signal.aborted) return;
      listener.state("lost");
      await new Promise((resume) => setTimeout(resume, wait * (0.75 + Math.random() / 2)));
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    }
  })();
  return () => over.abort();
}
