import type { LetterEntry } from "../api/letters";
import { indented } from "../ui/json";
import { JsonText } from "../ui/jsontext";
import { placed, type Chain, type Family } from "../ui/place";

/** What a letter holds: messages as JSON text, or what arrived and where it came from. */
export type Held =
  { messages: readonly string[] } | { payload: string; isText: boolean; metadata: string };

/** What is in the answer for a whole letter, which is JSON text; undefined: it is damaged. */
export function held(text: string): Held | undefined {
  const told = new Map(new JsonText(text).entries);
  const [messages, payload] = [told.get("messages"), told.get("payload")];
  if (messages) return { messages: messages.items.map((each) => each.text) };
  if (!payload) return undefined;
  return {
    payload: payload.value(),
    isText: told.get("payload_encoding")?.value() !== "base64",
    metadata: told.get("metadata")?.text ?? "{}",
  };
}

/** What somebody begins with who edits it: an array of its messages, or what arrived. */
export function editable(what: Held): string {
  if ("payload" in what) return what.isText ? what.payload : "[]";
  return indented(`[${what.messages.join(",")}]`)
    .map(({ text }) => text)
    .join("");
}

/**
 * What a replay of letters is asked for with, or the dry run of one; messages as JSON text, in the place of those of
 * the one letter.
 */
export function request(
  ids: readonly number[],
  messages?: readonly string[],
  isDryRun = false,
): string {
  const edited = messages ? `,"messages":[${messages.join(",")}]` : "";
  return `{"ids":[${ids.join(",")}]${isDryRun ? ',"dry_run":true' : ""}${edited}}`;
}

type Place = Pick<LetterEntry, "stage" | "component"> & { input_index?: number | null };

/** Where it failed, in words: `transform 0, map`. What ended the process was handed out there. */
export function whereOf(chain: Chain | undefined, letter: Place): string {
  const isOfProcess = letter.stage === "process";
  const family = isOfProcess ? (letter.component === null ? "input" : "output") : letter.stage;
  const index = letter.component ?? letter.input_index ?? null;
  const place = placed(chain, family as Family, index);
  return isOfProcess ? `${place}: it ended the process` : place;
}
