/** The screen as plain JSON, for tests and conformance cases. Source: schemas/README.md. */

import type { Json, JsonObject } from "./protocol/generated/wire.js";
import { storyOf } from "./protocol/story.js";
import { isTextPart, type Screen, type ToolRun, type TurnState } from "./protocol/screen.js";

/** Return the content of a screen. Equal screens give equal results, whatever messages produced them. */
export function canonical(screen: Screen): JsonObject {
  const turns: JsonObject = {};
  for (const id of screen.turnIds) turns[id] = canonicalTurn(screen.turn(id) as TurnState);
  const surfaces: JsonObject = {};
  for (const name of [...screen.surfaceNames, ...screen.popupNames])
    surfaces[name] = screen.surface(name) as unknown as Json;
  const { commands, described: windows, sharedState: state } = screen;
  return {
    ...(commands.length > 0 && { commands: commands as unknown as Json }),
    ...(Object.keys(windows).length > 0 && { windows: windows as unknown as Json }),
    ...(Object.keys(state).length > 0 && { state }),
    turns,
    surfaces,
  };
}

function canonicalTurn(turn: TurnState): JsonObject {
  return {
    status: turn.status,
    inputs: turn.inputs.map((echo) => [echo.input_type, echo.data]),
    tools: turn.tools.map((run) => [run.tool, run.args, run.ok, run.error, ...details(run)]),
    thinking: turn.thinking,
    errors: turn.errors.map((error) => [error.code, error.error]),
    final: turn.final,
    output: turn.output.map((item) =>
      isTextPart(item, turn.id) ? (item.props.content as string) : (item as unknown as Json),
    ),
    story: storyOf(turn).map(({ kind, number, text }) => text || `${kind} ${number}`),
  };
}

/** Return the fields of the feature `tool-detail`, if any. The duration is left out: it differs from run to run. */
function details({ progress, result, resultRef }: ToolRun): JsonObject[] {
  const fields = known({
    progress: progress && known({ ...progress, text: progress.text || null }),
    result,
    result_ref: resultRef,
  });
  return Object.keys(fields).length > 0 ? [fields] : [];
}

function known(given: { readonly [name: string]: Json | undefined }): JsonObject {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value != null)) as JsonObject;
}
