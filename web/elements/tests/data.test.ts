/** What stands behind tables, charts and differences, without a page. */

import type { ArpClient } from "@agent-rendering/core";
import { describe, expect, test } from "vitest";
import { chartData } from "../src/chart/data.js";
import { slicesOf } from "../src/chart/pie.js";
import { scaleOver } from "../src/chart/scale.js";
import { areaPath, linePath, thinned, type Point } from "../src/chart/shapes.js";
import { codeFileName } from "../src/components/code_block.js";
import { partOf } from "../src/components/layout.js";
import { difference, patchOf } from "../src/diff/rows.js";
import { fileName } from "../src/clipboard.js";
import { linesOf } from "../src/code/highlight.js";
import { columnKind, numberOf, sorted, type Row } from "../src/table/sort.js";
import { imageSource, linkTarget } from "../src/url.js";
import { visible } from "../src/values.js";

async function order(rows: Row[], direction: "ascending" | "descending" = "ascending"): Promise<unknown[]> {
  return [...(await sorted(rows, 0, direction, "de"))].map((at) => rows[at]?.[0]);
}

describe("W41 sorting", () => {
  test("numbers by size, whatever stands around them; nothing comes last", async () => {
    expect(await order([["$1,200"], ["$99.5"], [null], ["$-3"]])).toEqual(["$-3", "$99.5", "$1,200", null]);
    expect(await order([[10], [9], [-1.5]], "descending")).toEqual([10, 9, -1.5]);
    expect(await order([["12 %"], ["9 %"], [""]], "descending")).toEqual(["12 %", "9 %", ""]);
  });
  test("dates by time", async () => {
    expect(await order([["2026-02-01"], ["2025-12-31"], ["2026-01-15T10:00:00Z"]])).toEqual(["2025-12-31", "2026-01-15T10:00:00Z", "2026-02-01"]);
  });
  test("text by the rules of the language, numbers in it by size", async () => {
    expect(await order([["Zug"], ["ähnlich"], ["Apfel"], ["Zeile 10"], ["Zeile 9"]])).toEqual(["ähnlich", "Apfel", "Zeile 9", "Zeile 10", "Zug"]);
  });
  test("equal rows keep their order", async () => {
    const rows: Row[] = [["b", 1], ["a", 2], ["b", 3], ["a", 4]];
    expect([...(await sorted(rows, 0, "descending", "en"))]).toEqual([0, 2, 1, 3]);
  });
  test("a column is what all of it is", () => {
    expect([columnKind([["1"], ["x"]], 0), columnKind([["1"], [null], [2]], 0), columnKind([["2026-01"]], 0), columnKind([], 0)]).toEqual(["text", "number", "date", "text"]);
    expect([numberOf("−1 000,5".replace(",", ".")), numberOf("abc"), numberOf(true)]).toEqual([-1000.5, Number.NaN, Number.NaN]);
  });
});

describe("W44 scales", () => {
  test.each([
    [[0, 143], true, [0, 20, 40, 60, 80, 100, 120, 140, 160]],
    [[-16, 30], true, [-20, -10, 0, 10, 20, 30]],
    [[0, 0], true, [0, 0.2, 0.4, 0.6, 0.8, 1]],
    [[], false, [0, 0.2, 0.4, 0.6, 0.8, 1]],
    [[1013, 1021], false, [1012, 1014, 1016, 1018, 1020, 1022]],
    [[7], false, [6.2, 6.4, 6.6, 6.8, 7, 7.2, 7.4, 7.6, 7.8]],
  ])("over %j", (values, withZero, ticks) => {
    const scale = scaleOver(values, withZero, 5, 100, 0);
    expect(scale.ticks).toEqual(ticks);
    expect(scale.at(scale.least)).toBe(100);
    expect(scale.at(scale.most)).toBeCloseTo(0, 9);
  });
  test("very large and very small values have ticks too", () => {
    expect(scaleOver([1e300, -1e300], true, 5, 0, 1).ticks.every(Number.isFinite)).toBe(true);
    expect(scaleOver([1e-12, 3e-12], true, 3, 0, 1).ticks).toEqual([0, 1e-12, 2e-12, 3e-12]);
  });
});

