import { authoring } from "../api/authoring";
import { api } from "../api/client";
import { JsonText } from "../ui/jsontext";
import { read, type Answer } from "./answer";
import type { Batch } from "./given";

/** What is tried: a chain, with which messages, until when. */
export interface Asked {
  /** JSON, of which the transforms and the state count; it goes as it is written. */
  config: string;
  /** In the order of their times. */
  given: Batch[];
  /** How far virtual time goes, in seconds. */
  seconds: number;
  /** Whether the bucket begins with what it holds where the pipeline runs. */
  fromLive: boolean;
}

/** The config of a pipeline that runs, as it is written: numbers keep their digits. */
export async function running(id: string): Promise<string> {
  const pipeline = new JsonText((await authoring.version(id)).json);
  return new Map(pipeline.entries).get("config")!.text;
}

/** Try it. What the server refuses is thrown as it is. */
export const perform = async (asked: Asked): Promise<Answer> =>
  read(await api.dryRunText(body(asked)));

/** The request: messages go as they are written, and so does the config. */
export function body({ config, given, seconds, fromLive }: Asked): string {
  const parts = new Map(new JsonText(config).entries);
  const state = parts.get("state")?.text ?? "null";
  const batches = given.map(
    ({ at, messages }) => `{"at":${at},"messages":[${messages.join(",")}]}`,
  );
  const members = [
    `"given":[${batches.join(",")}]`,
    `"transforms":${parts.get("transforms")?.text ?? "[]"}`,
    ...(state === "null" ? [] : [`"state":${state}`, ...(fromLive ? ['"buckets":"live"'] : [])]),
    // Time is moved on when the last batch is in.
    `"advance_seconds":${Math.max(0, seconds - (given.at(-1)?.at ?? 0))}`,
    '"attribution":true',
  ];
  return `{${members.join(",")}}`;
}
