/** W85: `streamSSE` with the event streams of the HTML standard (9.2.6), however their bytes are split. */

import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { streamSSE } from "../src/index.js";

let server: Server;
let url: string;
/** Response of the server, which ends the stream. */
let answer: (response: ServerResponse) => void;

beforeEach(async () => {
  server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/chat`;
});

afterEach(() => {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(resolve));
});

const END = "data: [DONE]\n\n";

/** Return the callbacks that a stream causes, with its bytes sent one by one or all at once. */
async function received(stream: string, each: boolean): Promise<string[]> {
  const bytes = new TextEncoder().encode(stream);
  answer = async (response) => {
    for (const piece of each ? [...bytes].map((one) => Uint8Array.of(one)) : [bytes]) {
      response.write(piece);
      if (each) await new Promise((resolve) => setImmediate(resolve));
    }
    response.end();
  };
  const receivedEvents: string[] = [];
  await streamSSE(
    url,
    { message: "Hi" },
    {
      onDelta: (text) => receivedEvents.push(text),
      onResult: (data) => receivedEvents.push(`result ${JSON.stringify(data)}`),
      onError: (error) => receivedEvents.push(`error: ${error}`),
      onDone: () => receivedEvents.push("done"),
    },
  );
  return receivedEvents;
}

/** Streams and their callbacks, written by hand from the rules of the standard. */
const VECTORS: [rule: string, stream: string, told: string[]][] = [
  ["LF ends a line", `data: {"delta":"a"}\n\ndata: {"delta":"b"}\n\n${END}`, ["a", "b", "done"]],
  ["CR ends a line", 'data: {"delta":"a"}\r\rdata: {"delta":"b"}\r\rdata: [DONE]\r\r', ["a", "b", "done"]],
  ["CRLF ends one line, not two", 'event: delta\r\ndata: {"delta":"a"}\r\n\r\ndata: [DONE]\r\n\r\n', ["a", "done"]],
  ["all three in one stream", 'data: {"delta":"a"}\r\n\ndata: {"delta":"b"}\r\rdata: [DONE]\n\r\n', ["a", "b", "done"]],
  ["a byte order mark at the beginning is left out", `\uFEFFdata: {"delta":"a"}\n\n${END}`, ["a", "done"]],
  [
    "a byte order mark elsewhere is part of a name",
    `data: {"delta":"a"}\n\n\uFEFFdata: {"delta":"b"}\n\n${END}`,
    ["a", "done"],
  ],
  [
    "lines that begin with a colon say nothing",
    `: hello\ndata: {"delta":"a"}\n:\n:data: {"delta":"b"}\n\n${END}`,
    ["a", "done"],
  ],
  [
    "several data lines are one, with line feeds between",
    `data: {"delta":\ndata: "a"\ndata: }\n\n${END}`,
    ["a", "done"],
  ],
  [
    "one space behind the colon is left out, or none",
    `data:{"delta":"a"}\n\ndata: {"delta":" b"}\n\n${END}`,
    ["a", " b", "done"],
  ],
  ["a field without a colon is empty", `data\ndata: {"delta":"a"}\n\n${END}`, ["a", "done"]],
  [
    "ids change nothing in what is said",
    `id: 7\ndata: {"delta":"a"}\n\nid\ndata: {"delta":"b"}\n\nid: x\0y\ndata: {"delta":"c"}\n\n${END}`,
    ["a", "b", "c", "done"],
  ],
  ["retry changes nothing in what is said", `retry: 10\n\nretry: soon\ndata: {"delta":"a"}\n\n${END}`, ["a", "done"]],
  [
    "names hold for one event",
    `event: result\ndata: {"a":1}\n\ndata: {"delta":"b"}\n\n${END}`,
    ['result {"a":1}', "b", "done"],
  ],
  ["an event without data is none", `event: result\n\ndata: {"delta":"a"}\n\n${END}`, ["a", "done"]],
  ["unknown fields are passed over", `Data: {"delta":"x"}\nfoo: bar\ndata: {"delta":"a"}\n\n${END}`, ["a", "done"]],
  [
    "characters of several bytes come whole",
    `data: {"delta":"Salz & 🧂 Übergröße"}\n\n${END}`,
    ["Salz & 🧂 Übergröße", "done"],
  ],
  ["[DONE] ends it, whatever stands behind", `data: {"delta":"a"}\n\n${END}data: {"delta":"b"}\n\n`, ["a", "done"]],
  ["a stream cut between events is an error", 'data: {"delta":"a"}\n\n', ["a", "error: the stream broke off", "done"]],
  [
    "a stream cut in an event says nothing of that event",
    'data: {"delta":"a"}\n\ndata: {"delta":"b"}\n',
    ["a", "error: the stream broke off", "done"],
  ],
  ["an empty stream is one that was cut", "", ["error: the stream broke off", "done"]],
];

describe.each([
  ["at once", false],
  ["byte by byte", true],
] as const)("W85 sent %s", (_way, each) => {
  test.each(VECTORS)("W85 %s", async (_rule, stream, receivedEvents) => {
    expect(await received(stream, each)).toEqual(receivedEvents);
  });
});

test("W85 a connection that is reset in the middle reports one error and the end", async () => {
  answer = (response) => {
    response.write('data: {"delta":"a"}\n\ndata: {"del', () => setImmediate(() => response.destroy()));
  };
  const receivedEvents: string[] = [];
  await streamSSE(
    url,
    {},
    {
      onDelta: (text) => receivedEvents.push(text),
      onError: () => receivedEvents.push("error"),
      onDone: () => receivedEvents.push("done"),
    },
  );
  expect(receivedEvents).toEqual(["a", "error", "done"]);
});
