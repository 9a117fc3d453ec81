import { defineComponent, type Component } from "vue";

/** A component that is its setup and a template function; for tests without a document. */
export function component(setup: () => () => unknown): Component {
  return defineComponent({ setup: setup as never });
}
