import type { Answer, Handed, Left } from "./answer";
import type { Batch } from "./given";

/** What a lane shows of one message that was handed on. */
export interface Marble {
  /** Of the lane: -1 is the input. */
  stage: number;
  batch: Handed;
  /** Its place in the batch. */
  index: number;
  text: string;
  /** Which messages of those that were given it was made of. */
  origins: number[];
}

/** One stage over virtual time. */
export interface Lane {
  stage: number;
  kind: string;
  says: string;
  batches: Handed[];
  stopped: Left[];
  /** How it went: `failed` at this stage, `unreached` behind that. */
  state: "ran" | "failed" | "unreached";
}

/** What is chosen: something handed on, something that went no further, or a batch with more than is drawn. */
export type Chosen =
  { marble: Marble } | { stop: Left } | { batch: Handed; stage: number } | undefined;

/** The stages of a chain over virtual time, the input first. */
export function lanes(
  given: Batch[],
  transforms: { kind: string; says: string }[],
  answer: Answer | undefined,
): Lane[] {
  const failed = answer?.failure?.at ?? Infinity;
  const input: Lane = {
    stage: -1,
    kind: "input",
    says: amount(
      given.reduce((sum, batch) => sum + batch.messages.length, 0),
      "message",
    ),
    batches: handedIn(given),
    stopped: [],
    state: "ran",
  };
  return [
    input,
    ...transforms.map(({ kind, says }, stage): Lane => ({
      stage,
      kind,
      says,
      batches: answer?.stages.find((each) => each.index === stage)?.batches ?? [],
      stopped: (answer?.left ?? []).filter((left) => left.stage === stage),
      state: stage === failed ? "failed" : stage > failed ? "unreached" : "ran",
    })),
  ];
}

/** Every moment at which something goes in or comes out, and the end. */
export function moments(all: Lane[], end: number): number[] {
  const at = all.flatMap((lane) => lane.batches.map((batch) => batch.at));
  return [...new Set([0, ...at, end])].sort((a, b) => a - b);
}

/** The messages of a batch as marbles, at most so many. */
export const marbles = (batch: Handed, stage: number, most = Infinity): Marble[] =>
  batch.messages.slice(0, most).map((text, index) => ({
    stage,
    batch,
    index,
    text,
    origins: batch.origins[index] ?? [],
  }));

/** What is chosen is made of these; what has nothing of them fades. */
export function originsOf(chosen: Chosen): number[] {
  if (!chosen) return [];
  if ("marble" in chosen) return chosen.marble.origins;
  return "stop" in chosen ? [chosen.stop.message] : chosen.batch.origins.flat();
}

/** `3 messages`, `1 message`. */
export const amount = (count: number, noun: string): string =>
  `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : noun.endsWith("ch") ? "es" : "s"}`;

function handedIn(given: Batch[]): Handed[] {
  let message = 0;
  return given
    .filter(({ messages }) => messages.length)
    .map(({ at, messages }) => ({ at, messages, origins: messages.map(() => [message++]) }));
}
