/** Rows of a long table that is scrolled: which rows are drawn, and with which nodes. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createContext } from "../src/base/context.js";
import type { ArpTable } from "../src/components/table/table.js";
import "../src/components/table/table.js";
import { TableRows, type RowLook } from "../src/components/table/rows.js";

const ROWS = Array.from({ length: 1_000 }, (_, at) => [`name ${at}`, at]);
const ORDER = ROWS.map((_, at) => at);
const ROW_PX = 37;

const look = (...marked: number[]): RowLook => ({
  classes: ["", "arp-number"],
  text: (cell) => String(cell),
  isMarked: (at) => marked.includes(at),
});

let body: HTMLTableSectionElement;
let box: HTMLElement;

beforeEach(() => {
  vi.useFakeTimers();
  box = document.createElement("div");
  body = document.createElement("tbody");
  box.appendChild(document.createElement("table")).append(body);
  document.body.replaceChildren(box);
});
afterEach(() => void vi.useRealTimers());

const drawn = () => [...body.querySelectorAll<HTMLTableRowElement>("tr:not(.arp-spacer)")];
const names = () => drawn().map((row) => row.cells[0]?.textContent);

/** Return the names of `count` rows. */
const from = (first: number, count: number) => Array.from({ length: count }, (_, at) => `name ${first + at}`);

function scroll(row: number): void {
  box.scrollTop = row * ROW_PX;
  box.dispatchEvent(new Event("scroll"));
}

describe("rows of a long table", () => {
  test("rows in view are drawn first, and rows around them when scrolling pauses", () => {
    new TableRows(body, box).show(ROWS, ORDER, look());
    const first = drawn().length;
    expect(names()).toEqual(from(0, first));
    vi.runAllTimers();
    expect(drawn().length).toBeGreaterThan(first);
    expect(names()).toEqual(from(0, drawn().length));
  });

  test("after a long scroll the same nodes show other rows, with their numbers", () => {
    new TableRows(body, box).show(ROWS, ORDER, look());
    const before = drawn();
    scroll(500);
    expect(drawn().filter((row) => before.includes(row)).length).toBe(drawn().length);
    expect(names()).toEqual(from(500, drawn().length));
    expect(drawn().map((row) => row.getAttribute("aria-rowindex"))).toEqual(drawn().map((_, at) => String(502 + at)));
    expect(drawn().map((row) => row.cells[1]?.className)).toEqual(drawn().map(() => "arp-number"));
    vi.runAllTimers();
    expect(names()).toEqual(from(492, drawn().length));
  });

  test("elements that a translator put around the text of a cell are removed with the text", () => {
    new TableRows(body, box).show(ROWS, ORDER, look());
    for (const row of drawn())
      row.cells[0]?.replaceChildren(Object.assign(document.createElement("font"), { textContent: "Name" }));
    scroll(500);
    expect(names()).toEqual(from(500, drawn().length));
  });

  test("after a short scroll, a row that stays in view keeps its node", () => {
    new TableRows(body, box).show(ROWS, ORDER, look());
    vi.runAllTimers();
    const sixth = drawn()[6] as Element;
    scroll(4);
    expect(drawn()).toContain(sixth);
    expect(sixth.textContent).toBe("name 66");
  });

  test("a marked row is drawn as marked from any scroll position", () => {
    new TableRows(body, box).show(ROWS, ORDER, look(1, 501));
    scroll(500);
    expect(
      drawn()
        .filter((row) => row.className === "arp-marked")
        .map((row) => row.querySelector("strong")?.textContent),
    ).toEqual(["name 501"]);
    scroll(0);
    expect(
      drawn()
        .filter((row) => row.querySelector("strong"))
        .map((row) => row.cells[0]?.textContent),
    ).toEqual(["name 1"]);
    expect(names()).toEqual(from(0, drawn().length));
  });

  test("selected text is not replaced", () => {
    new TableRows(body, box).show(ROWS, ORDER, look());
    const cell = drawn()[3]?.cells[0] as HTMLElement;
    vi.spyOn(globalThis, "getSelection").mockReturnValue({
      isCollapsed: false,
      containsNode: (node: Node) => node.contains(cell),
    } as unknown as Selection);
    scroll(500);
    expect(cell.textContent).toBe("name 3");
    expect(names()).toEqual(from(500, drawn().length));
    vi.restoreAllMocks();
  });

  test("a short table that becomes long is drawn at the scroll position", () => {
    const rows = new TableRows(body, box);
    rows.show(ROWS.slice(0, 100), ORDER.slice(0, 100), look());
    box.scrollTop = 50 * ROW_PX;
    rows.show(ROWS, ORDER, look());
    expect(names()).toContain("name 50");
    expect(names()).not.toContain("name 0");
  });
});

test("a search uses the current text of the rows", async () => {
  vi.useRealTimers();
  const table = document.createElement("arp-table") as ArpTable;
  const given = (rows: (string | number)[][]) => ({
    id: "t",
    type: "table",
    props: { headers: ["a"], rows, searchable: true },
  });
  Object.assign(table, { context: createContext(), component: given([["Oslo"], ["Bergen"]]) });
  document.body.append(table);
  const found = async (words: string) => {
    table.wanted = words;
    await table.updateComplete;
    return [...table.querySelectorAll("tbody tr")].map((row) => row.textContent);
  };
  expect(await found("oslo")).toEqual(["Oslo"]);
  table.component = given([["Oslo"], ["Oslofjord"]]);
  expect(await found("oslo")).toEqual(["Oslo", "Oslofjord"]);
  expect(await found("bergen")).toEqual([]);
});
