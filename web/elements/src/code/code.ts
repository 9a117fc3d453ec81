/** Code with tools: copying, wrapping lines, line numbers, saving. */

import { html, nothing, type PropertyDeclarations } from "lit";
import { saveFile } from "../base/clipboard.js";
import { NOWHERE, type ArpContext } from "../base/context.js";
import { ArpElement, define } from "../base/element.js";
import "../style/content.js";
import { copyButton, iconButton } from "../base/toolbar.js";
import { hasGrammars, turnToColour, wantsColours } from "./highlight.js";
import { CodeLines } from "./lines.js";

const CONTROLS = /[\0-\x08\x0b-\x1f\x7f-\x9f]/;
/** Module that reads the output of programs. It is loaded with the first code that has control characters. */
let reader: typeof import("@agent-rendering/core/printed") | null = null;

/** `<arp-code>`: one piece of code. */
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
  /** File name for saving; without a name there is no button for it. */
  declare name: string;
  /** Whether more code is coming. Colours wait for the end, because they would flicker. */
  declare unfinished: boolean;
  declare context: ArpContext;
  /** Heading instead of the language. */
  declare heading: string;
  declare wraps: boolean;
  declare numbered: boolean;
  /** Whether it is this element's turn to be coloured; see `turnToColour`. */
  #isTurn = false;
  #hasRequested = false;
  #lines: CodeLines | null = null;
  /**
   * The code as a terminal would show it, for copying and saving (`#text`), and with its other control characters made
   * visible, for display (`#shown`).
   */
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
    // One turn per element: it may use it for every later change of its code.
    if (unfinished || isColoured || this.#hasRequested || !wantsColours(code, language)) return;
    this.#hasRequested = true;
    void turnToColour().then(() => {
      this.#isTurn = true;
      this.requestUpdate();
    });
  }

  /** Set `#text` and `#shown`; until the reader is loaded, they are the code as it is. */
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
