/** The grammars. They are a bundle of their own, which is loaded with the first code to be coloured. */

import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import makefile from "highlight.js/lib/languages/makefile";
import markdown from "highlight.js/lib/languages/markdown";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import r from "highlight.js/lib/languages/r";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import shell from "highlight.js/lib/languages/shell";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";

const lowlight = createLowlight({
  bash,
  c,
  cpp,
  csharp,
  css,
  diff,
  dockerfile,
  go,
  ini,
  java,
  javascript,
  json,
  kotlin,
  makefile,
  markdown,
  php,
  python,
  r,
  ruby,
  rust,
  shell,
  sql,
  swift,
  typescript,
  xml,
  yaml,
});
lowlight.registerAlias({
  bash: ["zsh", "console"],
  ini: ["env"],
  json: ["jsonc", "json5"],
  typescript: ["tsx"],
  xml: ["vue", "svelte"],
});

/** A piece of code of one kind: the first class that highlight.js gives it, without `hljs-`; empty for none. */
export interface Stretch {
  readonly text: string;
  readonly kind: string;
}

/** A node of the tree that lowlight returns. */
interface Branch {
  readonly type: string;
  readonly value?: string;
  readonly properties?: { readonly className?: unknown };
  readonly children?: readonly Branch[];
}

/** Return code as pieces of one kind, in order; `null` for an unknown language. */
export function stretches(code: string, language: string): Stretch[] | null {
  if (!lowlight.registered(language)) return null;
  const found: Stretch[] = [];
  const walk = (branch: Branch, kind: string) => {
    if (branch.type === "text") found.push({ text: branch.value ?? "", kind });
    const own = branch.properties?.className;
    const inner = Array.isArray(own) ? String(own[0] ?? "").replace(/^hljs-/, "") : kind;
    for (const child of branch.children ?? []) walk(child, inner);
  };
  walk(lowlight.highlight(language, code) as Branch, "");
  return found;
}
