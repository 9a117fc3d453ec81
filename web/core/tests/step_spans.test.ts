import { expect, test } from "vitest";
import { Screen, type TurnState, type Wire } from "../src/index.js";
import { sectionsOf, StepSpans } from "../src/timeline.js";
import { delta, message } from "./fakes.js";

const screen = () => {
  const made = new Screen();
  return (...messages: object[]): TurnState => {
    for (const one of messages) made.apply(one as Wire.AgentMessage);
    return made.turn("t1") as TurnState;
  };
};
const start = (call_id: string) => message("tool_start", null, { payload: { tool: "look", args: "{}", call_id } });
const end = (call_id: string) => message("tool_end", null, { payload: { tool: "look", ok: true, call_id } });
const think = message("delta", null, { payload: { delta: "hm", kind: "thinking" } });

test("a tool's span begins when it is seen running and ends when it is seen done", () => {
  const [apply, spans] = [screen(), new StepSpans()];
  spans.record(apply(start("a")), 100);
  spans.record(apply(start("b")), 150);
  spans.record(apply(end("a")), 300);
  spans.record(apply(delta("more")), 400);
  expect([spans.of("tool:0"), spans.of("tool:1")]).toEqual([
    { since: 100, until: 300 },
    { since: 150, until: null },
  ]);
});

test("the span of thinking ends with other output, and its key is that of its step", () => {
  const [apply, spans] = [screen(), new StepSpans()];
  spans.record(apply(think), 100);
  expect(spans.of("thinking")).toEqual({ since: 100, until: null });
  const turn = apply(delta("Hello"));
  spans.record(turn, 250);
  expect(spans.of("thinking")).toEqual({ since: 100, until: 250 });
  const steps = sectionsOf(turn, true).flatMap((section) =>
    section.kind === "answer"
      ? section.blocks.flatMap((block) => (block.kind === "activity" ? block.steps.map(({ key }) => key) : []))
      : [],
  );
  expect(steps).toEqual(["thinking"]);
});

test("a step that ended before it was seen has no span, and a new turn begins without spans", () => {
  const [apply, spans] = [screen(), new StepSpans()];
  spans.record(apply(start("a"), end("a")), 100);
  expect(spans.of("tool:0")).toBeUndefined();
  const turn = apply(start("b"));
  spans.record(turn, 200);
  expect(spans.of("tool:1")).toEqual({ since: 200, until: null });
  spans.record(apply(message("commit", null, { final: true })), 300);
  expect(spans.of("tool:1")).toEqual({ since: 200, until: 300 });
  spans.record({ ...turn, id: "t2", tools: [] }, 400);
  expect(spans.of("tool:1")).toBeUndefined();
});
