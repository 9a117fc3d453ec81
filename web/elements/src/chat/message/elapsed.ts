/** `<arp-elapsed>`: a duration that counts up once a second. Screen readers skip it. */

import type { Translator } from "@agent-rendering/core/strings";
import { nothing } from "lit";

import { ArpElement, define } from "../../base/element.js";
import { clockText } from "../clock.js";

const SHOWN_FROM_MS = 1000;
/** Duration from which the format is that of a clock: "340 seconds" is hard to read. */
const CLOCK_FROM_MS = 60_000;

export class ArpElapsed extends ArpElement {
  static override properties = { since: { attribute: false }, until: { attribute: false }, t: { attribute: false } };

  /** Start, in ms: since the epoch while the step runs; 0 if only the duration is known. */
  declare since: number;
  /** End, in ms from the same origin; `null` while the step runs. */
  declare until: number | null;
  declare t: Translator;
  #timer: ReturnType<typeof setInterval> | null = null;

  override connectedCallback(): void {
    super.connectedCallback();
    this.setAttribute("aria-hidden", "true");
    this.requestUpdate();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#tick(false);
  }

  protected override render(): unknown {
    this.#tick(this.until === null && this.isConnected);
    const ms = (this.until ?? Date.now()) - this.since;
    if (ms < SHOWN_FROM_MS) return nothing;
    if (ms >= CLOCK_FROM_MS) return clockText(Math.round(ms / 1000), this.t);
    return this.t.number(ms / 1000, {
      style: "unit",
      unit: "second",
      unitDisplay: "narrow",
      maximumFractionDigits: ms < 10_000 && this.until !== null ? 1 : 0,
    });
  }

  #tick(wanted: boolean): void {
    if (wanted === (this.#timer !== null)) return;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = wanted ? setInterval(() => this.requestUpdate(), 1000) : null;
  }
}

define("arp-elapsed", ArpElapsed);
