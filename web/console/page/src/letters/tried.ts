import { JsonText } from "../ui/jsontext";

/** What a dry run of a letter shows; messages are JSON text, which keeps their digits. */
export interface Tried {
  /** What it would go into: `transform 1, map`. */
  where: string;
  messages: readonly string[];
  /** Whether something would fail; null: it goes into an output, and nobody knows. */
  fails: boolean | null;
  /** Why the input could make nothing of it, or a transform would fail as a whole. */
  failure: string | null;
  /** What comes out behind the last transform; undefined: it passes none. */
  out: readonly string[] | undefined;
  /** Which message, counted from 0, would go no further than where, and why. */
  left: readonly { message: number; where: string; why: string }[];
  /** What is not as one might think. */
  notes: readonly string[];
}

interface Ran {
  outcome: "ran" | "failed";
  at: number;
  kind: string;
  message: string;
  left?: { message: number; at: number; kind: string; why: string }[];
  warnings: string[];
  notes: string[];
}

/** Read the answer to a dry run, which is JSON text. */
export function tried(text: string): Tried {
  const told = new Map(new JsonText(text).entries);
  const said = <T>(key: string): T => told.get(key)?.value() as T;
  const texts = (values: JsonText | undefined): string[] =>
    values?.items.map((each) => each.text) ?? [];
  const transformed = told.get("transformed");
  const ran = transformed?.value<Ran | null>() ?? null;
  const messages = texts(told.get("messages"));
  const place = (at: number, kind: string): string => `transform ${at}, ${kind}`;
  const stages = new Map(transformed?.entries).get("stages")?.items ?? [];
  const last = new Map(stages.at(-1)?.entries).get("batches");
  return {
    where: `${said("stage")} ${said("component")}, ${said("kind")}`,
    messages,
    fails: said("fails"),
    failure:
      ran?.outcome === "failed" ? `${place(ran.at, ran.kind)}: ${ran.message}` : said("failure"),
    out:
      ran?.outcome === "ran"
        ? last
          ? last.items.flatMap((batch) => texts(batch))
          : messages
        : undefined,
    left: (ran?.left ?? []).map(({ message, at, kind, why }) => ({
      message,
      where: place(at, kind),
      why,
    })),
    notes: [
      ...said<string[]>("warnings"),
      ...said<string[]>("notes"),
      ...(ran?.warnings ?? []),
      ...(ran?.notes ?? []),
    ],
  };
}
