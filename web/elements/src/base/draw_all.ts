/**
 * Completes a drawing at once. Lit would update the elements below in later microtasks; here they are updated before
 * `drawAll` returns, so that half of a change is never visible.
 *
 * Theory of operation. Each element of this package reports its requested updates (`noted`). `drawAll` collects the
 * elements that request an update during the drawing, and performs these updates. They may request more, which are
 * performed too. So the cost depends on the number of changed elements and not on the size of the document.
 */

import type { ReactiveElement } from "lit";

/** A Lit element with its `performUpdate`, which is protected in Lit's types. */
interface Drawing extends Element {
  readonly isUpdatePending: boolean;
  performUpdate(): void;
}

let gathering: Set<ReactiveElement> | null = null;

/** Record that an element has requested an update. */
export function noted(element: ReactiveElement): void {
  gathering?.add(element);
}

/** Call `draw`, then update each element below `root` that requested an update meanwhile. */
export function drawAll(root: Element, draw: () => void): void {
  const around = gathering; // calls may be nested, so the outer set is restored at the end
  const mine = new Set<ReactiveElement>();
  gathering = mine;
  try {
    draw();
    // The loop also visits elements that are added while it runs.
    for (const element of mine)
      if (isBelow(element, root) && element.isUpdatePending) (element as unknown as Drawing).performUpdate();
  } finally {
    gathering = around;
  }
}

/** Return whether to draw an element now. Elements inside of prose wait: prose draws its blocks in slices of time. */
function isBelow(element: Element, root: Element): boolean {
  return element !== root && root.contains(element) && element.parentElement?.closest("arp-prose") === null;
}
