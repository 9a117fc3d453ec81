/**
 * What the page's address says, `#session=…&seq=…`, and the token of this tab. A token in the
 * address is kept for the tab and taken out of the address at once.
 */

const TOKEN_KEY = "arp.token";

/** Session, fact, view and token that an address asks for; null where absent. */
export function readPlace(href) {
  const said = new URLSearchParams(new URL(href).hash.slice(1));
  const seq = said.get("seq") ?? "";
  return {
    session: said.get("session") || null,
    seq: /^[1-9]\d{0,15}$/.test(seq) ? Number(seq) : null,
    view: said.get("view") || null,
    token: said.get("token") || null,
  };
}

/** The page's address for a place. */
export function addressOf(href, { session = null, seq = null, view = null }) {
  const url = new URL(href);
  const said = new URLSearchParams();
  if (session !== null) said.set("session", session);
  if (view !== null) said.set("view", view);
  if (seq !== null) said.set("seq", String(seq));
  url.hash = said.toString();
  return url.href;
}

/** The address of the control plane, beside the page. */
export function rpcAddress(baseURI) {
  const url = new URL("_api/rpc", baseURI);
  url.search = url.hash = "";
  url.protocol = url.protocol.replace("http", "ws");
  return url.href;
}

/** This tab's token; the chat page of this server keeps it under the same name, as it is. */
export class Token {
  #value = null;

  constructor(storage) {
    this.storage = storage;
    try {
      this.#value = storage.getItem(TOKEN_KEY);
    } catch {
      /* no storage */
    }
  }

  get value() {
    return this.#value;
  }

  keep(token) {
    this.#value = token;
    try {
      this.storage.setItem(TOKEN_KEY, token);
    } catch {
      /* it lasts until the reload */
    }
  }
}

/** The token in a text that was pasted: of an address, what follows `token=`; else the text itself. */
export function tokenIn(text) {
  const bare = text.trim();
  const start = bare.search(/(?<=[#?&])token=/);
  return (start < 0 ? null : new URLSearchParams(bare.slice(start)).get("token")) ?? bare;
}

/** This tab's storage, or null where the browser forbids it. */
export function tabStorage() {
  try {
    return globalThis.sessionStorage;
  } catch {
    return null;
  }
}
