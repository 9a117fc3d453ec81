/** With a real server: a scripted session over each transport, with lost connections, reloads and two clients. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { canonical } from "../src/canonical.js";
import { ArpClient, questionState, type ArpClientOptions, type TurnState } from "../src/index.js";
import { CuttingProxy, seeded } from "./cutting_proxy.js";
import { FakeStorage } from "./fakes.js";
import { ArpServer, hasPython } from "./server.js";

const WAIT_MS = 15_000;
const CUTS = 50;
const TRANSPORTS = ["websocket", "sse"] as const;

let server: ArpServer;

/** Return a client that reconnects immediately. */
function made(url: string, options: Partial<ArpClientOptions> = {}): ArpClient {
  const client = new ArpClient({
    url,
    WebSocket: WebSocket as never,
    random: () => 0,
    storage: null,
    ...options,
  });
  client.connect();
  return client;
}

/** Wait until a condition holds; check it after each change. */
async function until<T>(client: ArpClient, look: () => T | undefined | null | false): Promise<T> {
  return new Promise((resolve, reject) => {
    const fail = () => {
      const { status } = client.store;
      reject(new Error(`never: ${look}\n${JSON.stringify([status.get(), canonical(client.screen)])}`));
    };
    const timer = setTimeout(fail, WAIT_MS);
    const again = () => {
      const found = look();
      if (!found) return;
      clearTimeout(timer);
      stop();
      resolve(found);
    };
    const stop = client.store.subscribe(again);
    again();
  });
}

/** Return the open question of the newest turn. */
function question(client: ArpClient, type: string) {
  const id = client.store.turnIds.get().at(-1);
  const turn = id === undefined ? undefined : client.store.turn(id).get();
  return turn?.output.find((item) => item.type === type && questionState(item) === "open");
}

/** Do the actions of a user; `swap` may replace the client by another one. */
async function play(client: ArpClient, swap = (now: ArpClient) => now): Promise<ArpClient> {
  client.sendText("everything");
  client = swap(client);
  client.answer(await until(client, () => question(client, "confirm")), true);
  client = swap(client);
  const form = await until(client, () => question(client, "form"));
  client.answer(form, { name: "Ada", age: 36 });
  client = swap(client);
  await until(client, () => over(client));
  return client;
}

function over(client: ArpClient): TurnState | undefined {
  const id = client.store.turnIds.get().at(-1);
  const turn = id === undefined ? undefined : client.store.turn(id).get();
  return turn?.final && turn.status === "completed" ? turn : undefined;
}

describe.skipIf(!hasPython)("with a real server", () => {
  beforeAll(async () => {
    server = await ArpServer.start("tests/server/scripted.py");
  }, 20_000);
  afterAll(async () => server?.stop());

  for (const transport of TRANSPORTS) {
    test(`the scripted session over ${transport}`, { timeout: 20_000 }, async () => {
      const client = await play(made(server.url, { transport }));
      const turn = over(client) as TurnState;
      client.disconnect();
      const types = turn.output.map(({ type }) => type);
      expect(types).toEqual("text chart table text group text text confirm form text".split(" "));
      expect(turn.output.at(-1)?.props.content).toBe("True Ada 36");
      expect(turn.tools).toMatchObject([{ tool: "query", args: '{"sql":"select 1"}', ok: true }]);
      expect(turn.inputs.map(({ input_type }) => input_type)).toEqual(["text", "action", "form_submit"]);
      expect(client.store.outgoing.get()).toEqual([]);
    });

    test(`${CUTS} cuts over ${transport}, reloads included, end as if never left`, { timeout: 120_000 }, async () => {
      const draw = seeded(7);
      const proxy = new CuttingProxy(server.url, () => ({ bytes: 300 + draw() * 6000 }));
      await proxy.start();
      try {
        for (let round = 0; proxy.cuts < CUTS; round += 1) {
          expect(round, "rounds").toBeLessThan(CUTS);
          const session = { sessionId: `cut-${transport}-${round}`, transport };
          const never = made(server.url, { ...session });
          const storage = new FakeStorage();
          const reload = (old: ArpClient) => {
            if (draw() < 0.5) return old;
            old.disconnect();
            return made(proxy.url, { ...session, storage });
          };
          const client = await play(made(proxy.url, { ...session, storage }), reload);
          await until(never, () => over(never));
          expect(canonical(client.screen)).toEqual(canonical(never.screen));
          expect(over(client)?.inputs).toHaveLength(3);
          client.disconnect();
          never.disconnect();
        }
      } finally {
        await proxy.stop();
      }
    });
  }

  test("if WebSockets are blocked, server-sent events carry the session", { timeout: 20_000 }, async () => {
    class Blocked extends WebSocket {
      constructor(url: string) {
        super(url.replace("/_arp/v1", "/nowhere"));
      }
    }
    const client = await play(made(server.url, { WebSocket: Blocked as never }));
    expect(client.store.status.get().transport).toBe("sse");
    client.disconnect();
  });

  test("two clients of one session, of both kinds, show the same", { timeout: 20_000 }, async () => {
    const both = TRANSPORTS.map((transport) => made(server.url, { sessionId: "shared", transport }));
    const [one, other] = both as [ArpClient, ArpClient];
    await until(other, () => other.connected);
    await play(one);
    await until(other, () => over(other));
    expect(canonical(other.screen)).toEqual(canonical(one.screen));
    for (const client of both) client.disconnect();
  });

  test("a waiting turn can be stopped", { timeout: 20_000 }, async () => {
    const client = made(server.url);
    client.sendText("wait");
    await until(client, () => question(client, "confirm"));
    expect(client.store.status.get().activeTurn).toBe(client.store.turnIds.get()[0]);
    client.stop();
    const id = client.store.turnIds.get()[0] as string;
    await until(client, () => client.store.turn(id).get()?.status === "cancelled");
    expect(client.store.status.get().activeTurn).toBeNull();
    client.disconnect();
  });

  test("a file is uploaded, and the session names it", { timeout: 20_000 }, async () => {
    const client = made(server.url);
    const file = new File(["a,b\n1,2\n"], "data.csv", { type: "text/csv" });
    const turnId = await client.acknowledged(client.sendText("everything", { files: [file] }));
    const turn = () => client.store.turn(turnId as string).get();
    await until(client, () => turn()?.inputs.length);
    expect(turn()?.inputs[0]).toMatchObject({
      input_type: "file",
      data: { text: "everything", files: [{ name: "data.csv", size: 8, mime: "text/csv" }] },
    });
    client.disconnect();
  });

  test("sessions are listed, read and removed", { timeout: 20_000 }, async () => {
    const client = await play(made(server.url, { sessionId: "listed" }));
    const { sessions } = client;
    const { sessions: rows, next } = await sessions.page({ limit: 200 });
    expect(rows.find(({ id }) => id === "listed")).toMatchObject({ title: "everything", message_count: 1 });
    expect(next).toBeNull();
    const history = await sessions.history("listed");
    expect(history.map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect((await sessions.workflows())[0]).toMatchObject({ name: "scripted", title: "Scripted" });
    await sessions.remove("listed");
    await expect(sessions.history("listed")).rejects.toMatchObject({ status: 404, payload: { code: 8 } });
    expect(await sessions.getSession("listed")).toBeNull();
    client.disconnect();
  });
});
