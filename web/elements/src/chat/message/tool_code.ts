/** Detection of code among the arguments of a tool, and of its language. */

import type { JsonObject } from "@agent-rendering/core";

/** Languages by the name of the argument. */
const LANGUAGES = new Map([
  ["sql", "sql"],
  ["python", "python"],
  ["bash", "bash"],
  ["shell", "bash"],
  ["command", "bash"],
  ["cmd", "bash"],
  ["json", "json"],
]);
/** Names of arguments with code in a language that another argument or the name of the tool gives. */
const CODE = new Set(["code", "script", "source", "snippet"]);
/** Beginning of a SQL statement. An argument such as `query` is code only if it looks so: it may be search words. */
const STATEMENT = /^\s*(?:select|insert\s+into|update|delete\s+from|with|create|alter|drop|merge|explain)\b[^]*\s/i;

/**
 * Return the language of a text; empty for code in an unknown language, `null` for a text that is not code.
 *
 * @param siblings The other arguments of the call. Their `language` or `lang` is the language of `code`.
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
