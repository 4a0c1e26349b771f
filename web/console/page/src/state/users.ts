import type { Pipeline } from "../api/client";

/** Which pipelines write a bucket, and which read it; a script may do both. */
export function users(
  pipelines: readonly Pipeline[],
  bucket: string,
): { writers: string[]; readers: string[] } {
  const of = pipelines.filter(({ config }) => config.state?.bucket === bucket);
  const those = (does: (transform: Transform) => boolean) =>
    of.filter(({ config }) => config.transforms?.some(does)).map(({ id }) => id);
  return { writers: those(writes), readers: those(reads) };
}

type Transform = NonNullable<Pipeline["config"]["transforms"]>[number];

const writes = (transform: Transform): boolean =>
  transform.type === "remember" || (transform.type === "script" && calls(transform, "remember"));

const reads = (transform: Transform): boolean =>
  transform.type === "recall" ||
  (transform.type === "buffer" && !!transform.until) ||
  (transform.type === "script" && calls(transform, "recall"));

/** What a script file says is not known here: it may do anything. */
function calls({ source }: { source: object }, name: string): boolean {
  return !("code" in source) || new RegExp(`\\b${name}\\s*\\(`).test(String(source.code));
}
