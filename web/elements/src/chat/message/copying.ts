/**
 * Copy a message as Markdown and as rich text.
 *
 * There are three attempts, because each may be missing or refused: the clipboard with both formats, the clipboard with
 * text only, and the old command `copy` with a selection, which also works without a secure context.
 */

import { isTextPart, type TurnState } from "@agent-rendering/core";

/** Copy the answer of a turn, whose elements are `drawn`. Return whether it worked. */
export async function copyMessage(turn: TurnState, drawn: readonly Element[]): Promise<boolean> {
  const markdown = await markdownOf(turn);
  try {
    const item = new ClipboardItem({
      "text/plain": new Blob([markdown], { type: "text/plain" }),
      "text/html": new Blob([richText(drawn)], { type: "text/html" }),
    });
    await navigator.clipboard.write([item]);
    return true;
  } catch {
    return copyText(markdown);
  }
}

/** Copy a text. Return whether it worked. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

function copySelected(text: string): boolean {
  const active = document.activeElement as HTMLElement | null;
  const box = document.createElement("textarea");
  box.value = text;
  box.setAttribute("readonly", "");
  box.className = "arp-hidden";
  document.body.append(box);
  box.select();
  let done = false;
  try {
    done = document.execCommand("copy");
  } catch {
    // Refused: the caller reports it.
  }
  box.remove();
  active?.focus();
  return done;
}

async function markdownOf({ id, output }: TurnState): Promise<string> {
  const { componentToMarkdown } = await import("@agent-rendering/core/export");
  return output
    .map((item) => (isTextPart(item, id) ? String(item.props.content) : componentToMarkdown(item)))
    .join("\n\n");
}

/** Return drawn elements as HTML for other programs, without buttons and other controls. */
function richText(drawn: readonly Element[]): string {
  return drawn
    .map((element) => {
      const copy = element.cloneNode(true) as Element;
      // The link of a citation works only on this page.
      for (const mark of copy.querySelectorAll("arp-cite")) mark.replaceWith(mark.textContent ?? "");
      for (const part of copy.querySelectorAll(
        "button, input, svg, details.arp-menu, .arp-activity, .arp-initials, .arp-hidden, .arp-doing",
      ))
        part.remove();
      return copy.innerHTML;
    })
    .join("\n");
}
