// Drift since training: one line per column, the most drifted first.

import { Legend, named, Sheet, Table } from './components.js';
import { chosen, count, percent, plural } from './text.js';
import { html } from './vendor/preact.js';

const VERDICTS = {
  strong: ['anomaly', 'strong drift'],
  some: ['warn', 'some drift'],
  none: ['good', 'no drift'],
  'too few rows': ['quiet', 'too few rows to tell'],
};
const COLUMNS = [
  ['Column'],
  ['Verdict'],
  ['Training and now', 'wide'],
  ['Largest difference', 'change wide'],
  ['Missing', 'number missing'],
  ['PSI', 'number index'],
];
const FIRST_COLUMNS = 12; // before the button for more
const WIDTH = 144;
const HEIGHT = 36;

function summary(d) {
  const drifted = d.n_some + d.n_strong;
  const unknown = d.n_unknown ? ` For ${plural(d.n_unknown, 'column')}, this table has too few rows to tell.` : '';
  if (d.n_unknown === d.n_columns) return 'This table has too few rows to tell whether it has drifted.';
  if (!drifted) return `No column that the model uses has drifted.${unknown}`;
  const strongly = d.n_strong === drifted ? ' strongly' : d.n_strong ? `, ${count(d.n_strong)} of them strongly` : '';
  return (
    `${plural(drifted, 'column')} of ${count(d.n_columns)} ${chosen(drifted, 'has', 'have')} drifted${strongly}. ` +
    `Where a table drifts, more normal rows are flagged; if the drift is intended, fit a new model.${unknown}`
  );
}

function constantsText(constants) {
  const names = constants.map(([name, value]) => (value === null ? name : `${name} (${value})`)).join(', ');
  const [it, has, them] = chosen(constants.length, ['it', 'has', 'it'], ['they', 'have', 'them']);
  return (
    `Excluded from the model because ${it} never varied in training, but ${has} other values now: ${names}. No score ` +
    `takes ${them} into account; fit a new model to include ${them}.`
  );
}

const missingText = ([before, now]) => (before || now ? `${percent(before)} → ${percent(now)}` : 'none');
const difference = (column, i) =>
  `${column.labels[i]}: ${percent(column.before[i])} → ${percent(column.now[i])} of rows`;

// Nothing where the table has too few rows for shares.
function largestDifference(column) {
  if (!column.labels || column.verdict === 'too few rows') return '';
  const size = (i) => Math.abs(column.now[i] - column.before[i]);
  const best = column.now.reduce((largest, _, i) => (size(i) > size(largest) ? i : largest), 0);
  return size(best) < 0.001 ? 'none' : difference(column, best);
}

function PairedBars({ column }) {
  const most = Math.max(...column.before, ...column.now, 0.01);
  const step = WIDTH / column.before.length;
  const label = `${column.name}: ${largestDifference(column) || 'shares in training and now'}`;
  const bars = (shares, shift, tone) =>
    shares.map((share, i) => {
      const size = (share / most) * (HEIGHT - 1);
      const x = (i + shift) * step;
      return html`<rect class=${tone} x=${x} y=${HEIGHT - size} width=${Math.max(1, step * 0.44)} height=${size} />`;
    });
  const tip = (_, i) =>
    html`
      <rect x=${i * step} width=${step} height=${HEIGHT} fill-opacity="0">
        <title>${difference(column, i)}</title>
      </rect>
    `;
  return html`
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} width=${WIDTH} height=${HEIGHT} role="img" aria-label=${label}>
      ${bars(column.before, 0, 'usual')} ${bars(column.now, 0.46, 'normal')} ${column.labels?.map(tip)}
    </svg>
  `;
}

function cellsOf(column) {
  const [tone, text] = VERDICTS[column.verdict];
  return [
    named(column.name),
    html`<span class=${`tag ${tone}`}>${text}</span>`,
    html`<${PairedBars} column=${column} />`,
    largestDifference(column),
    missingText(column.missing),
    column.psi.toFixed(2),
  ];
}

export function Drift({ data: { drift: d, values_shown: shown } }) {
  const isShown = (_, i) => shown || COLUMNS[i][0] !== 'Largest difference'; // which names values
  const unlisted = d.n_columns - d.columns.length;
  return html`
    <${Sheet} title="Drift since training">
      <p id="drift-note">${summary(d)}</p>
      ${d.constants.length > 0 && html`<p id="drift-constants">${constantsText(d.constants)}</p>`}
      <${Legend} entries=${[
        ['usual', 'training rows'],
        ['normal', 'this table'],
        ['', 'PSI: population stability index; some drift from 0.10, strong from 0.25, unless chance explains it'],
      ]} />
      <${Table} id="drift" label="Drift by column" kind="stacked" columns=${COLUMNS.filter(isShown)}
        rows=${d.columns.map((column) => cellsOf(column).filter(isShown))} few=${FIRST_COLUMNS} what="columns" />
      ${unlisted > 0 && html`
        <p class="quiet">${plural(unlisted, 'column')} with less drift ${chosen(unlisted, 'is', 'are')} not listed.</p>
      `}
    <//>
  `;
}
