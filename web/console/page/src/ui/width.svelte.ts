/** Whether the page is as narrow as a telephone: a list stands for the canvas then. */
const narrow = matchMedia("(max-width: 699.98px)");

class Width {
  isNarrow = $state(narrow.matches);

  constructor() {
    narrow.addEventListener("change", () => (this.isNarrow = narrow.matches));
  }
}

export const width = new Width();
