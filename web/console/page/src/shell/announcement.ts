const NAMED = 3;

/** One sentence about pipelines that are not well any more, however many they are. */
export function announcement(
  ids: readonly string[],
  of: (id: string) => { condition: string; error: string },
): string {
  const [first] = ids;
  if (first !== undefined && ids.length === 1) {
    const { condition, error } = of(first);
    return `${first} is ${condition}${error ? `: ${error}` : ""}`;
  }
  const more = ids.length - NAMED;
  const named = ids.slice(0, NAMED).join(", ");
  return `${ids.length} pipelines are not well: ${named}${more > 0 ? ` and ${more} more` : ""}`;
}
