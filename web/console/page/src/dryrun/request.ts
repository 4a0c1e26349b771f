import { api } from "../api/client";
import { read, type Answer } from "./answer";
import type { Batch } from "./given";

/** What is tried: a chain, with which messages, until when. */
export interface Asked {
  transforms: unknown[];
  state?: unknown;
  /** In the order of their times. */
  given: Batch[];
  /** How far virtual time goes, in seconds. */
  seconds: number;
  /** Whether the bucket begins with what it holds where the pipeline runs. */
  fromLive: boolean;
}

/** Try it. What the server refuses is thrown as it is. */
export const perform = async (asked: Asked): Promise<Answer> =>
  read(await api.dryRunText(body(asked)));

/** The request: messages go as they are written. */
export function body({ transforms, state, given, seconds, fromLive }: Asked): string {
  const batches = given.map(
    ({ at, messages }) => `{"at":${at},"messages":[${messages.join(",")}]}`,
  );
  const rest = JSON.stringify({
    transforms,
    ...(state ? { state, ...(fromLive ? { buckets: "live" } : {}) } : {}),
    // Time is moved on when the last batch is in.
    advance_seconds: Math.max(0, seconds - (given.at(-1)?.at ?? 0)),
    attribution: true,
  });
  return `{"given":[${batches.join(",")}],${rest.slice(1)}`;
}
