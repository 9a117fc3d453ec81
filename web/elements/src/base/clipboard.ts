/** Copying and saving what is shown. */

/** Copies a text; returns whether it is in the clipboard now. Also where the page has no secure context. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text); // refused, or not there on plain http
  }
}

function copyBySelection(text: string): boolean {
  const focused = document.activeElement;
  const box = document.createElement("textarea");
  box.value = text;
  box.className = "arp-hidden";
  box.setAttribute("readonly", "");
  document.body.append(box);
  box.select();
  let isCopied = false;
  try {
    isCopied = document.execCommand("copy");
  } catch {
    // then it is not
  }
  box.remove();
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  return isCopied;
}

/** Saves a text or a blob as a file. */
export function saveFile(name: string, content: string | Blob, mime = "text/plain"): void {
  const blob = typeof content === "string" ? new Blob([content], { type: `${mime};charset=utf-8` }) : content;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A title as a file name: no path, no control characters, not too long. */
export function fileName(title: string, extension: string): string {
  const stem = title
    .normalize("NFC")
    .replace(/[\\/:*?"<>|\p{C}]+/gu, " ")
    .replace(/^[\s.]+|[\s.]+$/g, "")
    .replace(/^(.{80}).*/su, "$1")
    .trim();
  return `${stem === "" ? "arp" : stem}.${extension}`;
}
