/** Bind a cell to a place in a template. A change of the cell updates that place without redrawing the template. */

import type { Cell } from "@agent-rendering/core";
import { AsyncDirective, directive } from "lit/async-directive.js";

class Watch extends AsyncDirective {
  #cell: Cell<unknown> | null = null;
  #stop: (() => void) | null = null;

  override render(cell: Cell<unknown>): unknown {
    if (cell !== this.#cell) {
      this.#cell = cell;
      if (this.isConnected) this.#listen(); // otherwise nothing would stop the subscription
    }
    return cell.get();
  }

  protected override disconnected(): void {
    this.#stop?.();
    this.#stop = null;
  }

  protected override reconnected(): void {
    this.#listen();
    this.setValue(this.#cell?.get()); // the cell may have changed while the place was not in the document
  }

  #listen(): void {
    this.#stop?.();
    const cell = this.#cell as Cell<unknown>;
    this.#stop = cell.subscribe(() => this.setValue(cell.get()));
  }
}

/** Draw the value of a cell, and each new value while the place is in the document. */
export const watch = directive(Watch);
