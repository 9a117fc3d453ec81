/** The address of a server, and the URLs of its transports. Source: protocol.md 6. */

export type Transport = "websocket" | "sse";

export interface Address {
  /** Transports to try, in this order. */
  readonly transports: readonly Transport[];
  readonly socket: string;
  readonly events: string;
  /** URL for inputs over HTTP, and for files over any transport. */
  readonly input: string;
  /** Root of the HTTP API, without a slash at its end. */
  readonly base: string;
}

const ENDPOINT = "/_arp/v1";

/**
 * Return the URLs of a server.
 *
 * @param url `ws:`, `wss:`, `http:` or `https:`; the WebSocket (`…/_arp/v1`), the root of the server, or the prefix
 *   below which it is mounted. In a browser it may be relative to `document.baseURI`.
 * @param only The only transport to use.
 * @throws TypeError The URL has another scheme.
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
