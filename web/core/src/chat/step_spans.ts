/** How long the tools and the thinking of a turn take, as seen here; what the agent side says comes first. */

import type { TurnState } from "../protocol/screen.js";

/** When a step began and ended, in ms since the epoch. */
export interface StepSpan {
  readonly since: number;
  /** `null` while the step continues. */
  readonly until: number | null;
}

/** Measures the steps of one turn that are seen to begin. */
export class StepSpans {
  readonly #spans = new Map<string, { since: number; until: number | null }>();
  #turn = "";

  /** Records which steps began and ended since the last time; another turn begins with none. */
  record({ id, tools, thinking, final, output }: TurnState, now = Date.now()): void {
    if (this.#turn !== id) this.#spans.clear();
    this.#turn = id;
    tools.forEach(({ ok }, number) => this.#record(`tool:${number}`, ok === null && !final, now));
    this.#record("thinking", thinking !== "" && output.length === 0 && tools.length === 0 && !final, now);
  }

  /** Returns the span of the step with this key (`Step.key`); `undefined` if its beginning was not seen. */
  of(key: string): StepSpan | undefined {
    return this.#spans.get(key);
  }

  #record(key: string, isRunning: boolean, now: number): void {
    const span = this.#spans.get(key);
    if (isRunning && !span) this.#spans.set(key, { since: now, until: null });
    else if (!isRunning && span) span.until ??= now;
  }
}
