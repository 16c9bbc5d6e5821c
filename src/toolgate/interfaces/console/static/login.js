// @ts-check
/**
 * The sign-in page. A login link's ticket comes behind the `#`, where no server or log sees it: the page takes it from
 * there, says whom it signs in, and leaves the rest to the person.
 */

import { kept } from "./key.js";

const form = /** @type {HTMLFormElement} */ (document.getElementById("login"));
const token = /** @type {HTMLInputElement} */ (document.getElementById("token"));
const leaves = /** @type {HTMLInputElement} */ (document.getElementById("leaves"));
const key = /** @type {HTMLInputElement} */ (document.getElementById("key"));
const prefix = new URL(import.meta.url).pathname.replace(/\/console\/[^/]+\/login\.js$/, "");
const hash = location.hash;

/** @param {string} ticket */
async function askFirst(ticket) {
  history.replaceState(null, "", location.pathname + location.search);
  token.value = ticket;
  const answer = await fetch(`${prefix}/login/whose`, { method: "POST", body: new URLSearchParams({ token: ticket }), cache: "no-store" });
  const told = await answer.json().catch(() => ({}));
  const words = /** @type {HTMLElement} */ (document.getElementById("link"));
  if (answer.ok) {
    leaves.value = told.leaves;
    words.textContent = `This link signs you in as ${told.account}.`
      + (told.leaves ? ` ${told.leaves} is signed in here now, and will be signed out.` : "");
    for (const part of form.querySelectorAll(".typed")) part.setAttribute("hidden", "");
    const button = /** @type {HTMLElement} */ (form.querySelector("button"));
    button.textContent = `Sign in as ${told.account}`;
    button.focus();
  } else {
    token.value = "";
    words.className = "notice bad";
    words.setAttribute("role", "alert");
    words.textContent = answer.status === 401
      ? "That link is not valid. It works once, and soon; ask for another one."
      : String(told.detail ?? "The link cannot be checked now. Open it again.");
  }
  words.hidden = false;
}

key.value = await kept(prefix); // proves whose session ends when another one begins

if (hash.startsWith("#ticket=")) await askFirst(hash.slice(1));
else if (hash.startsWith("#/")) {
  // A link from another site comes without the cookie, though somebody may be signed in.
  form.action = `${prefix}/login${hash}`;
  const answer = await fetch(`${prefix}/session`, { headers: { "X-Toolgate-Key": key.value }, cache: "no-store" });
  if (answer.ok) location.replace(`${prefix}/${location.search}${hash}`);
}
