/** Where a server is: one address in, the URLs of each transport out. Source: protocol.md 6. */

export type Transport = "websocket" | "sse";

export interface Address {
  /** Transports to try, in this order. */
  readonly transports: readonly Transport[];
  readonly socket: string;
  readonly events: string;
  /** Takes input over HTTP, and files whatever the transport. */
  readonly input: string;
  /** The root of the HTTP API, without a slash at its end. */
  readonly base: string;
}

const ENDPOINT = "/_arp/v1";

/**
 * The ways to reach a server.
 *
 * @param url `ws:`, `wss:`, `http:` or `https:`; the WebSocket itself (`…/_arp/v1`), or a server's
 *   root, or the prefix under which it is mounted; relative to `document.baseURI` in a browser.
 * @param only One transport, to take no other.
 * @throws TypeError It is no such address.
 */
export function parseAddress(url: string, only: Transport | "auto" = "auto"): Address {
  const { document } = globalThis as { document?: { baseURI: string } };
  const parsed = new URL(url, document?.baseURI);
  const [, secure] = /^(?:ws|http)(s?):$/.exec(parsed.protocol) ?? [];
  if (secure === undefined) throw new TypeError(`arp: ${url} is not http://HOST:PORT`);
  const path = parsed.pathname.replace(/\/+$/, "");
  const prefix = path.endsWith(ENDPOINT) ? path.slice(0, -ENDPOINT.length) : path;
  const at = (scheme: string, tail: string) => `${scheme}${secure}://${parsed.host}${prefix}${tail}`;
  return {
    transports: only === "auto" ? ["websocket", "sse"] : [only],
    socket: at("ws", ENDPOINT) + parsed.search,
    events: at("http", `${ENDPOINT}/events`) + parsed.search,
    input: at("http", `${ENDPOINT}/input`) + parsed.search,
    base: at("http", ""),
  };
}
