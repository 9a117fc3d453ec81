/** The page's own address: the session and agent that it names, and the token in it. */

const TOKEN_KEY = "arp.token";

/** Return the session that an address names, or `null`. */
export function sessionOf(href: string): string | null {
  return new URL(href).searchParams.get("session") || null;
}

/** Return the agent that an address names for a new chat, or `null`. */
export function workflowOf(href: string): string | null {
  return new URL(href).searchParams.get("workflow") || null;
}

/** Return an address with another session and agent, and without a token. */
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

/** Return the token after `#token=`, or `null`. The page stores it for this tab and removes it from the address. */
export function tokenOf(href: string): string | null {
  return new URLSearchParams(new URL(href).hash.slice(1)).get("token");
}

/**
 * Return the token to use: the stored one, or else the given one, which is then stored.
 *
 * `other` is a given token that differs from the stored one. It is not used without asking, because anybody can send a
 * link with a token: the user would work under another identity without noticing.
 */
export function tokensOf(
  given: string | null,
  storage: Storage | null,
): { token: string | null; other: string | null } {
  try {
    const stored = storage?.getItem(TOKEN_KEY) ?? null;
    if (stored !== null) return { token: stored, other: given === stored ? null : given };
  } catch {
    // The storage is not accessible.
  }
  keepToken(given, storage);
  return { token: given, other: null };
}

/** Store a token for this tab. */
export function keepToken(token: string | null, storage: Storage | null): void {
  try {
    if (token !== null) storage?.setItem(TOKEN_KEY, token);
  } catch {
    // The storage is full or forbidden: the token lasts until the page is closed.
  }
}
