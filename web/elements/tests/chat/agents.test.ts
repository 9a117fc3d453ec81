/** The agents of an app, and the agent of a chat. */

import type { ArpClient, Status } from "@agent-rendering/core";
import { render } from "lit";
import { beforeEach, expect, test, vi } from "vitest";
import { createContext } from "../../src/base/context.js";
import { Agents } from "../../src/chat/agents.js";

const SALES = { name: "sales", title: "Sales" };
const SUPPORT = { name: "support", title: "Support" };

let agents: Agents;
let choose: ReturnType<typeof vi.fn<(name: string) => void>>;
/** Titles of the agents that were reported, in order. */
let introduced: (string | null)[];

/** Return a client with the parts that `Agents` uses. */
function clientOf(status: object, listed: object[] = []): ArpClient {
  const whole = { phase: "online", workflow: undefined, capabilities: null, ...status } as Status;
  return {
    store: { status: { get: () => whole } },
    sessions: { workflows: async () => listed },
  } as unknown as ArpClient;
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

beforeEach(() => {
  const host = document.createElement("div");
  choose = vi.fn();
  introduced = [];
  host.addEventListener("arp-introduced", ({ detail }: CustomEventInit) =>
    introduced.push(detail.agent?.title ?? null),
  );
  agents = new Agents(Object.assign(host, { requestUpdate: () => undefined, choose }));
});

test("the agents of the hello are listed, a new chat has the first one, and another can be chosen", async () => {
  const client = clientOf({ capabilities: { title: "App", workflows: [SALES, SUPPORT] } });
  agents.update(client);
  await vi.waitFor(() => expect(agents.draw(createContext().t)).toBeDefined()); // the code of the choice is loaded
  agents.update(client);
  expect([introduced, agents.introduction.title]).toEqual([["Sales"], "Sales"]);
  const place = document.createElement("div");
  render(agents.draw(createContext().t), place);
  const [first, second] = place.querySelectorAll("input");
  expect([first?.checked, second?.checked]).toEqual([true, false]);
  second?.dispatchEvent(new Event("change"));
  expect(choose).toHaveBeenCalledWith("support");
});

test("agents that are not in the hello are requested, and a single agent is not offered as a choice", async () => {
  agents.update(clientOf({}, [{ name: "a", app_title: "App" }]));
  await settled();
  expect([introduced, agents.introduction, agents.draw(createContext().t)]).toEqual([
    ["a"],
    { name: "a", title: "a", description: "", suggestions: [] },
    undefined,
  ]);
});

test("the chosen agent is shown before its session has loaded; an unknown agent has the app's title", async () => {
  agents.chosen = "support";
  const capabilities = { title: "App", workflows: [SALES, SUPPORT] };
  agents.update(clientOf({ capabilities }));
  await settled();
  agents.chosen = "gone";
  agents.update(clientOf({ capabilities }));
  expect([introduced, agents.introduction.title]).toEqual([["Support", null], "App"]);
  agents.update(clientOf({ capabilities, workflow: "former" }));
  expect(introduced).toEqual(["Support", null, "former"]);
});

test("a list that arrives after a change of the client is dropped", async () => {
  agents.update(clientOf({}, [{ name: "late", app_title: "Late" }]));
  agents.clear();
  agents.update(clientOf({ capabilities: { workflows: [SALES] } }));
  await settled();
  expect(introduced).toEqual(["Sales"]);
});
