// The loss over the training steps, on a logarithmic axis: one curve per training.

import { count, draw, make, responsive, short, write } from './dom.js';

const TALL = 200;

// Returns a function that shows curves ({step: [...], total: [...], held_out: [...] or none}) of a training of ``last``
// steps; it may be called again while a training goes on.
export function lossChart(container, { empty, live = false }) {
  let curves = [];
  let last = 1;
  let width = 0;

  function paint() {
    const logs = curves
      .flatMap((c) => [...c.total, ...(c.held_out || [])])
      .filter((v) => v > 0)
      .map(Math.log);
    if (!logs.length) {
      container.replaceChildren(make('p', { class: 'quiet', text: empty }));
      return;
    }
    const low = Math.min(...logs);
    const high = Math.max(...logs, low + 0.1);
    const x = (step) => 52 + (step / last) * (width - 66);
    const y = (value) => 10 + ((high - Math.max(Math.log(value), low)) / (high - low)) * (TALL - 50);
    const newest = curves[curves.length - 1];
    const now = newest.total[newest.total.length - 1];
    const svg = draw('svg', {
      viewBox: `0 0 ${width} ${TALL}`,
      role: 'img',
      'aria-label': `Loss over the training steps, ${live ? 'now' : 'in the end'} ${short(now)}`,
    });
    for (const share of [0, 0.5, 1]) {
      const value = Math.exp(low + share * (high - low));
      svg.append(
        draw('line', { x1: 52, x2: width - 14, y1: y(value), y2: y(value), class: 'stroke-line' }),
        write(short(value), { x: 46, y: y(value) + 4, 'text-anchor': 'end' }),
      );
    }
    const line = (steps, series) =>
      steps.map((step, i) => `${i ? 'L' : 'M'}${x(step).toFixed(1)} ${y(series[i]).toFixed(1)}`).join('');
    for (const curve of curves) {
      const path = line(curve.step, curve.total);
      const end = x(curve.step[curve.step.length - 1]);
      if (curves.length === 1) {
        svg.append(
          draw('path', { d: `${path}L${end} ${TALL - 40}L${x(curve.step[0])} ${TALL - 40}Z`, class: 'area' }),
        );
      }
      svg.append(draw('path', { d: path, class: 'stroke-normal' }));
      if (curve.held_out) svg.append(draw('path', { d: line(curve.step, curve.held_out), class: 'stroke-anomaly' }));
    }
    if (live) {
      svg.append(
        draw('circle', { cx: x(newest.step[newest.step.length - 1]), cy: y(now), r: 4, class: 'fill-normal' }),
      );
    }
    svg.append(
      write('0', { x: 52, y: TALL - 24, 'text-anchor': 'middle' }),
      write(count(last), { x: width - 14, y: TALL - 24, 'text-anchor': 'end' }),
      write(curves.some((c) => c.held_out) ? 'training step; dashed: held-out rows' : 'training step', {
        x: width / 2 + 24,
        y: TALL - 8,
        'text-anchor': 'middle',
      }),
    );
    container.replaceChildren(svg);
  }

  responsive(container, (now) => {
    width = now;
    paint();
  });
  return (found, steps) => {
    curves = found;
    last = Math.max(1, steps);
    if (width) paint();
  };
}
