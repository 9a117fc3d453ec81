/** Output of a program in a code block: it is shown and copied as in a terminal. */

import { expect, test, vi } from "vitest";

import "../src/code/code.js";

const OUTPUT =
  "\u001b[31mred\u001b[0m 10%\r100%\n\u001b[2K\u001b[1G\u001b[?25lspinner\r\u001b[Kok\n\u001b]8;;https://example.org\u001b\\link\u001b]8;;\u001b\\\u0001";

test("colours and links are removed, lines have their final text, and the same text is copied", async () => {
  const writeText = vi.fn(async (_text: string) => undefined);
  Object.defineProperty(navigator, "clipboard", { value: { writeText }, configurable: true });
  const code = Object.assign(document.createElement("arp-code"), { code: OUTPUT, name: "log.txt" });
  document.body.replaceChildren(code);
  await vi.waitFor(() => expect(code.querySelector("code")?.textContent).toBe("100%\nok\nlink␁\n"));
  [...code.querySelectorAll("button")].find(({ ariaLabel, title }) => /copy/i.test(`${ariaLabel} ${title}`))?.click();
  await vi.waitFor(() => expect(writeText).toHaveBeenCalledWith("100%\nok\nlink\u0001"));
  Object.assign(code, { code: `${OUTPUT}\n\u001b[32mmore` });
  await vi.waitFor(() => expect(code.querySelector("code")?.textContent).toBe("100%\nok\nlink␁\nmore\n"));
});
