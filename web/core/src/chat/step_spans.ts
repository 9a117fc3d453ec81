/** Durations of tools and thinking, measured by this renderer. If the agent side sends a duration, use that instead. */

import type { TurnState } from "../protocol/screen.js";

/** Start and end of a step, in ms since the epoch. */
export interface StepSpan {
  readonly since: number;
  /** `null` while the step continues. */
  readonly until: number | null;
}

/** Measures the steps of one turn while they run. */
export class StepSpans {
  readonly #spans = new Map<string, { since: number; until: number | null }>();
  #turn = "";

  /** Record which steps began and ended since the last call. A turn with another id discards all spans. */
  record({ id, tools, thinking, final, output }: TurnState, now = Date.now()): void {
    if (this.#turn !== id) this.#spans.clear();
    this.#turn = id;
    tools.forEach(({ ok }, number) => this.#record(`tool:${number}`, ok === null && !final, now));
    this.#record("thinking", thinking !== "" && output.length === 0 && tools.length === 0 && !final, now);
  }

  /** Return the span of the step with this key (`Step.key`), or `undefined` if the step was never seen running. */
  of(key: string): StepSpan | undefined {
    return this.#spans.get(key);
  }

  #record(key: string, isRunning: boolean, now: number): void {
    const span = this.#spans.get(key);
    if (isRunning && !span) this.#spans.set(key, { since: now, until: null });
    else if (!isRunning && span) span.until ??= now;
  }
}
