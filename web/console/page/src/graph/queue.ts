import type { Pipeline } from "../api/client";

interface Reading {
  type: string;
  upstream?: string;
  when?: unknown[];
}

const inputsOf = (reader: Pipeline | undefined): Reading[] | undefined =>
  (reader?.config as { inputs?: Reading[] } | undefined)?.inputs;

/**
 * What a pipeline takes of what another hands on: all of it, or what it has conditions for. How much
 * that is its own count tells, unless something else comes to it as well.
 */
export function taken(reader: Pipeline | undefined, source: string): "all" | "its own" | "some" {
  const inputs = inputsOf(reader) ?? [];
  const reads = inputs.filter(({ upstream }) => upstream === source);
  if (!reads.length || reads.some(({ when }) => !when?.length)) return "all";
  return inputs.length === 1 ? "its own" : "some";
}

/** How full the queue is that a pipeline has for another one: from 0 to 1; 0 where it has none. */
export function fullness(reader: Pipeline | undefined, source: string): number {
  const inputs = inputsOf(reader);
  const queues = reader?.queues?.filter(
    ({ stage, component, capacity }) =>
      stage === "input" && capacity > 0 && inputs?.[component]?.upstream === source,
  );
  return Math.max(0, ...(queues ?? []).map(({ used, capacity }) => used / capacity));
}
