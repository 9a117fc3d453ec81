// A server of the v0.1 draft, written from the draft alone: it selects no subprotocol, knows only `input`, and its
// messages have neither `turn_id` nor `seq`. Arguments: the folder of a page to serve, and `no-hello`.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { accepted } from "./websocket.mjs";

const [folder, mode] = process.argv.slice(2);
const KINDS = { css: "text/css", html: "text/html", js: "text/javascript", svg: "image/svg+xml" };
const CONFIRM = { id: "sure", type: "confirm", props: { title: "Delete the offers?" } };
const TABLE = { id: "t1", type: "table", props: { title: "Offers", headers: ["Item", "Cost"], rows: [["Lamp", "12"]] } };

function onInput({ input_type: kind, data }, say) {
  const delta = (text) => say("delta", { payload: { delta: text } });
  if (kind === "action") delta(data.action === "confirm" ? "Deleted." : "Kept.");
  else if (data.text === "offers") {
    say("tool_start", { payload: { tool: "query", args: "{}" } });
    say("tool_end", { payload: { tool: "query", ok: true } });
    delta("Here they are.");
    say("render", { tool_name: "query", components: [TABLE] });
  } else if (data.text === "delete") say("render", { components: [CONFIRM] });
  else if (data.text === "fail") say("error", { payload: { message: "the model is away" } });
  else delta(`You said: ${data.text}`);
  say("commit", { final: true });
}

const server = createServer(({ url }, response) => {
  try {
    const path = url.startsWith("/_static/") ? url.replace("/_static", "") : "/index.html";
    const body = readFileSync(folder + path);
    if (url.startsWith("/_api/")) throw new Error("the draft server has no such route");
    response.writeHead(200, { "content-type": KINDS[path.split(".").at(-1)] ?? "text/plain" }).end(body);
  } catch {
    response.writeHead(404).end("nothing here");
  }
});
server.on("upgrade", (request, socket) => {
  const connection = accepted(socket, request, (text) => {
    const message = JSON.parse(text);
    if (message.data?.text === "cut") connection.close();
    else if (message.type === "input") onInput(message, say);
    else say("error", { payload: { message: `unknown message type: ${message.type}` } });
  });
  const say = (type, fields) => connection.send({ v: 1, type, ...fields });
  if (mode !== "no-hello") say("hello", { capabilities: { components: ["text", "table", "confirm"], features: ["streaming"] } });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
