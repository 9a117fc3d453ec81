/** The page's own address: which session it shows, and the token that was handed over in it. */

const TOKEN_KEY = "arp.token";

/** The session that an address names; `null` if it names none. */
export function sessionOf(href: string): string | null {
  return new URL(href).searchParams.get("session") || null;
}

/** The agent that an address names for a new chat; `null` if it names none. */
export function workflowOf(href: string): string | null {
  return new URL(href).searchParams.get("workflow") || null;
}

/** An address with another session and agent, and without what must not be kept in it. */
export function withSession(
  href: string,
  sessionId: string | null,
  workflow: string | null = workflowOf(href),
): string {
  const url = new URL(href);
  for (const [name, value] of [
    ["session", sessionId],
    ["workflow", workflow],
  ] as const) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  if (tokenOf(href) !== null) url.hash = "";
  return url.href;
}

/** The token behind `#token=`; it is kept for this tab, so that the address need not show it. */
export function tokenOf(href: string): string | null {
  return new URLSearchParams(new URL(href).hash.slice(1)).get("token");
}

/**
 * The token to use: the one that was kept, else the given one, which is kept then. `other` is a given one that
 * differs from the kept one: an address, which anybody may have written, does not say by itself who the reader is.
 */
export function tokensOf(
  given: string | null,
  storage: Storage | null,
): { token: string | null; other: string | null } {
  try {
    const kept = storage?.getItem(TOKEN_KEY) ?? null;
    if (kept !== null) return { token: kept, other: given === kept ? null : given };
  } catch {
    // Nothing can be kept here.
  }
  keepToken(given, storage);
  return { token: given, other: null };
}

/** Keeps a token for this tab. */
export function keepToken(token: string | null, storage: Storage | null): void {
  try {
    if (token !== null) storage?.setItem(TOKEN_KEY, token);
  } catch {
    // It is good until the page goes.
  }
}
