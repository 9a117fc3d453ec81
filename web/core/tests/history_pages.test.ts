/** W60: turns older than those of the connection are loaded page by page, in order, once. */

import type { ArpClient, HistoryMessage } from "../src/index.js";
import { expect, test } from "vitest";
import { HistoryPages, PAGE_TURNS, type HistoryGap } from "../src/history.js";

/** Return a turn in the form of the history: two messages. */
function pair(number: number): HistoryMessage[] {
  const turn_id = `t${number}`;
  return [
    { role: "user", content: `question ${number}`, turn_id },
    { role: "assistant", content: `answer ${number}`, turn_id, status: "completed" },
  ] as HistoryMessage[];
}

interface Asked {
  readonly before: string;
  readonly limit: number;
}

/** Return a client of a session with a number of turns; the connection has sent the newest 50. */
function session(turns: number) {
  const requested: Asked[] = [];
  let fault: Error | null = null;
  let held: Promise<void> = Promise.resolve();
  const client = {
    sessionId: "s",
    sessions: {
      history: async (_session: string, { before, limit }: Asked) => {
        requested.push({ before, limit });
        await held;
        if (fault !== null) throw fault;
        const end = Number(before.slice(1));
        return Array.from({ length: Math.min(limit, end) }, (_, at) => pair(end - Math.min(limit, end) + at)).flat();
      },
    },
  } as unknown as ArpClient;
  return {
    asked: requested,
    client,
    shown: Array.from(
      { length: Math.min(PAGE_TURNS, turns) },
      (_, at) => `t${turns - Math.min(PAGE_TURNS, turns) + at}`,
    ),
    refuse: (error: Error | null) => (fault = error),
    hold: () => {
      let go = () => {};
      held = new Promise((resolve) => (go = resolve));
      return go;
    },
  };
}

const top = (older: HistoryPages) => older.top as HistoryGap;

test("W60 pages are added before the loaded turns until there are no more", async () => {
  const { client, shown, asked: requested } = session(120);
  const older = new HistoryPages(() => undefined);
  older.check(shown, {});
  expect(top(older).wanted).toBe(true);
  await top(older).load(client);
  expect([top(older).turns.length, top(older).turns[0]?.id, top(older).turns.at(-1)?.id, top(older).wanted]).toEqual([
    50,
    "t20",
    "t69",
    true,
  ]);
  await top(older).load(client);
  expect([top(older).turns.length, top(older).turns[0]?.id, top(older).turns.at(-1)?.id, top(older).wanted]).toEqual([
    70,
    "t0",
    "t69",
    false,
  ]);
  await top(older).load(client);
  expect(requested).toEqual([
    { before: "t70", limit: 50 },
    { before: "t20", limit: 50 },
  ]);
});

test("W60 a turn of the history has its input and its answer", async () => {
  const { client, shown } = session(60);
  const older = new HistoryPages(() => undefined);
  older.check(shown, {});
  await top(older).load(client);
  const turn = top(older).turns[3];
  expect([turn?.id, turn?.status, turn?.final]).toEqual(["t3", "completed", true]);
  expect(turn?.inputs.map(({ data }) => data.text)).toEqual(["question 3"]);
  expect(turn?.output.map(({ props }) => props.content)).toEqual(["answer 3"]);
});

test("W60 a session with few turns has no older ones", async () => {
  const { client, shown, asked: requested } = session(49);
  const older = new HistoryPages(() => undefined);
  older.check(shown, {});
  expect(top(older).wanted).toBe(false);
  await top(older).load(client);
  expect(requested).toEqual([]);
});

test("W60 if the server sends the number of older turns, no more are offered than exist", async () => {
  const { shown, asked: requested } = session(53);
  const older = new HistoryPages(() => undefined);
  older.check(shown, { older: 0 }); // no turn is left out, although some are queued
  expect(top(older).wanted).toBe(false);
  older.check(shown.slice(1), { older: 100 });
  expect(top(older).wanted).toBe(true);
  older.check([], { older: 100 });
  expect(older.top).toBeNull(); // another chat without turns yet
  const full = session(100);
  older.check(full.shown, { older: 50 });
  await top(older).load(full.client);
  expect([top(older).turns.length, top(older).wanted, requested.length]).toEqual([50, false, 0]);
});

