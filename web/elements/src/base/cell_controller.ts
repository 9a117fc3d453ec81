/** Subscriptions of an element to cells; they are active while the element is in a document. */

import type { ReactiveController, ReactiveElement } from "lit";

/** Source that a controller subscribes to: a cell, a store, or any other object that reports changes. */
export interface Observable {
  subscribe(listener: () => void): () => void;
}

/**
 * Subscribe an element to cells while it is connected.
 *
 * An element that is moved within a document is disconnected and connected again without any change of its properties.
 * A subscription that only a changed property renews would be lost then, so this controller renews it on connecting and
 * calls the listener, because cells may have changed in between.
 */
export class CellController implements ReactiveController {
  readonly #host: ReactiveElement;
  readonly #changed: () => void;
  #cells: readonly Observable[] = [];
  #stops: (() => void)[] = [];

  /** @param changed Called after a change, and after the element was connected again; default: request an update. */
  constructor(host: ReactiveElement, changed: () => void = () => host.requestUpdate()) {
    this.#host = host;
    this.#changed = changed;
    host.addController(this);
  }

  /** Observe these cells instead of the previous ones. May be called in every update. */
  observe(...cells: Observable[]): void {
    if (cells.length === this.#cells.length && cells.every((cell, at) => cell === this.#cells[at])) return;
    this.hostDisconnected();
    this.#cells = cells;
    if (this.#host.isConnected) this.#subscribe();
  }

  hostConnected(): void {
    if (this.#cells.length === 0) return;
    this.#subscribe();
    this.#changed();
  }

  hostDisconnected(): void {
    for (const stop of this.#stops.splice(0)) stop();
  }

  #subscribe(): void {
    this.#stops = this.#cells.map((cell) => cell.subscribe(this.#changed));
  }
}
