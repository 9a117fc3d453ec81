/**
 * Values that can be watched. Changes are gathered and reported together, once, when the scheduler says
 * so: for screens that is the next animation frame, so that however many deltas come between two
 * frames, each listener is notified once. `get` always returns the newest value.
 */

/** One value and who watches it; fits `useSyncExternalStore` and `shallowRef` as it is. */
export interface Cell<T> {
  /** The newest value; the same object until something in it changes. */
  get(): T;
  /** Is notified of changes, once for all that came since; returns a function that stops it. */
  subscribe(listener: () => void): () => void;
}

/** Is called after changes, with the names of the cells that changed. */
export type Listener = (changed: ReadonlySet<string>) => void;

/** Calls `flush` once, soon. */
export type Schedule = (flush: () => void) => void;

/** Which cells changed, and which listeners to notify. */
export class Changes {
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #cells = new Map<string, Cell<unknown>>();
  #changed = new Set<string>();
  #scheduled = false;
  readonly #schedule: Schedule;
  readonly #flushed: () => void;

  /** `flushed` is called when all were notified. */
  constructor(schedule: Schedule, flushed: () => void = () => undefined) {
    this.#schedule = schedule;
    this.#flushed = flushed;
  }

  /** The cell of this name; the same one each time. */
  cell<T>(name: string, get: () => T): Cell<T> {
    let cell = this.#cells.get(name);
    if (cell === undefined) {
      cell = { get, subscribe: (listener) => this.subscribe(name, () => listener()) };
      this.#cells.set(name, cell);
    }
    return cell as Cell<T>;
  }

  /** The names of all cells that were asked for. */
  get names(): Iterable<string> {
    return this.#cells.keys();
  }

  /** Takes note that cells changed. */
  mark(names: Iterable<string>): void {
    for (const name of names) this.#changed.add(name);
    if (this.#scheduled || this.#changed.size === 0) return;
    this.#scheduled = true;
    this.#schedule(() => this.flush());
  }

  /** Notifies all listeners now of what has gathered. */
  flush(): void {
    this.#scheduled = false;
    const changed = this.#changed;
    if (changed.size === 0) return;
    this.#changed = new Set();
    for (const name of [...changed, "*"]) {
      for (const listener of [...(this.#listeners.get(name) ?? [])]) guarded(listener, changed);
    }
    this.#flushed();
  }

  /** Notifies a listener of changes of one cell, `*` means any; returns a function that stops it. */
  subscribe(name: string, listener: Listener): () => void {
    const group = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, group);
    const own: Listener = (changed) => listener(changed); // the same function may listen twice
    group.add(own);
    return () => {
      group.delete(own);
      if (group.size === 0 && this.#listeners.get(name) === group) this.#listeners.delete(name);
    };
  }
}

/** Calls what an application gave us; what it throws is reported and stops nothing here. */
export function guarded<A extends unknown[]>(call: ((...given: A) => void) | undefined, ...given: A): void {
  try {
    call?.(...given);
  } catch (error) {
    (globalThis.reportError ?? console.error)(error);
  }
}

/**
 * At the next animation frame; in a hidden tab, where none come, and outside of browsers, after a
 * short while.
 */
export function nextFrame(flush: () => void): void {
  const { requestAnimationFrame: frame } = globalThis as Partial<typeof globalThis>;
  const once = () => {
    if (!timer) return;
    clearTimeout(timer); // one for each frame would cost as much as what it is for
    timer = undefined;
    flush();
  };
  frame?.(once);
  let timer: ReturnType<typeof setTimeout> | undefined = setTimeout(once, frame ? 100 : 0);
}
