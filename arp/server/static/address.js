/**
 * Where this page talks to, which session it shows, and what it remembers over a reload. All
 * addresses are relative to the page, so that it also works when mounted under a prefix. The
 * session stands in the page's own address; the token only in this tab's storage.
 */

const TOKEN_KEY = "arp.token";

/** Addresses of the server, as absolute URLs. */
export function endpoints(baseURI) {
  const socket = new URL("_arp/v1", baseURI);
  socket.search = socket.hash = "";
  socket.protocol = socket.protocol.replace("http", "ws");
  return {
    socket: socket.href,
    input: new URL("_arp/v1/input", baseURI).href,
    workflows: new URL("_api/workflows", baseURI).href,
  };
}

/**
 * What the page's address asks for: `?session=` or `#session=`, and `#token=`; null where absent.
 */
export function readPage(href) {
  const url = new URL(href);
  const fragment = new URLSearchParams(url.hash.slice(1));
  return {
    sessionId: fragment.get("session") || url.searchParams.get("session") || null,
    token: fragment.get("token") || null,
  };
}

/** The page's address for a session (null = a new one), without token and fragment. */
export function pageFor(href, sessionId) {
  const url = new URL(href);
  url.hash = "";
  url.searchParams.delete("session");
  if (sessionId !== null) url.searchParams.set("session", sessionId);
  return url.href;
}

/** The token of this tab: one that has just been given is kept, else the one kept before. */
export function keepToken(store, given) {
  if (given !== null) store.set(TOKEN_KEY, given);
  return given ?? store.get(TOKEN_KEY);
}

/** This tab's memory as JSON values; without permission for storage it lasts until the reload. */
export class Store {
  #storage;
  #memory = new Map();

  /** `storage` is a Web Storage or null. */
  constructor(storage) {
    this.#storage = storage;
  }

  /** The value kept under `key`; null when there is none or it cannot be read. */
  get(key) {
    try {
      return JSON.parse(this.#storage.getItem(key)) ?? this.#memory.get(key) ?? null;
    } catch {
      return this.#memory.get(key) ?? null;
    }
  }

  /** Keeps `value`; null forgets. */
  set(key, value) {
    this.#memory.set(key, value);
    try {
      if (value === null) this.#storage.removeItem(key);
      else this.#storage.setItem(key, JSON.stringify(value));
    } catch {
      /* full or forbidden: the memory has it until the reload */
    }
  }
}

/** This tab's storage, or null where the browser forbids it. */
export function tabStorage() {
  try {
    return globalThis.sessionStorage;
  } catch {
    return null;
  }
}

/** A fresh id of 128 random bits; works on plain http too. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
