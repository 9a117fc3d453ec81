/** W33: a new version of a turn, and the running turn. */

import type { ArpClient, TurnState } from "@agent-rendering/core";
import { expect, test } from "vitest";
import { turnActions } from "../../src/chat/message/turn_actions.js";

const TURN = { id: "t1", final: true } as TurnState;

/** Return a client with turns in these states. `end` ends the running turn. */
function playing(states: { [id: string]: TurnState["status"] }) {
  const received: string[] = [];
  const listeners = new Set<() => void>();
  let activeTurn = Object.keys(states).find((id) => states[id] === "running") ?? null;
  const client = {
    sessionId: "s",
    store: {
      status: {
        get: () => ({ activeTurn }),
        subscribe: (listener: () => void) => {
          listeners.add(listener);
          return () => void listeners.delete(listener);
        },
      },
      turnIds: { get: () => Object.keys(states) },
      turn: (id: string) => ({ get: () => ({ id, status: states[id] }) }),
    },
    stop: (id: string) => received.push(`stop ${id}`),
    edit: (id: string, text: string) => received.push(`edit ${id} ${text}`),
    regenerate: (id: string) => received.push(`regenerate ${id}`),
    acknowledged: async () => null,
  };
  return {
    told: received,
    client,
    actions: turnActions(client as unknown as ArpClient, () => undefined),
    hear: () => [...listeners].forEach((listener) => listener()),
    end: () => (activeTurn = null),
    listeners,
  };
}

test("W33 the running turn is stopped, and the edit is sent once when it has ended", () => {
  const { actions, told: received, hear: receive, end, listeners } = playing({ t1: "completed", t2: "running" });
  actions.edit?.(TURN, "other words");
  receive();
  expect(received).toEqual(["stop t2"]);
  end();
  receive();
  receive();
  expect([received, listeners.size]).toEqual([["stop t2", "edit t1 other words"], 0]);
});

test("W33 of two requests while the turn stops, only the last is sent", () => {
  const { actions, told: received, hear: receive, end } = playing({ t1: "completed", t2: "running" });
  actions.regenerate?.(TURN);
  actions.edit?.(TURN, "rather this");
  end();
  receive();
  expect(received).toEqual(["stop t2", "stop t2", "edit t1 rather this"]);
});

test("W33 if no turn runs, the request is sent at once", () => {
  const { actions, told: received } = playing({ t1: "completed" });
  actions.regenerate?.(TURN);
  expect(received).toEqual(["regenerate t1"]);
});

test("W33 if a turn is queued, nothing is stopped and the server refuses the request", () => {
  const { actions, told: received } = playing({ t1: "completed", t2: "running", t3: "queued" });
  actions.regenerate?.(TURN);
  expect(received).toEqual(["regenerate t1"]);
});

test("W24 a queued turn can be edited while another turn runs", () => {
  const { actions, told: received } = playing({ t1: "running", t2: "queued" });
  actions.edit?.({ id: "t2", final: false } as TurnState, "later");
  expect(received).toEqual(["edit t2 later"]);
});

test("W59 a request for one chat is not sent after a change to another chat", () => {
  const {
    actions,
    client,
    told: received,
    hear: receive,
    end,
    listeners,
  } = playing({ t1: "completed", t2: "running" });
  actions.regenerate?.(TURN);
  client.sessionId = "another";
  end();
  receive();
  expect([received, listeners.size]).toEqual([["stop t2"], 0]);
});
