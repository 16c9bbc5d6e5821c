// @ts-check
/** The sign-in page: takes a login link's ticket from behind the `#`, where no server or log sees it, and posts it. */

const form = /** @type {HTMLFormElement} */ (document.getElementById("login"));
const token = /** @type {HTMLInputElement} */ (document.getElementById("token"));
const hash = location.hash;

if (hash.startsWith("#ticket=")) {
  history.replaceState(null, "", location.pathname + location.search);
  token.value = hash.slice(1);
  form.requestSubmit();
} else if (hash.startsWith("#/")) {
  // A link from another site comes without the cookie, though somebody may be signed in.
  form.action = `/login${hash}`;
  const answer = await fetch("/session", { cache: "no-store" });
  if (answer.ok) location.replace(`/${location.search}${hash}`);
}

export {};
