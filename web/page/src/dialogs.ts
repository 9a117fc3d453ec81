/** Dialogs of the page: another token, the keyboard shortcuts, and an imported chat. */

import type { TurnState } from "@agent-rendering/core";
import { createContext, sign, type ArpContext } from "@agent-rendering/elements/chat";
import { html, render } from "lit";

/** Open a dialog. When it closes, the focus returns to the element that had it before. */
export function openDialog(title: string, context: ArpContext, content: unknown, name: string): void {
  const before = document.activeElement as HTMLElement | null;
  const dialog = document.createElement("dialog");
  dialog.className = `page-dialog arp ${name}`;
  dialog.dir = context.t.direction;
  dialog.lang = context.t.locale;
  dialog.setAttribute("aria-labelledby", "page-dialog-title");
  render(
    html`<header>
        <h2 id="page-dialog-title" dir="auto">${title}</h2>
        <button type="button" class="arp-icon-button" aria-label=${context.t("close")} @click=${() => dialog.close()}>${sign("close")}</button>
      </header>
      <div class="page-dialog-body">${content}</div>`,
    dialog,
  );
  dialog.addEventListener("close", () => {
    dialog.remove();
    before?.focus();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
}

/** Ask whether the token in the address should replace that of this tab; call `accept` if so. */
export function askForToken(context: ArpContext, accept: () => void): void {
  const { t } = context;
  const close = (event: Event) => (event.currentTarget as HTMLElement).closest("dialog")?.close();
  const content = html`<p>${t("otherTokenAsked")}</p>
    <div class="page-dialog-actions">
      <button type="button" class="arp-button" autofocus @click=${close}>${t("keepToken")}</button>
      <button type="button" class="arp-button arp-quiet" @click=${accept}>${t("takeToken")}</button>
    </div>`;
  openDialog(t("otherToken"), context, content, "page-token-dialog");
}

/** Show the keyboard shortcuts, and the setting that turns those of single keys on or off. */
export function showKeys(context: ArpContext, singleKeys: boolean, choose: (wanted: boolean) => void): void {
  const { t } = context;
  const rows: readonly (readonly [string, string])[] = [
    ["Enter", t("send")],
    ["Shift Enter", t("newLine")],
    ["Esc", t("stop")],
    ["Alt ↑ ↓", t("moveBetweenMessages")],
    ["F6", t("moveBetweenRegions")],
    ["/", t("message")],
    ["n", t("newChat")],
    ["s", t("searchChats")],
    ["?", t("shortcuts")],
  ];
  const content = html`<dl class="page-keys">
      ${rows.map(([keys, what]) => html`<div><dt>${keys.split(" ").map((key) => html`<kbd>${key}</kbd>`)}</dt><dd>${what}</dd></div>`)}
    </dl>
    <label class="page-check"
      ><input type="checkbox" .checked=${singleKeys} @change=${(event: Event) => choose((event.target as HTMLInputElement).checked)} /> ${t("singleKeys")}</label
    >`;
  openDialog(t("shortcuts"), context, content, "page-keys-dialog");
}

/**
 * Ask for an exported chat and show it, read-only.
 *
 * @throws Error The file could not be read, or is not an exported chat.
 */
export async function importChat(context: ArpContext): Promise<void> {
  const input = document.createElement("input");
  input.type = "file";
  input.accept = "application/json,.json";
  const chosen = new Promise<File | undefined>((resolve) => {
    input.addEventListener("change", () => resolve(input.files?.[0]));
    input.addEventListener("cancel", () => resolve(undefined));
  });
  input.click();
  const file = await chosen;
  if (!file) return;
  const { fromJson } = await import("@agent-rendering/core/export");
  void import("@agent-rendering/elements");
  const { title, turns } = fromJson(await file.text());
  showImported(title || file.name, turns, context);
}

function showImported(title: string, turns: readonly TurnState[], context: ArpContext): void {
  const { t, locale, theme } = context;
  const quiet = createContext({ t, locale, theme });
  const content = html`<p class="arp-note">${t("importedChat")}</p>
    <div class="arp-log">${turns.map((turn) => html`<arp-message readonly .turn=${turn} .context=${quiet}></arp-message>`)}</div>`;
  openDialog(title || t("importChat"), context, content, "page-imported");
}
