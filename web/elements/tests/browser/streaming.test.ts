// @vitest-environment node
/** Prose that is being written, in a browser: nodes, slices, selection, height. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chromiumPath, GalleryHost, slowness } from "./page.js";

/** The parts of `<arp-prose>` that the tests use. */
interface Prose extends HTMLElement {
  text: string;
  streaming: boolean;
  readonly busy: boolean;
}

const CHAPTER = `## Chapter

Some **bold** words, a [link](https://example.org/a), \`code\` and *more* of it, long enough to go over the end of a line.

- one point
- another **point**
  - with a detail

\`\`\`python
def f(x: int) -> int:
    # twelve lines or fewer
    return x + 1
\`\`\`

| a | b | c |
| --- | --- | --- |
| 1 | 2 | 3 |
| 4 | 5 | 6 |

`;

/** A text of 42 kB. */
const SOURCE = CHAPTER.repeat(Math.ceil(42_000 / CHAPTER.length)).slice(0, 42_000);

describe.skipIf(chromiumPath === undefined)("prose", () => {
  let host: GalleryHost;
  beforeAll(async () => void (host = await GalleryHost.start()), 120_000);
  afterAll(() => host.stop());

  /** Slowness of the machine while the last page was open. Limits of time are multiplied by it. */
  let slow = 1;

  async function on<T>(run: (given: string) => Promise<T>, given: string): Promise<T> {
    const { page, complaints } = await host.open("only=confirm");
    const before = await slowness(page);
    const result = await page.evaluate(run, given);
    slow = Math.max(before, await slowness(page));
    expect(complaints).toEqual([]);
    await page.context().close();
    return result;
  }

  test("W13 W20 W88 10,000 deltas, frame by frame: the text is complete, finished blocks stay, memory is small", async () => {
    const { page, complaints } = await host.open("only=confirm");
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable");
    const heap = async () => {
      await session.send("HeapProfiler.collectGarbage");
      const { metrics } = await session.send("Performance.getMetrics");
      return (metrics.find(({ name }) => name === "JSHeapUsedSize")?.value ?? 0) / 2 ** 20;
    };
    const before = await heap();
    const result = await page.evaluate(async (source) => {
      const prose = Object.assign(document.createElement("arp-prose"), { streaming: true }) as Prose;
      document.querySelector("main")?.append(prose);
      let first: Element | null | undefined = null;
      let kept = true;
      const FRAMES = 300;
      for (let frame = 1; frame <= FRAMES; frame += 1) {
        prose.text = source.slice(0, Math.round((frame / FRAMES) * source.length));
        await new Promise((resolve) => requestAnimationFrame(resolve));
        first ??= prose.querySelector(".arp-blocks > p");
        kept &&= first === null || first === prose.querySelector(".arp-blocks > p");
      }
      prose.streaming = false;
      for (let round = 0; round < 600 && (round < 5 || prose.busy); round += 1)
        await new Promise((resolve) => requestAnimationFrame(resolve));
      const words = (text: string) => text.replace(/[\s*`|#\-()[\]:_]+|https\S+/g, "");
      const code = (prose.querySelector("arp-code") as unknown as { code: string }).code;
      return {
        kept,
        paragraphs: prose.querySelectorAll(":is(.arp-blocks, .arp-part) > p").length,
        tables: prose.querySelectorAll("table").length,
        code,
        words: words(prose.querySelector(".arp-blocks > p")?.textContent ?? ""),
      };
    }, SOURCE);
    const grown = (await heap()) - before;
    const chapters = SOURCE.match(/## Chapter/g)?.length as number;
    expect(result.kept).toBe(true);
    expect(result.paragraphs).toBeGreaterThanOrEqual(chapters - 1);
    expect(result.tables).toBeGreaterThanOrEqual(chapters - 1);
    expect(result.code).toBe("def f(x: int) -> int:\n    # twelve lines or fewer\n    return x + 1");
    expect(result.words).toBe("Someboldwords,alink,codeandmoreofit,longenoughtogoovertheendofaline.");
    expect(grown).toBeLessThan(15);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  test("W14 a long text at once is drawn in slices, and the page does other work in between", async () => {
    const seen = await on(async (source) => {
      const prose = Object.assign(document.createElement("arp-prose"), { streaming: true }) as Prose;
      document.querySelector("main")?.append(prose);
      const tables: number[] = [];
      prose.text = source;
      await new Promise((resolve) => setTimeout(resolve));
      while (prose.busy) {
        tables.push(prose.querySelectorAll("table").length);
        await new Promise((resolve) => setTimeout(resolve));
      }
      return [...new Set(tables), prose.querySelectorAll("table").length];
    }, SOURCE);
    // Each step is a slice after which a timer ran.
    expect(seen.length).toBeGreaterThan(4);
    expect(seen.at(-1)).toBe(SOURCE.match(/\| 4 \| 5 \| 6 \|/g)?.length);
  });

  test("W18 selected text stays selected while the text grows", async () => {
    const selected = await on(async (source) => {
      const prose = Object.assign(document.createElement("arp-prose"), { streaming: true }) as Prose;
      document.querySelector("main")?.append(prose);
      const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
      prose.text = source.slice(0, 300);
      for (let round = 0; round < 5; round += 1) await frame();
      getSelection()?.selectAllChildren(prose.querySelector("p") as Element);
      const before = String(getSelection());
      for (let end = 300; end < 2_000; end += 40) {
        prose.text = source.slice(0, end);
        await frame();
      }
      return [before, String(getSelection())];
    }, SOURCE);
    expect(selected[0]).toContain("Some bold words");
    expect(selected[1]).toBe(selected[0]);
  });

  test("W19 the height never shrinks by more than a line while a text is written", { timeout: 60_000 }, async () => {
    const shrunk = await on(async (source) => {
      const prose = Object.assign(document.createElement("arp-prose"), { streaming: true }) as Prose;
      document.querySelector("main")?.append(prose);
      let [most, last] = [0, 0];
      for (let end = 1; end < 700; end += 1) {
        prose.text = source.slice(0, end);
        await new Promise((resolve) => requestAnimationFrame(resolve));
        const { height } = prose.getBoundingClientRect();
        most = Math.max(most, last - height);
        last = height;
      }
      return most;
    }, SOURCE);
    expect(shrunk).toBeLessThanOrEqual(30);
  });

  test.each([
    ["5 MB of prose", "five"],
    ["a line of a million letters", "line"],
    ["10,000 nested quotes", "quotes"],
    ["10,000 nested lists", "lists"],
    ["a thousand lines, each deeper", "deeper"],
    ["60,000 stars and underscores", "stars"],
    ["30,000 brackets", "brackets"],
    ["20,000 backticks of growing length", "ticks"],
    ["a table of 3,000 columns", "columns"],
    ["pipes and dashes", "pipes"],
  ])("W81 the page responds while it draws %s", async (_name, kind) => {
    const longest = await on(async (kind) => {
      const sources: Record<string, () => string> = {
        five: () => "A paragraph with **bold** words and [a link](https://example.org).\n\n".repeat(75_000),
        line: () => "a".repeat(1_000_000),
        quotes: () => `${"> ".repeat(10_000)}end`,
        lists: () => `${"- ".repeat(10_000)}end`,
        deeper: () => Array.from({ length: 1000 }, (_, at) => `${"  ".repeat(at)}- x`).join("\n"),
        stars: () => "*a_ ".repeat(15_000),
        brackets: () => "[".repeat(30_000),
        ticks: () => Array.from({ length: 200 }, (_, at) => "`".repeat(at)).join(" "),
        columns: () => `|${" a |".repeat(3000)}\n|${"-|".repeat(3000)}\n|${" 1 |".repeat(3000)}`,
        pipes: () => `${"| - ".repeat(2000)}\n`.repeat(20),
      };
      const prose = document.createElement("arp-prose") as Prose;
      document.querySelector("main")?.append(prose);
      let longest = 0;
      let last = performance.now();
      const timer = setInterval(() => {
        longest = Math.max(longest, performance.now() - last);
        last = performance.now();
      }, 10);
      prose.text = (sources[kind] as () => string)();
      const end = performance.now() + 3_000;
      while (performance.now() < end && (performance.now() < end - 2_500 || prose.busy))
        await new Promise((resolve) => setTimeout(resolve, 20));
      clearInterval(timer);
      prose.remove();
      return longest;
    }, kind);
    console.log(`W81 ${kind}: ${longest.toFixed(0)} ms, slow ${slow.toFixed(1)}`);
    expect(longest).toBeLessThan(1_000 * slow);
  });
});
