// @ts-check
/** A change, shown like in a code review: numbered lines, hunks, and what differs within a line. */

import { h } from "../core.js";

/** @typedef {{ kind: "add" | "del" | "same" | "hunk" | "file" | "gap", old: number | null, fresh: number | null, text: string, mark?: [number, number] }} Line */

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** Read a unified difference; text that is none comes back line by line. @param {string} text @returns {Line[]} */
export function parse(text) {
  /** @type {Line[]} */
  const lines = [];
  let old = 0, fresh = 0, inHunk = false;
  // How many lines of either side the hunk still has: what follows its last one is the next file, whatever it holds.
  let leftOld = 0, leftFresh = 0;
  /** @param {string | undefined} count */
  const lengthOf = (count) => (count === undefined ? 1 : Number(count));
  const raw = text.replace(/\n$/, "").split("\n");
  raw.forEach((line, at) => {
    const hunk = HUNK.exec(line);
    if (hunk) {
      [old, fresh, inHunk] = [Number(hunk[1]), Number(hunk[3]), true];
      [leftOld, leftFresh] = [lengthOf(hunk[2]), lengthOf(hunk[4])];
      lines.push({ kind: "hunk", old: null, fresh: null, text: line });
    } else if (line.startsWith("⟦… ")) {
      // What follows a gap has no number: nobody counted what is left out.
      [old, fresh] = [NaN, NaN];
      [leftOld, leftFresh] = [NaN, NaN];
      lines.push({ kind: "gap", old: null, fresh: null, text: line });
    } else if (leftOld === 0 && leftFresh === 0 && line.startsWith("--- ") && raw[at + 1]?.startsWith("+++ ")) {
      lines.push({ kind: "file", old: null, fresh: null, text: named(line.slice(4), raw[at + 1]?.slice(4) ?? "") });
      inHunk = false;
    } else if (lines.at(-1)?.kind === "file" && line.startsWith("+++ ")) {
      return; // told with the line before
    } else if (line.startsWith("+")) {
      leftFresh--;
      lines.push({ kind: "add", old: null, fresh: inHunk ? fresh++ : null, text: line.slice(1) });
    } else if (line.startsWith("-")) {
      leftOld--;
      lines.push({ kind: "del", old: inHunk ? old++ : null, fresh: null, text: line.slice(1) });
    } else {
      const isPlain = inHunk && line.startsWith(" ");
      if (isPlain) [leftOld, leftFresh] = [leftOld - 1, leftFresh - 1];
      lines.push({ kind: "same", old: isPlain ? old++ : null, fresh: isPlain ? fresh++ : null, text: isPlain ? line.slice(1) : line });
    }
  });
  emphasize(lines);
  return lines;
}

/** What a difference is about. @param {string} before @param {string} after */
function named(before, after) {
  const [old, fresh] = [before.replace(/^a\//, ""), after.replace(/^b\//, "")];
  return old === fresh ? old : `${before} → ${after}`;
}

/** Where as many lines were added as removed, find what differs within each pair. @param {Line[]} lines */
function emphasize(lines) {
  for (let at = 0; at < lines.length; at++) {
    let removed = 0, added = 0;
    while (lines[at + removed]?.kind === "del") removed++;
    while (lines[at + removed + added]?.kind === "add") added++;
    if (removed && removed === added) {
      for (let step = 0; step < removed; step++) pair(lines[at + step], lines[at + removed + step]);
    }
    at += Math.max(removed + added - 1, 0);
  }
}

/** @param {Line | undefined} one @param {Line | undefined} other */
function pair(one, other) {
  if (!one || !other) return;
  const [a, b] = [one.text, other.text];
  const shorter = Math.min(a.length, b.length);
  let head = 0, tail = 0;
  while (head < shorter && a[head] === b[head]) head++;
  while (tail < shorter - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  if (head + tail < shorter / 3) return; // hardly the same line
  one.mark = [head, a.length - tail];
  other.mark = [head, b.length - tail];
}

/** How many lines a difference adds and removes. @param {Line[]} lines */
export function counts(lines) {
  return {
    added: lines.filter((line) => line.kind === "add").length,
    removed: lines.filter((line) => line.kind === "del").length,
  };
}

const SIGNS = { add: "+", del: "−", same: "", hunk: "", file: "", gap: "" };
const WORDS = { add: "added", del: "removed" };

/** @param {Line} line */
function content(line) {
  if (!line.mark || line.mark[0] >= line.mark[1]) return h("bdi", null, line.text || " ");
  const [from, to] = line.mark;
  return h("bdi", null, line.text.slice(0, from), h("mark", null, line.text.slice(from, to)), line.text.slice(to));
}

/** @param {number | null} number */
function numbered(number) {
  return h("td", { class: "number" }, number === null || Number.isNaN(number) ? "" : String(number));
}

/** A difference as a table. @param {Line[]} lines @param {string} title */
export function diffTable(lines, title) {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
    h("table", { class: "diff" },
      h("caption", { class: "unseen" }, title),
      h("tbody", null, lines.map((line) =>
        line.kind === "hunk" || line.kind === "file" || line.kind === "gap"
          ? h("tr", { class: line.kind }, h("td", { colspan: 4 }, h("bdi", null, line.text)))
          : h("tr", { class: line.kind }, numbered(line.old), numbered(line.fresh),
              h("td", { class: "sign" }, h("span", { "aria-hidden": "true" }, SIGNS[line.kind]),
                line.kind === "same" ? null : h("span", { class: "unseen" }, WORDS[line.kind])),
              h("td", null, content(line)))))));
}

/** Text as it is, each line apart. @param {string} text @param {string} title */
export function codeBlock(text, title) {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
    h("pre", { class: "code" }, text.split("\n").map((line, at) => [at ? "\n" : null, h("bdi", null, spelled(line))])));
}

const ESCAPES = /\\(?:u[0-9a-f]{4}|.)/g;

/** A line of JSON: a line break inside a text is shown and followed, a suspicious character stands out.
 * @param {string} line @returns {import("../core.js").Child[]} */
function spelled(line) {
  const parts = [];
  let from = 0;
  for (const found of line.matchAll(ESCAPES)) {
    const isBreak = found[0] === "\\n" && found.index + 3 < line.length;
    if (!isBreak && !found[0].startsWith("\\u")) continue;
    parts.push(line.slice(from, found.index), h(isBreak ? "span" : "mark", { class: "esc" }, found[0]), isBreak ? "\n" : "");
    from = found.index + found[0].length;
  }
  return [...parts, line.slice(from)];
}

/** `+3 −1` with its words for who cannot see colours. @param {{ added: number, removed: number }} found */
export function tally(found) {
  return h("span", { class: "tally" },
    h("span", { class: "plus" }, `+${found.added}`), h("span", { class: "unseen" }, " lines added, "), " ",
    h("span", { class: "minus" }, `−${found.removed}`), h("span", { class: "unseen" }, " lines removed"));
}