describe("W44 shapes", () => {
  test("a gap breaks a line, a point alone is a dot", () => {
    expect(linePath([[0, 1], [1, 2], null, [3, 4], null])).toBe("M0,1L1,2M3,4h0");
    expect(areaPath([[0, 1], [1, 2], null, [3, 4]], 9)).toBe("M0,9L0,1L1,2L1,9ZM3,9L3,4L3,9Z");
  });
  test("5,000 points keep their highest and lowest", () => {
    const points: Point[] = Array.from({ length: 5000 }, (_, at) => [at / 10, at === 2500 ? -50 : at === 1234 ? 99 : 5]);
    const few = thinned(points, 500);
    expect(few.length).toBe(1000);
    expect(few.some((point) => point?.[1] === -50) && few.some((point) => point?.[1] === 99)).toBe(true);
  });
  test("slices are parts of what is above zero", () => {
    const data = chartData({ type: "pie", labels: ["a", "b", "c", "d"], datasets: [{ data: [3, -1, null, 1] }] });
    expect(slicesOf(data, new Set(), 200).map(({ label, part }) => [label, part])).toEqual([[0, 0.75], [3, 0.25]]);
    expect(slicesOf(data, new Set([0]), 200).map(({ label, part }) => [label, part])).toEqual([[3, 1]]);
  });
});

