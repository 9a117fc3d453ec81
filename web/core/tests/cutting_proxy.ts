/** A way to a server that breaks off again and again, at moments that the test draws, or holds all that goes over it. */

import { connect, createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";

/** When a connection breaks off: after so many bytes of the server, or after a time. */
export type Moment = { readonly bytes: number } | { readonly ms: number };

/** A page's own files come whole: half a script is the browser's affair, and no page is left to come back. */
const REQUEST = /^(?:GET|POST|PATCH|DELETE) \//;
const PROTOCOL = /^(?:GET|POST) \/_arp\//;

export class CuttingProxy {
  cuts = 0;
  url = "";
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #port = 0;
  #isResting = false;
  #isHolding = false;

  /** `draw` gives the moment for a connection on which the protocol is spoken; `null` = none. */
  constructor(target: string, draw: () => Moment | null) {
    const { hostname, port } = new URL(target);
    this.#server = createServer((inner) => {
      const outer = connect(Number(port), hostname);
      let left = Infinity;
      let timer: ReturnType<typeof setTimeout> | undefined;
      for (const socket of [inner, outer]) {
        this.#sockets.add(socket);
        socket.on("error", () => undefined);
        socket.on("close", () => {
          this.#sockets.delete(socket);
          clearTimeout(timer);
          inner.destroy();
          outer.destroy();
        });
      }
      const cut = (last: Uint8Array = new Uint8Array()) => {
        this.cuts += 1;
        inner.end(last);
        outer.destroy();
      };
      inner.on("data", (data) => {
        const line = data.toString("latin1", 0, 16);
        if (!REQUEST.test(line)) return;
        clearTimeout(timer); // of the request before, on the same connection
        left = Infinity;
        const moment = PROTOCOL.test(line) ? draw() : null;
        if (moment === null) return;
        if ("bytes" in moment) left = Math.floor(moment.bytes);
        else timer = setTimeout(() => this.#isResting || cut(), moment.ms);
      });
      inner.pipe(outer);
      outer.on("data", (data) => {
        if (this.#isResting || data.length < left) {
          inner.write(data);
          left -= data.length;
        } else cut(data.subarray(0, left));
      });
      if (this.#isHolding) for (const socket of [inner, outer]) socket.pause();
    });
  }

  /** Begins, after a `stop` at the address that it had. */
  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
    this.url = `http://127.0.0.1:${this.#port}`;
  }

  /** Cuts nothing any more. */
  rest(): void {
    this.#isResting = true;
  }

  /** Keeps every byte of both directions, also of new connections, and closes none: a network that died without a word. */
  hold(): void {
    this.#isHolding = true;
    for (const socket of this.#sockets) socket.pause();
  }

  /** Returns out what was kept, and continues. */
  letGo(): void {
    this.#isHolding = false;
    for (const socket of this.#sockets) socket.resume();
  }

  /** Nobody is there any more. */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

/** Numbers from 0 to 1 that depend on the seed alone. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
