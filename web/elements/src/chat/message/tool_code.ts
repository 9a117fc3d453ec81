/** Which texts among a tool's arguments are code, and in which language. */

import type { JsonObject } from "@agent-rendering/core";

/** What a key says of its text. */
const LANGUAGES = new Map([
  ["sql", "sql"],
  ["python", "python"],
  ["bash", "bash"],
  ["shell", "bash"],
  ["command", "bash"],
  ["cmd", "bash"],
  ["json", "json"],
]);
/** Keys of code whose language something else says. */
const CODE = new Set(["code", "script", "source", "snippet"]);
/** Keys of what is code only if it looks like some: `query` may be words to search for. */
const STATEMENT = /^\s*(?:select|insert\s+into|update|delete\s+from|with|create|alter|drop|merge|explain)\b[^]*\s/i;

/**
 * The language of a text, empty if there is none to be named; `null` for a text that is no code.
 *
 * @param siblings The arguments among which it stands: `language` names the one of `code`.
 */
export function codeLanguage(name: string, content: string, siblings: JsonObject, tool: string): string | null {
  if (content === "") return null;
  const key = name.toLowerCase();
  const known = LANGUAGES.get(key);
  if (known !== undefined) return known;
  if (CODE.has(key))
    return (
      named(siblings.language ?? siblings.lang) ??
      LANGUAGES.get(/sql|python|bash|shell|json/i.exec(tool)?.[0].toLowerCase() ?? "") ??
      ""
    );
  if (/query|statement/.test(key) && STATEMENT.test(content)) return "sql";
  if (!content.trimEnd().includes("\n")) return null;
  return STATEMENT.test(content) && /\b(?:from|into|set|table|values)\b/i.test(content) ? "sql" : "";
}

function named(language: unknown): string | null {
  return typeof language === "string" && /^[\w+#-]{1,20}$/.test(language) ? language : null;
}
