/** Whether the agent waits for an answer of the reader, and whether the question is in the conversation. */

import { questionState, type ArpClient, type Component, type TurnState } from "@agent-rendering/core";

import { childrenOf } from "@agent-rendering/core/timeline";

/** Return whether a component or one of its children is an open question. */
export function asks(component: Component): boolean {
  return questionState(component) === "open" || childrenOf(component).some(asks);
}

/** Return whether a turn waits for an answer in the conversation, not only in a permission card or a popup. */
export function waitsForAnswer({ id, status, permissions, output }: TurnState, { store }: ArpClient): boolean {
  if (status !== "waiting") return false;
  // Permission cards and popups announce themselves. "Your turn" is for a question that only the conversation shows.
  const asked = new Set(permissions.map(({ component }) => component));
  const isInWindow = store.permissions.get().some(({ turnId }) => turnId === id) || store.popupNames.get().length > 0;
  return !isInWindow || output.some((component) => !asked.has(component.id) && asks(component));
}

/** Return whether the agent waits for an answer, in the conversation or in a permission card. */
export function asksNow(client: ArpClient): boolean {
  return client.store.permissions.get().length > 0 || isAwaited(client);
}

/** Return whether the last turn, apart from queued ones, waits for an answer in the conversation. */
export function isAwaited(client: ArpClient): boolean {
  const { turnIds } = client.store;
  const inLine = ["queued", "cancelled"];
  const last = turnIds.get().findLast((id) => !inLine.includes(client.screen.status(id) ?? ""));
  const state = last === undefined ? undefined : client.store.turn(last).get();
  return state !== undefined && waitsForAnswer(state, client);
}
