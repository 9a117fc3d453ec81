/**
 * Draws at once what elements below have noted to draw soon, so that half of a change is never visible.
 *
 * Theory of operation. Elements of ours say when they note it (`noted`). `drawAll` gathers what is noted
 * while it draws, and what those note in turn, and draws that: it costs what has changed, however much
 * is below.
 */

import type { ReactiveElement } from "lit";

/** An element as far as it is seen here: Lit keeps its drawing to itself. */
interface Drawing extends Element {
  readonly isUpdatePending: boolean;
  performUpdate(): void;
}

let gathering: Set<ReactiveElement> | null = null;

/** Takes note that an element is going to draw. */
export function noted(element: ReactiveElement): void {
  gathering?.add(element);
}

/** Draws, and brings the elements below `root` that were changed by that up to date before it returns. */
export function drawAll(root: Element, draw: () => void): void {
  const around = gathering;
  const mine = new Set<ReactiveElement>();
  gathering = mine;
  try {
    draw();
    // A set also iterates over what is added meanwhile.
    for (const element of mine)
      if (isBelow(element, root) && element.isUpdatePending) (element as unknown as Drawing).performUpdate();
  } finally {
    gathering = around;
  }
}

/** Prose draws itself by blocks, in slices of time: its content has its own time. */
function isBelow(element: Element, root: Element): boolean {
  return element !== root && root.contains(element) && element.parentElement?.closest("arp-prose") === null;
}
