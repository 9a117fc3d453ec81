/** Logic of tables, charts and differences, without a page. */

import type { ArpClient } from "@agent-rendering/core";
import { describe, expect, test } from "vitest";
import { translator } from "@agent-rendering/core/strings";
import { chartData } from "../src/components/chart/data.js";
import { cut, namesBelow, widthOf, type Names } from "../src/components/chart/names.js";
import { figure, percent } from "../src/components/chart/numbers.js";
import { nearestPoint, walked } from "../src/components/chart/pick.js";
import { slicesOf } from "../src/components/chart/pie.js";
import { scaleOver, tickFormat } from "../src/components/chart/scale.js";
import { areaPath, linePath, lookOf, thinned, type Point } from "../src/components/chart/shapes.js";
import { codeFileName } from "../src/components/code_block.js";
import { partOf } from "../src/components/layout.js";
import { difference, patchOf } from "../src/components/diff/rows.js";
import { fileName } from "../src/base/clipboard.js";
import { linesOf } from "../src/code/highlight.js";
import { missing, tailOf } from "../src/components/table/decimals.js";
import { columnKind, numberOf, sorted, type Row } from "../src/components/table/sort.js";
import { imageSource, linkTarget } from "../src/base/url.js";
import { visible } from "../src/base/values.js";

async function order(rows: Row[], direction: "ascending" | "descending" = "ascending"): Promise<unknown[]> {
  return [...(await sorted(rows, 0, direction, "de"))].map((at) => rows[at]?.[0]);
}

describe("W41 sorting", () => {
  test("numbers are sorted by size, whatever is around them, and empty cells come last", async () => {
    expect(await order([["$1,200"], ["$99.5"], [null], ["$-3"]])).toEqual(["$-3", "$99.5", "$1,200", null]);
    expect(await order([[10], [9], [-1.5]], "descending")).toEqual([10, 9, -1.5]);
    expect(await order([["12 %"], ["9 %"], [""]], "descending")).toEqual(["12 %", "9 %", ""]);
  });
  test("dates are sorted by time", async () => {
    expect(await order([["2026-02-01"], ["2025-12-31"], ["2026-01-15T10:00:00Z"]])).toEqual([
      "2025-12-31",
      "2026-01-15T10:00:00Z",
      "2026-02-01",
    ]);
  });
  test("texts are sorted by the rules of the language, and numbers in them by size", async () => {
    expect(await order([["Zug"], ["ähnlich"], ["Apfel"], ["Zeile 10"], ["Zeile 9"]])).toEqual([
      "ähnlich",
      "Apfel",
      "Zeile 9",
      "Zeile 10",
      "Zug",
    ]);
  });
  test("equal rows keep their order", async () => {
    const rows: Row[] = [
      ["b", 1],
      ["a", 2],
      ["b", 3],
      ["a", 4],
    ];
    expect([...(await sorted(rows, 0, "descending", "en"))]).toEqual([0, 2, 1, 3]);
  });
  test("a column has a kind if all its cells have it", () => {
    expect([
      columnKind([["1"], ["x"]], 0),
      columnKind([["1"], [null], [2]], 0),
      columnKind([["2026-01"]], 0),
      columnKind([], 0),
    ]).toEqual(["text", "number", "date", "text"]);
    expect([numberOf("−1 000,5".replace(",", ".")), numberOf("abc"), numberOf(true)]).toEqual([
      -1000.5,
      Number.NaN,
      Number.NaN,
    ]);
  });
});

