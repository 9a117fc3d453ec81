/** Colours for code, without HTML: lines of nodes. */

import type { Stretch } from "./grammars.js";

type Reader = (code: string, language: string) => Stretch[] | null;

let loaded: Reader | null = null;
let loading: Promise<void> | null = null;

/** Longer code stays plain: colouring it would hold the page up. */
const LONGEST = 60_000;

/** Names that grammars do not know themselves. */
const NAMES: { readonly [language: string]: string } = {
  "c++": "cpp",
  "c#": "csharp",
  "objective-c": "c",
  text: "",
  plaintext: "",
  plain: "",
  txt: "",
};

/** Loads the grammars once; it never fails, then code stays plain. */
export function loadGrammars(): Promise<void> {
  loading ??= import("./grammars.js").then(
    ({ stretches }) => void (loaded = stretches),
    () => void (loading = null),
  );
  return loading;
}

const waiting: (() => void)[] = [];
let isServing = false;
const SLICE_MS = 6;

/** Resolves when the grammars are there and it is one's turn: a few milliseconds of colouring a frame. */
export function turnToColour(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (isServing) return;
    isServing = true;
    void loadGrammars().then(serve);
  });
}

async function serve(): Promise<void> {
  while (waiting.length > 0) {
    const start = performance.now();
    while (waiting.length > 0 && performance.now() - start < SLICE_MS) {
      waiting.shift()?.();
      await Promise.resolve().then(() => undefined); // who was served colours now, in microtasks
      await new Promise<void>((resolve) => queueMicrotask(resolve));
    }
    await new Promise((resolve) => setTimeout(resolve, 16));
  }
  isServing = false;
}

/** Whether a code may get colours once the grammars are there. */
export function wantsColours(code: string, language: string): boolean {
  return language !== "" && NAMES[language.toLowerCase()] !== "" && code.length <= LONGEST;
}

/** A code as stretches, coloured if the grammars are there and know the language. */
export function read(code: string, language: string): readonly Stretch[] {
  const name = language.toLowerCase();
  const known = Object.hasOwn(NAMES, name) ? (NAMES[name] as string) : name;
  const found = loaded !== null && wantsColours(code, language) ? loaded(code, known) : null;
  return found ?? [{ text: code, kind: "" }];
}

/** Whether the grammars are loaded. */
export function hasGrammars(): boolean {
  return loaded !== null;
}

/** Stretches by line; the line's end is in none. */
export function linesOf(stretches: readonly Stretch[]): Stretch[][] {
  const lines: Stretch[][] = [[]];
  for (const { text, kind } of stretches) {
    text.split("\n").forEach((part, at) => {
      if (at > 0) lines.push([]);
      if (part !== "") (lines.at(-1) as Stretch[]).push({ text: part, kind });
    });
  }
  return lines;
}

/** One stretch as a node. */
export function stretchNode({ text, kind }: Stretch): Node {
  if (kind === "") return document.createTextNode(text);
  const span = document.createElement("span");
  span.className = `arp-k-${kind}`;
  span.textContent = text;
  return span;
}
