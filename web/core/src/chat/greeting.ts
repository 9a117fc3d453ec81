/** The greeting of an app: a turn without an input of the user. Source: protocol.md 2.3. */

import { SESSION_START } from "../protocol/generated/tables.js";
import type { TurnState } from "../protocol/screen.js";

/** Return whether a turn is the greeting and has no input of the user. */
export function isGreeting(turn: TurnState | undefined): boolean {
  return turn?.inputs.length === 1 && turn.inputs[0]?.origin === SESSION_START;
}
