import { beforeEach, expect, test } from "vitest";
import { ArpClient, type TurnState, type Wire } from "../src/index.js";
import { TurnEvents } from "../src/timeline.js";
import { delta, FakeSocket, message } from "./fakes.js";

beforeEach(() => FakeSocket.reset());

/** Return a client with a session, and the list of its reported turns. */
async function observed(
  session: Partial<Wire.SessionReady> = {},
): Promise<[string[], FakeSocket, () => void, ArpClient]> {
  const client = new ArpClient({
    url: "http://agent.example",
    storage: null,
    WebSocket: FakeSocket as never,
    schedule: (flush) => flush(),
  });
  const reported: string[] = [];
  const stop = new TurnEvents(({ id, status }: TurnState) => reported.push(`${id} ${status}`)).observe(client);
  client.connect();
  await Promise.resolve();
  FakeSocket.last.welcome(session);
  return [reported, FakeSocket.last, stop, client];
}

const turn = (turn_id: string, status: string) => ({ ...message("turn", null, { status }), turn_id });
const ends = (turn_id: string) => ({ ...message("commit", null, { final: true }), turn_id });

test("a turn is reported when it begins, when it waits, and with its final commit when it ends", async () => {
  const [reported, socket, stop] = await observed();
  socket.notify(turn("t1", "queued"), turn("t1", "running"));
  socket.notify(turn("t1", "waiting"));
  socket.notify(turn("t1", "running"));
  socket.notify(turn("t1", "completed"));
  expect(reported).toEqual(["t1 queued", "t1 running", "t1 waiting", "t1 running"]);
  socket.notify(ends("t1"));
  expect(reported.splice(0)).toEqual(["t1 queued", "t1 running", "t1 waiting", "t1 running", "t1 completed"]);
  stop();
  socket.notify(turn("t2", "running"));
  expect(reported).toEqual([]);
});

test("streamed text is not an event, and no turn is checked for it", async () => {
  const [reported, socket, , client] = await observed();
  socket.notify(turn("t1", "running"));
  let looks = 0;
  const { turnIds } = client.store;
  const { get } = turnIds;
  turnIds.get = () => ((looks += 1), get());
  socket.notify(delta("a"), delta("b"));
  expect([reported, looks]).toEqual([["t1 running"], 0]);
  socket.notify(turn("t1", "failed"), ends("t1"));
  expect([reported, looks > 0]).toEqual([["t1 running", "t1 failed"], true]);
});

test("turns that have ended when a session is opened are not reported; a running or waiting one is", async () => {
  const [reported, socket] = await observed({ seq: 9, resume: "snapshot" });
  socket.notify(turn("t1", "completed"), ends("t1"), turn("t2", "waiting"), message("commit", 9));
  expect(reported).toEqual(["t2 waiting"]);
});

test("the end of a turn that was cut off while it waited is not reported when its question is closed", async () => {
  const [reported, socket] = await observed();
  socket.notify(turn("t1", "waiting"), ends("t1"));
  socket.notify(turn("t1", "completed"));
  expect(reported).toEqual(["t1 waiting"]);
});
