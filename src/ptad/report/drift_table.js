// Has the table changed since training: one line per column, the most changed first.

import { count, draw, heading, legend, limited, make, percent, plural, scroller, sheet } from './dom.js';

const VERDICTS = { strong: 'strong change', some: 'some change', steady: 'steady' };

export function driftSheet(data) {
  const d = data.drift;
  const constants = d.constants || []; // results that were kept from before have none
  const changed = d.n_some + d.n_strong;
  const note = changed
    ? `${plural(changed, 'column', 'columns')} of ${count(d.n_columns)} changed visibly, ${count(d.n_strong)} of them strongly. Where a table changes, more rows look strange; if the change is meant, train a model anew.`
    : `No column ${constants.length ? 'that the model uses ' : ''}changed more than chance explains.`;
  const body = make('tbody', {}, ...d.columns.map((column) => make('tr', {}, make('th', { text: column.name, attributes: { scope: 'row' } }),
    make('td', {}, make('span', { class: `tag ${column.verdict}`, text: VERDICTS[column.verdict] })),
    make('td', {}, twinBars(column)),
    make('td', { class: 'change', text: largestChange(column) }),
    make('td', { class: 'number missing', text: `${percent(column.missing[0])} → ${percent(column.missing[1])}` }),
    make('td', { class: 'number index', text: column.psi.toFixed(2) }))));
  const heads = ['Column', 'Verdict', 'Training and now', 'Largest change (share of rows)', 'Missing', 'Index'].map((text, i) => heading(text, i > 3 ? 'number' : ''));
  const table = scroller('drift', 'Changes by column', make('table', {}, make('thead', {}, make('tr', {}, ...heads)), body));
  const found = sheet('Has the table changed since training?', make('p', { id: 'drift-note', text: note }),
    legend(['is-usual', 'training'], ['is-normal', 'this table'], ['', 'Index: population stability index; from 0.10 some, from 0.25 strong, if chance does not explain it']), table);
  if (constants.length) {
    const names = constants.map(([name, value]) => (value === null ? name : `${name} (${value})`)).join(', ');
    found.querySelector('#drift-note').after(make('p', { id: 'drift-constants', text: `Left out, since it never varied in training, but has other values now: ${names}. No score tells of it; train a model anew that includes it.` }));
  }
  limited(table, [...body.children], 12, 'columns');
  if (d.n_columns > d.columns.length) found.append(make('p', { class: 'quiet', text: `${count(d.n_columns - d.columns.length)} steadier columns are not listed.` }));
  return found;
}

function twinBars(column) {
  const [width, height, n] = [144, 36, column.before.length];
  const most = Math.max(...column.before, ...column.now, 0.01);
  const svg = draw('svg', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': `${column.name}: ${largestChange(column) || 'shares in training and now'}` });
  const step = width / n;
  for (let i = 0; i < n; i += 1) {
    for (const [share, kind, shift] of [[column.before[i], 'fill-usual', 0], [column.now[i], 'fill-normal', 0.46]]) {
      const size = (share / most) * (height - 1);
      svg.append(draw('rect', { x: (i + shift) * step, y: height - size, width: Math.max(1, step * 0.44), height: size, class: kind }));
    }
    if (column.labels) {
      const tip = draw('title', {}, `${column.labels[i]}: ${percent(column.before[i])} → ${percent(column.now[i])}`);
      svg.append(draw('rect', { x: i * step, y: 0, width: step, height, 'fill-opacity': 0 }, tip));
    }
  }
  return svg;
}

function largestChange(column) {
  if (!column.labels) return '';
  let best = 0;
  column.now.forEach((share, i) => {
    if (Math.abs(share - column.before[i]) > Math.abs(column.now[best] - column.before[best])) best = i;
  });
  if (Math.abs(column.now[best] - column.before[best]) < 0.001) return 'none';
  return `${column.labels[best]}: ${percent(column.before[best])} → ${percent(column.now[best])}`;
}
