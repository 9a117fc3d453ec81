/**
 * The list of commands above the message box.
 *
 * Theory of operation. The list is open while the text is the beginning of a command (`/mo`) or of one of its choices
 * (`/model sm`), and the cursor is at the end. Enter and Tab insert the selected entry. Enter sends the text instead if
 * a choice, or a command without choices, is typed in full: an insertion would change nothing, and the reader would
 * have to press Enter twice.
 */

import type { Translator } from "@agent-rendering/core/strings";
import { html, nothing } from "lit";

import { icon } from "../icons.js";

export interface Choice {
  /** Text after the name of the command. */
  readonly value: string;
  readonly label?: string;
  readonly description?: string;
  /** Whether this choice is in effect now. */
  readonly current?: boolean;
}

export interface Command {
  readonly name: string;
  readonly description?: string;
  /** Description of the text that may follow the name. */
  readonly hint?: string | null;
  /** Texts that may follow the name, if they are known. */
  readonly choices?: readonly Choice[];
}

/** A line of the list. */
interface Entry {
  /** Text of the message box after this entry was picked. */
  readonly text: string;
  readonly code: string;
  readonly hint?: string | null | undefined;
  readonly detail: string;
  readonly isCurrent?: boolean | undefined;
  /** Whether it is a command without choices, which is complete when its name is typed. */
  readonly isWhole?: boolean;
}

let lists = 0;

export class CommandList {
  commands: readonly Command[] = [];
  readonly id = `arp-commands-${(lists += 1)}`;
  readonly #changed: () => void;
  #found: readonly Entry[] = [];
  #active = 0;
  #typed = "";

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  get isOpen(): boolean {
    return this.#found.length > 0;
  }

  get activeId(): string | null {
    return this.isOpen ? `${this.id}-${this.#active}` : null;
  }

  /** Update the list for a text and the position of the cursor. */
  look(text: string, cursor: number): void {
    const found = cursor === text.length ? this.#entries(text.toLowerCase()) : [];
    if (found.length === 0 && this.#found.length === 0) return;
    this.#found = found;
    this.#typed = text.toLowerCase();
    this.#active = 0;
    this.#changed();
  }

  close(): void {
    if (!this.isOpen) return;
    this.#found = [];
    this.#changed();
  }

  /** Handle a key if it belongs to the open list. Return whether it did. */
  key(event: KeyboardEvent, pick: (text: string) => void): boolean {
    if (!this.isOpen) return false;
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const chosen = this.#found[this.#active];
    if (event.key === "Enter" && chosen?.isWhole && chosen.code.toLowerCase() === this.#typed) {
      this.close();
      return false; // the command is complete: the message box sends it
    }
    if (step !== 0) {
      this.#active = (this.#active + step + this.#found.length) % this.#found.length;
      this.#changed();
    } else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey && chosen) pick(chosen.text);
    else if (event.key === "Escape") this.close();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  draw(t: Translator, pick: (text: string) => void): unknown {
    if (!this.isOpen) return nothing;
    return html`<ul class="arp-commands" role="listbox" id=${this.id} aria-label=${t("commands")}>
      ${this.#found.map(
        ({ text, code, hint, detail, isCurrent }, at) => html`<li
          role="option"
          id="${this.id}-${at}"
          aria-selected=${at === this.#active ? "true" : "false"}
          aria-current=${isCurrent ? "true" : nothing}
          @pointerdown=${(event: Event) => {
            event.preventDefault(); // otherwise the message box loses the focus, which closes the list before the pick
            pick(text);
          }}
        >
          <span><code dir="ltr">${code}</code>${hint ? html` <span class="arp-caption">${hint}</span>` : nothing}</span>
          <span class="arp-caption" dir="auto">${detail}</span>${isCurrent ? icon("check") : nothing}
        </li>`,
      )}
    </ul>`;
  }

  /** Return the entries for a text: the names that begin with it, or after a name the choices of that command. */
  #entries(typed: string): Entry[] {
    const [, name, gap, rest] = /^\/(\S*)(\s+)?(.*)$/.exec(typed) ?? [];
    if (name === undefined) return [];
    if (gap === undefined) {
      const commands = this.commands.filter((command) => command.name.toLowerCase().startsWith(name));
      return commands.map(({ name, hint, description = "", choices = [] }) => {
        return {
          text: `/${name}${hint || choices.length > 0 ? " " : ""}`,
          code: `/${name}`,
          hint,
          detail: description,
          isWhole: choices.length === 0,
        };
      });
    }
    const command = this.commands.find((command) => command.name.toLowerCase() === name);
    const fitting = (command?.choices ?? []).filter(({ value }) => value.toLowerCase().startsWith(rest as string));
    if (fitting.some(({ value }) => value.toLowerCase() === rest)) return []; // typed in full: Enter sends it
    return fitting.map(({ value, label, description, current }) => {
      const detail = [label, description].filter(Boolean).join(" – ");
      return { text: `/${command?.name} ${value}`, code: value, detail, isCurrent: current };
    });
  }
}
