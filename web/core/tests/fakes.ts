/** Sockets and storage that tests control; time and frames are those of vitest's fake timers. */

import type { Wire } from "../src/index.js";

/** A socket with the test as its server. */
export class FakeSocket {
  static made: FakeSocket[] = [];
  /** Whether new sockets can connect; otherwise they are refused immediately. */
  static isReachable = true;

  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  onerror: (() => void) | null = null;
  readonly sent: Wire.RendererMessage[] = [];
  closed = false;
  readyState = 3;

  readonly url: string;
  readonly protocol: string | undefined;

  constructor(url: string, protocol?: string) {
    this.url = url;
    this.protocol = protocol;
    FakeSocket.made.push(this);
    if (!FakeSocket.isReachable) queueMicrotask(() => this.close(1006));
  }

  static reset(): void {
    FakeSocket.made = [];
    FakeSocket.isReachable = true;
  }

  static get last(): FakeSocket {
    return FakeSocket.made.at(-1) as FakeSocket;
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text) as Wire.RendererMessage);
  }

  close(code = 1000, reason = ""): void {
    this.closed = true;
    this.onclose?.({ code, reason });
  }

  /** Accept the connection; send hello and session. */
  welcome(session: Partial<Wire.SessionReady> = {}): void {
    this.onopen?.();
    this.notify(HELLO, { ...SESSION, ...session });
  }

  notify(...messages: object[]): void {
    for (const message of messages) this.onmessage?.({ data: JSON.stringify(message) });
  }

  /** Return the sent messages of one type. */
  of<T extends Wire.RendererMessage["type"]>(type: T): Extract<Wire.RendererMessage, { type: T }>[] {
    return this.sent.filter((message) => message.type === type) as never;
  }
}

export const HELLO: Wire.AgentHello = {
  type: "hello",
  v: 1,
  capabilities: {
    components: ["text"],
    features: ["input", "resume", "frame-ack"],
    limits: { max_message_bytes: 2000 },
  },
};

export const SESSION: Wire.SessionReady = {
  type: "session",
  v: 1,
  session_id: "s",
  epoch: "e",
  seq: 0,
  resume: "new",
};

/** Return a message of session `s`, turn `t1`. */
export function message(type: string, seq: number | null, fields: object = {}): object {
  const place = seq === null ? {} : { seq };
  return { type, v: 1, session_id: "s", turn_id: "t1", ...place, ...fields };
}

export function delta(text: string, seq: number | null = null): object {
  return message("delta", seq, { payload: { delta: text } });
}

export function text(id: string, content: string): Wire.Component {
  return { id, type: "text", props: { content } };
}

/** A storage with the interface of a browser's. */
export class FakeStorage {
  readonly kept = new Map<string, string>();

  getItem(key: string): string | null {
    return this.kept.get(key) ?? null;
  }

  setItem(key: string, value: string): void {
    this.kept.set(key, value);
  }

  removeItem(key: string): void {
    this.kept.delete(key);
  }
}
