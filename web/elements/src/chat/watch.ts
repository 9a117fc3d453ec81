/** Binds a cell to a place in a template: the place follows the cell without a redraw around it. */

import type { Cell } from "@agent-rendering/core";
import { AsyncDirective, directive } from "lit/async-directive.js";

class Watch extends AsyncDirective {
  #cell: Cell<unknown> | null = null;
  #stop: (() => void) | null = null;

  override render(cell: Cell<unknown>): unknown {
    if (cell !== this.#cell) {
      this.#cell = cell;
      if (this.isConnected) this.#listen();
    }
    return cell.get();
  }

  protected override disconnected(): void {
    this.#stop?.();
    this.#stop = null;
  }

  protected override reconnected(): void {
    this.#listen();
    this.setValue(this.#cell?.get());
  }

  #listen(): void {
    this.#stop?.();
    const cell = this.#cell as Cell<unknown>;
    this.#stop = cell.subscribe(() => this.setValue(cell.get()));
  }
}

/** The newest value of a cell, for as long as the place is in the document. */
export const watch = directive(Watch);
