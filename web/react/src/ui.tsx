/** Each built-in component as a React component (`@agent-rendering/react/ui`). */

import { VERSIONS, type CoreProps, type JsonObject } from "@agent-rendering/core";
import { useId, useMemo, type ComponentType, type ReactElement } from "react";
import { BUILT_IN } from "./drawing.js";
import { ArpRenderer } from "./renderer.js";
import type { ArpComponents } from "./context.js";

/** The agent's props, whether it can no longer be answered, and where answers go. */
export type BuiltInProps<Type extends keyof CoreProps> = CoreProps[Type] & {
  _restored?: boolean | undefined;
  /** Takes answers as texts; else they go to the nearest provider's client. */
  onInput?: ((text: string) => void) | undefined;
};

/** What a component gets besides the agent's props. */
const NOT_THE_AGENTS = new Set(["component", "context", "answer", "action"]);

function builtIn<Type extends keyof CoreProps>(type: Type, name: string): ComponentType<BuiltInProps<Type>> {
  function BuiltIn({ _restored, onInput, ...given }: BuiltInProps<Type>): ReactElement {
    const id = useId();
    const props = Object.fromEntries(Object.entries(given).filter(([key]) => !NOT_THE_AGENTS.has(key)));
    const values = Object.values(props);
    // The same object until one of the props is another one.
    const component = useMemo(() => ({ id, type, props: props as JsonObject }), [id, values.length, ...values]);
    return <ArpRenderer component={component} restored={_restored} onInput={onInput} />;
  }
  return Object.assign(BuiltIn as ComponentType<BuiltInProps<Type>>, { [BUILT_IN]: type, displayName: `Arp${name}` });
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
