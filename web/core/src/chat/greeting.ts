/** The greeting of an app: a turn that nobody asked for. Source: protocol.md 2.3. */

import { SESSION_START } from "../protocol/generated/tables.js";
import type { TurnState } from "../protocol/screen.js";

/** Whether a turn is the greeting, and nobody has said anything in it. */
export function isGreeting(turn: TurnState | undefined): boolean {
  return turn?.inputs.length === 1 && turn.inputs[0]?.origin === SESSION_START;
}
