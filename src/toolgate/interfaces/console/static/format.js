// @ts-check
/** How values are shown: times, durations, risks, and texts of others with nothing hidden in them. */

import { Ticking, h } from "./core.js";
import { skew } from "./store.js";

const UNSEEN = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f" +
    "\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb\\ud800-\\udfff]" +
    "|[\\u{e0000}-\\u{e0fff}]|(?<=[\\u0000-\\u007f])[\\u200c\\u200d\\ufe00-\\ufe0f]",
  "gu",
);

/** A text of others with each character that hides or moves something shown by its code. @param {unknown} text */
export function visible(text) {
  return String(text ?? "").replace(UNSEEN, (one) => {
    const code = one.codePointAt(0) ?? 0;
    return `⟦U+${code.toString(16).toUpperCase().padStart(4, "0")}⟧`;
  });
}

/** A JSON value as indented text with nothing hidden in it. @param {unknown} value */
export function json(value) {
  return visible(JSON.stringify(value, null, 2));
}

/** @type {Intl.DateTimeFormat | undefined} */
let clock;
/** @type {Intl.DateTimeFormat | undefined} */
let day;

/** A moment in local time. @param {string} at */
export function localTime(at) {
  clock ??= new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  day ??= new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? clock.format(date) : `${day.format(date)}, ${clock.format(date)}`;
}

/** A moment in local time, with UTC on hover. @param {string} at */
export function time(at) {
  const utc = `${at.replace("T", " ").replace(/(\.\d+)?(Z|\+00:00)$/, "")} UTC`;
  return h("time", { datetime: at, title: utc }, localTime(at));
}

/** A number of seconds in a few characters. @param {number} seconds */
export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")} min`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h${whole % 3600 < 60 ? "" : ` ${Math.floor((whole % 3600) / 60)} min`}`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

/** Milliseconds in a few characters. @param {number} ms */
export function milliseconds(ms) {
  return ms < 1000 ? `${Math.round(ms)} ms` : ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : duration(ms / 1000);
}

/** What time it is at the server. */
export function serverNow() {
  return Date.now() + skew;
}

/** `<tg-countdown until="...">`: how long until a moment; the last minute is urgent. */
class Countdown extends Ticking {
  shown = "";
  static observedAttributes = ["until"];

  /** @override */
  tick() {
    const left = (Date.parse(this.getAttribute("until") ?? "") - serverNow()) / 1000;
    const text = left > 0 ? `${duration(left)} left` : "expired";
    if (this.shown === text) return;
    this.shown = this.textContent = text;
    if (left < 60 !== this.classList.contains("urgent")) this.classList.toggle("urgent");
  }
}
customElements.define("tg-countdown", Countdown);

/** `<tg-ago at="...">`: how long ago a moment was; with `age`, for how long it has been. */
class Ago extends Ticking {
  shown = "";
  static observedAttributes = ["at"];

  /** @override */
  tick() {
    const past = (serverNow() - Date.parse(this.getAttribute("at") ?? "")) / 1000;
    const span = past < 3600 ? (past < 60 ? `${Math.max(0, Math.floor(past))} s` : `${Math.floor(past / 60)} min`) : duration(past);
    const text = this.hasAttribute("age") ? span : past < 5 ? "just now" : `${span} ago`;
    if (this.shown !== text) this.shown = this.textContent = text;
  }
}
customElements.define("tg-ago", Ago);

/** @param {string} until */
export function countdown(until) {
  const element = document.createElement("tg-countdown");
  element.setAttribute("until", until);
  element.setAttribute("title", `${until.replace("T", " ").replace(/(\.\d+)?(Z|\+00:00)$/, "")} UTC`);
  return element;
}

/** @param {string} at */
export function ago(at) {
  const element = document.createElement("tg-ago");
  element.setAttribute("at", at);
  element.setAttribute("title", `${at.replace("T", " ").replace(/(\.\d+)?(Z|\+00:00)$/, "")} UTC`);
  return element;
}

/** For how long something has been so. @param {string} since */
export function age(since) {
  const element = ago(since);
  element.setAttribute("age", "");
  return element;
}

/** A risk as a word in its colour. @param {string} level */
export function riskBadge(level) {
  return h("span", { class: `risk ${level.toLowerCase()}` }, level);
}

/** The state of a call as a word in its colour. @param {string} status */
export function statusBadge(status) {
  const word = status.toLowerCase();
  return h("span", { class: `status ${word}` }, word.replaceAll("_", " "));
}

/** Something others wrote, cut off from the direction of what is around it. @param {string} text */
export function said(text) {
  return h("bdi", null, visible(text));
}
