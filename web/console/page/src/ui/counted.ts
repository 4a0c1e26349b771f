/** `1 message`, `2,048 messages` */
export const messages = (count: number): string =>
  count === 1 ? "1 message" : `${count.toLocaleString("en")} messages`;
