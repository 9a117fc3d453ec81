/** Times of messages and lines between days, in the reader's language and time zone. */

import type { TurnState } from "@agent-rendering/core";
import { html, nothing, type TemplateResult } from "lit";

import type { Translate } from "../../base/context.js";
import { worded } from "../worded.js";

/** Return the time of a message to draw; nothing if the time is missing or invalid. */
export function timeOf(at: string | null | undefined, t: Translate): unknown {
  const moment = momentOf(at);
  if (moment === null) return nothing;
  const iso = moment.toISOString();
  const words = (t: Translate) =>
    [t.date(moment, { timeStyle: "short" }), t.date(moment, { dateStyle: "full", timeStyle: "short" })] as const;
  return html`<time class="arp-caption arp-time" datetime=${iso} ${worded(iso, t, words)}>\u00a0</time>`;
}

/**
 * Return the day lines to draw above turns, by turn id. A turn has a line if its day is not that of the turn before it;
 * the first turn has one unless its day is today.
 */
export function dayLines(
  turns: readonly (TurnState | undefined)[],
  t: Translate,
  now = new Date(),
): Map<string, TemplateResult> {
  const lines = new Map<string, TemplateResult>();
  const today = dayOf(now);
  let before = today;
  for (const turn of turns) {
    const moment = momentOf(turn?.inputs[0]?.at);
    if (turn === undefined || moment === null) continue;
    const day = dayOf(moment);
    if (day !== before)
      lines.set(
        turn.id,
        html`<p class="arp-day"><time datetime=${day} ${worded(`${day} ${today}`, t, (t) => [nameOf(moment, now, t)])}>\u00a0</time></p>`,
      );
    before = day;
  }
  return lines;
}

function nameOf(moment: Date, now: Date, t: Translate): string {
  const yesterday = new Date(now);
  yesterday.setDate(now.getDate() - 1);
  const day = dayOf(moment);
  if (day === dayOf(now)) return t("today");
  if (day === dayOf(yesterday)) return t("yesterday");
  const year = moment.getFullYear() === now.getFullYear() ? {} : ({ year: "numeric" } as const);
  return t.date(moment, { weekday: "long", month: "long", day: "numeric", ...year });
}

/** Return the day in the reader's time zone, such as `2026-11-21`. */
function dayOf(moment: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  return `${String(moment.getFullYear()).padStart(4, "0")}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
}

function momentOf(at: string | null | undefined): Date | null {
  const moment = new Date(at || Number.NaN);
  return Number.isNaN(moment.getTime()) ? null : moment;
}
