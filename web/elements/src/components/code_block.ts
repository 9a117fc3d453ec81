/** A code block, or several as tabs. */

import type { JsonObject } from "@agent-rendering/core";
import { html, type PropertyDeclarations } from "lit";
import { fileName } from "../base/clipboard.js";
import { ComponentElement } from "../base/component_element.js";
import { define } from "../base/element.js";
import { tabList } from "../base/tablist.js";
import { freshId, objects, text } from "../base/values.js";

const EXTENSIONS: { readonly [language: string]: string } = {
  bash: "sh",
  shell: "sh",
  "c++": "cpp",
  "c#": "cs",
  csharp: "cs",
  javascript: "js",
  typescript: "ts",
  python: "py",
  ruby: "rb",
  rust: "rs",
  markdown: "md",
  yaml: "yaml",
  json: "json",
  html: "html",
  kotlin: "kt",
  dockerfile: "dockerfile",
};

/** Return the file name for saving code: its own name if that looks like a file name, else one from its language. */
export function codeFileName(name: string, language: string): string {
  if (/^[^\\/:*?"<>|\p{C}]{1,80}\.[\w-]{1,12}$/u.test(name.split("/").at(-1) ?? ""))
    return name.split("/").at(-1) as string;
  const known = language.toLowerCase();
  const extension = Object.hasOwn(EXTENSIONS, known) ? EXTENSIONS[known] : /^[a-z]{1,4}$/.test(known) ? known : "txt";
  return fileName(name || "code", extension as string);
}

/** `<arp-code-block>`: code with a heading and tools. */
export class ArpCodeBlock extends ComponentElement {
  static override properties: PropertyDeclarations = { chosen: { state: true } };

  declare chosen: number;
  readonly #id = freshId("code");

  constructor() {
    super();
    this.chosen = 0;
  }

  protected override draw({ title, language, code, tabs }: JsonObject): unknown {
    const files = objects(tabs);
    if (typeof code === "string" || files.length === 0)
      return this.#code(text(title), text(title), text(language), text(code));
    const active = Math.min(this.chosen, files.length - 1);
    const { name, language: own, code: shown } = files[active] as JsonObject;
    return html`<section class="arp-tabbed">
      ${text(title) ? html`<h3 class="arp-title" dir="auto">${text(title)}</h3>` : ""}
      ${tabList({ id: this.#id, label: text(title) || this.t("code"), tabs: files.map((file) => text(file.name)), active, choose: (at) => (this.chosen = at) })}
      <div role="tabpanel" id="${this.#id}-panel" aria-labelledby="${this.#id}-tab-${active}">
        ${this.#code(text(own), text(name), text(own), text(shown))}
      </div>
    </section>`;
  }

  #code(heading: string, name: string, language: string, code: string): unknown {
    return html`<arp-code
      .code=${code} .language=${language} .heading=${heading} .name=${codeFileName(name, language)} .context=${this.context}
      .unfinished=${this.context.streaming && code.length < 60_000 && language === ""}
    ></arp-code>`;
  }
}

define("arp-code-block", ArpCodeBlock);
