import type { Pipeline } from "../api/client";

/** How full the queue is that a pipeline has for another one: from 0 to 1; 0 where it has none. */
export function fullness(reader: Pipeline | undefined, source: string): number {
  const inputs = (reader?.config as { inputs?: { type: string; upstream?: string }[] } | undefined)
    ?.inputs;
  const queues = reader?.queues?.filter(
    ({ stage, component, capacity }) =>
      stage === "input" && capacity > 0 && inputs?.[component]?.upstream === source,
  );
  return Math.max(0, ...(queues ?? []).map(({ used, capacity }) => used / capacity));
}
