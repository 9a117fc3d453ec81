/**
 * JSON without rounding: a whole number that does not fit a number here is read as text of its digits.
 * An ARP server sends such a number as text already; files, arguments of tools and other servers may not.
 */

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/gs;
const LONG = /^-?[1-9]\d{15,}$/;

/**
 * Reads JSON.
 *
 * @throws SyntaxError It is none.
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
