// A scatter of the scores of two scorings, drawn by uPlot.

import { useWidth } from './components.js';
import { short } from './dom.js';
import { colour } from './line_chart.js';
import { html, useLayoutEffect, useRef } from './vendor/preact.js';
import uPlot from './vendor/uplot.js';

const HEIGHT = 380;
const FONT = '12px system-ui, "Liberation Sans", Arial, sans-serif';

const axis = (label, size) => ({
  label,
  size,
  font: FONT,
  labelFont: FONT,
  labelSize: 22,
  stroke: () => colour('--quiet'),
  grid: { stroke: () => colour('--line'), width: 1 },
  ticks: { show: false },
  values: (_, ticks) => ticks.map((value) => (value === null ? '' : short(value))),
});

const dots = (name, size) => ({
  stroke: () => colour(name),
  paths: () => null,
  points: { show: true, size, fill: () => colour(name), width: 0 },
});

// A dashed line at the threshold of either side.
const thresholdLines = ([first, second]) => (plot) => {
  const { ctx, bbox } = plot;
  const x = plot.valToPos(first, 'x', true);
  const y = plot.valToPos(second, 'y', true);
  ctx.save();
  ctx.strokeStyle = colour('--ink');
  ctx.setLineDash([5, 3]);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
};

// ``points``: [row, score, score]; ``strong`` says which of them stand out.
export function Scatter({ label, points, names, thresholds, strong }) {
  const place = useRef(null);
  const plot = useRef(null);
  const width = Math.max(240, useWidth(place));
  useLayoutEffect(() => {
    const sorted = [...points].sort((a, b) => a[1] - b[1]);
    const of = (wanted) => sorted.map((point) => (strong(point) === wanted ? point[2] : null));
    const options = {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: false, distr: 4 }, y: { distr: 4 } }, // symmetric log scales
      axes: [axis(names[0], 34), axis(names[1], 56)],
      series: [{}, dots('--normal', 4), dots('--anomaly', 7)],
      hooks: { draw: [thresholdLines(thresholds)] },
    };
    plot.current = new uPlot(options, [sorted.map((point) => point[1]), of(false), of(true)], place.current);
    const redraw = () => plot.current.redraw();
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', redraw);
    return () => {
      dark.removeEventListener('change', redraw);
      plot.current.destroy();
    };
  }, [points]);
  useLayoutEffect(() => plot.current.setSize({ width, height: HEIGHT }), [width]);
  return html`<div class="plot" role="img" aria-label=${label} ref=${place} />`;
}
