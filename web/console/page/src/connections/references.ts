/** A text in parts: `${NAME}` is a reference, which the server resolves. */
export function parts(text: string): { text: string; reference: boolean }[] {
  return text
    .split(/(\$\{[\w.-]+\})/)
    .map((part, at) => ({ text: part, reference: at % 2 === 1 }))
    .filter((part) => part.text);
}
