/** The colours: those the system wants, unless a button has said otherwise; that is kept. */
const KEPT = "headrace-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

class Theme {
  #wanted = $state(localStorage.getItem(KEPT));
  #system = $state(dark.matches);

  constructor() {
    dark.addEventListener("change", () => (this.#system = dark.matches));
    this.#show();
  }

  get isDark(): boolean {
    return this.#wanted ? this.#wanted === "dark" : this.#system;
  }

  turn(): void {
    this.#wanted = this.isDark ? "light" : "dark";
    localStorage.setItem(KEPT, this.#wanted);
    this.#show();
  }

  #show(): void {
    if (this.#wanted) document.documentElement.dataset.theme = this.#wanted;
  }
}

export const theme = new Theme();
