const some = (count: number, one: string, many: string): string =>
  count === 1 ? `1 ${one}` : `${count.toLocaleString("en")} ${many}`;

/** `1 message`, `2,048 messages` */
export const messages = (count: number): string => some(count, "message", "messages");

/** `1 dead letter`, `12 dead letters` */
export const deadLetters = (count: number): string => some(count, "dead letter", "dead letters");

/** `812 bytes`, `2.4 kB`, `34 MB` */
export function bytes(count: number): string {
  if (count < 1000) return some(count, "byte", "bytes");
  const [unit, size] =
    count < 999_500 ? ["kB", 1e3] : count < 999_500_000 ? ["MB", 1e6] : ["GB", 1e9];
  const amount = count / (size as number);
  return `${amount.toFixed(amount < 9.95 ? 1 : 0)} ${unit}`;
}
