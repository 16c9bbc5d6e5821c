// @ts-check
/**
 * The reactive core: signals, owner scopes, DOM made of elements and text, keyed lists, and the router.
 *
 * Nothing here can make markup of a text: there is no innerHTML, no template, no style attribute, and links stay on
 * this server. Strict CSP and Trusted Types therefore hold by construction.
 */

/** @typedef {() => void} Cleanup */
/** @typedef {{ cleanups: Cleanup[] }} Owner */
/** @typedef {Node | string | number | boolean | null | undefined | ChildList | ChildMaker} Child */
/** @typedef {{ (): Child }} ChildMaker */
/** @typedef {Array<any>} ChildList */

/** @type {Owner | null} */
let owner = null;
/** @type {Reaction | null} */
let observer = null;
/** @type {Set<Reaction>} */
const queue = new Set();
let isQueued = false;

/** Run what waits, at once; otherwise it runs when the current task is over. */
export function flush() {
  isQueued = false;
  for (let round = 0; queue.size; round++) {
    if (round > 100) throw new Error("Effects change each other for ever.");
    const waiting = [...queue];
    queue.clear();
    for (const one of waiting) {
      try {
        one.run();
      } catch (error) {
        reportError(error); // a defect in one part of the page must not stop the others
      }
    }
  }
}

/** @param {Reaction} reaction */
function enqueue(reaction) {
  queue.add(reaction);
  if (isQueued) return;
  isQueued = true;
  queueMicrotask(flush);
}

/** A value that tells who reads it when it changes. @template T */
export class Signal {
  /** @param {T} value */
  constructor(value) {
    this.held = value;
    /** @type {Set<Reaction>} */
    this.readers = new Set();
  }

  get value() {
    if (observer) observer.reads(/** @type {Signal<any>} */ (this));
    return this.held;
  }

  set value(next) {
    if (Object.is(next, this.held)) return;
    this.held = next;
    this.tell();
  }

  /** Read without being told of changes. */
  peek() {
    return this.held;
  }

  tell() {
    for (const reader of [...this.readers]) reader.stale();
  }
}

/** A signal that is worked out from others, when it is read. @template T @extends {Signal<T>} */
class Computed extends Signal {
  /** @param {() => T} work */
  constructor(work) {
    super(/** @type {any} */ (undefined));
    this.isStale = true;
    this.reaction = new Reaction(() => {
      this.held = work();
    }, () => {
      if (this.isStale) return;
      this.isStale = true;
      this.tell();
    });
    if (owner) owner.cleanups.push(() => this.reaction.dispose());
  }

  /** @override @returns {T} */
  get value() {
    if (observer) observer.reads(/** @type {Signal<any>} */ (this));
    return this.peek();
  }

  /** @override @returns {T} */
  peek() {
    if (this.isStale) {
      this.isStale = false;
      this.reaction.run();
    }
    return this.held;
  }
}

/** Something to run again when what it read changes. */
class Reaction {
  /** @param {() => void} work @param {() => void} [onStale] */
  constructor(work, onStale) {
    this.work = work;
    this.stale = onStale ?? (() => enqueue(this));
    /** @type {Set<Signal<any>>} */
    this.sources = new Set();
    /** @type {Owner} */
    this.scope = { cleanups: [] };
    this.isDead = false;
  }

  /** @param {Signal<any>} source */
  reads(source) {
    source.readers.add(this);
    this.sources.add(source);
  }

  run() {
    if (this.isDead) return;
    this.clear();
    const [formerOwner, formerObserver] = [owner, observer];
    owner = this.scope;
    observer = this;
    try {
      this.work();
    } finally {
      owner = formerOwner;
      observer = formerObserver;
    }
  }

  clear() {
    for (const source of this.sources) source.readers.delete(this);
    this.sources.clear();
    release(this.scope);
  }

  dispose() {
    this.isDead = true;
    this.clear();
  }
}

/** @param {Owner} scope */
function release(scope) {
  for (const cleanup of scope.cleanups.splice(0).reverse()) cleanup();
}

/** @template T @param {T} value @returns {Signal<T>} */
export function signal(value) {
  return new Signal(value);
}

/** @template T @param {() => T} work @returns {{ readonly value: T, peek(): T }} */
export function computed(work) {
  return new Computed(work);
}

/** A signal that follows some work, and tells of nothing while the work comes to the same.
 * @template T @param {() => T} work @returns {Signal<T>} */
export function distinct(work) {
  const found = new Signal(untracked(work));
  effect(() => {
    found.value = work();
  });
  return found;
}

/** Run now, and again after each change of what it read, until the owner ends. @param {() => void} work */
export function effect(work) {
  const reaction = new Reaction(work);
  if (owner) owner.cleanups.push(() => reaction.dispose());
  reaction.run();
}

/** Do this when the view, row or effect that is being made ends. @param {Cleanup} cleanup */
export function onCleanup(cleanup) {
  if (!owner) throw new Error("onCleanup needs an owner: call it while a view is made.");
  owner.cleanups.push(cleanup);
}

/** Read signals without being told of changes. @template T @param {() => T} work @returns {T} */
export function untracked(work) {
  const former = observer;
  observer = null;
  try {
    return work();
  } finally {
    observer = former;
  }
}

/** Make something with an owner of its own; returns it and what ends it.
 * @template T @param {() => T} make @returns {[T, Cleanup]} */
export function scoped(make) {
  const scope = { cleanups: [] };
  const former = owner;
  owner = scope;
  try {
    return [untracked(make), () => release(scope)];
  } finally {
    owner = former;
  }
}

const LOCAL = /^(#|\/(?!\/)|\?)/;
const REFUSED = new Set(["style", "srcdoc", "innerhtml", "outerhtml", "src", "formaction", "action"]);
const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "open", "indeterminate", "readOnly", "selected"]);

