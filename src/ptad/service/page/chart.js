// Charts that only this page has, drawn by uPlot: lines over time, and a scatter of scores.

import { useWidth } from './components.js';
import { short } from './dom.js';
import { html, useLayoutEffect, useRef, useState } from './vendor/preact.js';
import uPlot from './vendor/uplot.js';

const DAY = 86400;
const dark = matchMedia('(prefers-color-scheme: dark)');
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Draws again when the width or the colours of the page change.
function Plot({ label, data, options, height = 240 }) {
  const place = useRef(null);
  const width = useWidth(place);
  const [scheme, setScheme] = useState(dark.matches);
  useLayoutEffect(() => {
    const change = () => setScheme(dark.matches);
    dark.addEventListener('change', change);
    return () => dark.removeEventListener('change', change);
  }, []);
  useLayoutEffect(() => {
    const plot = new uPlot({ width, height, legend: { show: false }, ...options(colour) }, data, place.current);
    return () => plot.destroy();
  }, [width, scheme, data]);
  return html`<div class="plot" role="img" aria-label=${label} ref=${place} />`;
}

const axis = (more = {}) => ({
  stroke: colour('quiet'),
  grid: { stroke: colour('line'), width: 1 },
  ticks: { stroke: colour('line'), width: 1 },
  font: '12px system-ui, "Liberation Sans", Arial, sans-serif',
  ...more,
});

// A moment, as exactly as the distance of the marks asks for.
const timeText = (_, ticks, _axis, _space, step) =>
  ticks.map((seconds) => {
    const text = new Date(seconds * 1000).toISOString();
    if (step >= 360 * DAY) return text.slice(0, 4);
    if (step >= 27 * DAY) return text.slice(0, 7);
    if (step >= DAY) return text.slice(0, 10);
    return step >= 60 ? text.slice(11, 16) : text.slice(11, 19);
  });

// ``series``: [{name, values, kind}] over ``x``, seconds since 1970; ``text`` writes a value of the vertical axis.
export function TimeChart({ label, x, series, text = short, fromZero = false }) {
  const options = () => ({
    // days and months are those of the table, whatever the zone of the reader
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    cursor: { show: false },
    scales: { y: fromZero ? { range: (_, _low, high) => [0, Math.max(high, 1e-9) * 1.1] } : {} },
    axes: [axis({ space: 84, values: timeText }), axis({ size: 64, values: (_, ticks) => ticks.map(text) })],
    series: [
      {},
      ...series.map(({ name, kind, dash }) => ({
        label: name,
        stroke: colour(kind),
        width: 2,
        dash,
        points: { show: !dash && x.length <= 60, size: 6, fill: colour(kind) },
      })),
    ],
  });
  return html`<${Plot} label=${label} data=${[x, ...series.map((s) => s.values)]} options=${options} />`;
}

// Points [x, y] with a line at the threshold of either side; ``strong`` says which stand out.
export function Scatter({ label, points, names, thresholds, strong }) {
  const sorted = [...points].sort((a, b) => a[1] - b[1]);
  const column = (wanted) => sorted.map((p) => (strong(p) === wanted ? p[2] : null));
  const dots = (kind, size) => ({
    stroke: colour(kind),
    paths: () => null,
    points: { show: true, size, fill: colour(kind), stroke: colour(kind), width: 0 },
  });
  const lines = (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.strokeStyle = colour('ink');
    ctx.setLineDash([5, 3]);
    ctx.beginPath();
    const x = u.valToPos(thresholds[0], 'x', true);
    const y = u.valToPos(thresholds[1], 'y', true);
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.restore();
  };
  const options = () => ({
    cursor: { show: false },
    scales: { x: { time: false, distr: 4 }, y: { distr: 4 } },
    axes: [
      axis({
        label: names[0],
        labelFont: '12px system-ui',
        labelSize: 22,
        values: (_, t) => t.map((v) => v === null ? '' : short(v)),
      }),
      axis({
        label: names[1],
        labelFont: '12px system-ui',
        labelSize: 22,
        size: 56,
        values: (_, t) => t.map((v) => v === null ? '' : short(v)),
      }),
    ],
    series: [{}, dots('normal', 4), dots('anomaly', 7)],
    hooks: { draw: [lines] },
  });
  const data = [sorted.map((p) => p[1]), column(false), column(true)];
  return html`<${Plot} label=${label} data=${data} options=${options} height=${380} />`;
}
