/** A proxy that delays every byte, like a distant server or a phone with a weak signal. */

import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

export class SlowProxy {
  /** Delay in each direction, in ms; may change at any time. */
  delay: number;
  url = "";
  /** Number of connections that were made through the proxy. */
  connections = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(target: string, delay: number) {
    this.delay = delay;
    const { hostname, port } = new URL(target);
    this.#server = createServer((inner) => {
      this.connections += 1;
      const outer = connect(Number(port), hostname);
      this.#carry(inner, outer);
      this.#carry(outer, inner);
    });
  }

  /** Forward data in order, each after the delay at its arrival. */
  #carry(from: Socket, to: Socket): void {
    let due = 0;
    const later = (act: () => void) => {
      due = Math.max(due, Date.now() + this.delay);
      setTimeout(act, due - Date.now());
    };
    this.#sockets.add(from);
    from.on("error", () => undefined);
    from.on("data", (data) => later(() => to.writable && to.write(data)));
    from.on("close", () => {
      this.#sockets.delete(from);
      later(() => to.destroy());
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
