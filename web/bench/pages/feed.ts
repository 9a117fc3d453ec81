/** 42 kB of Markdown in 10,000 pieces, as a worker hands them out: one message each, at a rate. */

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

/** The text in so many pieces, none empty. */
export function pieces(count: number): string[] {
  return Array.from({ length: count }, (_, at) =>
    TEXT.slice(Math.floor((at * LENGTH) / count), Math.floor(((at + 1) * LENGTH) / count)),
  );
}

const WORKER = `onmessage = ({ data: { pieces, rate } }) => {
  let at = 0;
  const began = performance.now();
  const tick = () => {
    const due = rate ? Math.min(pieces.length, Math.floor(((performance.now() - began) * rate) / 1000)) : pieces.length;
    while (at < due) postMessage(pieces[at++]);
    if (at < pieces.length) setTimeout(tick, 1);
    else postMessage(null);
  };
  tick();
};`;

/** Hands out pieces, so many a second (0 = all at once); resolves when all have come. */
export function feed(each: (piece: string) => void, count: number, rate: number): Promise<void> {
  const address = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
  const worker = new Worker(address);
  return new Promise((resolve) => {
    worker.onmessage = ({ data }: MessageEvent<string | null>) => {
      if (data !== null) return each(data);
      worker.terminate();
      URL.revokeObjectURL(address);
      resolve();
    };
    worker.postMessage({ pieces: pieces(count), rate });
  });
}

/** Two frames later: what was asked for has been drawn. */
export async function painted(): Promise<void> {
  for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
}
