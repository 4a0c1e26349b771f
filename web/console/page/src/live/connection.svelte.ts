import { Feed, type Hearing } from "./feed";
import { session } from "./session.svelte";

const RETRY_MS = 1000;
/** For so long nothing is said: a server that is started anew is away for seconds. */
const PATIENCE_MS = 10_000;

/**
 * The stream while somebody looks: a hidden tab has none, so that many tabs do not starve each other.
 *
 * A stream that breaks is opened again each second, after the server has said who is signed in.
 */
export class Connection {
  isOpen = $state(false);
  /** Since when the server does not answer, in milliseconds since 1970. */
  lostAt = $state<number>();
  /** Whether that is so for more than a moment. */
  isGone = $state(false);
  readonly feed: Feed;
  #isWanted = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #patience: ReturnType<typeof setTimeout> | undefined;

  constructor(hearing: Omit<Hearing, "lost">) {
    this.feed = new Feed({
      ...hearing,
      opened: () => {
        this.isOpen = true;
        this.#found();
        hearing.opened();
      },
      lost: () => void this.#lost(),
    });
  }

  start(): void {
    this.#isWanted = true;
    document.addEventListener("visibilitychange", this.#turn);
    this.#turn();
  }

  stop(): void {
    this.#isWanted = false;
    document.removeEventListener("visibilitychange", this.#turn);
    this.#turn();
  }

  #found(): void {
    clearTimeout(this.#patience);
    this.lostAt = this.#patience = undefined;
    this.isGone = false;
  }

  #turn = (): void => {
    clearTimeout(this.#timer);
    if (this.#isWanted && !document.hidden) return this.feed.open();
    this.feed.close();
    this.isOpen = false;
    this.#found();
  };

  async #lost(): Promise<void> {
    this.isOpen = false;
    this.lostAt ??= Date.now();
    this.#patience ??= setTimeout(() => (this.isGone = true), PATIENCE_MS);
    // Who has to sign in again is asked to by the page, which stops this.
    await session.ask().catch(() => {});
    if (this.#isWanted) this.#timer = setTimeout(this.#turn, RETRY_MS);
  }
}
