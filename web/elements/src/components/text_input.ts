/** A question that is answered with free text. */

import type { JsonObject } from "@agent-rendering/core";
import { html, nothing, type PropertyDeclarations } from "lit";
import { define } from "../base/element.js";
import { number, text } from "../base/values.js";
import { QuestionElement } from "./question.js";

/** `<arp-text-input>`: a field of one line, or of several with `multiline`. */
export class ArpTextInput extends QuestionElement {
  static override properties: PropertyDeclarations = { draft: { state: true } };

  declare draft: string;

  constructor() {
    super();
    this.draft = "";
  }

  protected override draw({
    label,
    placeholder,
    max_length: most,
    multiline,
    submit_label: submit,
  }: JsonObject): unknown {
    const { t, open } = this;
    if (!open) {
      const typed = this.given;
      return this.frame(
        label,
        "",
        typed == null ? nothing : html`<p class="arp-plain arp-answer" dir="auto">${text(typed)}</p>`,
        "text",
      );
    }
    const limit = number(most);
    const left = limit === null ? null : limit - [...this.draft].length;
    const name = text(label) || t("message");
    const input =
      multiline === true
        ? html`<textarea class="arp-input" rows="4" dir="auto" id="${this.titleId}-input" placeholder=${text(placeholder)} .value=${this.draft} @input=${this.#write} @keydown=${this.#key} aria-describedby=${left === null ? nothing : `${this.titleId}-left`}></textarea>`
        : html`<input class="arp-input" type="text" dir="auto" id="${this.titleId}-input" placeholder=${text(placeholder)} .value=${this.draft} @input=${this.#write} @keydown=${this.#key} aria-describedby=${left === null ? nothing : `${this.titleId}-left`} autocomplete="off" />`;
    return this.frame(
      "",
      "",
      html`
      <label class="arp-title arp-label" for="${this.titleId}-input" dir="auto">${name}</label>
      <div class="arp-line-input" data-multi=${String(multiline === true)}>${input}
        <button type="button" class="arp-button" ?disabled=${!this.#isFit()} @click=${() => this.#send()}>${text(submit) || t("submit")}</button></div>
      ${left === null ? nothing : html`<p class="arp-note" id="${this.titleId}-left" data-state=${left < 0 ? "error" : "default"}>${left < 0 ? t("tooLong", { count: limit as number }) : t("charactersLeft", { count: left })}</p>`}`,
      "text",
    );
  }

  readonly #write = (event: Event): void => {
    this.draft = (event.target as HTMLInputElement).value;
  };

  readonly #key = (event: KeyboardEvent): void => {
    // Enter during composition (229 in Safari) selects a candidate of the input method; it must not send half a word.
    const isLine = (event.target as Element).localName === "input";
    if (event.key !== "Enter" || event.isComposing || event.keyCode === 229 || event.shiftKey) return;
    if (!isLine && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.#send();
  };

  #isFit(): boolean {
    const limit = number(this.component?.props.max_length);
    return this.draft.trim() !== "" && (limit === null || [...this.draft].length <= limit);
  }

  #send(): void {
    if (this.#isFit()) this.reply(this.draft);
  }
}

define("arp-text-input", ArpTextInput);
