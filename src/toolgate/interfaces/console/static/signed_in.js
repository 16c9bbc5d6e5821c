// @ts-check
/** The page a session begins on: puts its key where only pages of this origin find it, and goes on. */

import { keep } from "./key.js";

/** @param {string} name */
const told = (name) => document.querySelector(`meta[name="toolgate-${name}"]`)?.getAttribute("content") ?? "";

await keep(new URL(import.meta.url).pathname.replace(/\/console\/[^/]+\/signed_in\.js$/, ""), told("key"));
location.replace(told("next") + location.hash);
