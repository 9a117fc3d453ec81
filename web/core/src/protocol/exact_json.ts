/**
 * JSON without rounding: an integer that a JavaScript number cannot hold exactly is read as a string of its digits.
 * An ARP server already sends such integers as strings; files, tool arguments and other servers may not.
 */

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/gs;
const LONG = /^-?[1-9]\d{15,}$/;

/**
 * Parse JSON.
 *
 * @throws SyntaxError The text is not JSON.
 */
export function parseJson(json: string): unknown {
  return JSON.parse(
    /\d{16}/.test(json)
      ? json.replace(TOKEN, (token) =>
          LONG.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token,
        )
      : json,
  );
}
