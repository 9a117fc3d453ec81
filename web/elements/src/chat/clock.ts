/** Durations in the format of a clock. */

import type { Translator } from "@agent-rendering/core/strings";

const [MINUTE, HOUR, DAY] = [60, 3600, 86_400];

/** Return a duration, given in seconds, such as `0:09`, `4:59` or `1:00:00`; from two days on in whole days. */
export function clockText(seconds: number, t: Pick<Translator, "number">): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole >= 2 * DAY) return t.number(Math.floor(whole / DAY), { style: "unit", unit: "day", unitDisplay: "long" });
  const two = { minimumIntegerDigits: 2 };
  const [hours, minutes] = [Math.floor(whole / HOUR), Math.floor((whole % HOUR) / MINUTE)];
  const end = t.number(whole % MINUTE, two);
  return hours > 0 ? `${t.number(hours)}:${t.number(minutes, two)}:${end}` : `${t.number(minutes)}:${end}`;
}
