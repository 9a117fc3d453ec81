/**
 * Open questions. The component of a question decides whether it is open, not the status of its turn: a restart
 * of the agent side ends the turn but leaves its questions open. Source: protocol.md 2.2.
 */

import { questionState } from "../protocol/answers.js";
import type { Component, Permission } from "../protocol/generated/wire.js";
import { answerTo, type Outgoing } from "./outbox.js";
import type { Screen, ToolRun, TurnState } from "../protocol/screen.js";

/** A permission request that waits for an answer. */
export interface OpenPermission {
  readonly turnId: string;
  readonly permission: Permission;
  /** The `confirm` component that asks. */
  readonly component: Component;
  /** The tool call that needs permission; `undefined` if it is not on the screen. */
  readonly run: ToolRun | undefined;
}

/** Return the open permissions of all turns, oldest first, without those with an answer in `outgoing`. */
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
