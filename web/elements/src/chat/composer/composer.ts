/**
 * `<arp-composer>`: the message box, with files, commands, sending and stopping.
 *
 * Theory of operation. The text is kept in the textarea, not in a property, so a redraw does not touch it; the element
 * stores only whether there is text (`filled`). It reaches the conversation through `ComposerHost` alone. A key goes to
 * the open list of commands first, and then to the message box.
 */

import { html, nothing, type PropertyValues, type TemplateResult } from "lit";

import { createContext, type ArpContext } from "../../base/context.js";
import { ArpElement, define } from "../../base/element.js";
import { CommandList, type Command } from "./command_list.js";
import type { commandMenus } from "./command_menus.js";
import { fileChip, sizeText } from "../message/file_chip.js";
import { icon } from "../icons.js";
import { keyName } from "../keys.js";
import { Picked } from "./picked.js";

/** The conversation around the message box. */
export interface ComposerHost {
  send(text: string, files: readonly File[]): void;
  stop(): void;
  /** Return the text of the last input, to edit it; empty if there is none. */
  recall(): string;
  /** Store the text as a draft. Called after each change. */
  drafted(text: string): void;
}

const NO_HOST: ComposerHost = {
  send: () => undefined,
  stop: () => undefined,
  recall: () => "",
  drafted: () => undefined,
};

export class ArpComposer extends ArpElement {
  static override properties = {
    context: { attribute: false },
    commands: { attribute: false },
    placeholder: { attribute: false },
    running: { attribute: false },
    maxBytes: { attribute: false },
    canAttach: { attribute: false },
    recording: { attribute: false },
    stopKey: { attribute: false },
    filled: { state: true },
    menus: { state: true },
  };

  declare context: ArpContext;
  declare commands: readonly Command[];
  declare placeholder: string;
  /** Whether a turn runs that can be stopped. */
  declare running: boolean;
  /** Largest size of one file, in bytes. */
  declare maxBytes: number;
  declare canAttach: boolean;
  /** Whether the conversation is a recording, which takes no input. */
  declare recording: boolean;
  /** Shortcut that stops the turn, shown at the stop button; `null` if there is none. */
  declare stopKey: string | null;
  declare protected filled: boolean;
  /** Draws the menus of commands; loaded with the first command that has choices. */
  declare protected menus: typeof commandMenus | null;
  host: ComposerHost = NO_HOST;
  readonly #picked = new Picked(() => this.requestUpdate());
  readonly #list = new CommandList(() => this.requestUpdate());

  constructor() {
    super();
    this.context = createContext();
    this.commands = [];
    this.placeholder = "";
    this.running = false;
    this.maxBytes = 25 << 20;
    this.canAttach = true;
    this.recording = false;
    this.stopKey = null;
    this.filled = false;
    this.menus = null;
  }

  /** The text in the box. */
  get text(): string {
    return this.#box?.value ?? "";
  }

  set text(text: string) {
    const box = this.#box;
    if (box === null) return;
    box.value = text;
    this.#written();
  }

  /** Focus the message box, with the cursor at the end of the text. */
  override focus(): void {
    const box = this.#box;
    box?.focus();
    box?.setSelectionRange(box.value.length, box.value.length);
  }

  /** Attach files. A file that is too large is reported instead. */
  addFiles(files: Iterable<File>): void {
    const { t } = this.context;
    if (this.recording || !this.canAttach) return;
    for (const file of files) {
      if (file.size > this.maxBytes) {
        this.#picked.refuse(t("fileTooBig", { name: file.name, size: sizeText(this.maxBytes, t) }));
      } else this.#picked.add(file);
    }
    const { problem } = this.#picked;
    if (problem !== null) this.context.announce(problem);
    this.focus();
  }

