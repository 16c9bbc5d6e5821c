// @ts-check
/** The session's key: kept by the browser for the pages of this origin, which a cookie is not. */

const PLACE = "toolgate";
const SHELF = "keys";

/** @template T @param {IDBRequest<T>} asked @returns {Promise<T>} */
function answered(asked) {
  return new Promise((done, fail) => {
    asked.onsuccess = () => done(asked.result);
    asked.onerror = () => fail(asked.error);
  });
}

/** @template T @param {IDBTransactionMode} mode @param {(shelf: IDBObjectStore) => IDBRequest<T>} work */
async function withShelf(mode, work) {
  const opening = indexedDB.open(PLACE, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(SHELF);
  const place = await answered(opening);
  try {
    return await answered(work(place.transaction(SHELF, mode).objectStore(SHELF)));
  } finally {
    place.close();
  }
}

/** Keep the key of the server that is served under a prefix. @param {string} prefix @param {string} key */
export const keep = (prefix, key) => withShelf("readwrite", (shelf) => shelf.put(key, prefix));

/** The key that was kept, if any. @param {string} prefix @returns {Promise<string>} */
export async function kept(prefix) {
  return String((await withShelf("readonly", (shelf) => shelf.get(prefix))) ?? "");
}

/** @param {string} prefix */
export const forget = (prefix) => withShelf("readwrite", (shelf) => shelf.delete(prefix));
