// Drift since training: one line per column, the most drifted first.

import { count, draw, heading, legend, limited, make, percent, plural, scroller, sheet } from './dom.js';

const VERDICTS = {
  strong: ['strong', 'strong drift'],
  some: ['some', 'some drift'],
  none: ['none', 'no drift'],
  'too few rows': ['unknown', 'too few rows to tell'],
};
const HEADS = ['Column', 'Verdict', 'Training and now', 'Largest difference', 'Missing', 'PSI'];

function summary(d) {
  const drifted = d.n_some + d.n_strong;
  const unknown = d.n_unknown
    ? ` For ${plural(d.n_unknown, 'column', 'columns')}, this table has too few rows to tell.`
    : '';
  if (d.n_unknown === d.n_columns) return 'This table has too few rows to tell whether it has drifted.';
  if (!drifted) return `No column that the model uses has drifted.${unknown}`;
  const strongly = d.n_strong === drifted ? ' strongly' : d.n_strong ? `, ${count(d.n_strong)} of them strongly` : '';
  return (
    `${plural(drifted, 'column', 'columns')} of ${count(d.n_columns)} ${drifted === 1 ? 'has' : 'have'} drifted` +
    `${strongly}. Where a table drifts, more normal rows are flagged; if the drift is meant, fit a new model.${unknown}`
  );
}

export function driftSheet(data) {
  const d = data.drift;
  const body = make('tbody', {}, ...d.columns.map(line));
  const heads = HEADS.map((text, i) => heading(text, i > 3 ? 'number' : ''));
  const inner = make('table', {}, make('thead', {}, make('tr', {}, ...heads)), body);
  const table = scroller('drift', 'Drift by column', inner);
  const found = sheet(
    'Drift since training',
    make('p', { id: 'drift-note', text: summary(d) }),
    constantsNote(d.constants),
    legend(
      ['is-usual', 'training rows'],
      ['is-normal', 'this table'],
      ['', 'PSI: population stability index; some drift from 0.10, strong from 0.25, unless chance explains it'],
    ),
    table,
  );
  limited(table, [...body.children], 12, 'columns');
  const more = d.n_columns - d.columns.length;
  if (more > 0) {
    const text = `${plural(more, 'column', 'columns')} with less drift ${more === 1 ? 'is' : 'are'} not listed.`;
    found.append(make('p', { class: 'quiet', text }));
  }
  return found;
}

function constantsNote(constants) {
  if (!constants.length) return null;
  const names = constants.map(([name, value]) => (value === null ? name : `${name} (${value})`)).join(', ');
  const text =
    `Excluded from the model because it never varied in training, but has other values now: ${names}. No score ` +
    'takes it into account; fit a new model to include it.';
  return make('p', { id: 'drift-constants', text });
}

function line(column) {
  const [kind, text] = VERDICTS[column.verdict];
  return make(
    'tr',
    {},
    make('th', { text: column.name, attributes: { scope: 'row' } }),
    make('td', {}, make('span', { class: `tag ${kind}`, text })),
    make('td', {}, pairedBars(column)),
    make('td', { class: 'change', text: largestDifference(column) }),
    make('td', { class: 'number missing', text: missingText(column.missing) }),
    make('td', { class: 'number index', text: column.psi.toFixed(2) }),
  );
}

const missingText = ([before, now]) => (before || now ? `${percent(before)} → ${percent(now)}` : 'none');

function pairedBars(column) {
  const [width, height, n] = [144, 36, column.before.length];
  const most = Math.max(...column.before, ...column.now, 0.01);
  const label = `${column.name}: ${largestDifference(column) || 'shares in training and now'}`;
  const svg = draw('svg', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label });
  const step = width / n;
  for (let i = 0; i < n; i += 1) {
    for (
      const [share, kind, shift] of [
        [column.before[i], 'fill-usual', 0],
        [column.now[i], 'fill-normal', 0.46],
      ]
    ) {
      const size = (share / most) * (height - 1);
      const [x, y] = [(i + shift) * step, height - size];
      svg.append(draw('rect', { x, y, width: Math.max(1, step * 0.44), height: size, class: kind }));
    }
    if (column.labels) {
      const tip = draw('title', {}, difference(column, i));
      svg.append(draw('rect', { x: i * step, y: 0, width: step, height, 'fill-opacity': 0 }, tip));
    }
  }
  return svg;
}

const difference = (column, i) =>
  `${column.labels[i]}: ${percent(column.before[i])} → ${percent(column.now[i])} of rows`;

// Of a handful of rows, shares would say more than is known.
function largestDifference(column) {
  if (!column.labels || column.verdict === 'too few rows') return '';
  const size = (i) => Math.abs(column.now[i] - column.before[i]);
  const best = column.now.reduce((found, _, i) => (size(i) > size(found) ? i : found), 0);
  return size(best) < 0.001 ? 'none' : difference(column, best);
}
