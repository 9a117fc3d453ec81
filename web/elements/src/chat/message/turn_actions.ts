/** Actions on a turn: edit its input, regenerate its answer, show another version, and move it in the queue. */

import { ArpError, type ArpClient, type ErrorPayload, type TurnState } from "@agent-rendering/core";

import type { MessageActions } from "./message.js";

/** Actions of a chat that takes no input. */
export const NO_ACTIONS: MessageActions = {};

/**
 * Return the actions on the turns of a client.
 *
 * @param complain Called with the reason if the agent side refuses an action.
 * @param begun Called with the id of an input that begins a new version of a turn.
 */
export function turnActions(
  client: ArpClient,
  complain: (error: ErrorPayload) => void,
  begun: (id: string) => void = () => {},
): MessageActions {
  const acknowledge = (id: string, begins = false) => {
    if (begins) begun(id);
    client.acknowledged(id).catch((error: unknown) => {
      client.discard(id); // a refused action must not be sent again later
      complain(error instanceof ArpError ? error.payload : { error: String(error), code: 0 });
    });
  };
  let giveUp = () => {};
  /** Replace the running turn by the last request; an earlier request that still waits is dropped. */
  const instead = (change: () => void) => {
    giveUp();
    giveUp = whenStopped(client, change);
  };
  return {
    regenerate: ({ id }) => instead(() => acknowledge(client.regenerate(id), true)),
    edit: ({ id, final }, text) => {
      const edit = () => acknowledge(client.edit(id, text), true);
      if (final) instead(edit);
      else edit(); // a queued turn keeps its place in the queue
    },
    versions: (turn) => versionsOf(turn, (id) => acknowledge(client.showVersion(id))),
    leave: ({ id }) => acknowledge(client.stop(id)),
    promote: ({ id }) => acknowledge(client.promote(id)),
    goOn: () => acknowledge(client.goOn()),
  };
}

/**
 * Stop the running turn, and call `change` when it has ended. Returns a function that cancels the change. If a queued
 * turn would begin first, the change is sent at once, and the server refuses it with the reason.
 */
function whenStopped(client: ArpClient, change: () => void): () => void {
  const { sessionId, store } = client;
  const { activeTurn } = store.status.get();
  const isNext = store.turnIds.get().some((id) => store.turn(id).get()?.status === "queued");
  if (isNext || activeTurn === null) {
    change();
    return () => {};
  }
  const unsubscribe = store.status.subscribe(() => {
    const isHere = client.sessionId === sessionId;
    if (isHere && store.status.get().activeTurn !== null) return;
    unsubscribe();
    if (isHere) change();
  });
  client.stop(activeTurn);
  return unsubscribe;
}

/** Return which version of a turn shows; `null` if there is only one. */
function versionsOf(
  { id, inputs }: TurnState,
  show: (turnId: string) => void,
): ReturnType<NonNullable<MessageActions["versions"]>> {
  const ids = inputs[0]?.versions ?? [];
  const at = ids.indexOf(id);
  if (at < 0 || ids.length < 2) return null;
  return {
    number: at + 1,
    count: ids.length,
    go: (step) => {
      const next = ids[at + step];
      if (next !== undefined) show(next);
    },
  };
}

/** Return the text that was sent last; empty if there is none. */
export function lastInput({ store }: ArpClient): string {
  for (const id of [...store.turnIds.get()].reverse()) {
    const text = store.turn(id).get()?.inputs[0]?.data.text;
    if (typeof text === "string" && text !== "") return text;
  }
  return "";
}
