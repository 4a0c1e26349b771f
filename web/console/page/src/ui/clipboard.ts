import { notice } from "./notice.svelte";

/** Put a text on the clipboard, and say so. */
export async function copy(text: string, said = `copied ${text}`): Promise<void> {
  try {
    // A page that came without TLS from elsewhere has no such clipboard.
    if (navigator.clipboard) await navigator.clipboard.writeText(text);
    else copySelected(text);
    notice.say(said);
  } catch {
    notice.say(`the browser does not let this page copy; it is: ${text}`);
  }
}

function copySelected(text: string): void {
  const field = document.body.appendChild(document.createElement("textarea"));
  const before = document.activeElement;
  field.value = text;
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  if (!done) throw new Error("refused");
}
