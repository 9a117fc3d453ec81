/** Times, sizes and money in words; pure, so that tests run in Node.js. */

const STEPS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
];

/** Milliseconds as people say them: `80 ms`, `4.2 s`, `3 min`. */
export function span(ms) {
  if (!Number.isFinite(ms)) return "";
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const [unit, name] = STEPS.find(([least]) => ms >= least);
  return `${Math.floor(ms / unit)} ${name}`;
}

/** Milliseconds between two timestamps; NaN where one is missing. */
export function between(from, to) {
  return Date.parse(to) - Date.parse(from);
}

/** How long ago, in words; empty where it is not known. */
export function ago(timestamp, now) {
  const ms = now - Date.parse(timestamp);
  if (!Number.isFinite(ms)) return "";
  return ms < 1000 ? "now" : `${ms < 60_000 ? `${Math.floor(ms / 1000)} s` : span(ms)} ago`;
}

/** A timestamp as the clock here shows it, with milliseconds. */
export function clock(timestamp) {
  const date = new Date(timestamp);
  if (Number.isNaN(date.getTime())) return "";
  const two = (number, width = 2) => String(number).padStart(width, "0");
  const { h, m, s, ms } = {
    h: date.getHours(),
    m: date.getMinutes(),
    s: date.getSeconds(),
    ms: date.getMilliseconds(),
  };
  return `${two(h)}:${two(m)}:${two(s)}.${two(ms, 3)}`;
}

/** A timestamp as date and clock. */
export function day(timestamp) {
  const date = new Date(timestamp);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleString();
}

/** A number with separators. */
export function count(number) {
  return Number.isFinite(number) ? number.toLocaleString("en") : "";
}

/** Bytes in words. */
export function bytes(number) {
  if (!Number.isFinite(number)) return "";
  const names = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const step = number < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(number) / 10));
  const value = number / 1024 ** step;
  return `${step === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${names[step]}`;
}

/** Amounts by currency. */
export function money(amounts) {
  return Object.entries(amounts ?? {})
    .map(([currency, amount]) => `${trimmed(amount)} ${currency}`)
    .join(" + ");
}

function trimmed(amount) {
  return typeof amount === "number" ? String(Number(amount.toFixed(6))) : String(amount);
}

/** Any JSON on one line, strings without quotes, cut at `most` characters. */
export function brief(value, most = 300) {
  if (value == null) return "";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const line = text.slice(0, most + 1).replace(/\s+/g, " ");
  return line.length > most || text.length > most ? `${line.slice(0, most)}…` : line;
}

/** What a list leaves out. */
export function older(number) {
  return number ? `and ${count(number)} older, in the timeline` : "";
}
