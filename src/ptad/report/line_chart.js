// A line chart over time by uPlot, in the colours of the page.

import { useWidth } from './components.js';
import { html, useLayoutEffect, useRef } from './vendor/preact.js';
import uPlot from './vendor/uplot.js';

const HEIGHT = 220;
const FONT = '12px system-ui, "Liberation Sans", Arial, sans-serif';

// A colour of the style as it is now: light, dark or on paper.
export function colour(name, opacity = 1) {
  const found = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return opacity === 1 ? found : `color-mix(in srgb, ${found} ${100 * opacity}%, transparent)`;
}

const stroke = (name) => (name.startsWith('--') ? () => colour(name) : name);

function optionsOf({ series, bands, axis, range, name, tick }, width) {
  const lines = { stroke: () => colour('--quiet'), font: FONT, ticks: { show: false } };
  const grid = { stroke: () => colour('--line'), width: 1 };
  return {
    width,
    height: HEIGHT,
    cursor: { sync: { key: 'ptad' }, drag: { x: false, y: false } },
    legend: { live: true },
    tzDate: (seconds) => uPlot.tzDate(new Date(1000 * seconds), 'Etc/UTC'),
    scales: { x: { time: true }, y: range ? { range } : {} },
    series: [
      { label: 'period', value: (_, seconds) => (seconds === null ? 'point at the chart' : name(seconds)) },
      ...series.map((line) => ({
        ...line,
        stroke: stroke(line.stroke),
        value: (_, value) => (value === null || value === undefined ? '–' : line.value(value)),
        points: { show: Boolean(line.points), fill: stroke(line.stroke) },
      })),
    ],
    bands,
    axes: [
      { ...lines, grid: { show: false }, size: 30, space: 80, values: (_, splits) => splits.map((x) => tick(x)) },
      { ...lines, grid, size: 56, values: (_, splits) => splits.map((y) => axis(y)) },
    ],
  };
}

// ``data``: times in seconds, then the values of every line; ``name`` and ``tick`` write a time, ``axis`` a value.
export function LineChart({ label, data, ...options }) {
  const place = useRef(null);
  const plot = useRef(null);
  const width = Math.max(240, useWidth(place));
  useLayoutEffect(() => {
    plot.current = new uPlot(optionsOf(options, width), data, place.current);
    const canvas = place.current.querySelector('canvas');
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', label);
    const redraw = () => plot.current.redraw();
    const media = ['(prefers-color-scheme: dark)', 'print'].map((query) => matchMedia(query));
    media.forEach((query) => query.addEventListener('change', redraw));
    return () => {
      media.forEach((query) => query.removeEventListener('change', redraw));
      plot.current.destroy();
    };
  }, [data]);
  useLayoutEffect(() => plot.current.setSize({ width, height: HEIGHT }), [width]);
  return html`<div class="chart" ref=${place} />`;
}
