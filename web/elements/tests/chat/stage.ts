/** A chat in a document, connected to a fake server. */

import { vi } from "vitest";
import { FakeSocket } from "../../../core/tests/fakes.js";
import { ArpChat } from "../../src/chat/chat.js";

export const soon = () => new Promise((resolve) => setTimeout(resolve, 5));

/** Create a chat and connect it. */
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

/** Remove a chat and the fake server. */
export async function left(chat: ArpChat): Promise<void> {
  chat.remove();
  await soon();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  FakeSocket.reset();
}

/** Send messages to a chat, and wait until they are drawn. Prose that pauses between two slices may not be complete. */
export async function report(chat: ArpChat, ...messages: object[]): Promise<void> {
  FakeSocket.last.notify(...messages);
  chat.activeClient?.store.flush();
  await chat.updateComplete;
  await soon();
}
