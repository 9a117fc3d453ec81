/** `<arp-chat>` with a client that has this page as its server. */

import { ArpClient } from "@agent-rendering/core";
import "@agent-rendering/elements";
import { ArpChat } from "@agent-rendering/react";
import { Feed, painted, pieces } from "./feed";

let socket: Wire;
let feed: Feed;
let seq = 0;

/** A socket with a simulated server that answers by itself. */
class Wire {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: (() => void) | null = null;
  onerror: (() => void) | null = null;
  constructor() {
    // oxlint-disable-next-line typescript/no-this-alias -- the page drives the newest socket by itself
    socket = this;
    queueMicrotask(() => this.onopen?.());
  }
  send(text: string) {
    if (JSON.parse(text).type !== "hello") return;
    deliver({ type: "hello", v: 1, capabilities: { components: ["text"], features: ["streaming"] } });
    deliver({ type: "session", v: 1, session_id: "s", epoch: "e", seq: 0, resume: "new" });
  }
  close() {
    this.onclose?.();
  }
}

const deliver = (...messages: object[]) =>
  socket.onmessage?.({ data: JSON.stringify(messages.length === 1 ? messages[0] : messages) });
const of = (turn: string, type: string, fields: object = {}) => ({
  type,
  v: 1,
  session_id: "s",
  turn_id: turn,
  seq: ++seq,
  ...fields,
});
const input = (turn: string, text: string) => of(turn, "input", { input_type: "text", data: { text }, id: `i${turn}` });
const delta = (turn: string, text: string) => of(turn, "delta", { payload: { delta: text } });
const ending = (turn: string) => [of(turn, "commit", { final: true }), of(turn, "turn", { status: "completed" })];

const client = new ArpClient({
  url: "http://agent.example",
  sessionId: "s",
  storage: null,
  WebSocket: Wire as never,
  fetch: async () => new Response("[]"),
});
client.connect();

const until = async (condition: () => boolean) => {
  while (!condition()) await new Promise(requestAnimationFrame);
};

const bench = {
  /** Add completed turns to the conversation. */
  async earlier(count: number) {
    for (let at = 0; at < count; at += 2) {
      const turn = `e${at}`;
      deliver(
        input(turn, `Question ${at}`),
        delta(turn, `Answer **${at}** in a line or two, with \`code\`.`),
        ...ending(turn),
      );
      if (at % 100 === 98) await painted();
    }
    await painted();
  },
  /** Begin a turn, and prepare its answer in `count` deltas. */
  async begin(turn: string, count: number) {
    deliver(input(turn, "Go"), of(turn, "turn", { status: "running" }));
    await painted();
    feed = await Feed.of(pieces(count).map((piece) => JSON.stringify(delta(turn, piece))));
  },
  /** Deliver the answer; resolve when all of it is painted. */
  async stream(rate: number) {
    await feed.send((data) => socket.onmessage?.({ data }), rate);
    await painted();
  },
  end: (turn: string) => deliver(...ending(turn)),
  /** Return the time in ms until a component is shown. */
  async show(id: string, type: string, props: object, selector: string) {
    const began = performance.now();
    deliver(of("c", "render", { components: [{ id, type, props }] }), of("c", "commit"));
    await until(() => document.querySelector(selector) !== null);
    await new Promise(requestAnimationFrame);
    return performance.now() - began;
  },
  /** Scroll an element by 700 pixels in each frame. */
  async scroll(selector: string, frames: number) {
    const place = document.querySelector(selector) as HTMLElement;
    for (let frame = 0; frame < frames; frame += 1) {
      place.scrollTop += 700;
      await new Promise(requestAnimationFrame);
    }
  },
  patch(target: string, path: string, value: unknown) {
    deliver(of("c", "patch", { ops: [{ op: "update", target, path, value }] }), of("c", "commit"));
  },
  text: () => document.querySelector("arp-chat")?.textContent?.length ?? 0,
};
export type Bench = typeof bench;
Object.assign(window, { bench });

export default function App() {
  return <ArpChat client={client} title="Bench" />;
}
