// Charts by uPlot, in the colours of the page.

import { useWidth } from './components.js';
import { count, short } from './text.js';
import { html, useLayoutEffect, useRef } from './vendor/preact.js';
import uPlot from './vendor/uplot.js';

const FONT = '12px system-ui, "Liberation Sans", Arial, sans-serif';
export const DASH = [5, 3];

// A colour of the current style: light, dark or print.
export function colour(plot, name, opacity = 1) {
  plot.root.style.color = `color-mix(in srgb, var(--${name}) ${100 * opacity}%, transparent)`;
  return getComputedStyle(plot.root).color;
}

const axisOf = ({ text = short, grid = true, ...options }) => ({
  font: FONT,
  labelFont: FONT,
  labelSize: 22,
  stroke: (plot) => colour(plot, 'quiet'),
  grid: { show: grid, stroke: (plot) => colour(plot, 'line'), width: 1 },
  ticks: { show: false },
  values: ({ scales }, ticks, axis) => {
    const { min, max } = scales[axis ? 'y' : 'x'];
    const names = ticks.map((at) => (at === null || at < min || at > max ? '' : text(at)));
    return names.map((name, i) => (name === names[i - 1] ? '' : name)); // two ticks may lie in one period
  },
  ...options,
});

// A series without a ``tone`` is not drawn.
function seriesOf({ tone, text = short, points, ...options }) {
  const stroke = (plot) => (tone ? colour(plot, tone) : 'transparent');
  const value = (_, at) => (at === null || at === undefined ? '–' : text(at));
  return { stroke, value, points: { show: false, fill: stroke, ...points }, ...options };
}

// ``data``: positions on the x axis, then the values of every series. ``x``, ``y`` and ``series`` are options of uPlot,
// with a ``text`` that formats a value and the name of a colour as ``tone``. Only data and label may change later.
export function Plot({ id, label, data, x, y, first = {}, series, height = 220, ...options }) {
  const place = useRef(null);
  const plot = useRef(null);
  const width = Math.max(240, useWidth(place));
  useLayoutEffect(() => {
    const drawn = {
      axes: [axisOf({ size: 34, ...x }), axisOf({ size: 56, ...y })],
      series: [first, ...series.map(seriesOf)],
    };
    const quiet = { legend: { show: false }, cursor: { show: false } };
    plot.current = new uPlot({ width, height, ...quiet, ...drawn, ...options }, data, place.current);
    const redraw = () => plot.current.redraw();
    const media = ['(prefers-color-scheme: dark)', 'print'].map((query) => matchMedia(query));
    media.forEach((query) => query.addEventListener('change', redraw));
    return () => {
      media.forEach((query) => query.removeEventListener('change', redraw));
      plot.current.destroy();
    };
  }, []);
  useLayoutEffect(() => {
    const canvas = place.current.querySelector('canvas');
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', label);
  }, [label]);
  useLayoutEffect(() => plot.current.setData(data), [data]);
  useLayoutEffect(() => plot.current.setSize({ width, height }), [width]);
  return html`<div id=${id} class="plot" ref=${place} />`;
}

// The training loss over the steps, on a logarithmic axis: one curve of {step, total, held_out or none} per training.
// During training (``live``), a dot marks the current step.
export function LossChart({ id, curves, last, live = false }) {
  const logs = (values) => values.map((value) => (value > 0 ? Math.log(value) : null));
  const area = { fill: (plot) => colour(plot, 'normal', 0.12), fillTo: (plot) => plot.scales.y.min };
  const dot = { show: true, size: 8, filter: (plot, n) => [plot.data[n].findLastIndex(Number.isFinite)] };
  const isNow = (step, i) => i === curves.length - 1 && (live || step.length === 1); // one point makes no line
  const lines = curves.flatMap(({ step, total, held_out: heldOut }, i) => [
    [step, logs(total), {
      tone: 'normal',
      width: 2,
      ...(curves.length === 1 ? area : {}),
      points: isNow(step, i) ? dot : {},
    }],
    ...(heldOut ? [[step, logs(heldOut), { tone: 'anomaly', width: 2, dash: DASH }]] : []),
  ]);
  const dashed = lines.length > curves.length ? '; dashed: held-out rows' : '';
  return html`
    <${Plot} key=${`${lines.length} ${last}`} id=${id} height=${200}
      label=${`Loss over the training steps, ${live ? 'now' : 'in the end'} ${short(curves.at(-1).total.at(-1))}`}
      data=${uPlot.join(lines.map(([step, values]) => [step, values]))} series=${lines.map(([, , series]) => series)}
      x=${{ text: count, grid: false, label: `training step${dashed}` }}
      y=${{ text: (log) => short(Math.exp(log)), splits: (_, __, low, high) => [low, (low + high) / 2, high] }}
      scales=${{
        x: { time: false, range: [0, last] },
        y: { range: (_, low, high) => [low, Math.max(high, low + 0.1)] },
      }}
    />
  `;
}
