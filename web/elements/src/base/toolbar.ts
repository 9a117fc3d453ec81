/** The small buttons of a component: copying, saving, and toggles. */

import { html, nothing, type TemplateResult } from "lit";
import { copyText } from "./clipboard.js";
import type { ArpContext } from "./context.js";
import { icon, type IconName } from "./icons.js";

/** Return a button with an icon and an accessible name; with `pressed` it is a toggle. */
export function iconButton(
  name: IconName,
  label: string,
  press: (event: Event) => void,
  pressed?: boolean,
): TemplateResult {
  return html`<button
    type="button" class="arp-icon-button" title=${label} aria-label=${label}
    aria-pressed=${pressed === undefined ? nothing : String(pressed)} @click=${press}
  >${icon(name)}</button>`;
}

/** Return a button that copies a text, and shows and announces whether that succeeded. */
export function copyButton(context: ArpContext, label: string, content: () => string, caption = ""): TemplateResult {
  return html`<button
    type="button" class=${caption === "" ? "arp-icon-button" : "arp-button arp-quiet"} title=${label} aria-label=${label}
    @click=${(event: Event) => void copyFrom(event.currentTarget as HTMLElement, content(), context)}
  >${icon("copy")}${caption === "" ? "" : html`<span>${caption}</span>`}</button>`;
}

const CONFIRMED_MS = 1600;

/** Copy a text on behalf of a button. The button shows the result for `CONFIRMED_MS`. */
export async function copyFrom(button: HTMLElement, content: string, { t, announce }: ArpContext): Promise<void> {
  const isCopied = await copyText(content);
  announce(t(isCopied ? "copied" : "copyFailed"));
  button.dataset.told = isCopied ? "copied" : "failed";
  button.title = t(isCopied ? "copied" : "copyFailed");
  setTimeout(() => {
    delete button.dataset.told;
    button.title = button.getAttribute("aria-label") ?? "";
  }, CONFIRMED_MS);
  if (!isCopied) selectBeside(button);
}

/** Select the text beside a button, so that the reader can copy it with the keyboard if the clipboard refuses. */
function selectBeside(button: HTMLElement): void {
  const code = button.closest(".arp-code, .arp-card, .arp-trouble, figure")?.querySelector("pre, table, dl");
  const selection = getSelection();
  if (code && selection) selection.selectAllChildren(code);
}
