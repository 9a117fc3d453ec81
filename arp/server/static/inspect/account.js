/** Who the reader is, and how somebody signs in who is not let in. */

/** What the server says of it; null if it does not say. */
export async function readAccount(baseURI, token) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  try {
    const answer = await fetch(new URL("_api/user", baseURI), { headers });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

/** The address where the reader signs in and comes back to this page; null if there is none. */
export function signInAddress(account, { pathname, search, hash }) {
  const here = encodeURIComponent(pathname + search + hash);
  return account?.login_url?.replace("{next}", here) ?? null;
}
