/** A chat in a document, before a server that the test plays. */

import { vi } from "vitest";
import { FakeSocket } from "../../../core/tests/fakes.js";
import { ArpChat } from "../../src/chat/chat.js";

export const soon = () => new Promise((resolve) => setTimeout(resolve, 5));

/** Makes a chat that is connected. */
export async function entered(): Promise<ArpChat> {
  vi.stubGlobal("WebSocket", FakeSocket);
  vi.stubGlobal("fetch", async () => new Response("[]"));
  const chat = new ArpChat();
  chat.storage = null;
  chat.url = "http://agent.example/";
  document.body.append(chat);
  await chat.updateComplete;
  FakeSocket.last.welcome();
  return chat;
}

/** Takes a chat out, and all that was in for a server. */
export async function left(chat: ArpChat): Promise<void> {
  chat.remove();
  await soon();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  FakeSocket.reset();
}

/** Sends messages to a chat, which are drawn when it returns but for prose that rests. */
export async function report(chat: ArpChat, ...messages: object[]): Promise<void> {
  FakeSocket.last.notify(...messages);
  chat.activeClient?.store.flush();
  await chat.updateComplete;
  await soon();
}
