/** Vue in a document, for tests. */

import { createApp, createSSRApp, defineComponent, nextTick, type App, type Component } from "vue";
import { afterEach } from "vitest";
import { FakeSocket } from "../../core/tests/fakes.js";

const apps: App[] = [];

export interface Mounted {
  readonly node: HTMLElement;
  unmount(): void;
}

/** Mount in a new node of the document, over `markup` from a server if it is given. */
export async function mount(root: Component, markup?: string): Promise<Mounted> {
  const node = document.createElement("div");
  if (markup !== undefined) node.innerHTML = markup;
  document.body.append(node);
  const app = markup === undefined ? createApp(root) : createSSRApp(root);
  apps.push(app);
  app.mount(node);
  await drawn();
  return { node, unmount: () => app.unmount() };
}

/** Return a component with this setup; it returns the render function. */
export function component(setup: () => () => unknown): Component {
  return defineComponent({ setup: setup as never });
}

/** Wait until Vue, the elements, and the components in their places are drawn. */
export async function drawn(): Promise<void> {
  for (let turn = 0; turn < 8; turn += 1) await nextTick();
}

export async function report(...messages: object[]): Promise<void> {
  FakeSocket.last.notify(...messages);
  await drawn();
}

export async function welcome(session: object = {}): Promise<void> {
  FakeSocket.last.welcome(session);
  await drawn();
}

/** Options of every client in a test: sockets of the test, and no waiting for frames. */
export const WORLD = {
  url: "http://agent.example",
  storage: null,
  WebSocket: FakeSocket as never,
  schedule: (flush: () => void) => flush(),
};

afterEach(() => {
  for (const app of apps.splice(0)) app.unmount();
  document.body.replaceChildren();
  FakeSocket.reset();
});
