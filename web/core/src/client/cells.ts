/**
 * Observable values. Changes are collected and reported together when the scheduler calls `flush`. For a
 * screen this is the next animation frame, so each listener is notified once per frame, however many deltas
 * arrive between two frames. `get` always returns the newest value.
 */

/** One observable value. It fits `useSyncExternalStore` and `shallowRef` as it is. */
export interface Cell<T> {
  /** Return the newest value: the same object until something in it changes. */
  get(): T;
  /** Call a listener once for all changes since the last call; return a function that unsubscribes it. */
  subscribe(listener: () => void): () => void;
}

/** Called after changes, with the names of the changed cells. */
export type Listener = (changed: ReadonlySet<string>) => void;

/** Calls `flush` once, soon. */
export type Schedule = (flush: () => void) => void;

/** Names of the cells that changed, and the listeners to notify. */
export class Changes {
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #cells = new Map<string, Cell<unknown>>();
  #changed = new Set<string>();
  #scheduled = false;
  readonly #schedule: Schedule;
  readonly #flushed: () => void;

  /** @param flushed Called when all listeners are notified. */
  constructor(schedule: Schedule, flushed: () => void = () => undefined) {
    this.#schedule = schedule;
    this.#flushed = flushed;
  }

  /** Return the cell with this name: the same object each time. */
  cell<T>(name: string, get: () => T): Cell<T> {
    let cell = this.#cells.get(name);
    if (cell === undefined) {
      cell = { get, subscribe: (listener) => this.subscribe(name, () => listener()) };
      this.#cells.set(name, cell);
    }
    return cell as Cell<T>;
  }

  /** Names of all cells that were requested. */
  get names(): Iterable<string> {
    return this.#cells.keys();
  }

  /** Record that cells changed. */
  mark(names: Iterable<string>): void {
    for (const name of names) this.#changed.add(name);
    if (this.#scheduled || this.#changed.size === 0) return;
    this.#scheduled = true;
    this.#schedule(() => this.flush());
  }

  /** Notify all listeners of the collected changes now. */
  flush(): void {
    this.#scheduled = false;
    const changed = this.#changed;
    if (changed.size === 0) return;
    // A listener may cause further changes. They belong to the next flush and must not be lost here.
    this.#changed = new Set();
    for (const name of [...changed, "*"]) {
      for (const listener of [...(this.#listeners.get(name) ?? [])]) guarded(listener, changed);
    }
    this.#flushed();
  }

  /** Notify a listener of changes of one cell (`*` means any); return a function that unsubscribes it. */
  subscribe(name: string, listener: Listener): () => void {
    const group = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, group);
    const own: Listener = (changed) => listener(changed); // the same function may subscribe twice
    group.add(own);
    return () => {
      group.delete(own);
      if (group.size === 0 && this.#listeners.get(name) === group) this.#listeners.delete(name);
    };
  }
}

/** Call a function of the application, if there is one. Report its error instead of throwing it. */
export function guarded<A extends unknown[]>(call: ((...given: A) => void) | undefined, ...given: A): void {
  try {
    call?.(...given);
  } catch (error) {
    (globalThis.reportError ?? console.error)(error);
  }
}

/**
 * Call `flush` in the next animation frame, and after 100 ms at the latest, because a hidden tab has no frames.
 * Outside of browsers call it after a timeout of 0 ms.
 */
export function nextFrame(flush: () => void): void {
  const { requestAnimationFrame: frame } = globalThis as Partial<typeof globalThis>;
  const once = () => {
    if (!timer) return;
    clearTimeout(timer); // a timer left to expire for each frame would cost as much as the flush itself
    timer = undefined;
    flush();
  };
  frame?.(once);
  let timer: ReturnType<typeof setTimeout> | undefined = setTimeout(once, frame ? 100 : 0);
}