describe("W47 differences", () => {
  const told = async (before: string, after: string) => {
    const { rows, added, removed } = await difference(before, after);
    return { added, removed, rows: rows.map((row) => (row.kind === "fold" ? `… ${row.lines.length}` : `${row.before ?? ""}|${row.after ?? ""}|${row.kind}|${row.text}`)) };
  };
  test("lines have their numbers in both texts, far ones are folded", async () => {
    const lines = Array.from({ length: 12 }, (_, at) => `line ${at + 1}`);
    const before = `${lines.join("\n")}\n`;
    expect(await told(before, before.replace("line 6", "line six"))).toEqual({
      added: 1,
      removed: 1,
      rows: ["… 2", "3|3|same|line 3", "4|4|same|line 4", "5|5|same|line 5", "6||removed|line 6", "|6|added|line six", "7|7|same|line 7", "8|8|same|line 8", "9|9|same|line 9", "… 3"],
    });
  });
  test("all new, all gone, and nothing at all", async () => {
    expect((await told("", "a\nb\n")).rows).toEqual(["|1|added|a", "|2|added|b"]);
    expect((await told("a\nb\n", "")).rows).toEqual(["1||removed|a", "2||removed|b"]);
    expect((await told("a\n", "a\n")).rows).toEqual(["… 1"]);
    expect((await told("", "")).rows).toEqual([]);
  });
  test("it is copied as a patch", async () => {
    expect(patchOf(await difference("a\nb\nc\n", "a\nx\nc\n"), "old", "new")).toBe("--- old\n+++ new\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
  });
  test("lines that moved are the same lines where that is the most there is", async () => {
    expect((await told("a\nb\nc\nd\n", "c\nd\na\nb\n")).rows.filter((row) => row.includes("same"))).toHaveLength(2);
  });
  test("words that changed are marked in lines that are alike, not in others", async () => {
    const { rows } = await difference("the quick brown fox\n", "the quick red fox\n");
    expect(rows.map((row) => (row.kind === "fold" ? [] : row.segments))).toEqual([
      [{ text: "the quick ", isChanged: false }, { text: "brown", isChanged: true }, { text: " fox", isChanged: false }],
      [{ text: "the quick ", isChanged: false }, { text: "red", isChanged: true }, { text: " fox", isChanged: false }],
    ]);
    const other = await difference("one two three\n", "something else entirely here\n");
    expect(other.rows.every((row) => row.kind !== "fold" && row.segments === null)).toBe(true);
  });
});

test("W48 code is saved under its own name, or one for its language", () => {
  expect([codeFileName("src/answer.py", "python"), codeFileName("My code", "typescript"), codeFileName("", "sql"), codeFileName("../../etc/passwd", ""), codeFileName("", "brainfuck")]).toEqual(["answer.py", "My code.ts", "code.sql", "etc passwd.txt", "code.txt"]);
  expect([fileName("a/b\\c:d", "csv"), fileName("...", "csv"), fileName("x".repeat(200), "csv").length]).toEqual(["a b c d.csv", "arp.csv", 84]);
});

test("stretches of code fall into lines", () => {
  expect(linesOf([{ text: "a\nb", kind: "k" }, { text: "c\n", kind: "" }])).toEqual([[{ text: "a", kind: "k" }], [{ text: "b", kind: "k" }, { text: "c", kind: "" }], []]);
});

test("W76 W79 addresses that are followed, pictures that are fetched", () => {
  expect(["https://a.example/x", "mailto:a@b.example", "javascript:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "blob:https://a.example/1"].map((one) => linkTarget(one)?.protocol ?? null)).toEqual(["https:", "mailto:", null, null, null, null, null, null, null]);
  expect(["data:image/png;base64,AAAA", "data:image/svg+xml;base64,AAAA", "data:text/html;base64,AAAA", "https://a.example/x.png", "//a.example/x.png", "javascript:1", `${location.origin}/_api/blobs/x`].map((one) => imageSource(one)?.kind ?? null)).toEqual(["here", null, null, "remote", "remote", null, "here"]);
});

test("W79 of an agent's links to its own server only those to files are followed", () => {
  const file = `_api/blobs/s${"QQ"}/${"0a".repeat(32)}/table-1.csv`;
  const client = (base: string) => ({ client: { address: { base } } as ArpClient });
  const followed = (base: string | null, ...links: string[]) => links.map((link) => linkTarget(link, base === null ? null : client(base)) !== null);
  const { origin } = location;
  const traps = ["/?session=trap#%74oken=OTHER", "?session=trap", "#token=OTHER", `${origin}/`, `//${location.host}/_inspect`, "/_api/chats", `/${file}?x=1`, `/${file}#token=OTHER`, `/${file}/..`, "/_api/blobs/cookie", `/?session=trap&x=/${file}`, `/#token=OTHER&x=/${file}`, `/_api/blobs/sQQ/..%2f..%2f/${"0".repeat(64)}`];
  const none = traps.map(() => false);
  expect(followed(null, ...traps)).toEqual(none);
  expect(followed(origin, ...traps)).toEqual(none);
  expect(followed(`${origin}/deep/agent`, ...traps)).toEqual(none);
  expect(followed(null, `/${file}`, file, `${origin}/${file}`, "https://a.example/#token=x", "mailto:a@b.example")).toEqual([true, true, true, true, true]);
  // The server is elsewhere: its addresses are refused, those of the page around are not the agent's server.
  expect(followed("https://agents.example", "https://agents.example/?session=trap", "http://agents.example/?session=trap", `https://agents.example/${file}`, "/orders/12")).toEqual([false, false, true, true]);
  // One machine has several names.
  expect(followed("http://127.0.0.1:8080", "http://localhost:8080/#token=x", "http://127.1.2.3:8080/", "http://[::1]:8080/", "http://0x7f000001:8080/", "http://localhost:3000/")).toEqual([false, false, false, false, true]);
});

test("W80 what deceives the eye is made visible", () => {
  expect(visible("rm \u202egnp.exe\u200b\u001b[31m")).toBe("rm ⟨U+202E⟩gnp.exe⟨U+200B⟩⟨U+001B⟩[31m");
  expect(visible("héllo, 世界\n\tشكرا 👍🏽")).toBe("héllo, 世界\n\tشكرا 👍🏽");
});

test("a ratio is the first's part, a half if it is none", () => {
  expect(["1:2", "3:1", "0:5", "x", "1:0", ""].map(partOf)).toEqual([1 / 3, 0.75, 0.1, 0.5, 0.9, 0.5]);
});
