/** What shows as plain JSON: for tests and conformance cases. Source: schemas/README.md. */

import type { Json, JsonObject } from "./generated/wire.js";
import { storyOf } from "./story.js";
import { isTextPart, type Screen, type TurnState } from "./screen.js";

/** All that shows, equal for equal screens however they came about. */
export function canonical(screen: Pick<Screen, "turnIds" | "turn" | "surfaceNames" | "surface">): JsonObject {
  const turns: JsonObject = {};
  for (const id of screen.turnIds) turns[id] = canonicalTurn(screen.turn(id) as TurnState);
  const surfaces: JsonObject = {};
  for (const name of screen.surfaceNames) surfaces[name] = screen.surface(name) as unknown as Json;
  return { turns, surfaces };
}

function canonicalTurn(turn: TurnState): JsonObject {
  return {
    status: turn.status,
    inputs: turn.inputs.map((echo) => [echo.input_type, echo.data]),
    tools: turn.tools.map((run) => [run.tool, run.args, run.ok, run.error]),
    thinking: turn.thinking,
    errors: turn.errors.map((error) => [error.code, error.error]),
    final: turn.final,
    output: turn.output.map((item) =>
      isTextPart(item, turn.id) ? (item.props.content as string) : (item as unknown as Json),
    ),
    story: storyOf(turn).map(({ kind, number, text }) => text || `${kind} ${number}`),
  };
}
