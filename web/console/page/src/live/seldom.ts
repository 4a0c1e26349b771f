const PAUSE_MS = 250;

/** Something that is done soon after it is wanted, once for all who want it, and seldom. */
export class Seldom {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #last = -Infinity;

  /** `apart`: milliseconds between one time and the next. */
  constructor(
    readonly work: () => Promise<void>,
    readonly apart: () => number,
  ) {}

  soon(): void {
    if (this.#timer !== undefined) return;
    const wait = Math.max(PAUSE_MS, this.#last + this.apart() - performance.now());
    this.#timer = setTimeout(async () => {
      try {
        await this.work();
      } finally {
        this.#last = performance.now();
        this.#timer = undefined;
      }
    }, wait);
  }
}
