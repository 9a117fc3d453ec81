/** A proxy that closes connections at random moments chosen by the test, or holds back all bytes. */

import { connect, createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";

/** Moment when a connection is closed: after a number of bytes from the server, or after a time. */
export type Moment = { readonly bytes: number } | { readonly ms: number };

/** Only connections of the protocol are cut. After half a script there would be no page that could reconnect. */
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

  /** @param draw Returns the moment for a connection of the protocol; `null` means that it is not cut. */
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
        clearTimeout(timer); // the timer of the previous request on the same connection
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

  /** Start; after a `stop`, at the same address. */
  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
    this.url = `http://127.0.0.1:${this.#port}`;
  }

  /** Cut no more connections. */
  rest(): void {
    this.#isResting = true;
  }

  /** Hold back all bytes, also of new connections, and close none, like a network that fails without an error. */
  hold(): void {
    this.#isHolding = true;
    for (const socket of this.#sockets) socket.pause();
  }

  /** Send the bytes that were held back, and continue. */
  letGo(): void {
    this.#isHolding = false;
    for (const socket of this.#sockets) socket.resume();
  }

  /** Close all connections and refuse new ones. */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

/** Return a generator of numbers from 0 to 1 that only depend on the seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
