/** A text of 42 kB of Markdown in pieces, and a worker that sends messages at a given rate. */

const BLOCK = `## Harbour report

The *evening tide* comes at **18:40**; see [the table](https://harbour.example/tides) for \`berth 7\` and what lies there. Ships above
eight metres wait outside, smaller ones come in with the pilot, and nobody anchors in the fairway.

1. Clear the quay
2. Move the crane
3. Open the gate

\`\`\`python
def clearance(depth, draught, tide):
    """Metres of water below the keel."""
    free = depth + tide - draught
    if free < 0:
        raise ValueError("aground")
    return free

for ship in ships:
    print(ship.name, clearance(9.5, ship.draught, 1.2))
    if ship.waits:
        queue.append(ship)
\`\`\`

| Ship | Draught | Berth |
|---|---|---|
| Aurora | 7.1 | 4 |
| Brise | 5.4 | 7 |
| Corona | 8.8 | - |

`;

const LENGTH = 42_000;

export const TEXT = BLOCK.repeat(Math.ceil(LENGTH / BLOCK.length)).slice(0, LENGTH);

/** Return the text in `count` pieces, none of them empty. */
export function pieces(count: number): string[] {
  return Array.from({ length: count }, (_, at) =>
    TEXT.slice(Math.floor((at * LENGTH) / count), Math.floor(((at + 1) * LENGTH) / count)),
  );
}

const WORKER = `let messages;
onmessage = ({ data }) => {
  if (typeof data !== "number") {
    messages = data;
    return postMessage("ready");
  }
  let at = 0;
  const began = performance.now();
  const tick = () => {
    const due = data ? Math.min(messages.length, Math.floor(((performance.now() - began) * data) / 1000)) : messages.length;
    while (at < due) postMessage(messages[at++]);
    if (at < messages.length) setTimeout(tick, 1);
    else postMessage(null);
  };
  tick();
};`;

/** A worker that sends prepared messages, so that the server's part takes no time of the page. */
export class Feed {
  readonly #worker: Worker;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  /** Create a worker; resolve when it has the messages. */
  static async of(messages: readonly string[]): Promise<Feed> {
    const address = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
    const worker = new Worker(address);
    worker.postMessage(messages);
    await new Promise((resolve) => (worker.onmessage = resolve));
    URL.revokeObjectURL(address);
    return new Feed(worker);
  }

  /** Send all messages at `rate` per second (0 means all at once); resolve when the last has arrived. */
  send(each: (message: string) => void, rate: number): Promise<void> {
    return new Promise((resolve) => {
      this.#worker.onmessage = ({ data }: MessageEvent<string | null>) => {
        if (data !== null) return each(data);
        this.#worker.terminate();
        resolve();
      };
      this.#worker.postMessage(rate);
    });
  }
}

/** Wait two frames: everything that was requested is painted then. */
export async function painted(): Promise<void> {
  for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
}
