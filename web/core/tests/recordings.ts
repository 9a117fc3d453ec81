/** Recordings of the Python renderer: frames, and its state after each. */

import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { canonical } from "../src/canonical.js";
import { RendererConnection } from "../src/index.js";
import type { JsonObject } from "../src/index.js";
import { PYTHON } from "./server.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

export interface Step {
  /** Frame of this step; `null` if the link was lost. */
  frame: string | null;
  state: JsonObject;
  place: { epoch: string | null; seq: number };
  faults: number;
}

export interface Recording {
  number: number;
  steps: Step[];
  /** Frames that a replay sends for each fact, with the sequence number of the fact. */
  replay?: [number, string[]][];
}

/** Make recordings with the Python program. */
export function recorded(first: number, count: number): Recording[] {
  const given = ["-m", "tests.web.recordings", String(first), String(count)];
  const env = { ...process.env, PYTHONPATH: ROOT };
  const out = execFileSync(PYTHON, given, { cwd: ROOT, env, maxBuffer: 1 << 28, encoding: "utf8" });
  return out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Recording);
}

/** Apply one step as the recording program did; return the values to compare. */
export function take(received: RendererConnection, frame: string | null): Omit<Step, "frame"> {
  if (frame === null) received.hello();
  const messages = frame === null ? [] : received.receive(frame);
  const faults = messages.filter((message) => message.type === "error" && message.session_id == null);
  return { state: stateOf(received), place: { epoch: received.epoch, seq: received.seq }, faults: faults.length };
}

/** Return the content of the screen, with the order of the turns and their positions in the queue. */
export function stateOf({ screen }: RendererConnection): JsonObject {
  const positions: JsonObject = {};
  for (const id of screen.turnIds) positions[id] = screen.turn(id)?.position ?? null;
  return { ...canonical(screen), order: [...screen.turnIds], positions };
}
