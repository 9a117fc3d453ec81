/** What is announced when a turn is over, and when a connection is there. */

import type { ArpClient, TurnState } from "@agent-rendering/core";

import type { Translate } from "../../base/context.js";

/** How a turn ended, in a line; after a failure also whether the queue is paused. */
export function endLine({ status }: TurnState, { store }: ArpClient, t: Translate): string {
  if (status === "completed") return t("answerComplete");
  if (status === "cancelled") return t("stopped");
  const isPaused = store.turnIds.get().some((id) => store.turn(id).get()?.paused);
  return isPaused ? `${t("failed")}. ${t("linePaused")}` : t("failed");
}

/** On the server's own page: pictures and links take no token along, so they want a cookie. */
export async function openFiles({ address, sessions }: ArpClient): Promise<void> {
  if (new URL(address.base).origin === location.origin) await sessions.openFiles().catch(() => undefined);
}
