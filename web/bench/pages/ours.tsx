/** `<arp-chat>` on a client whose server is this page. */

import { ArpClient } from "@agent-rendering/core";
import "@agent-rendering/elements";
import { ArpChat } from "@agent-rendering/react";
import { Feed, painted, pieces } from "./feed";

let socket: Wire;
let feed: Feed;
let seq = 0;

/** A socket whose other end answers by itself. */
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
    tell({ type: "hello", v: 1, capabilities: { components: ["text"], features: ["streaming"] } });
    tell({ type: "session", v: 1, session_id: "s", epoch: "e", seq: 0, resume: "new" });
  }
  close() {
    this.onclose?.();
  }
}

const tell = (...messages: object[]) =>
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
  /** Turns that came before. */
  async earlier(count: number) {
    for (let at = 0; at < count; at += 2) {
      const turn = `e${at}`;
      tell(
        input(turn, `Question ${at}`),
        delta(turn, `Answer **${at}** in a line or two, with \`code\`.`),
        ...ending(turn),
      );
      if (at % 100 === 98) await painted();
    }
    await painted();
  },
  /** A turn begins; its answer is about to come, in so many deltas. */
  async begin(turn: string, count: number) {
    tell(input(turn, "Go"), of(turn, "turn", { status: "running" }));
    await painted();
    feed = await Feed.of(pieces(count).map((piece) => JSON.stringify(delta(turn, piece))));
  },
  /** The answer comes; resolves when all of it is painted. */
  async stream(rate: number) {
    await feed.send((data) => socket.onmessage?.({ data }), rate);
    await painted();
  },
  end: (turn: string) => tell(...ending(turn)),
  /** How long it takes until a component shows. */
  async show(id: string, type: string, props: object, selector: string) {
    const began = performance.now();
    tell(of("c", "render", { components: [{ id, type, props }] }), of("c", "commit"));
    await until(() => document.querySelector(selector) !== null);
    await new Promise(requestAnimationFrame);
    return performance.now() - began;
  },
  /** Scrolls what is scrolled there, a good piece each frame. */
  async scroll(selector: string, frames: number) {
    const place = document.querySelector(selector) as HTMLElement;
    for (let frame = 0; frame < frames; frame += 1) {
      place.scrollTop += 700;
      await new Promise(requestAnimationFrame);
    }
  },
  patch(target: string, path: string, value: unknown) {
    tell(of("c", "patch", { ops: [{ op: "update", target, path, value }] }), of("c", "commit"));
  },
  text: () => document.querySelector("arp-chat")?.textContent?.length ?? 0,
};
export type Bench = typeof bench;
Object.assign(window, { bench });

export default function App() {
  return <ArpChat client={client} title="Bench" />;
}
