import { isMap, isScalar, isSeq, parseDocument } from "yaml";
import { authoring } from "../api/authoring";
import { Refusal } from "../api/client";
import { toYaml } from "../draft/exact";
import { comments, read } from "../draft/yaml";
import { counted } from "../review/plan";

/** What runs and what is on file: as both are written, and in one style. */
export interface Texts {
  running: string;
  /** None: there is no file. A refusal: it cannot be read as a config. */
  written: string | Refusal | undefined;
  means: { before: string; after: string };
}

/** Ask for both texts; ``file`` is the name of the config file. */
export async function texts(file: string | null | undefined): Promise<Texts> {
  const isYaml = /\.ya?ml$/.test(file ?? "");
  // In another format than its own the file is written anew, as what runs is.
  const other = isYaml ? "json" : "yaml";
  const [running, written, runningAnew, writtenAnew] = await Promise.all([
    authoring.configText("running"),
    onFile(() => authoring.configText("file")),
    authoring.configText("running", other),
    onFile(() => authoring.configText("file", other)),
  ]);
  const before = typeof writtenAnew === "string" ? inOrder(writtenAnew) : "";
  return { running, written, means: { before, after: inOrder(runningAnew) } };
}

async function onFile(ask: () => Promise<string>): Promise<string | Refusal | undefined> {
  try {
    return await ask();
  } catch (cause) {
    if (cause instanceof Refusal && cause.status === 404) return undefined;
    if (cause instanceof Refusal && cause.status === 409) return cause;
    throw cause;
  }
}

/** A config as YAML, its pipelines in the order of their ids. */
export function inOrder(text: string): string {
  const document = parseDocument(text, { intAsBigInt: true });
  const { contents } = document;
  const pipelines = isMap(contents) ? contents.get("pipelines") : contents;
  const id = (each: unknown): string => {
    const found = isMap(each) ? each.get("id", true) : undefined;
    return isScalar(found) ? String(found.value) : "";
  };
  if (isSeq(pipelines)) pipelines.items.sort((one, other) => id(one).localeCompare(id(other)));
  return toYaml(document.toString({ lineWidth: 0 }));
}

/** What a save takes from a file that somebody wrote by hand. */
export function lost(written: string): string[] {
  const count = comments(read(written));
  const lines = written.trimEnd().split("\n");
  const blank = lines.filter((line) => !line.trim()).length;
  return [
    ...(count ? [counted(count, "comment")] : []),
    ...(blank ? [counted(blank, "blank line")] : []),
  ];
}
