/** The list of commands that opens while the text is a slash and the beginning of a name. */

import type { Translator } from "@agent-rendering/core/strings";
import { html, nothing } from "lit";

export interface Command {
  readonly name: string;
  readonly description?: string;
  /** What may follow the name. */
  readonly hint?: string | null;
}

let lists = 0;

export class CommandList {
  commands: readonly Command[] = [];
  readonly id = `arp-commands-${(lists += 1)}`;
  readonly #changed: () => void;
  #found: readonly Command[] = [];
  #active = 0;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  get isOpen(): boolean {
    return this.#found.length > 0;
  }

  get activeId(): string | null {
    return this.isOpen ? `${this.id}-${this.#active}` : null;
  }

  /** Looks at the text and where the cursor is. */
  look(text: string, cursor: number): void {
    const typed = /^\/(\S*)$/.exec(text)?.[1]?.toLowerCase();
    const isAtEnd = cursor === text.length;
    const found =
      typed === undefined || !isAtEnd ? [] : this.commands.filter(({ name }) => name.toLowerCase().startsWith(typed));
    if (found.length === 0 && this.#found.length === 0) return;
    this.#found = found;
    this.#active = 0;
    this.#changed();
  }

  close(): void {
    if (!this.isOpen) return;
    this.#found = [];
    this.#changed();
  }

  /** Takes a key, if it is one of the list's; returns whether it was. */
  key(event: KeyboardEvent, pick: (command: Command) => void): boolean {
    if (!this.isOpen) return false;
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const chosen = this.#found[this.#active];
    if (step !== 0) {
      this.#active = (this.#active + step + this.#found.length) % this.#found.length;
      this.#changed();
    } else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey && chosen) pick(chosen);
    else if (event.key === "Escape") this.close();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  draw(t: Translator, pick: (command: Command) => void): unknown {
    if (!this.isOpen) return nothing;
    return html`<ul class="arp-commands" role="listbox" id=${this.id} aria-label=${t("commands")}>
      ${this.#found.map(
        (command, at) => html`<li
          role="option"
          id="${this.id}-${at}"
          aria-selected=${at === this.#active ? "true" : "false"}
          @pointerdown=${(event: Event) => {
            event.preventDefault(); // the box keeps the focus
            pick(command);
          }}
        >
          <span><code dir="ltr">/${command.name}</code>${command.hint ? html` <span class="arp-caption">${command.hint}</span>` : nothing}</span>
          <span class="arp-caption" dir="auto">${command.description ?? ""}</span>
        </li>`,
      )}
    </ul>`;
  }
}
