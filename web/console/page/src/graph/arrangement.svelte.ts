import { api, Refusal, type Layout } from "../api/client";
import { said } from "../ui/said";
import type { Placed } from "./layout";

const PAUSE_MS = 300;
const CHANGED_MEANWHILE = 412;
const TRIES = 5;

type Stands = NonNullable<Layout["pipelines"]>;
type Change = (pipelines: Stands) => Stands;

/** Where somebody has put cards: the server's layout file, which is no part of the config. */
class Arrangement {
  #layout = $state.raw<Layout>({ version: 1 });
  /** Where they stood before all were laid out anew. */
  #before = $state.raw<Stands>();
  /** Why what was moved is not kept. */
  trouble = $state("");
  places: ReadonlyMap<string, Placed> = $derived(
    new Map(Object.entries(this.#layout.pipelines ?? {})),
  );
  #version: string | null = null;
  #isLoaded = false;
  /** What the server has not been told of. */
  #changes: Change[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  get isUndoable(): boolean {
    return this.#before !== undefined;
  }

  /** Ask for it, unless something of ours is still on its way there. */
  async load(): Promise<void> {
    if (this.#changes.length) return;
    try {
      await this.#read();
    } catch (cause) {
      this.trouble = `Where cards were put is not known: ${said(cause)}`;
    }
  }

  /** Cards were moved: show it at once, and keep it soon. */
  move(moved: readonly (readonly [string, Placed])[]): void {
    if (!moved.length) return;
    this.#before = undefined;
    this.#change((pipelines) => {
      const now = moved.map(([id, { x, y }]) => [id, { ...pipelines[id], x, y }] as const);
      return Object.fromEntries([...Object.entries(pipelines), ...now]);
    });
  }

  /** Forget where cards were put; or, right after that, put them there again. */
  turn(): void {
    const before = this.#before;
    this.#before = before ? undefined : this.#layout.pipelines;
    this.#change(() => before ?? {});
  }

  #change(change: Change): void {
    this.#changes.push(change);
    this.#show(this.#layout, [change]);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#keep(), PAUSE_MS);
  }

  #show(layout: Layout, changes: readonly Change[]): void {
    const pipelines = changes.reduce((now, change) => change(now), layout.pipelines ?? {});
    this.#layout = { ...layout, pipelines };
  }

  async #read(): Promise<void> {
    const [layout, version] = await api.layout();
    this.#isLoaded = true;
    this.#version = version;
    this.#show(layout, this.#changes);
    this.trouble = "";
  }

  async #keep(): Promise<void> {
    const count = this.#changes.length;
    try {
      if (!this.#isLoaded) await this.#read();
      await this.#put();
      this.#changes.splice(0, count);
    } catch (cause) {
      this.trouble = `Where you have put the cards could not be kept: ${said(cause)}`;
    }
  }

  /** Others move cards as well: what they have moved meanwhile stays moved. */
  async #put(): Promise<void> {
    for (let tries = TRIES; ; tries--)
      try {
        this.#version = await api.putLayout(this.#layout, this.#version);
        this.trouble = "";
        return;
      } catch (cause) {
        if (!(cause instanceof Refusal && cause.status === CHANGED_MEANWHILE && tries)) throw cause;
        await this.#read();
      }
  }
}

export const arrangement = new Arrangement();
