/** The path of a line of values, the newest at the right edge; where a value is null there is a gap. */
export function spark(
  line: readonly (number | null)[],
  most: number,
  width: number,
  height: number,
  closed = false,
): string {
  const step = width / Math.max(1, line.length - 1);
  const parts: string[] = [];
  let from: number | undefined;
  line.forEach((value, at) => {
    if (value === null) return;
    const x = (at * step).toFixed(1);
    const y = (height - 1.5 - (value / most) * (height - 4)).toFixed(1);
    from ??= at;
    parts.push(`${from === at ? "M" : "L"}${x} ${y}`);
    if (at < line.length - 1 && line[at + 1] !== null) return;
    if (closed) parts.push(`L${x} ${height}L${(from * step).toFixed(1)} ${height}Z`);
    // One second alone shows as well.
    else if (from === at) parts.push("h0.1");
    from = undefined;
  });
  return parts.join("");
}
