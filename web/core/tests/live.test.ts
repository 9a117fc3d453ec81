import { afterAll, beforeAll, expect, test } from "vitest";
import WebSocket from "ws";
import { ArpClient, type TurnState } from "../src/index.js";
import { ArpServer } from "./server.js";

let server: ArpServer;
beforeAll(async () => {
  server = await ArpServer.start("examples/echo/app.py");
}, 20_000);
afterAll(async () => server?.stop());

for (const transport of ["websocket", "sse"] as const) {
  test(`a text over ${transport} is answered`, async () => {
    const heard: string[] = [];
    const client = new ArpClient(
      { url: server.url, transport, WebSocket: WebSocket as never },
      { onDelta: (text) => heard.push(text) },
    );
    client.connect();
    const id = client.sendText("one two");
    const turn = client.store.turn((await client.acknowledged(id)) as string);
    const over = await new Promise<TurnState>((resolve) => {
      const look = () => {
        const state = turn.get();
        if (state?.final) resolve(state);
      };
      turn.subscribe(look);
      look();
    });
    client.disconnect();
    expect(over.output.map(({ props }) => props.content)).toEqual(["one two "]);
    expect(over.inputs.map(({ data }) => data)).toEqual([{ text: "one two" }]);
    expect(heard.join("")).toBe("one two ");
  });
}
