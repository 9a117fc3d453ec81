/** A way to a server that breaks off again and again, behind a number of bytes that the test draws. */

import { connect, createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";

export class CuttingProxy {
  cuts = 0;
  url = "";
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  /** `budget` gives how many bytes of the server a connection lets through; `null` = all. */
  constructor(target: string, budget: () => number | null) {
    const { hostname, port } = new URL(target);
    this.#server = createServer((inner) => {
      const outer = connect(Number(port), hostname);
      let left = budget();
      for (const socket of [inner, outer]) {
        this.#sockets.add(socket);
        socket.on("error", () => undefined);
        socket.on("close", () => {
          this.#sockets.delete(socket);
          inner.destroy();
          outer.destroy();
        });
      }
      inner.pipe(outer);
      outer.on("data", (data) => {
        if (left === null || data.length < left) {
          inner.write(data);
          if (left !== null) left -= data.length;
          return;
        }
        this.cuts += 1;
        inner.end(data.subarray(0, left));
        outer.destroy();
      });
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
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
