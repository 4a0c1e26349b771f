import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { clock } from "../ui/time";

/** What somebody does with a plot. Moments are seconds since 1970. */
export interface Reading {
  /** A span was chosen; none: all of it again. */
  chose(span: Span | undefined): void;
  pointed(at: number | undefined): void;
}
export type Span = [from: number, to: number];

/** Below this many seconds in sight, the axis tells seconds as well. */
const CLOSE = 600;
const FONT = '11px "Inter Variable", system-ui, sans-serif';

/** A plot of messages in and out a second, and of failures as bars, in the colours that the page has now. */
export function plotted(box: HTMLElement, height: number, reading: Reading): uPlot {
  const colour = (value: string) => resolved(box, value);
  const [into, out, bad] = ["var(--in)", "var(--out)", "var(--bad)"].map(colour);
  const axis = {
    stroke: colour("var(--faint)"),
    grid: { stroke: colour("var(--line)"), width: 1 },
    ticks: { show: false },
    font: FONT,
  };
  const line = { width: 1.5, points: { show: false } };
  return new uPlot(
    {
      width: box.clientWidth,
      height,
      legend: { show: false },
      cursor: {
        y: false,
        points: { size: 6 },
        drag: { x: true, setScale: false },
        bind: { dblclick: () => () => (reading.chose(undefined), null) },
      },
      scales: {
        x: { time: true, auto: false },
        y: { range: (_plot, _min, max) => [0, Math.max(1, (max ?? 0) * 1.1)] },
        // A third of the height, so that bars stand below the lines.
        failures: { range: (_plot, _min, max) => [0, Math.max(1, max ?? 0) * 3] },
      },
      axes: [
        {
          ...axis,
          space: 64,
          size: 28,
          values: (plot, ticks) => ticks.map((tick) => told(plot, tick)),
        },
        { ...axis, size: 40, values: (_plot, ticks) => ticks.map((tick) => short(tick)) },
      ],
      series: [
        {},
        { ...line, stroke: into!, fill: colour("color-mix(in srgb, var(--in) 12%, transparent)") },
        { ...line, stroke: out! },
        {
          scale: "failures",
          stroke: bad!,
          fill: bad!,
          paths: uPlot.paths.bars!({ size: [0.9, 6, 2] }),
          points: { show: false },
        },
      ],
      hooks: {
        setCursor: [({ cursor, data }) => reading.pointed(data[0][cursor.idx ?? -1])],
        setSelect: [
          (plot) => {
            const { left, width } = plot.select;
            if (width < 4) return;
            reading.chose([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
      },
    },
    [[], [], [], []],
    box,
  );
}

// light-dark() is resolved by a real property only, so each colour is asked of an element that has it.
function resolved(box: HTMLElement, value: string): string {
  const probe = box.appendChild(document.createElement("i"));
  probe.style.color = value;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function told({ scales }: uPlot, tick: number): string {
  const { min, max } = scales.x!;
  return clock(tick * 1000).slice(0, (max ?? 0) - (min ?? 0) < CLOSE ? 8 : 5);
}

const short = (value: number): string => (value < 1000 ? String(value) : `${value / 1000}k`);
