import { defineComponent, type Component } from "vue";

/** Return a component with this setup, which returns the render function; for tests without a document. */
export function component(setup: () => () => unknown): Component {
  return defineComponent({ setup: setup as never });
}
