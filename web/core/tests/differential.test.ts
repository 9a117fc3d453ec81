import { describe, expect, test } from "vitest";
import { RendererConnection } from "../src/index.js";
import { hasPython } from "./server.js";
import { recorded, stateOf, take, type Step } from "./recordings.js";

const READY = { type: "session", v: 1, session_id: "s", epoch: "epoch" };

/** Range of recordings; `ARP_RECORDINGS=FIRST:COUNT` selects others. */
const [first = 1, count = 60] = (process.env.ARP_RECORDINGS ?? "").split(":").filter(Boolean).map(Number);

describe.skipIf(!hasPython)("the same frames give the same screen as in Python", () => {
  const recordings = hasPython ? recorded(first, count) : [];
  for (const { number, steps, replay = [] } of recordings) {
    test(`recording ${number}`, () => {
      const received = new RendererConnection({ type: "hello" });
      steps.forEach(({ frame, ...expected }, at) => {
        expect(take(received, frame), `step ${at}: ${frame}`).toEqual(expected);
      });
    });
    if (replay.length === 0) continue;
    test(`recording ${number}, cut after any frame and replayed`, () => {
      const last = steps.at(-1) as Step;
      for (let cut = 1; cut <= steps.length; cut += 1) {
        const received = new RendererConnection({ type: "hello" });
        for (const { frame } of steps.slice(0, cut)) received.receive(frame);
        const { resume } = received.hello();
        if (resume == null) continue; // after a surface's description and before its commit, a snapshot follows
        const { seq } = resume;
        received.receive(JSON.stringify({ ...READY, seq, resume: "replay" }));
        for (const [place, frames] of replay) {
          if (place > seq) for (const frame of frames) received.receive(frame);
        }
        expect(stateOf(received), `cut behind frame ${cut}`).toEqual(last.state);
        expect(received.seq).toBe(last.place.seq);
      }
    });
  }
});
