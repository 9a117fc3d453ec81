/**
 * Selection of the turns to draw. The newest are drawn at once, because a long conversation opens at its end; the older
 * ones follow in steps while the browser is idle.
 */

/** Number of turns that are drawn at once: more than fit on a screen. */
const FIRST_TURNS = 12;
/** Number of turns that one step adds: few enough not to delay a frame. */
const STEP_TURNS = 8;
const PATIENCE_MS = 300;
/** Approximate idle time that a step needs. */
const LEAST_MS = 12;

export class Recent {
  /** Id of the oldest turn that is drawn. */
  #from: string | null = null;
  #missing = 0;
  #isDue = false;
  readonly #more: () => void;

  /** @param more Called when there is time to draw more turns; it calls `step`. */
  constructor(more: () => void) {
    this.#more = more;
  }

  /** Whether some turns are not drawn yet. */
  get isPartial(): boolean {
    return this.#missing > 0;
  }

  /** Return the turns to draw now, oldest first, out of all. A turn that was drawn stays drawn. */
  of(ids: readonly string[]): readonly string[] {
    const known = this.#from === null ? -1 : ids.indexOf(this.#from);
    this.#missing = known < 0 ? Math.max(0, ids.length - FIRST_TURNS) : known;
    this.#from = ids[this.#missing] ?? null;
    if (this.isPartial) this.#wait();
    return this.isPartial ? ids.slice(this.#missing) : ids;
  }

  /** Add older turns. */
  step(ids: readonly string[], count = STEP_TURNS): void {
    this.#missing = Math.max(0, this.#missing - count);
    this.#from = ids[this.#missing] ?? null;
  }

  /** Begin another conversation at its end. */
  clear(): void {
    this.#from = null;
    this.#missing = 0;
  }

  #wait(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    const latest = Date.now() + PATIENCE_MS;
    const { requestIdleCallback: idle } = globalThis as Partial<typeof globalThis>;
    const wait = () => (idle ? idle(act, { timeout: Math.max(1, latest - Date.now()) }) : setTimeout(act));
    const act = (deadline?: IdleDeadline) => {
      // The remaining idle time is too short: a step would delay the next frame.
      if (deadline && !deadline.didTimeout && deadline.timeRemaining() < LEAST_MS) return void wait();
      this.#isDue = false;
      if (this.isPartial) this.#more();
    };
    wait();
  }
}