test("W60 turns of a gap are loaded page by page, before the turn that follows the gap", async () => {
  const { client, asked: requested } = session(500);
  const older = new HistoryPages(() => undefined);
  const gaps = { t200: 70, t300: 2 };
  older.check(["t9", "t200", "t201", "t300"], { older: 9, gaps });
  const [large, small] = [older.before("t200"), older.before("t300")] as HistoryGap[];
  expect([older.before("t9"), older.before("t201"), large?.wanted]).toEqual([undefined, undefined, true]);
  await large?.load(client);
  expect([large?.turns.length, large?.turns[0]?.id, large?.turns.at(-1)?.id, large?.wanted]).toEqual([
    50,
    "t150",
    "t199",
    true,
  ]);
  older.check(["t9", "t200", "t201", "t300", "t301"], { older: 9, gaps }); // one more turn on the same screen
  expect(older.before("t200")).toBe(large);
  await older.all(client);
  expect([large?.turns.length, large?.wanted, small?.turns.length, small?.wanted, top(older).turns.length]).toEqual([
    70,
    false,
    2,
    false,
    9,
  ]);
  expect(requested.map(({ limit }) => limit)).toEqual([50, 9, 20, 2]); // never turns that are already shown
  const shown = older.among(["t9", "t200", "t201", "t300"], (id) => ({ id })).map(({ id }) => Number(id.slice(1)));
  expect(shown).toEqual([
    ...Array(10).keys(),
    ...Array.from({ length: 70 }, (_, at) => 130 + at),
    200,
    201,
    298,
    299,
    300,
  ]);
  older.check(["t9", "t200", "t201", "t300"], { older: 9, gaps: { t200: 70 } }); // from another snapshot
  expect([older.before("t200")?.turns, older.before("t300")]).toEqual([[], undefined]);
});

test("W60 a server that sends more turns than announced is not asked again", async () => {
  const { client, shown } = session(120);
  const older = new HistoryPages(() => undefined);
  older.check(shown, { older: 3 });
  const history = client.sessions.history.bind(client.sessions);
  client.sessions.history = async (id, wanted) => history(id, { ...wanted, limit: 9 });
  await top(older).load(client);
  expect([top(older).turns.length, top(older).wanted]).toEqual([9, false]);
});

test("W60 a page is not requested again while it is loading", async () => {
  const { client, shown, asked: requested, hold } = session(120);
  const changes: boolean[] = [];
  const older = new HistoryPages(() => changes.push(top(older).loading));
  older.check(shown, {});
  const go = hold();
  const [one, other] = [top(older).load(client), top(older).load(client)];
  expect(top(older).loading).toBe(true);
  go();
  await Promise.all([one, other]);
  expect([requested.length, top(older).turns.length, changes]).toEqual([1, 50, [true, false]]);
});

test("W59 a page that arrives when another session is shown is ignored", async () => {
  const { client, shown, hold } = session(120);
  const older = new HistoryPages(() => undefined);
  older.check(shown, {});
  const go = hold();
  const loading = top(older).load(client);
  older.check(["x0", "x1"], {});
  go();
  await loading;
  expect([top(older).turns, top(older).wanted]).toEqual([[], false]);
});

test("W60 a failed request can be repeated", async () => {
  const { client, shown, refuse } = session(120);
  const older = new HistoryPages(() => undefined);
  older.check(shown, {});
  refuse(new Error("away"));
  await top(older).load(client);
  expect([top(older).turns.length, top(older).loading, top(older).wanted]).toEqual([0, false, true]);
  refuse(null);
  await top(older).load(client);
  expect(top(older).turns.length).toBe(50);
});

test("W60 W74 all turns can be loaded, for printing and export", async () => {
  const { client, shown, asked: requested } = session(500);
  const older = new HistoryPages(() => undefined);
  older.check(shown, {});
  await older.all(client);
  expect([top(older).turns.length, new Set(top(older).turns.map(({ id }) => id)).size, top(older).wanted]).toEqual([
    450,
    450,
    false,
  ]);
  expect(requested.length).toBe(3);
});

test("W60 loading all turns ends when the server does not answer", async () => {
  const { client, shown, refuse, asked: requested } = session(500);
  refuse(new Error("away"));
  const older = new HistoryPages(() => undefined);
  older.check(shown, {});
  await older.all(client);
  expect([top(older).turns.length, requested.length]).toEqual([0, 1]);
});