/** @param {Element} element @param {string} name @param {any} value */
function set(element, name, value) {
  if (name === "href" && !LOCAL.test(String(value))) throw new Error("A link leads nowhere but this server.");
  if (PROPERTIES.has(name)) Reflect.set(element, name, value ?? "");
  else if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value === true ? "" : String(value));
}

/**
 * Make an element. A property is an attribute; `onclick` and the like take functions; a function anywhere else is
 * worked out again when what it reads changes. Children are nodes and text, never markup.
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any> | null} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (REFUSED.has(name.toLowerCase())) throw new Error(`The property ${name} is not for us to set.`);
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "ref") value(element);
    else if (typeof value === "function") effect(() => set(element, name, value()));
    else set(element, name, value);
  }
  append(element, children);
  return element;
}

/** @param {Node} parent @param {Child} child */
export function append(parent, child) {
  if (child === null || child === undefined || typeof child === "boolean") return;
  if (Array.isArray(child)) for (const one of child) append(parent, one);
  else if (typeof child === "function") region(parent, child);
  else parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
}

/** A place whose content is made anew when what it reads changes. @param {Node} parent @param {() => Child} make */
function region(parent, make) {
  const end = document.createComment("");
  parent.appendChild(end);
  /** @type {ChildNode[]} */
  let shown = [];
  effect(() => {
    const fresh = document.createDocumentFragment();
    append(fresh, make());
    const only = shown.length === 1 && fresh.childNodes.length === 1 ? shown[0] : null;
    const first = fresh.firstChild;
    if (only instanceof Text && first instanceof Text) {
      if (only.data !== first.data) only.data = first.data;
      return;
    }
    for (const node of shown) node.remove();
    shown = [...fresh.childNodes];
    end.parentNode?.insertBefore(fresh, end);
  });
}

/**
 * Keep the children of an element in step with a list. A child is made once for each key and kept, with its focus,
 * for as long as its key is there; what it shows comes through the item's signal.
 *
 * @template T
 * @param {HTMLElement} parent
 * @param {() => T[]} items
 * @param {(item: T) => string} key
 * @param {(item: Signal<T>) => Node} render
 * @param {HTMLElement} [scroller] what scrolls the list: what is looked at or pointed at there stays where it is
 */
export function list(parent, items, key, render, scroller) {
  /** @type {Map<string, { item: Signal<T>, node: Node, end: Cleanup }>} */
  let rows = new Map();
  onCleanup(() => rows.forEach((row) => row.end()));
  effect(() => {
    const wanted = items();
    untracked(() => {
      const focused = document.activeElement;
      /** @type {typeof rows} */
      const next = new Map();
      for (const item of wanted) {
        const name = key(item);
        let row = rows.get(name);
        if (row) row.item.value = item;
        else {
          const held = new Signal(item);
          const [node, end] = scoped(() => render(held));
          row = { item: held, node, end };
        }
        next.set(name, row);
      }
      for (const [name, row] of rows) {
        if (next.has(name)) continue;
        row.end();
        row.node.parentNode?.removeChild(row.node);
      }
      rows = next;
      const still = scroller && (parent.querySelector(":scope > :hover") ?? parent.querySelector(":scope > .here"));
      const top = still?.getBoundingClientRect().top ?? 0;
      place(parent, [...rows.values()].map((row) => row.node));
      if (focused instanceof HTMLElement && focused !== document.activeElement && parent.contains(focused)) {
        focused.focus({ preventScroll: true });
      }
      if (scroller && still?.isConnected) scroller.scrollTop += still.getBoundingClientRect().top - top;
    });
  });
}

/** Put nodes in order, moving as few as needed. @param {Node} parent @param {Node[]} nodes */
function place(parent, nodes) {
  /** @type {Node | null} */
  let at = parent.firstChild;
  const fresh = document.createDocumentFragment();
  for (const node of nodes) {
    if (node === at) {
      if (fresh.firstChild) parent.insertBefore(fresh, at);
      at = at.nextSibling;
    } else if (node.parentNode === parent) {
      parent.insertBefore(fresh, at);
      parent.insertBefore(node, at);
    } else fresh.appendChild(node);
  }
  parent.insertBefore(fresh, at);
}

/** An element that shows something about an attribute and is ticked once a second while it is on the page. */
export class Ticking extends HTMLElement {
  connectedCallback() {
    ticking.add(this);
    this.tick(Date.now());
  }

  disconnectedCallback() {
    ticking.delete(this);
  }

  attributeChangedCallback() {
    if (this.isConnected) this.tick(Date.now());
  }

  /** @param {number} _now */
  tick(_now) {}
}

/** @type {Set<Ticking>} */
const ticking = new Set();
setInterval(() => {
  const now = Date.now();
  for (const one of ticking) one.tick(now);
}, 1000);

/** @typedef {{ name: string, params: string[], query: URLSearchParams }} Route */

/** @returns {Route} */
function readRoute() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...params] = (path ?? "").split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { name: name || "inbox", params, query: new URLSearchParams(query ?? "") };
}

/** Where we are, from the part of the address after `#`. */
export const route = signal(readRoute());
let followed = location.hash;

/** Follow the address now; the browser tells of a change only later, when the next key may have been pressed. */
export function followAddress() {
  if (location.hash === followed) return;
  followed = location.hash;
  route.value = readRoute();
}
addEventListener("hashchange", followAddress);

/** The address of a view. @param {string} name @param {...string} params */
export function link(name, ...params) {
  return `#/${[name, ...params].map(encodeURIComponent).join("/")}`;
}

/** Go to a view. @param {string} name @param {...string} params */
export function go(name, ...params) {
  location.hash = link(name, ...params);
  followAddress();
}
