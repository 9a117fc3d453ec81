/** Menus for the commands with choices, in the message box. Loaded with the first such command. */

import { html, nothing, type TemplateResult } from "lit";

import type { Command } from "./command_list.js";
import css from "./command_menus.css?inline";
import "./menu.js";
import type { MenuItem } from "./menu.js";
import { adopter } from "../styles.js";

const adopt = adopter(css);

/**
 * Return a menu for each command with choices, labelled with the current choice.
 *
 * @param root The document or shadow root around them, which gets the styles.
 * @param give Called with the text of a picked command, to send it as if it had been typed.
 */
export function commandMenus(root: Node, commands: readonly Command[], give: (text: string) => void): TemplateResult {
  adopt(root);
  return html`<div class="arp-command-menus">
    ${commands.map(({ name, description, choices = [] }) => {
      if (choices.length === 0) return nothing;
      const current = choices.find((choice) => choice.current);
      const now = current?.label || current?.value;
      const items = choices.map(({ value, label, description: detail = "", current: checked = false }): MenuItem => {
        return { label: label || value, detail, checked, run: () => give(`/${name} ${value}`) };
      });
      const menuLabel = [description || name, now].filter(Boolean).join(": ");
      return html`<arp-menu .label=${menuLabel} .sign=${"forward"} .text=${now ?? name} .items=${items}></arp-menu>`;
    })}
  </div>`;
}