describe("W44 scales", () => {
  test.each([
    [[0, 143], true, [0, 25, 50, 75, 100, 125, 150]],
    [[-16, 30], true, [-20, -10, 0, 10, 20, 30]],
    [[0, 0], true, [0, 1]],
    [[], false, [0, 0.2, 0.4, 0.6, 0.8, 1]],
    [[1013, 1021], false, [1012, 1014, 1016, 1018, 1020, 1022]],
    [[7], false, [6, 7, 8]],
    [[7.5], false, [6.75, 7, 7.25, 7.5, 7.75, 8, 8.25]],
    [[0, 2], true, [0, 1, 2]],
    [[0, 10.5], true, [0, 2, 4, 6, 8, 10, 12]],
    [[0, 12.5], true, [0, 2.5, 5, 7.5, 10, 12.5]],
    [[0.03, 0.12], true, [0, 0.025, 0.05, 0.075, 0.1, 0.125]],
    [[-5, -42], true, [-50, -40, -30, -20, -10, 0]],
  ])("over %j", (values, withZero, ticks) => {
    const scale = scaleOver(values, withZero, 5, 100, 0);
    expect(scale.ticks).toEqual(ticks);
    expect(scale.at(scale.least)).toBe(100);
    expect(scale.at(scale.most)).toBeCloseTo(0, 9);
  });
  test("very large and very small values have ticks too", () => {
    expect(scaleOver([1e300, -1e300], true, 5, 0, 1).ticks.every(Number.isFinite)).toBe(true);
    expect(scaleOver([1e-12, 3e-12], true, 3, 0, 1).ticks).toEqual([0, 1e-12, 2e-12, 3e-12]);
    for (const values of [[1.7e308, -1.7e308], [5e-324, 0], [1e16, 1e16 + 2], [-1e300], [1e9, 1e9 + 1e-7]]) {
      const { ticks, least, most } = scaleOver(values, false, 5, 0, 1);
      expect(most).toBeGreaterThan(least);
      expect(new Set(ticks).size).toBe(ticks.length);
      expect(ticks.length).toBeGreaterThan(1);
    }
  });
  test.each([
    [[0, 500_000, 1_000_000, 1_500_000], "en", ["0", "500K", "1M", "1.5M"]],
    [[1_000_000, 1_000_250, 1_000_500], "en", ["1,000,000", "1,000,250", "1,000,500"]],
    [[0, 2.5, 5], "de", ["0,0", "2,5", "5,0"]],
    [[0, 1e-12, 2e-12], "en", ["0E0", "1E-12", "2E-12"]],
    [[1e20, 1.5e20], "en", ["1E20", "1.5E20"]],
    [[0.001, 0.0010000001], "en", ["1E-3", "1.0000001E-3"]],
  ])("ticks %j are short and distinct in %s", (ticks, locale, received) => {
    const t = translator(locale);
    expect(ticks.map((tick) => t.number(tick, tickFormat(ticks)))).toEqual(received);
  });
});

describe("W44 numbers with units", () => {
  const received = (value: number, unit: string, locale = "en", format?: Intl.NumberFormatOptions) =>
    figure(value, unit, translator(locale), format).replace(/[\u00a0\u202f]/g, "_");
  test("signs are placed by the rules of the language, other units after the number", () => {
    expect([
      received(12.5, "%"),
      received(12.5, "%", "de"),
      received(20, "°C"),
      received(-1234.5, "$"),
      received(1234, "€", "de"),
      received(5, "kUSD"),
      received(5, ""),
    ]).toEqual(["12.5%", "12,5_%", "20_°C", "-$1,234.50", "1.234_€", "5_kUSD", "5"]);
    expect(received(20_000, "$", "en", { notation: "compact", maximumFractionDigits: 0 })).toBe("$20K");
    expect(received(1, "constructor")).toBe("1_constructor");
  });
  test("small numbers are not shown as zero, and huge numbers are not shown in full", () => {
    expect([received(0.000123456, "kg"), received(1.5e21, ""), received(1234.5678, ""), received(0, "")]).toEqual([
      "0.0001235_kg",
      "1.5E21",
      "1,234.568",
      "0",
    ]);
    expect([
      percent(0.0001, translator("en")),
      percent(0, translator("en")),
      percent(0.1234, translator("en")),
    ]).toEqual(["<0.1%", "0%", "12.3%"]);
  });
});

describe("W44 names below an axis", () => {
  /** Return the left and right end of each name. */
  const spans = (names: Names) =>
    names.drawing.map(
      ({ values }) =>
        [
          Number(values[0]) - widthOf(String(values.at(-1))) / 2,
          Number(values[0]) + widthOf(String(values.at(-1))) / 2,
        ] as const,
    );
  const drawn = (count: number, name: (at: number) => string, width: number, isEach = false) => {
    const labels = Array.from({ length: count }, (_, at) => name(at));
    const columns = labels.map((_, at) => 50 + ((width - 62) / count) * (at + 0.5));
    return namesBelow(labels, columns, 240, 50, width - 12, isEach);
  };
  test.each([
    [3, 40],
    [12, 12],
    [12, 30],
    [40, 5],
    [200, 20],
    [1, 60],
    [30, 2],
  ])("%i of %i letters do not touch at any width", (count, letters) => {
    for (const width of [220, 320, 640, 1200]) {
      const names = drawn(count, (at) => "x".repeat(1 + ((at * 7) % letters)), width);
      const ends = spans(names);
      expect(ends.length).toBeGreaterThan(0);
      ends.slice(1).forEach(([start], at) => expect(start).toBeGreaterThan((ends[at] as readonly [number, number])[1]));
    }
  });
  test("names of bars are all turned if they do not fit; years are thinned out", () => {
    const turned = drawn(12, (at) => `Department number ${at}`, 400, true);
    expect(turned.drawing).toHaveLength(12);
    expect(turned.more).toBeGreaterThan(30);
    const years = drawn(60, (at) => String(1960 + at), 640, true);
    expect(years.more).toBe(0);
    expect(years.drawing.length).toBeLessThan(30);
    expect(drawn(3, (at) => `A long name, ${"very ".repeat(9)}${at}`, 640, true).more).toBe(0);
  });
  test("a name is cut by its width", () => {
    expect([cut("abcdef", 100), cut("abcdefghij", 42), cut("日本語日本語", 42), cut("", 5)]).toEqual([
      "abcdef",
      "abcde…",
      "日本…",
      "",
    ]);
  });
});

