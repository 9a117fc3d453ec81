/** The layout of a turn: inputs, and answers made of prose, components, activity and errors. */

import type { Component, ErrorPayload, InputEcho } from "../protocol/generated/wire.js";
import { isTextPart, type ToolRun, type TurnState } from "../protocol/screen.js";
import { storyOf } from "../protocol/story.js";
import { childrenOf } from "./children.js";
import { AUTHOR } from "./drawn.js";

/** A tool call, or the thinking of a turn. */
export type Step =
  | { readonly kind: "tool"; readonly key: string; readonly run: ToolRun; readonly number: number }
  | { readonly kind: "thinking"; readonly key: string; readonly text: string };

export type Block =
  | { readonly kind: "prose"; readonly key: string; readonly text: string }
  | { readonly kind: "component"; readonly key: string; readonly component: Component }
  | { readonly kind: "activity"; readonly key: string; readonly steps: readonly Step[] }
  | { readonly kind: "error"; readonly key: string; readonly error: ErrorPayload; readonly details: string | null };

export type Section =
  | { readonly kind: "said"; readonly key: string; readonly input: InputEcho; readonly first: boolean }
  /** Output of one author; `author` is the name that the agent has set, or `null` for the agent itself. */
  | {
      readonly kind: "answer";
      readonly key: string;
      readonly blocks: readonly Block[];
      readonly author: string | null;
    };

/**
 * Return the content of a turn in order; keys stay the same while the turn grows.
 *
 * @param withActivity Whether tools and thinking are included.
 * @param byAuthor Whether the name of another author begins a new section; otherwise it is a component like any other.
 */
export function sectionsOf(turn: TurnState, withActivity = true, byAuthor = true): Section[] {
  const sections: Section[] = [];
  const slices = new Map<number, number>();
  let author: string | null = null;
  let blocks: Block[] | null = null;
  const open = () => {
    blocks = [];
    sections.push({ kind: "answer", key: `answer:${sections.length}`, blocks, author });
    return blocks;
  };
  const add = (block: Block) => (blocks ?? open()).push(block);
  const addStep = (step: Step) => {
    if (!withActivity) return;
    const last = blocks?.at(-1);
    if (last?.kind === "activity") (last.steps as Step[]).push(step);
    else add({ kind: "activity", key: `activity:${step.key}`, steps: [step] });
  };
  for (const { kind, number, text } of storyOf(turn)) {
    switch (kind) {
      case "input": {
        const input = turn.inputs[number];
        if (input === undefined || input.input_type === "event" || isShownElsewhere(input, turn)) break;
        blocks = null;
        sections.push({ kind: "said", key: `said:${number}`, input, first: number === 0 });
        break;
      }
      case "text": {
        const slice = slices.get(number) ?? 0;
        slices.set(number, slice + 1);
        add({ kind: "prose", key: `${turn.output[number]?.id ?? number}#${slice}`, text });
        break;
      }
      case "component": {
        const component = turn.output[number];
        const name = component?.type === AUTHOR && byAuthor ? component.props.name : null;
        if (typeof name === "string" && name.trim() !== "") {
          if (name === author) break;
          author = name;
          open();
        } else if (component) add({ kind: "component", key: `component:${component.id}`, component });
        break;
      }
      case "thinking":
        addStep({ kind, key: "thinking", text: turn.thinking });
        break;
      case "tool": {
        const run = turn.tools[number];
        if (run) addStep({ kind, key: `tool:${number}`, run, number });
        break;
      }
      case "error": {
        const error = turn.errors[number];
        if (error === undefined) break;
        const twin = turn.errors.find(
          (other) =>
            (other.debug == null) !== (error.debug == null) && other.code === error.code && other.error === error.error,
        );
        // The agent side sends the details for developers as a second error. Both are shown as one.
        if (twin === undefined || error.debug == null)
          add({ kind: "error", key: `error:${number}`, error, details: error.debug ?? twin?.debug ?? null });
        break;
      }
    }
  }
  // A section without output is left out, except the last one of a turn that still runs: its author is about to write.
  return sections.filter(
    (section, at) =>
      section.kind === "said" || section.blocks.length > 0 || (at === sections.length - 1 && !turn.final),
  );
}

/** Return whether a turn differs from its old state only in its last text part, with no mark in or after that part. */
export function isGrown(old: TurnState | undefined, turn: TurnState): boolean {
  if (old === undefined) return false;
  const { id, output, marks } = turn;
  const at = output.length - 1;
  const last = output[at];
  return (
    last !== undefined &&
    old.output[at]?.id === last.id &&
    old.output.length === output.length &&
    isTextPart(last, id) &&
    !marks.some(({ component }) => component === last.id) &&
    (Object.keys(turn) as (keyof TurnState)[]).every((name) => name === "output" || turn[name] === old[name]) &&
    output.every((component, place) => place === at || component === old.output[place])
  );
}

/** Return whether an input is an answer that a question of the same turn already shows. */
function isShownElsewhere({ source_component: source }: InputEcho, { output }: TurnState): boolean {
  if (source == null) return false;
  const holds = (component: Component | undefined): boolean =>
    component !== undefined && (component.id === source || childrenOf(component).some(holds));
  return output.some(holds);
}

/** Return the text of a turn without its components, for screen readers and lists. */
export function plainTextOf({ id, output }: TurnState): string {
  return output
    .filter((component) => isTextPart(component, id))
    .map(({ props }) => String(props.content))
    .join("\n\n");
}
