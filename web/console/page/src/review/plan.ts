import type { Plan } from "../api/client";

/** Messages that buffers let go of early. */
export const held = ({ pipelines: { changed, removed } }: Plan): number =>
  [...changed, ...removed].reduce((sum, each) => sum + each.held, 0);

/** Keys that buckets lose. */
export const keysLost = ({ buckets: { changed, removed } }: Plan): number =>
  [...changed, ...removed].reduce((sum, each) => sum + each.keys, 0);

/** Whether nothing would be another afterwards. */
export const isEmpty = ({ pipelines, connections, buckets }: Plan): boolean =>
  [pipelines, connections, buckets].every(
    ({ added, changed, removed }) => !added.length && !changed.length && !removed.length,
  );

export const counted = (number: number, one: string, more = `${one}s`): string =>
  `${number.toLocaleString("en")} ${number === 1 ? one : more}`;

/** What becomes of held messages. */
export const early = (held: number): string =>
  `${counted(held, "held message goes", "held messages go")} on early`;

/** One thing of a plan: what becomes of it, and what that costs. */
export interface Line {
  what: "added" | "changed" | "removed";
  kind: "pipeline" | "connection" | "bucket";
  name: string;
  why: string;
  cost: string;
}

interface Stopped {
  held: number;
  in_flight: number;
}
const costOf = ({ held, in_flight }: Stopped): string =>
  [held && early(held), in_flight && `${counted(in_flight, "batch", "batches")} on the way first`]
    .filter(Boolean)
    .join(", ");

/** What a plan changes, in the order in which people ask. */
export function lines({ pipelines, connections, buckets }: Plan): Line[] {
  const named =
    (what: Line["what"], kind: Line["kind"]) =>
    (name: string): Line => ({ what, kind, name, why: "", cost: "" });
  const emptied =
    (what: Line["what"]) =>
    ({ name, keys }: { name: string; keys: number }): Line => {
      const cost = keys ? `${counted(keys, "key")} lost` : "";
      return { ...named(what, "bucket")(name), cost };
    };
  return [
    ...pipelines.changed.map((each) => ({
      ...named("changed", "pipeline")(each.id),
      why: each.why.join(", "),
      cost: costOf(each),
    })),
    ...pipelines.removed.map((each) => ({
      ...named("removed", "pipeline")(each.id),
      cost: costOf(each),
    })),
    ...pipelines.added.map(named("added", "pipeline")),
    ...connections.changed.map(named("changed", "connection")),
    ...connections.removed.map(named("removed", "connection")),
    ...connections.added.map(named("added", "connection")),
    ...buckets.changed.map(emptied("changed")),
    ...buckets.removed.map(emptied("removed")),
    ...buckets.added.map(named("added", "bucket")),
  ];
}