  get #box(): HTMLTextAreaElement | null {
    return this.querySelector("textarea");
  }

  protected override updated(changed: PropertyValues): void {
    if (!changed.has("commands")) return;
    this.#list.commands = this.commands;
    if (this.menus === null && hasChoices(this.commands)) void this.#loadMenus();
  }

  async #loadMenus(): Promise<void> {
    this.menus = (await import("./command_menus.js")).commandMenus;
  }

  protected override render(): TemplateResult {
    const { t } = this.context;
    const { files } = this.#picked;
    const canSend = this.filled || files.length > 0;
    const list = this.#list.draw(t, (text) => this.#pick(text));
    return html`<form class="arp-composer" aria-label=${t("message")} @submit=${this.#submit}>
      ${list}
      ${
        files.length === 0
          ? nothing
          : html`<ul class="arp-files">
            ${files.map(
              ({ id, file, preview }) => html`<li>
                ${fileChip(file, t, preview)}
                <button type="button" class="arp-icon-button" aria-label=${t("removeFile", { name: file.name })} @click=${() => this.#remove(id)}>${icon("close")}</button>
              </li>`,
            )}
          </ul>`
      }
      ${this.#picked.problem === null ? nothing : html`<p class="arp-bad arp-problem">${this.#picked.problem}</p>`}
      <textarea
        rows="1"
        dir=${this.filled ? "auto" : nothing}
        enterkeyhint="send"
        autocomplete="off"
        aria-label=${t("message")}
        aria-controls=${this.#list.isOpen ? this.#list.id : nothing}
        aria-activedescendant=${this.#list.activeId ?? nothing}
        aria-haspopup=${this.commands.length > 0 ? "listbox" : nothing}
        aria-autocomplete=${this.commands.length > 0 ? "list" : nothing}
        placeholder=${this.recording ? t("recording") : this.placeholder || t("messagePlaceholder")}
        ?disabled=${this.recording}
        @input=${() => this.#written()}
        @keydown=${this.#key}
        @paste=${this.#paste}
        @blur=${() => this.#list.close()}
      ></textarea>
      <div class="arp-composer-row">
        ${
          this.canAttach && !this.recording
            ? html`<input type="file" multiple hidden tabindex="-1" aria-label=${t("attach")} @change=${this.#chosen} />
              <button type="button" class="arp-icon-button arp-attach" aria-label=${t("attach")} title=${t("attach")} @click=${() => this.querySelector<HTMLInputElement>("input[type=file]")?.click()}>${icon("attach")}</button>`
            : nothing
        }
        ${this.recording || !hasChoices(this.commands) ? nothing : this.menus?.(this.getRootNode(), this.commands, (text) => this.host.send(text, []))}
        <span class="arp-room"></span>
        ${
          this.running && !this.recording
            ? html`<button type="button" class="arp-round arp-stop" aria-label=${t("stop")} aria-keyshortcuts=${this.stopKey ?? nothing} title=${[t("stop"), this.stopKey && `(${keyName(this.stopKey)})`].filter(Boolean).join(" ")} @click=${() => this.#stop()}>${icon("stop")}</button>`
            : nothing
        }
        <button type="submit" class="arp-round arp-send" aria-label=${t("send")} title=${t("send")} aria-disabled=${canSend ? "false" : "true"} ?hidden=${this.recording || (this.running && !canSend)}>${icon("send")}</button>
      </div>
    </form>`;
  }

  #submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const text = this.text.trim();
    const files = this.#picked.files.map(({ file }) => file);
    if (text === "" && files.length === 0) return;
    this.#picked.clear();
    this.text = "";
    this.host.send(text, files);
    this.focus();
  };

  #stop(): void {
    this.host.stop();
    this.focus(); // the stop button disappears, and the focus would be lost with it
  }

  #written(): void {
    const box = this.#box as HTMLTextAreaElement;
    this.filled = box.value.trim() !== "";
    this.#list.look(box.value, box.selectionStart);
    this.host.drafted(box.value);
    fit(box);
  }

  #key = (event: KeyboardEvent): void => {
    // While a word is composed, Enter accepts the word and must not send. Safari reports this only by key code 229.
    if (event.isComposing || event.keyCode === 229 || event.defaultPrevented) return;
    if (this.#list.key(event, (text) => this.#pick(text))) return;
    const isBare = !event.shiftKey && !event.altKey;
    if (event.key === "Enter" && isBare) {
      event.preventDefault();
      (event.target as HTMLTextAreaElement).form?.requestSubmit();
    } else if (event.key === "ArrowUp" && isBare && this.text === "") {
      // Only in an empty box: elsewhere the key moves the cursor, and recalling would overwrite the text.
      const last = this.host.recall();
      if (last === "") return;
      event.preventDefault();
      this.text = last;
      this.focus();
    }
  };

  #pick(text: string): void {
    this.text = text;
    if (!text.endsWith(" ")) this.#list.close(); // after a space the list shows the choices of the command
    this.focus();
  }

  #paste = (event: ClipboardEvent): void => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length === 0 || !this.canAttach) return;
    event.preventDefault(); // otherwise the browser would also insert the name or the text of the file
    this.addFiles(files);
  };

  #chosen = (event: Event): void => {
    const input = event.target as HTMLInputElement;
    this.addFiles([...(input.files ?? [])]);
    input.value = ""; // otherwise picking the same file again would cause no `change` event
  };

  #remove(id: number): void {
    this.#picked.remove(id);
    this.focus();
  }
}

function hasChoices(commands: readonly Command[]): boolean {
  return commands.some(({ choices }) => choices !== undefined && choices.length > 0);
}

const KNOWS_FITTING = typeof CSS !== "undefined" && CSS.supports("field-sizing", "content");

/** Set the height of the box to that of its text, in browsers without `field-sizing`. */
function fit(box: HTMLTextAreaElement): void {
  if (KNOWS_FITTING) return;
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight}px`;
}

define("arp-composer", ArpComposer);
