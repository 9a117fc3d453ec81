/** Decides which addresses become links, and which pictures are loaded without asking. */

import type { ArpContext } from "./context.js";

/** Address of a file of a session, without query and fragment. */
const FILE = /^[^?#]*\/_api\/blobs\/s[\w-]+\/\w{64}\/(?:n[\w-]+\/)?[\w.-]+$/;

/** Names of the local machine. With the same port they mean the same server. */
const LOOPBACK = /^(localhost|127\.[\d.]+|\[::1])$/;

/**
 * Return the target of a link that may be followed; `null` for any other address, such as `javascript:`.
 *
 * On the agent's own server only files are linked. The address of its page selects the user and the chat, so with such
 * a link an agent could make the reader switch both.
 *
 * @param context Environment of the link; without it, or without a client, the server is the one of the page.
 */
export function linkTarget(address: string, context: Pick<ArpContext, "client"> | null = null): URL | null {
  const url = parsed(address);
  if (url === null || !/^(?:https?|mailto):$/.test(url.protocol)) return null;
  const server = parsed(context?.client?.address.base ?? "");
  if (server === null || !isOf(server, url)) return url;
  return FILE.test(url.href) ? url : null;
}

/** Return whether an address is on a server. */
function isOf(server: URL, { host, hostname, port }: URL): boolean {
  return host === server.host || (port === server.port && LOOPBACK.test(hostname) && LOOPBACK.test(server.hostname));
}

/** Return the origin of a picture: `here` may be loaded at once, `remote` needs consent; `null` is never loaded. */
export function imageSource(address: string): { kind: "here" | "remote"; url: string; host: string } | null {
  if (/^data:image\/(?:png|jpe?g|gif|webp);base64,[a-z0-9+/=\s]*$/i.test(address))
    return { kind: "here", url: address, host: "" };
  const url = parsed(address);
  if (url === null || !/^https?:$/.test(url.protocol)) return null;
  const isOwn = url.origin === originOf(baseUrl());
  return { kind: isOwn ? "here" : "remote", url: url.href, host: url.host };
}

/** Return whether a link leads to another server than that of the page. */
export function leadsAway(url: URL): boolean {
  return url.protocol !== "mailto:" && url.origin !== originOf(baseUrl());
}

/** Return an address as a URL, relative to the page; `null` if it is invalid. */
function parsed(address: string): URL | null {
  try {
    return new URL(address.trim(), baseUrl());
  } catch {
    return null;
  }
}

/** Return the base of relative addresses; without a DOM, as on a server, a fixed one. */
function baseUrl(): string {
  return typeof document === "undefined" ? "http://localhost/" : document.baseURI;
}

/** Return the origin of a URL; for an invalid one `"null"`, which is the origin of no http address. */
function originOf(url: string): string {
  try {
    return new URL(url).origin;
  } catch {
    return "null";
  }
}
