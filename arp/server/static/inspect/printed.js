// Made by make web from web/core/src/printed.ts.
// ../core/src/printed.ts
/**
* The output of a program as a terminal shows it at the end. `arp/protocol/framing/program_output.py` does the same
* in Python and explains why only program output may be read like this. `schemas/cases/program_output.json` has the
* test cases of both.
*/
var WANTS_READING = /[\0\x07\b\x0e\x0f\r\x1b\x90\x98\x9b\x9d-\x9f]/;
/** A control string, a control sequence, another escape, a character that moves the cursor, a dropped one, or text. */
var STEP = /(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])(?:[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c|(?=\n)|$)|[^\n]*)|(?:\x1b\[|\x9b)([0-?]*)[ -/]*([@-~]?)|\x1b[ -/]*[0-~]?|([\n\r\b])|[\0\x07\x0e\x0f]|([^\0\x07\b\x0e\x0f\n\r\x1b\x90\x98\x9b\x9d-\x9f]+)/g;
/** Rightmost column that a cursor movement reaches, unless the line is longer. It limits the size of the result. */
var MOST_COLUMNS = 200;
/** Longest line that is filled with blanks. The limit keeps the cost in proportion to the length of the output. */
var LONGEST_ERASED = 1e3;
/** Return the text that a terminal shows after all output is printed. Other control characters stay in the text. */
function printed(text) {
	if (!WANTS_READING.test(text)) return text;
	const lines = [[]];
	let row = 0;
	let column = 0;
	let isReturned = false;
	const erase = (which) => {
		const line = lines[row];
		if (which === 0) line.length = Math.min(line.length, column);
		else if (line.length > LONGEST_ERASED) return;
		else if (which === 1) line.fill(" ", 0, column + 1);
		else if (which === 2) line.length = 0;
	};
	const toRow = (to) => row = Math.min(Math.max(0, to), lines.length - 1);
	const toColumn = (to) => column = Math.min(Math.max(0, to), Math.max(lines[row].length, MOST_COLUMNS));
	for (const [, numbers = "", final, sign, words] of text.replace(/\r\n/g, "\n").matchAll(STEP)) if (words) {
		const line = lines[row];
		if (isReturned) line.length = 0;
		while (line.length < column) line.push(" ");
		for (const character of words) line[column++] = character;
		isReturned = false;
	} else if (sign) {
		if (sign === "\n" && ++row === lines.length) lines.push([]);
		column = sign === "\b" ? Math.max(0, column - 1) : 0;
		isReturned = sign === "\r";
	} else if (final) {
		isReturned &&= final === "m";
		const first = /^\d{1,6}/.exec(numbers)?.[0] ?? "";
		const given = /^\d*(?:;|$)/.test(numbers) ? Number(first) : 0;
		const count = Math.max(1, given);
		if (/[ABEF]/.test(final)) toRow(row + (/[BE]/.test(final) ? count : -count));
		if (/[EF]/.test(final)) column = 0;
		else if (final === "C") toColumn(column + count);
		else if (final === "D") column = Math.max(0, column - count);
		else if (final === "G" || final === "`") toColumn(count - 1);
		else if (final === "K") erase(given);
		else if (final === "J" && given === 0) {
			lines.length = row + 1;
			erase(0);
		}
	}
	return lines.map((line) => line.join("")).join("\n");
}
/** Return a text with every control character except tab and line feed made visible, as in the terminal. */
function controlsVisible(text) {
	return text.replace(/[\0-\x08\x0b-\x1f\x7f-\x9f]/g, (found) => {
		const code = found.charCodeAt(0);
		return code < 32 ? String.fromCharCode(9216 + code) : code === 127 ? "␡" : `<U+00${code.toString(16).toUpperCase()}>`;
	});
}
export { controlsVisible, printed };