describe("W45 picking points", () => {
  const points: Point[][] = [
    [[10, 100], [12, 10], null],
    [
      [60, 12],
      [200, 100],
      [14, 95],
    ],
  ];
  test("the nearest point is picked by its distance in both directions", () => {
    expect(nearestPoint(points, 12, 90)).toEqual({ at: 2, series: 1 });
    expect(nearestPoint(points, 12, 30)).toEqual({ at: 1, series: 0 });
    expect(nearestPoint(points, 150, 100)).toEqual({ at: 1, series: 1 });
    expect(nearestPoint([[null], []], 1, 1)).toBe(null);
  });
  test("keys reach every point once, from left to right and from low to high", () => {
    const way = (key: string) => {
      const seen: string[] = [];
      for (
        let looked = walked(points, null, "Home"), round = 0;
        looked && round < 9;
        looked = walked(points, looked, key), round += 1
      )
        seen.push(`${looked.series}.${looked.at}`);
      return [...new Set(seen)];
    };
    expect(way("ArrowRight")).toEqual(["0.0", "0.1", "1.2", "1.0", "1.1"]);
    expect(walked(points, { at: 0, series: 0 }, "ArrowUp")).toMatchObject({ at: 1, series: 1 });
    expect(walked(points, { at: 1, series: 0 }, "ArrowUp")).toMatchObject({ at: 1, series: 0 });
    expect(walked(points, { at: 1, series: 1 }, "End")).toMatchObject({ at: 1, series: 1 });
    expect([walked(points, null, "Enter"), walked([], null, "End")]).toEqual([undefined, undefined]);
  });
});

describe("W41 decimals", () => {
  const lacks = (...values: (string | number | null)[]) => {
    const rows = values.map((value) => [value]);
    const tail = tailOf(rows, 0);
    return values.map((value) => missing(String(value ?? ""), tail));
  };
  test("each number is padded to the longest decimals", () => {
    expect(lacks(1.5, 12.25, 3, null, -0.125)).toEqual(["00", "0", ".000", "", ""]);
    expect(lacks("12.5 %", "5 %", "7")).toEqual(["", ".0", ".0 %"]);
    expect(lacks("$1,234.50", "$5")).toEqual(["", ".00"]);
    expect(lacks(1, 2, 3)).toEqual(["", "", ""]);
  });
  test("numbers that are written with a fixed number of decimals end alike", () => {
    const rows = [[12], [0.5], ["5 %"], ["1.125"], [1e21], [null]];
    expect(tailOf(rows, 0, 2)).toEqual({ digits: 3, sign: " %" });
    expect(tailOf(rows.slice(0, 2), 0, 2)).toEqual({ digits: 2, sign: "" });
  });
  test("numbers with an exponent are ignored", () => {
    expect(lacks(1e21, 1e-7, 2.5, 1)).toEqual(["", "", "", ".0"]);
  });
});

describe("W44 shapes", () => {
  test("a gap breaks a line, and a single point is a dot", () => {
    expect(linePath([[0, 1], [1, 2], null, [3, 4], null])).toBe("M0,1L1,2M3,4h0");
    expect(areaPath([[0, 1], [1, 2], null, [3, 4]], 9)).toBe("M0,9L0,1L1,2L1,9ZM3,9L3,4L3,9Z");
  });
  test("5,000 points are thinned out, but keep the highest and the lowest", () => {
    const points: Point[] = Array.from({ length: 5000 }, (_, at) => [
      at / 10,
      at === 2500 ? -50 : at === 1234 ? 99 : 5,
    ]);
    const few = thinned(points, 500);
    expect(few.length).toBe(1000);
    expect(few.some((point) => point?.[1] === -50) && few.some((point) => point?.[1] === 99)).toBe(true);
  });
  test("slices are fractions of the sum of the values above zero", () => {
    const data = chartData({ type: "pie", labels: ["a", "b", "c", "d"], datasets: [{ data: [3, -1, null, 1] }] });
    expect(slicesOf(data, new Set(), 200).map(({ label, part }) => [label, part])).toEqual([
      [0, 0.75],
      [3, 0.25],
    ]);
    expect(slicesOf(data, new Set([0]), 200).map(({ label, part }) => [label, part])).toEqual([[3, 1]]);
  });
});

