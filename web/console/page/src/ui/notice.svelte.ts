const SECONDS = 4;

/** What has just happened, in a few words: shown for a while, and read out. */
class Notice {
  text = $state("");
  #timer: ReturnType<typeof setTimeout> | undefined;

  say(text: string): void {
    this.text = text;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.text = ""), SECONDS * 1000);
  }
}

export const notice = new Notice();
