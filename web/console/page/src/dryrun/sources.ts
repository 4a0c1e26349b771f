import { api } from "../api/client";
import { server } from "../live/server.svelte";
import { JsonText } from "../ui/jsontext";
import { MOST_MESSAGES } from "./given";

/** Messages that were taken from somewhere, and what has to be said of that. */
export interface Taken {
  messages: string[];
  says: string;
}

/** The next batch that comes into a pipeline, until `signal` ends the wait. */
export function nextBatch(id: string, signal: AbortSignal): Promise<Taken> {
  return new Promise((resolve) => {
    const leave = server.feed.of(id, ({ stage, payload }) => {
      if (stage !== "input" || "error" in payload) return;
      const { messages, total } = payload.batch;
      // What the server has cut is no JSON any more.
      const whole = messages.filter((text) => !text.endsWith("…")).slice(0, MOST_MESSAGES);
      if (!whole.length) return;
      leave();
      const missing = total - whole.length;
      resolve({
        messages: whole,
        says: missing ? `${missing} more of this batch are too long or too many to be shown` : "",
      });
    });
    signal.addEventListener("abort", leave);
  });
}

/** A few messages of an input, read as a pipeline would. Throws why there are none. */
export async function sample(input: unknown): Promise<Taken> {
  const answer = await api.sampleText(
    JSON.stringify({ input, max_messages: 20, timeout_ms: 5000 }),
  );
  const of = new Map(new JsonText(answer).entries);
  if (of.get("outcome")?.value() !== "sampled") throw new Error(of.get("message")?.value());
  const messages = of.get("messages")!.items.map((message) => message.text);
  const notes = of.get("notes")!.value<string[]>();
  if (!messages.length) throw new Error(["Nothing arrived within 5 s.", ...notes].join(" "));
  return { messages, says: notes.join("; ") };
}
