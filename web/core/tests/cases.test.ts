import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { canonical } from "../src/canonical.js";
import { RendererConnection } from "../src/index.js";

type Step = { receive: unknown } | { raw: string } | { hello: { resume: unknown } } | { expect: Expected };

interface Shown {
  turns: { [id: string]: { story?: unknown } };
}

interface Expected {
  screen: Shown;
  place?: unknown;
  faults?: number;
}

interface Case {
  name: string;
  spec: string;
  steps: Step[];
}

const FILE = new URL("../../../schemas/cases/screen.json", import.meta.url);
const CASES = JSON.parse(readFileSync(FILE, "utf8")) as Case[];

describe("the screen is that of the shared cases", () => {
  for (const { name, spec, steps } of CASES) {
    test(`${name.replaceAll("_", " ")} (${spec})`, () => run(steps));
  }
});

function run(steps: readonly Step[]): void {
  const renderer = new RendererConnection({ type: "hello" });
  let faults = 0;
  for (const step of steps) {
    if ("receive" in step || "raw" in step) {
      const received = renderer.receive("raw" in step ? step.raw : JSON.stringify(step.receive));
      faults += received.filter((m) => m.type === "error" && m.session_id == null).length;
    } else if ("hello" in step) {
      expect(renderer.hello().resume ?? null).toEqual(step.hello.resume);
    } else {
      const shown = canonical(renderer.screen) as unknown as Shown;
      for (const [id, turn] of Object.entries(step.expect.screen.turns)) {
        if (!("story" in turn)) delete shown.turns[id]?.story;
      }
      expect(shown).toEqual(step.expect.screen);
      expect(faults).toBe(step.expect.faults ?? 0);
      if (step.expect.place === undefined) continue;
      const { epoch, seq } = renderer;
      expect(epoch === null ? null : { epoch, seq }).toEqual(step.expect.place);
    }
  }
}
