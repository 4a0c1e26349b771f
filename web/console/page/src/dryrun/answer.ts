import type { Diagnostic, LeftMessage } from "../api/client";
import { JsonText } from "../ui/jsontext";

/** A batch that a stage handed on: when, in seconds of virtual time, and what each message was made of. */
export interface Handed {
  at: number;
  messages: string[];
  origins: number[][];
}

/**
 * A message that went no further than a stage, and why; `since` when, in seconds of virtual time;
 * `isHeld`: the stage may still let go of it.
 */
export interface Left {
  message: number;
  stage: number;
  why: string;
  since: number;
  isHeld: boolean;
}

export interface Failure {
  at: number;
  kind: string;
  phase: "build" | "apply";
  message: string;
  diagnostics: Diagnostic[];
}

/** What a dry run answers, its messages as the text that they are written with. */
export interface Answer {
  failure: Failure | undefined;
  stages: { index: number; batches: Handed[] }[];
  left: Left[];
  /** What the bucket holds in the end: key and values. */
  bucket: [key: string, values: string][];
  warnings: string[];
  notes: string[];
}

/** Read an answer. */
export function read(text: string): Answer {
  const of = new Map(new JsonText(text).entries);
  const list = <T>(key: string): T[] => of.get(key)?.value<T[]>() ?? [];
  const isFailed = of.get("outcome")?.value() === "failed";
  return {
    failure: isFailed
      ? {
          at: of.get("at")!.value(),
          kind: of.get("kind")!.value(),
          phase: of.get("phase")!.value(),
          message: of.get("message")!.value(),
          diagnostics: list("diagnostics"),
        }
      : undefined,
    stages: (of.get("stages")?.items ?? []).map(stage),
    left: list<LeftMessage>("left").map((each) => ({
      message: each.message,
      stage: each.at,
      why: each.why,
      since: each.seconds ?? 0,
      isHeld: each.held ?? false,
    })),
    bucket: (of.get("buckets")?.entries ?? []).map(([key, values]) => [key, values.text]),
    warnings: list("warnings"),
    notes: list("notes"),
  };
}

function stage(told: JsonText): { index: number; batches: Handed[] } {
  const of = new Map(told.entries);
  const handed = (name: string, prefix: string) => {
    const origins = of.get(`${prefix}origins`)?.value<number[][][]>();
    const at = of.get(`${prefix}at`)?.value<number[]>();
    return (of.get(name)?.items ?? []).map((batch, i): Handed => ({
      at: at?.[i] ?? 0,
      messages: batch.items.map((message) => message.text),
      origins: origins?.[i] ?? [],
    }));
  };
  const batches = [...handed("batches", ""), ...handed("on_flush", "on_flush_")];
  return { index: of.get("index")!.value(), batches: batches.sort((a, b) => a.at - b.at) };
}
