/** Copies texts to the clipboard, and saves content as files. */

/** Copy a text, also on a page without a secure context. Returns whether it is now in the clipboard. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text); // permission refused, or plain http, where this API does not exist
  }
}

/** Copy a text with the old `execCommand`, which needs a selected field; the focus returns afterwards. */
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
    // Some browsers throw instead of returning false; the result is the same.
  }
  box.remove();
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  return isCopied;
}

/** Save a text or a blob as a file. */
export function saveFile(name: string, content: string | Blob, mime = "text/plain"): void {
  const blob = typeof content === "string" ? new Blob([content], { type: `${mime};charset=utf-8` }) : content;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The download reads the URL later: revoking it at once would save nothing in some browsers.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Return a title as a file name: without path and control characters, at most 80 characters before the extension. */
export function fileName(title: string, extension: string): string {
  const stem = title
    .normalize("NFC")
    .replace(/[\\/:*?"<>|\p{C}]+/gu, " ")
    .replace(/^[\s.]+|[\s.]+$/g, "")
    .replace(/^(.{80}).*/su, "$1")
    .trim();
  return `${stem === "" ? "arp" : stem}.${extension}`;
}