test.each([1, 2, 5, 8, 9, 12, 13, 16, 17, 24])(
  "W44 of %i parts no two look alike, and neighbours have different colours",
  (count) => {
    const looks = Array.from({ length: count }, (_, part) => lookOf(part, count));
    expect(new Set(looks.map(String)).size).toBe(count);
    looks.forEach(
      ([colour], at) => count > 1 && expect(colour).not.toBe((looks[(at + 1) % count] as [number, number])[0]),
    );
  },
);

describe("W47 differences", () => {
  const received = async (before: string, after: string) => {
    const { rows, added, removed } = await difference(before, after);
    return {
      added,
      removed,
      rows: rows.map((row) =>
        row.kind === "fold"
          ? `… ${row.lines.length}`
          : `${row.before ?? ""}|${row.after ?? ""}|${row.kind}|${row.text}`,
      ),
    };
  };
  test("lines have their numbers in both texts, and lines far from a change are folded", async () => {
    const lines = Array.from({ length: 12 }, (_, at) => `line ${at + 1}`);
    const before = `${lines.join("\n")}\n`;
    expect(await received(before, before.replace("line 6", "line six"))).toEqual({
      added: 1,
      removed: 1,
      rows: [
        "… 2",
        "3|3|same|line 3",
        "4|4|same|line 4",
        "5|5|same|line 5",
        "6||removed|line 6",
        "|6|added|line six",
        "7|7|same|line 7",
        "8|8|same|line 8",
        "9|9|same|line 9",
        "… 3",
      ],
    });
  });
  test("texts can be all new, all removed, equal or empty", async () => {
    expect((await received("", "a\nb\n")).rows).toEqual(["|1|added|a", "|2|added|b"]);
    expect((await received("a\nb\n", "")).rows).toEqual(["1||removed|a", "2||removed|b"]);
    expect((await received("a\n", "a\n")).rows).toEqual(["… 1"]);
    expect((await received("", "")).rows).toEqual([]);
  });
  test("a difference is copied as a patch", async () => {
    expect(patchOf(await difference("a\nb\nc\n", "a\nx\nc\n"), "old", "new")).toBe(
      "--- old\n+++ new\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n",
    );
  });
  test("of moved lines, the longest common sequence is unchanged", async () => {
    expect((await received("a\nb\nc\nd\n", "c\nd\na\nb\n")).rows.filter((row) => row.includes("same"))).toHaveLength(2);
  });
  test("changed words are marked in similar lines only", async () => {
    const { rows } = await difference("the quick brown fox\n", "the quick red fox\n");
    expect(rows.map((row) => (row.kind === "fold" ? [] : row.segments))).toEqual([
      [
        { text: "the quick ", isChanged: false },
        { text: "brown", isChanged: true },
        { text: " fox", isChanged: false },
      ],
      [
        { text: "the quick ", isChanged: false },
        { text: "red", isChanged: true },
        { text: " fox", isChanged: false },
      ],
    ]);
    const other = await difference("one two three\n", "something else entirely here\n");
    expect(other.rows.every((row) => row.kind !== "fold" && row.segments === null)).toBe(true);
  });
});

test("W48 code is saved under its own name, or under a name for its language", () => {
  expect([
    codeFileName("src/answer.py", "python"),
    codeFileName("My code", "typescript"),
    codeFileName("", "sql"),
    codeFileName("../../etc/passwd", ""),
    codeFileName("", "brainfuck"),
  ]).toEqual(["answer.py", "My code.ts", "code.sql", "etc passwd.txt", "code.txt"]);
  expect([fileName("a/b\\c:d", "csv"), fileName("...", "csv"), fileName("x".repeat(200), "csv").length]).toEqual([
    "a b c d.csv",
    "arp.csv",
    84,
  ]);
  expect([fileName("안내서 été ✓", "pdf"), fileName("😀".repeat(100), "csv")]).toEqual([
    "안내서 été ✓.pdf",
    `${"😀".repeat(80)}.csv`,
  ]);
});

test("highlighted spans of code are divided into lines", () => {
  expect(
    linesOf([
      { text: "a\nb", kind: "k" },
      { text: "c\n", kind: "" },
    ]),
  ).toEqual([
    [{ text: "a", kind: "k" }],
    [
      { text: "b", kind: "k" },
      { text: "c", kind: "" },
    ],
    [],
  ]);
});

