/** Puts a message on the clipboard, as Markdown and as rich text; by a selection where there is no clipboard. */

import { isTextPart, type TurnState } from "@agent-rendering/core";

/** Copies the answer of a turn; returns whether it worked. `drawn` is where it shows. */
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

/** Copies a text; returns whether it worked. Without a secure context by the old command. */
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
    // Refused: the caller says so.
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

/** What shows, as HTML that others can paste: without what is there to be pressed. */
function richText(drawn: readonly Element[]): string {
  return drawn
    .map((element) => {
      const copy = element.cloneNode(true) as Element;
      for (const mark of copy.querySelectorAll("arp-cite")) mark.replaceWith(mark.textContent ?? ""); // it leads nowhere else
      for (const part of copy.querySelectorAll(
        "button, input, svg, details.arp-menu, .arp-activity, .arp-initials, .arp-hidden, .arp-doing",
      ))
        part.remove();
      return copy.innerHTML;
    })
    .join("\n");
}
