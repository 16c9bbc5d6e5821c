// @ts-check
/** The views of the console, in the order of its menu. A view that stands in no menu has no label. */

/** @typedef {(params: string[], query: URLSearchParams) => Node} View */
/**
 * A view is made anew when its parameters change; one that `follows` reads the route itself and is kept.
 * @typedef {{ name: string, label: string | null, follows?: boolean, load: () => Promise<{ view: View }> }} Entry
 */

/** @type {Entry[]} */
export const views = [
  { name: "inbox", label: "Inbox", follows: true, load: () => import("./inbox.js") },
  { name: "activity", label: "Activity", load: () => import("./activity.js") },
  { name: "call", label: null, load: () => import("./call.js") },
  { name: "run", label: "Runs", load: () => import("./run.js") },
  { name: "chat", label: "Chat", follows: true, load: () => import("./chat.js") },
  { name: "policy", label: "Policy", follows: true, load: () => import("./policy.js") },
  { name: "grants", label: "Grants", load: () => import("./grants.js") },
  { name: "delegations", label: "Delegations", load: () => import("./delegations.js") },
  { name: "audit", label: "Audit", load: () => import("./audit.js") },
];
