/** The components of a pipeline, as far as they are told of here. */
export interface Chain {
  inputs?: { type: string }[];
  transforms?: { type: string }[];
  outputs?: { type: string }[];
}
export type Family = "input" | "transform" | "output";

/** Where something happened, in words: `transform 0, map`. Without an index: `input`. */
export function placed(chain: Chain | undefined, family: Family, index: number | null): string {
  if (index === null) {
    const [only, ...others] = chain?.[`${family}s`] ?? [];
    return only && !others.length ? `${family}, ${only.type}` : family;
  }
  const kind = chain?.[`${family}s`]?.[index]?.type;
  return kind ? `${family} ${index}, ${kind}` : `${family} ${index}`;
}
