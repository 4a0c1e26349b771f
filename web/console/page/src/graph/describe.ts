import type { Pipeline } from "../api/client";
import { asks } from "./conditions";

export type Stage = {
  family: "input" | "transform" | "output";
  index: number;
  kind: string;
  says: string;
};

const FORMS = ["regex", "split", "pairs", "csv"];

/** One line about a component, for cards and lists. */
export function says(component: any): string {
  switch (component.type) {
    case "filter":
      return asks(component.when ?? [component.Numeric ?? component.String]);
    case "buffer":
      return [
        component.size && `${component.size} messages`,
        component.seconds && `${component.seconds} s`,
        component.until && "until a gate opens",
      ]
        .filter(Boolean)
        .join(" or ");
    case "reducer":
      return `${component.aggregations.map((a: any) => a.as).join(", ")}${component.group_by ? ` by ${component.group_by.join(", ")}` : ""}`;
    case "map":
      return component.mappings
        .flatMap((m: any) => m.as ?? (m.fields ? Object.values(m.fields) : (m.from ?? m.type)))
        .join(", ");
    case "remember":
      return component.remember.map((r: any) => r.as).join(", ");
    case "recall":
      return component.recall.join(", ");
    case "script":
      return component.source.path ?? component.source.code.trim().split("\n")[0];
    case "parse":
      return `${component.from} by ${component.preset ? `preset ${component.preset}` : FORMS.find((form) => component[form])}`;
    case "explode":
      return component.from;
    case "pipeline":
      return component.upstream;
    case "failures":
      return `of ${component.upstream?.join(", ") ?? "all"}`;
    case "dummy":
      return `every ${component.duration} s`;
    default:
      return (
        component.topic ??
        component.subject ??
        component.channel ??
        component.path ??
        component.table ??
        component.url ??
        component.connection ??
        component.format ??
        ""
      );
  }
}

export function stages(pipeline: Pipeline): Stage[] {
  const config = pipeline.config as any;
  const of = (family: Stage["family"], list: any[] = []) =>
    list.map((component, index) => ({
      family,
      index,
      kind: component.type as string,
      says: says(component),
    }));
  return [
    ...of("input", config.inputs),
    ...of("transform", config.transforms),
    ...of("output", config.outputs),
  ];
}

export function upstreams(pipeline: Pipeline): string[] {
  const read = (pipeline.config as any).inputs
    .filter((i: any) => i.type === "pipeline")
    .map((i: any) => i.upstream as string);
  return [...new Set<string>(read)];
}

/** The pipelines of whose failures one is told by name; one that is told of all is not drawn to each. */
export function failuresOf(pipeline: Pipeline): string[] {
  const told = (pipeline.config as any).inputs
    .filter((i: any) => i.type === "failures")
    .flatMap((i: any) => (i.upstream ?? []) as string[]);
  return [...new Set<string>(told)];
}

/** Whether a pipeline reads what fails in another one, and none of its messages. */
export const readsFailuresAlone = (reader: Pipeline | undefined, from: string): boolean =>
  !!reader && !upstreams(reader).includes(from) && failuresOf(reader).includes(from);

/** What reads what, messages or failures: from, to. */
export const readings = (pipelines: readonly Pipeline[]): (readonly [string, string])[] =>
  pipelines.flatMap((pipeline) => {
    const sources = new Set([...upstreams(pipeline), ...failuresOf(pipeline)]);
    return [...sources].map((from) => [from, pipeline.id] as const);
  });

/** A number of things: to the last one while that is short. */
export const count = (value: number): string => (value < 10_000 ? String(value) : rate(value));

export const rate = (value: number): string =>
  value === 0
    ? "0"
    : value < 10
      ? value.toFixed(1)
      : value < 1000
        ? value.toFixed(0)
        : value < 1e6
          ? `${(value / 1000).toFixed(1)}k`
          : `${(value / 1e6).toFixed(1)}M`;
