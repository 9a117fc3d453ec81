/** Download of a conversation as Markdown, JSON or an HTML page. */

import type { TurnState } from "@agent-rendering/core";
import type { Translator } from "@agent-rendering/core/strings";
import { CHAT_STYLES, fileName, STYLES } from "@agent-rendering/elements";

export type Format = "md" | "json" | "html";

/**
 * Offer a conversation as a download.
 *
 * @param drawn Element that shows the conversation; the HTML page is a copy of it.
 */
export async function saveChat(
  format: Format,
  title: string,
  turns: readonly TurnState[],
  drawn: Element,
  t: Translator,
): Promise<void> {
  const { toJson, toMarkdown } = await import("@agent-rendering/core/export");
  const words = { you: t("you"), agent: t("agent"), tool: t("tool"), error: t("error"), result: t("toolResult") };
  const made = {
    md: () => toMarkdown(turns, title, words),
    json: () => toJson(turns, title),
    html: () => pageOf(title, drawn, t),
  };
  const types = { md: "text/markdown", json: "application/json", html: "text/html" };
  download(fileName(title || "chat", format), new Blob([made[format]()], { type: types[format] }));
}

function download(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Return the conversation as shown, as an HTML page without scripts and external files. */
function pageOf(title: string, drawn: Element, t: Translator): string {
  const copy = drawn.cloneNode(true) as Element;
  for (const part of copy.querySelectorAll(
    "button, input, textarea, select, details.arp-menu, .arp-doing, .arp-typing",
  ))
    part.remove();
  for (const part of copy.querySelectorAll("details")) part.setAttribute("open", "");
  for (const image of copy.querySelectorAll("img[src^='blob:']")) image.remove();
  const style = `${STYLES}\n${CHAT_STYLES}\nbody{margin:0;background:var(--_arp-ground)}body>.arp-column{min-height:100vh}`;
  const name = escaped(title);
  // Built as text: in a document of this page, the content security policy would refuse the style.
  return `<!doctype html>
<html lang="${escaped(t.locale)}" dir="${t.direction}">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width">
<title>${name}</title>
<style>${style.replaceAll("<", "\\3c ")}</style>
</head>
<body class="arp">
<main class="arp-column"><h1 class="arp-title">${name}</h1>${copy.outerHTML}</main>
</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
