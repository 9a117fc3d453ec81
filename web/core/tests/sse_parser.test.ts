/** The examples of the HTML standard, and streams that are split anywhere. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readEvents, SseParser, type SseEvent } from "../src/transport/sse_parser.js";

function parsed(...pieces: string[]): SseEvent[] {
  const parser = new SseParser();
  return pieces.flatMap((piece) => parser.feed(piece));
}

const event = (data: string, event = "message", id = "") => ({ event, data, id });

const VECTORS: [name: string, stream: string, events: SseEvent[]][] = [
  ["several data lines are joined", "data: YHOO\ndata: +2\ndata: 10\n\n", [event("YHOO\n+2\n10")]],
  [
    "comments, ids, and an empty id that takes one back",
    ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
    [event("first event", "message", "1"), event("second event"), event(" third event")],
  ],
  ["empty data is an event, the unfinished one is not", "data\n\ndata\ndata\n\ndata:", [event(""), event("\n")]],
  ["one space behind the colon is left out", "data:test\n\ndata: test\n\n", [event("test"), event("test")]],
  ["names hold for one event", "event: delta\ndata: 1\n\ndata: 2\n\n", [event("1", "delta"), event("2")]],
  ["a name without data is no event", "event: delta\n\ndata: 2\n\n", [event("2")]],
  ["CR, LF and CRLF end lines", "data: a\r\rdata: b\n\ndata: c\r\n\r\n", [event("a"), event("b"), event("c")]],
  ["a byte order mark is left out, once", "\uFEFFdata: a\n\n", [event("a")]],
  ["spaces of the data stay", "data:   a  \n\n", [event("  a  ")]],
  ["unknown fields, and fields with other cases, are passed over", "Data: a\nx: b\ndata: c\n\n", [event("c")]],
  [
    "an id with a null is passed over",
    "id: 1\ndata: a\n\nid: \0\ndata: b\n\n",
    [event("a", "message", "1"), event("b", "message", "1")],
  ],
];

describe("the events of a stream", () => {
  for (const [name, stream, events] of VECTORS) {
    test(name, () => expect(parsed(stream)).toEqual(events));
    test(`${name}: in single characters`, () => expect(parsed(...stream)).toEqual(events));
  }
});

test("however a stream is split, its events are the same", () => {
  const piece = fc.constantFrom("data", ": ", ":", "id", "event", "\n", "\r", "\r\n", "a", " ", "\uFEFF", "é");
  fc.assert(
    fc.property(fc.array(piece), fc.array(fc.nat()), (pieces, cuts) => {
      const stream = pieces.join("");
      const places = [...new Set(cuts.map((cut) => cut % (stream.length + 1)))].sort((a, b) => a - b);
      const parts = [0, ...places].map((place, at, all) => stream.slice(place, all[at + 1]));
      expect(parsed(...parts)).toEqual(parsed(stream));
    }),
  );
});

test("characters whose bytes are split arrive complete", async () => {
  const bytes = new TextEncoder().encode("data: Salz & 🧂\n\n");
  const body = new ReadableStream<Uint8Array>({
    start(stream) {
      for (const byte of bytes) stream.enqueue(new Uint8Array([byte]));
      stream.close();
    },
  });
  const received: string[] = [];
  await readEvents(body, ({ data }) => received.push(data));
  expect(received).toEqual(["Salz & 🧂"]);
});
