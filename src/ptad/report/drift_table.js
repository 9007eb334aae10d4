// Drift since training: one line per column, the most drifted first.

import { Legend, mounted, Name, Scroller, Sheet, useLimit } from './components.js';
import { count, percent, plural } from './dom.js';
import { html, useRef } from './vendor/preact.js';

const VERDICTS = {
  strong: ['strong', 'strong drift'],
  some: ['some', 'some drift'],
  none: ['none', 'no drift'],
  'too few rows': ['unknown', 'too few rows to tell'],
};
const HEADS = ['Column', 'Verdict', 'Training and now', 'Largest difference', 'Missing', 'PSI'];
const FIRST_COLUMNS = 12; // shown before one asks for more
const WIDTH = 144;
const HEIGHT = 36;

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

function constantsText(constants) {
  const names = constants.map(([name, value]) => (value === null ? name : `${name} (${value})`)).join(', ');
  const [it, has] = constants.length === 1 ? ['it', 'has'] : ['they', 'have'];
  return (
    `Excluded from the model because ${it} never varied in training, but ${has} other values now: ${names}. No score ` +
    `takes ${it === 'it' ? 'it' : 'them'} into account; fit a new model to include ${it === 'it' ? 'it' : 'them'}.`
  );
}

const missingText = ([before, now]) => (before || now ? `${percent(before)} → ${percent(now)}` : 'none');
const difference = (column, i) =>
  `${column.labels[i]}: ${percent(column.before[i])} → ${percent(column.now[i])} of rows`;

// Of a handful of rows, shares would say more than is known.
function largestDifference(column) {
  if (!column.labels || column.verdict === 'too few rows') return '';
  const size = (i) => Math.abs(column.now[i] - column.before[i]);
  const best = column.now.reduce((found, _, i) => (size(i) > size(found) ? i : found), 0);
  return size(best) < 0.001 ? 'none' : difference(column, best);
}

function PairedBars({ column }) {
  const most = Math.max(...column.before, ...column.now, 0.01);
  const step = WIDTH / column.before.length;
  const label = `${column.name}: ${largestDifference(column) || 'shares in training and now'}`;
  const bar = (share, i, shift, kind) => {
    const size = (share / most) * (HEIGHT - 1);
    const x = (i + shift) * step;
    return html`<rect class=${kind} x=${x} y=${HEIGHT - size} width=${Math.max(1, step * 0.44)} height=${size} />`;
  };
  const tip = (text, i) =>
    html`
      <rect x=${i * step} y="0" width=${step} height=${HEIGHT} fill-opacity="0">
        <title>${text}</title>
      </rect>
    `;
  return html`
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} width=${WIDTH} height=${HEIGHT} role="img" aria-label=${label}>
      ${column.before.map((share, i) => bar(share, i, 0, 'fill-usual'))}
      ${column.now.map((share, i) => bar(share, i, 0.46, 'fill-normal'))}
      ${column.labels && column.labels.map((_, i) => tip(difference(column, i), i))}
    </svg>
  `;
}

function Line({ column }) {
  const [kind, text] = VERDICTS[column.verdict];
  return html`
    <tr>
      <th scope="row">
        <${Name} text=${column.name} />
      </th>
      <td><span class=${`tag ${kind}`}>${text}</span></td>
      <td>
        <${PairedBars} column=${column} />
      </td>
      <td class="change">${largestDifference(column)}</td>
      <td class="number missing">${missingText(column.missing)}</td>
      <td class="number index">${column.psi.toFixed(2)}</td>
    </tr>
  `;
}

export function Drift({ data: { drift: d } }) {
  const place = useRef(null);
  const [few, more] = useLimit(d.columns.length, FIRST_COLUMNS, place);
  const unlisted = d.n_columns - d.columns.length;
  return html`
    <${Sheet} title="Drift since training">
      <p id="drift-note">${summary(d)}</p>
      ${d.constants.length > 0 && html`<p id="drift-constants">${constantsText(d.constants)}</p>`}
      <${Legend} entries=${[
        ['is-usual', 'training rows'],
        ['is-normal', 'this table'],
        ['', 'PSI: population stability index; some drift from 0.10, strong from 0.25, unless chance explains it'],
      ]} />
      <${Scroller} id="drift" label="Drift by column" place=${place}>
        <table>
          <thead><tr>
            ${HEADS.map((text, i) => html`<th scope="col" class=${i > 3 ? 'number' : ''}>${text}</th>`)}
          </tr></thead>
          <tbody>${d.columns.slice(0, few).map((column) =>
            html`<${Line} key=${column.name} column=${column} />`
          )}</tbody>
        </table>
      <//>
      ${more('columns')}
      ${unlisted > 0 && html`
        <p class="quiet">
          ${plural(unlisted, 'column', 'columns')} with less drift ${unlisted === 1 ? 'is' : 'are'} not listed.
        </p>
      `}
    <//>
  `;
}

export const driftSheet = (data) => mounted(html`<${Drift} data=${data} />`);
