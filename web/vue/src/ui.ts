/** Each built-in component as a Vue component (`@agent-rendering/vue/ui`). */

import type { CoreProps, JsonObject, VERSIONS } from "@agent-rendering/core";
import { defineComponent, getCurrentInstance, h, useId, type DefineComponent } from "vue";
import { BUILT_IN } from "./drawing.js";
import type { ArpComponents } from "./provide.js";
import { ArpRenderer } from "./renderer.js";

/** The agent's props; `input` has answers as texts, else they go to the nearest provider's client. */
export type BuiltInProps<Type extends keyof CoreProps> = CoreProps[Type] & {
  _restored?: boolean | undefined;
  onInput?: ((text: string) => void) | undefined;
};

/** What a component gets besides the agent's props. */
const NOT_THE_AGENTS = new Set(["component", "context", "answer", "action", "onAnswer", "onAction"]);

/** Its props are what is given to it: any name that the catalog has, in either spelling. */
function builtIn<Type extends keyof CoreProps>(type: Type, name: string): DefineComponent<BuiltInProps<Type>> {
  const component = defineComponent({
    name: `Arp${name}`,
    inheritAttrs: false,
    setup(_, { attrs }) {
      const id = useId();
      const self = getCurrentInstance();
      return () => {
        const { _restored, onInput, ...given } = attrs as Record<string, unknown>;
        const named = Object.entries(given).map(([key, value]) => [key.replaceAll("-", "_"), value] as const);
        const props = Object.fromEntries(named.filter(([key]) => !NOT_THE_AGENTS.has(key)));
        const listener = onInput ?? self?.vnode.props?.onInput;
        return h(ArpRenderer, {
          component: { id, type, props: props as JsonObject },
          restored: _restored === true || _restored === "",
          ...(listener ? { onInput: listener as (text: string) => void } : {}),
        });
      };
    },
  });
  return Object.assign(component, { [BUILT_IN]: type }) as unknown as DefineComponent<BuiltInProps<Type>>;
}

export const Text = builtIn("text", "Text");
export const Markdown = builtIn("markdown", "Markdown");
export const StatusCard = builtIn("status-card", "StatusCard");
export const Table = builtIn("table", "Table");
export const CodeBlock = builtIn("code-block", "CodeBlock");
export const Diff = builtIn("diff", "Diff");
export const KeyValue = builtIn("key-value", "KeyValue");
export const Progress = builtIn("progress", "Progress");
export const Chart = builtIn("chart", "Chart");
export const Image = builtIn("image", "Image");
export const ProductCards = builtIn("product-cards", "ProductCards");
export const Form = builtIn("form", "Form");
export const Confirm = builtIn("confirm", "Confirm");
export const Choices = builtIn("choices", "Choices");
export const TextInput = builtIn("text-input", "TextInput");
export const Group = builtIn("group", "Group");
export const Tabs = builtIn("tabs", "Tabs");
export const Split = builtIn("split", "Split");

/** All of them by type. `<ArpChat>` draws these anyway; for registries of your own. */
export const DEFAULT_COMPONENTS: ArpComponents = {
  text: Text,
  markdown: Markdown,
  "status-card": StatusCard,
  table: Table,
  "code-block": CodeBlock,
  diff: Diff,
  "key-value": KeyValue,
  progress: Progress,
  chart: Chart,
  image: Image,
  "product-cards": ProductCards,
  form: Form,
  confirm: Confirm,
  choices: Choices,
  "text-input": TextInput,
  group: Group,
  tabs: Tabs,
  split: Split,
} satisfies { [Type in keyof typeof VERSIONS]: unknown };
