import { said } from "./said";

/** What the server answers to a question that is asked again and again; of several the last counts. */
export class Asked<T> {
  value = $state.raw<T>();
  /** Why it was not answered the last time; the value stays. */
  fault = $state("");
  #turn = 0;

  async ask(question: () => Promise<T>): Promise<void> {
    const turn = ++this.#turn;
    let told: { value: T } | { fault: string };
    try {
      told = { value: await question() };
    } catch (cause) {
      told = { fault: said(cause) };
    }
    if (turn !== this.#turn) return;
    if ("value" in told) this.value = told.value;
    this.fault = "fault" in told ? told.fault : "";
  }
}
