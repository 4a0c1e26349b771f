import { compact, JsonText, next, valueEnd } from "../ui/jsontext";

/** Messages that go in together, and when: `at` in seconds of virtual time. Each message is JSON text. */
export interface Batch {
  at: number;
  messages: string[];
}

/** What the server takes at most. */
export const MOST_MESSAGES = 200;

/** Why a text holds no messages, and in which line. */
export class Unreadable extends Error {}

/**
 * The messages that somebody wrote: one after the other, a line each or over several, or one array of them.
 *
 * Throws `Unreadable`, which tells the line.
 */
export function messagesOf(text: string): string[] {
  const found: string[] = [];
  for (let at = next(text, 0); at < text.length;) {
    const end = Math.max(valueEnd(text, at), at + 1);
    const value = text.slice(at, end);
    try {
      JSON.parse(value);
    } catch {
      const line = text.slice(0, at).split("\n").length;
      throw new Unreadable(
        `Line ${line}: ${quoted(value)} is no JSON. Write a message a line, such as {"temp": 71.5}.`,
      );
    }
    found.push(compact(value));
    at = next(text, end);
  }
  const [only] = found;
  return found.length === 1 && only!.startsWith("[")
    ? new JsonText(only!).items.map((item) => item.text)
    : found;
}

/** Messages as they are edited: a line each. */
export const written = (messages: string[]): string => messages.join("\n");

const quoted = (text: string): string =>
  `'${text.length > 40 ? text.slice(0, 40) + "…" : text}'`.replace(/\s+/g, " ");
