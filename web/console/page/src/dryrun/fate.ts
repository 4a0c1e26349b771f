import type { Left } from "./answer";
import type { Lane } from "./steps";
import { amount } from "./steps";
import { spelled } from "./times";

/** What became of a message that was given. */
export interface Fate {
  /** `out`, or the kind of the stage that it came no further than. */
  where: string;
  /** `lost`: it was dropped, or the chain failed; `held`: it waits. */
  how: "out" | "held" | "lost";
  says: string;
}

/** What became of each message, by its number. */
export function fates(all: Lane[], count: number): Fate[][] {
  const last = all.at(-1)!;
  const failed = all.find((lane) => lane.state === "failed");
  const out = new Map<number, Map<string, Fate>>();
  for (const batch of failed ? [] : last.batches)
    for (const origins of batch.origins) {
      const others = origins.length - 1;
      const says = `at ${spelled(batch.at)}${others ? `, with ${amount(others, "other")}` : ""}`;
      for (const origin of origins) {
        const mine = out.get(origin) ?? new Map<string, Fate>();
        out.set(origin, mine.set(says, { where: "out", how: "out", says }));
      }
    }
  const stopped = new Map<number, Fate[]>();
  for (const lane of all)
    for (const stop of lane.stopped)
      stopped.set(stop.message, [...(stopped.get(stop.message) ?? []), ended(lane.kind, stop)]);
  return Array.from({ length: count }, (_, message) => {
    const came = [...(out.get(message)?.values() ?? [])];
    if (came.length) return came;
    return (
      stopped.get(message) ?? (failed ? [{ where: failed.kind, how: "lost", says: "failed" }] : [])
    );
  });
}

const ended = (where: string, { isHeld, why }: Left): Fate => ({
  where,
  how: isHeld ? "held" : "lost",
  says: why,
});
