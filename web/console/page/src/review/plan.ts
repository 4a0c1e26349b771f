import type { Plan } from "../api/client";

/** Messages that buffers let go of early. */
export const held = ({ pipelines: { changed, removed } }: Plan): number =>
  [...changed, ...removed].reduce((sum, each) => sum + each.held, 0);

const keys = ({ buckets: { changed, removed } }: Plan, isLeftOver: boolean): number =>
  [...changed, ...removed].reduce(
    (sum, each) => sum + (each.left_over === isLeftOver ? each.keys : 0),
    0,
  );

/** Keys that buckets lose. */
export const keysLost = (plan: Plan): number => keys(plan, false);

/** Keys of durable buckets that nobody reads any more, and that stay on the disk. */
export const keysLeftOver = (plan: Plan): number => keys(plan, true);

/** Entries that nobody reads any more. */
export const leftOver = ({ stored }: Plan): number =>
  stored.reduce((sum, each) => sum + (each.becomes === "left_over" ? each.entries : 0), 0);

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

const onDisk = (entries: number, becomes: string): string =>
  `${counted(entries, "entry", "entries")} on disk ${becomes}`;

/** What becomes of entries that nobody reads any more, but for those that are written in time. */
export const unread = (entries: number): string => `up to ${onDisk(entries, "left over")}`;

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

const FATES = { goes_on: "kept", taken_up: "taken up again" } as const;

/** What becomes of what is on the disk of a pipeline. */
const fatesOf = (stored: Plan["stored"], id: string): string =>
  stored
    .filter(({ pipeline_id }) => pipeline_id === id)
    .map(({ entries, becomes }) =>
      becomes === "left_over" ? unread(entries) : onDisk(entries, FATES[becomes]),
    )
    .join(", ");

/** What a plan changes, in the order in which people ask. */
export function lines({ pipelines, connections, buckets, stored }: Plan): Line[] {
  const named =
    (what: Line["what"], kind: Line["kind"]) =>
    (name: string): Line => ({ what, kind, name, why: "", cost: "" });
  const emptied =
    (what: Line["what"]) =>
    ({ name, keys, left_over }: { name: string; keys: number; left_over: boolean }): Line => {
      const cost = keys
        ? `${counted(keys, "key")} ${left_over ? "on disk left over" : "lost"}`
        : "";
      return { ...named(what, "bucket")(name), cost };
    };
  const cost = (each: Stopped & { id: string }): string =>
    [costOf(each), fatesOf(stored, each.id)].filter(Boolean).join(", ");
  return [
    ...pipelines.changed.map((each) => ({
      ...named("changed", "pipeline")(each.id),
      why: each.why.join(", "),
      cost: cost(each),
    })),
    ...pipelines.removed.map((each) => ({
      ...named("removed", "pipeline")(each.id),
      cost: cost(each),
    })),
    ...pipelines.added.map((id) => ({
      ...named("added", "pipeline")(id),
      cost: fatesOf(stored, id),
    })),
    ...connections.changed.map(named("changed", "connection")),
    ...connections.removed.map(named("removed", "connection")),
    ...connections.added.map(named("added", "connection")),
    ...buckets.changed.map(emptied("changed")),
    ...buckets.removed.map(emptied("removed")),
    ...buckets.added.map(named("added", "bucket")),
  ];
}
