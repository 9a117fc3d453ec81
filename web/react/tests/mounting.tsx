/** React in a document, for tests. */

import { act, type ReactNode } from "react";
import { createRoot, hydrateRoot, type Root } from "react-dom/client";
import { afterEach } from "vitest";
import { FakeSocket } from "../../core/tests/fakes.js";

(globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;

const roots: Root[] = [];

export interface Mounted {
  readonly node: HTMLElement;
  show(children: ReactNode): Promise<void>;
  unmount(): Promise<void>;
}

/** Render into a new node of the document. */
export async function mount(children: ReactNode, markup?: string): Promise<Mounted> {
  const node = document.createElement("div");
  if (markup !== undefined) node.innerHTML = markup;
  document.body.append(node);
  let root!: Root;
  await act(async () => {
    root = markup === undefined ? createRoot(node) : hydrateRoot(node, children);
    if (markup === undefined) root.render(children);
  });
  roots.push(root);
  return {
    node,
    show: (next) => act(async () => root.render(next)),
    unmount: () => act(async () => root.unmount()),
  };
}

/** Deliver messages from a socket, and wait until React has rendered. */
export async function report(...messages: object[]): Promise<void> {
  await act(async () => FakeSocket.last.notify(...messages));
}

/** Connect the newest socket. */
export async function welcome(session: object = {}): Promise<void> {
  await act(async () => FakeSocket.last.welcome(session));
}

/** Options of every client in a test: sockets of the test, and no waiting for frames. */
export const WORLD = {
  url: "http://agent.example",
  storage: null,
  WebSocket: FakeSocket as never,
  schedule: (flush: () => void) => flush(),
};

afterEach(async () => {
  await act(async () => roots.splice(0).forEach((root) => root.unmount()));
  document.body.replaceChildren();
  FakeSocket.reset();
});
