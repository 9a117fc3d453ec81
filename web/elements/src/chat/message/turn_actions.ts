/** What can be done with a turn: say it in other words, have it answered again, look at another version. */

import { ArpError, type ArpClient, type ErrorPayload, type TurnState } from "@agent-rendering/core";

import type { MessageActions } from "./message.js";

/** Of what takes no input. */
export const NO_ACTIONS: MessageActions = {};

/** The actions of a client's turns. `complain` gets the reason of a refusal, `begun` the input that has a turn answered again. */
export function turnActions(
  client: ArpClient,
  complain: (error: ErrorPayload) => void,
  begun: (id: string) => void = () => {},
): MessageActions {
  const acknowledge = (id: string, begins = false) => {
    if (begins) begun(id);
    client.acknowledged(id).catch((error: unknown) => {
      client.discard(id); // what was refused is not kept for later: it was meant for now
      complain(error instanceof ArpError ? error.payload : { error: String(error), code: 0 });
    });
  };
  let giveUp = () => {};
  /** The last request replaces what runs; an earlier request that still waits is dropped. */
  const instead = (change: () => void) => {
    giveUp();
    giveUp = whenStopped(client, change);
  };
  return {
    regenerate: ({ id }) => instead(() => acknowledge(client.regenerate(id), true)),
    edit: ({ id, final }, text) => {
      const edit = () => acknowledge(client.edit(id, text), true);
      if (final) instead(edit);
      else edit(); // it is queued, and stays queued
    },
    versions: (turn) => versionsOf(turn, (id) => acknowledge(client.showVersion(id))),
    leave: ({ id }) => acknowledge(client.stop(id)),
    promote: ({ id }) => acknowledge(client.promote(id)),
    goOn: () => acknowledge(client.goOn()),
  };
}

/**
 * Stops what runs, and changes something when it is over; returns the way to leave it at the stop. Where the next in
 * line would begin then, the change goes out at once: the server says what is in the way.
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

/** Which of the versions of a turn shows; `null` if there is only this one. */
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

/** The text that was sent last; empty if there is none. */
export function lastInput({ store }: ArpClient): string {
  for (const id of [...store.turnIds.get()].reverse()) {
    const text = store.turn(id).get()?.inputs[0]?.data.text;
    if (typeof text === "string" && text !== "") return text;
  }
  return "";
}
