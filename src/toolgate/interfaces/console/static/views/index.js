// @ts-check
/** The views of the console, in the order of its menu. A view that stands in no menu has no label. */

/** @typedef {(params: string[], query: URLSearchParams) => Node} View */
/**
 * A view is made anew when its parameters change; one that `follows` reads the route itself and is kept.
 * @typedef {{ name: string, label: string | null, follows?: boolean, load: () => Promise<{ view: View }> }} Entry
 */

/** @type {Entry[]} */
export const views = [{ name: "inbox", label: "Inbox", follows: true, load: () => import("./inbox.js") }];
