/**
 * The newest turns first. Of a long conversation only the end shows when it opens: that is drawn at
 * once, and what is above it step by step, when the browser has a moment.
 */

/** More than a screen shows. */
const FIRST_TURNS = 12;
/** As many as are drawn without anybody noticing. */
const STEP_TURNS = 8;
const PATIENCE_MS = 300;
/** What a step takes, about. */
const LEAST_MS = 12;

export class Recent {
  /** The oldest turn that is drawn. */
  #from: string | null = null;
  #missing = 0;
  #isDue = false;
  readonly #more: () => void;

  /** `more` is called when there is time to draw more; it calls `step`. */
  constructor(more: () => void) {
    this.#more = more;
  }

  /** Whether some turns are not drawn yet. */
  get isPartial(): boolean {
    return this.#missing > 0;
  }

  /** The turns to draw now, of all, oldest first. What was drawn stays. */
  of(ids: readonly string[]): readonly string[] {
    const known = this.#from === null ? -1 : ids.indexOf(this.#from);
    this.#missing = known < 0 ? Math.max(0, ids.length - FIRST_TURNS) : known;
    this.#from = ids[this.#missing] ?? null;
    if (this.isPartial) this.#wait();
    return this.isPartial ? ids.slice(this.#missing) : ids;
  }

  /** Takes in some more, or all. */
  step(ids: readonly string[], count = STEP_TURNS): void {
    this.#missing = Math.max(0, this.#missing - count);
    this.#from = ids[this.#missing] ?? null;
  }

  /** Another conversation: its end comes first too. */
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
      if (deadline && !deadline.didTimeout && deadline.timeRemaining() < LEAST_MS) return void wait(); // a frame is due
      this.#isDue = false;
      if (this.isPartial) this.#more();
    };
    wait();
  }
}