test("W76 W79 only safe addresses are followed and only safe pictures are fetched", () => {
  expect(
    [
      "https://a.example/x",
      "mailto:a@b.example",
      "javascript:alert(1)",
      " javascript:alert(1)",
      "java\nscript:alert(1)",
      "data:text/html,x",
      "vbscript:x",
      "file:///etc/passwd",
      "blob:https://a.example/1",
    ].map((one) => linkTarget(one)?.protocol ?? null),
  ).toEqual(["https:", "mailto:", null, null, null, null, null, null, null]);
  expect(
    [
      "data:image/png;base64,AAAA",
      "data:image/svg+xml;base64,AAAA",
      "data:text/html;base64,AAAA",
      "https://a.example/x.png",
      "//a.example/x.png",
      "javascript:1",
      `${location.origin}/_api/blobs/x`,
    ].map((one) => imageSource(one)?.kind ?? null),
  ).toEqual(["here", null, null, "remote", "remote", null, "here"]);
});

test("W79 of an agent's links to its own server, only links to files are followed", () => {
  const file = `_api/blobs/s${"QQ"}/${"0a".repeat(32)}/table-1.csv`;
  const client = (base: string) => ({ client: { address: { base } } as ArpClient });
  const followed = (base: string | null, ...links: string[]) =>
    links.map((link) => linkTarget(link, base === null ? null : client(base)) !== null);
  const { origin } = location;
  const traps = [
    "/?session=trap#%74oken=OTHER",
    "?session=trap",
    "#token=OTHER",
    `${origin}/`,
    `//${location.host}/_inspect`,
    "/_api/chats",
    `/${file}?x=1`,
    `/${file}#token=OTHER`,
    `/${file}/..`,
    "/_api/blobs/cookie",
    `/?session=trap&x=/${file}`,
    `/#token=OTHER&x=/${file}`,
    `/_api/blobs/sQQ/..%2f..%2f/${"0".repeat(64)}`,
  ];
  const none = traps.map(() => false);
  expect(followed(null, ...traps)).toEqual(none);
  expect(followed(origin, ...traps)).toEqual(none);
  expect(followed(`${origin}/deep/agent`, ...traps)).toEqual(none);
  expect(
    followed(null, `/${file}`, file, `${origin}/${file}`, "https://a.example/#token=x", "mailto:a@b.example"),
  ).toEqual([true, true, true, true, true]);
  // The server is on another host: its addresses are refused, and the page's own addresses are not the agent's server.
  expect(
    followed(
      "https://agents.example",
      "https://agents.example/?session=trap",
      "http://agents.example/?session=trap",
      `https://agents.example/${file}`,
      "/orders/12",
    ),
  ).toEqual([false, false, true, true]);
  // All names of this machine count as the same host.
  expect(
    followed(
      "http://127.0.0.1:8080",
      "http://localhost:8080/#token=x",
      "http://127.1.2.3:8080/",
      "http://[::1]:8080/",
      "http://0x7f000001:8080/",
      "http://localhost:3000/",
    ),
  ).toEqual([false, false, false, false, true]);
});

test("W80 deceptive characters are made visible", () => {
  expect(visible("rm \u202egnp.exe\u200b\u001b[31m")).toBe("rm ⟨U+202E⟩gnp.exe⟨U+200B⟩⟨U+001B⟩[31m");
  expect(visible("héllo, 世界\n\tشكرا 👍🏽")).toBe("héllo, 世界\n\tشكرا 👍🏽");
});

test("a ratio gives the size of the first part, or a half if it is invalid", () => {
  expect(["1:2", "3:1", "0:5", "x", "1:0", ""].map(partOf)).toEqual([1 / 3, 0.75, 0.1, 0.5, 0.9, 0.5]);
});

test("integers with more digits than a float are sorted by all their digits", async () => {
  const rows = [
    "9007199254740993",
    "-9223372036854775808",
    "9007199254740992",
    "9223372036854775807",
    "9223372036854775806",
    "9,007,199,254,740,991",
  ].map((cell) => [cell]);
  const ascending = [
    "-9223372036854775808",
    "9,007,199,254,740,991",
    "9007199254740992",
    "9007199254740993",
    "9223372036854775806",
    "9223372036854775807",
  ];
  const inOrder = async (direction: "ascending" | "descending") =>
    [...(await sorted(rows, 0, direction, "en"))].map((at) => rows[at]?.[0]);
  expect(columnKind(rows, 0)).toBe("number");
  expect(await inOrder("ascending")).toEqual(ascending);
  expect(await inOrder("descending")).toEqual([...ascending].reverse());
});
