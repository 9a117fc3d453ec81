/** Code with its tools: copy, wrap, line numbers, save. */

import { html, nothing, type PropertyDeclarations } from "lit";
import { saveFile } from "../base/clipboard.js";
import { NOWHERE, type ArpContext } from "../base/context.js";
import { ArpElement, define } from "../base/element.js";
import "../style/content.js";
import { copyButton, iconButton } from "../base/toolbar.js";
import { hasGrammars, turnToColour, wantsColours } from "./highlight.js";
import { CodeLines } from "./lines.js";

const CONTROLS = /[\0-\x08\x0b-\x1f\x7f-\x9f]/;
/** Reads what a program printed; loaded with the first code that has control characters. */
let reader: typeof import("@agent-rendering/core/printed") | null = null;

/** `<arp-code>`: one text of code. */
export class ArpCode extends ArpElement {
  static override properties: PropertyDeclarations = {
    code: { attribute: false },
    language: { attribute: false },
    name: { attribute: false },
    unfinished: { attribute: false },
    context: { attribute: false },
    heading: { attribute: false },
    wraps: { state: true },
    numbered: { state: true },
  };

  declare code: string;
  declare language: string;
  /** The name of the file that it is saved as; without one it cannot be saved. */
  declare name: string;
  /** Whether more of it is to come; colours wait until then, so that they do not flicker. */
  declare unfinished: boolean;
  declare context: ArpContext;
  /** What is above it instead of the language. */
  declare heading: string;
  declare wraps: boolean;
  declare numbered: boolean;
  /** Whether it may be coloured now: many codes that come at once are coloured one after the other. */
  #isTurn = false;
  #hasRequested = false;
  #lines: CodeLines | null = null;
  /** The code, read as a terminal does if a program printed it; and that with other control characters visible. */
  #text = "";
  #shown = "";

  constructor() {
    super();
    Object.assign(this, {
      code: "",
      language: "",
      name: "",
      heading: "",
      unfinished: false,
      wraps: false,
      numbered: false,
    });
    this.context = NOWHERE;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.classList.add("arp-code");
  }

  protected override render(): unknown {
    const { t } = this.context;
    const { language, heading } = this;
    return html`<div class="arp-code-head">
        <span class="arp-code-name" dir="auto">${heading || language || nothing}</span>
        <span class="arp-tools">
          ${this.name === "" ? nothing : iconButton("lines", t("lineNumbers"), () => (this.numbered = !this.numbered), this.numbered)}
          ${iconButton("wrap", t("wrap"), () => (this.wraps = !this.wraps), this.wraps)}
          ${this.name === "" ? nothing : iconButton("download", t("download"), () => saveFile(this.name, this.#text))}
          ${copyButton(this.context, t("copy"), () => this.#text)}
        </span>
      </div>
      <pre
        dir="ltr" tabindex="0" role="group" aria-label=${heading || language || t("code")}
        class=${`arp-pre${this.wraps ? " arp-wraps" : ""}${this.numbered ? " arp-numbered" : ""}`}
      ><code></code></pre>`;
  }

  protected override updated(): void {
    const { code, language, unfinished } = this;
    this.#read();
    const isColoured = !unfinished && this.#isTurn && hasGrammars();
    this.#lines ??= new CodeLines(this.querySelector("code") as HTMLElement);
    this.#lines.show(this.#shown, isColoured ? language : "");
    if (unfinished || isColoured || this.#hasRequested || !wantsColours(code, language)) return;
    this.#hasRequested = true;
    void turnToColour().then(() => {
      this.#isTurn = true;
      this.requestUpdate();
    });
  }

  #read(): void {
    this.#text = this.#shown = this.code;
    if (!CONTROLS.test(this.code)) return;
    if (reader === null) {
      void import("@agent-rendering/core/printed").then(
        (loaded) => ((reader = loaded), this.requestUpdate()),
        () => undefined,
      );
      return;
    }
    this.#text = reader.printed(this.code);
    this.#shown = reader.controlsVisible(this.#text);
  }
}

define("arp-code", ArpCode);
