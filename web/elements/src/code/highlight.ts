/** Colours for code, as nodes and not as HTML. */

import type { Stretch } from "./grammars.js";

type Reader = (code: string, language: string) => Stretch[] | null;

let loaded: Reader | null = null;
let loading: Promise<void> | null = null;

/** Most characters of code that is coloured; longer code would block the page. */
const LONGEST = 60_000;

/** Names of languages that the grammars do not know; an empty value means no colours. */
const NAMES: { readonly [language: string]: string } = {
  "c++": "cpp",
  "c#": "csharp",
  "objective-c": "c",
  text: "",
  plaintext: "",
  plain: "",
  txt: "",
};

/** Load the grammars, once. It never rejects; after a failure code stays plain, and the next call tries again. */
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

/**
 * Resolve when the grammars are loaded and the caller may colour its code. Callers get turns for a few milliseconds per
 * frame, so that many pieces of code that arrive at once do not block the page.
 */
export function turnToColour(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (isServing) return;
    isServing = true;
    void loadGrammars().then(serve);
  });
}

/** Give turns to the waiting callers, for `SLICE_MS` per frame, until there are none. */
async function serve(): Promise<void> {
  while (waiting.length > 0) {
    const start = performance.now();
    while (waiting.length > 0 && performance.now() - start < SLICE_MS) {
      waiting.shift()?.();
      await Promise.resolve().then(() => undefined); // the caller colours its code now, in microtasks, so that its time is counted
      await new Promise<void>((resolve) => queueMicrotask(resolve));
    }
    await new Promise((resolve) => setTimeout(resolve, 16));
  }
  isServing = false;
}

/** Return whether code may get colours when the grammars are loaded. */
export function wantsColours(code: string, language: string): boolean {
  return language !== "" && NAMES[language.toLowerCase()] !== "" && code.length <= LONGEST;
}

/** Return code as pieces of one kind; one plain piece if the grammars are not loaded or do not know the language. */
export function read(code: string, language: string): readonly Stretch[] {
  const name = language.toLowerCase();
  const known = Object.hasOwn(NAMES, name) ? (NAMES[name] as string) : name;
  const found = loaded !== null && wantsColours(code, language) ? loaded(code, known) : null;
  return found ?? [{ text: code, kind: "" }];
}

/** Return whether the grammars are loaded. */
export function hasGrammars(): boolean {
  return loaded !== null;
}

/** Return pieces by line, without the line breaks. */
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

/** Return a piece as a node. */
export function stretchNode({ text, kind }: Stretch): Node {
  if (kind === "") return document.createTextNode(text);
  const span = document.createElement("span");
  span.className = `arp-k-${kind}`;
  span.textContent = text;
  return span;
}
