/** Measurements of Chromium while something happens in a page. */

import type { CDPSession, Page } from "playwright-core";

export interface Figures {
  /** Time of script, layout and style in the main thread, in ms. */
  readonly work: number;
  /** Total time of the main thread, including painting, in ms. */
  readonly task: number;
  /** Durations of the tasks above 50 ms, in ms. */
  readonly long: readonly number[];
  /** 95th percentile of the time between two frames, in ms. */
  readonly frame95: number;
  /** Total duration, in ms. */
  readonly took: number;
}

/** Measure a page while `action` runs. */
export async function measured(page: Page, action: () => Promise<unknown>): Promise<Figures> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable");
  await page.evaluate(() => {
    const seen = { long: [] as number[], frames: [] as number[], isOver: false };
    Object.assign(window, { seen });
    new PerformanceObserver((list) => seen.long.push(...list.getEntries().map(({ duration }) => duration))).observe({
      type: "longtask",
    });
    let last = performance.now();
    const frame = (now: number) => {
      seen.frames.push(now - last);
      last = now;
      if (!seen.isOver) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  const before = await metrics(devtools);
  const began = Date.now();
  await action();
  const took = Date.now() - began;
  const after = await metrics(devtools);
  const { long, frames } = await page.evaluate(() => {
    const { seen } = window as unknown as { seen: { long: number[]; frames: number[]; isOver: boolean } };
    seen.isOver = true;
    return { long: seen.long, frames: seen.frames.slice(1) };
  });
  await devtools.detach();
  const spent = (...names: string[]) =>
    names.reduce((sum, name) => sum + 1000 * ((after[name] ?? 0) - (before[name] ?? 0)), 0);
  return {
    work: spent("ScriptDuration", "LayoutDuration", "RecalcStyleDuration"),
    task: spent("TaskDuration"),
    long,
    frame95: percentile(frames, 0.95),
    took,
  };
}

/** Return the used memory after a garbage collection, in MB. */
export async function heap(page: Page): Promise<number> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable");
  await devtools.send("HeapProfiler.collectGarbage");
  const used = (await metrics(devtools)).JSHeapUsedSize ?? 0;
  await devtools.detach();
  return used / 1e6;
}

export function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

async function metrics(devtools: CDPSession): Promise<{ [name: string]: number }> {
  const { metrics: list } = await devtools.send("Performance.getMetrics");
  return Object.fromEntries(list.map(({ name, value }) => [name, value]));
}
