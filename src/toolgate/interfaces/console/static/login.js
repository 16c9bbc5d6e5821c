// @ts-check
/** The sign-in page: takes a login link's ticket from behind the `#`, where no server or log sees it, and posts it. */

const form = /** @type {HTMLFormElement} */ (document.getElementById("login"));
const token = /** @type {HTMLInputElement} */ (document.getElementById("token"));
const hash = location.hash;
const prefix = location.pathname.replace(/\/login$/, "");

if (hash.startsWith("#ticket=")) {
  history.replaceState(null, "", location.pathname + location.search);
  token.value = hash.slice(1);
  form.requestSubmit();
} else if (hash.startsWith("#/")) {
  // A link from another site comes without the cookie, though somebody may be signed in.
  form.action = `${prefix}/login${hash}`;
  const answer = await fetch(`${prefix}/session`, { cache: "no-store" });
  if (answer.ok) location.replace(`${prefix}/${location.search}${hash}`);
}

export {};
