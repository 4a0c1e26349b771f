/**
 * JSON text, walked and never parsed: each value stays the text that it is written with, so that the digits of a
 * number, the order of keys and keys that are given twice stay as well.
 */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text.trim();
  }

  /** The elements of an array; of anything else none. */
  get items(): JsonText[] {
    const found: JsonText[] = [];
    if (this.text[0] === "[")
      for (let at = next(this.text, 1); at < this.text.length - 1;) {
        const end = valueEnd(this.text, at);
        found.push(new JsonText(this.text.slice(at, end)));
        at = next(this.text, end);
      }
    return found;
  }

  /** The keys and values of an object, in their order; of anything else none. */
  get entries(): [key: string, value: JsonText][] {
    const found: [string, JsonText][] = [];
    if (this.text[0] === "{")
      for (let at = next(this.text, 1); at < this.text.length - 1;) {
        const colon = valueEnd(this.text, at);
        const from = next(this.text, colon);
        const end = valueEnd(this.text, from);
        const key = JSON.parse(this.text.slice(at, colon)) as string;
        found.push([key, new JsonText(this.text.slice(from, end))]);
        at = next(this.text, end);
      }
    return found;
  }

  /** The value itself, where its digits do not matter. */
  value<T>(): T {
    return JSON.parse(this.text) as T;
  }
}

/** Where the value that begins there is over: at its closing mark, or before the next mark or space. */
export function valueEnd(text: string, from: number): number {
  if (text[from] === '"') return stringEnd(text, from);
  if (text[from] !== "{" && text[from] !== "[") return matchEnd(/[^\s,:[\]{}"]+|[^]?/y, text, from);
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const mark = text[at];
    if (mark === '"') at = stringEnd(text, at) - 1;
    else if (mark === "{" || mark === "[") depth += 1;
    else if ((mark === "}" || mark === "]") && --depth === 0) return at + 1;
  }
  return text.length;
}

/** Where the next value begins, or what encloses it ends: behind spaces, commas and colons. */
export const next = (text: string, from: number): number => matchEnd(/[\s,:]*/y, text, from);

/** The same JSON without the space between its marks. */
export function compact(text: string): string {
  let out = "";
  for (let at = 0; at < text.length;) {
    const end = text[at] === '"' ? stringEnd(text, at) : matchEnd(/[^"]*/y, text, at);
    out += text[at] === '"' ? text.slice(at, end) : text.slice(at, end).replace(/\s+/g, "");
    at = end;
  }
  return out;
}

function stringEnd(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++)
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at + 1;
  return text.length;
}

function matchEnd(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  pattern.exec(text);
  return pattern.lastIndex;
}
