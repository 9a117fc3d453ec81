/**
 * Which questions are open. A question is open because its component says so, whatever the status of its
 * turn: a restart of the agent side ends the turn and leaves its questions open. Source: protocol.md 2.2.
 */

import { questionState } from "../protocol/answers.js";
import type { Component, Permission } from "../protocol/generated/wire.js";
import { answerTo, type Outgoing } from "./outbox.js";
import type { Screen, ToolRun, TurnState } from "../protocol/screen.js";

/** A tool that waits for permission. */
export interface OpenPermission {
  readonly turnId: string;
  readonly permission: Permission;
  /** The `confirm` that asks. */
  readonly component: Component;
  /** The call of the tool; `undefined` if it does not show. */
  readonly run: ToolRun | undefined;
}

/** Returns the permissions of all turns that wait for an answer, oldest first, without those whose answer is on its way. */
export function openPermissions(screen: Screen, outgoing: readonly Outgoing[] = []): OpenPermission[] {
  return screen.askingTurns.flatMap((turnId) => {
    const { permissions, tools } = screen.turn(turnId) as TurnState;
    return permissions.flatMap((permission) => {
      const { component: id, surface = "main" } = permission;
      const component = screen.find(id, surface)?.component;
      if (component === undefined || questionState(component) !== "open" || answerTo(outgoing, id, surface)) return [];
      const run = tools.find(({ callId }) => callId !== "" && callId === permission.call_id);
      return [{ turnId, permission, component, run }];
    });
  });
}
