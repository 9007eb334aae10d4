// Why a row has its score: its columns with reason, observed and expected value, and the terms of the score.

import { Bar, Name, Value } from './components.js';
import { count, percent, plural, pText, short, spaced, sum } from './dom.js';
import { html } from './vendor/preact.js';

const REASONS = 10;

export const observedText = (value) => (value === null ? 'missing' : value);
// A column that lowers the score has no reason to raise it.
export const reasonText = (cell) => (cell.contribution > 0 ? cell.reason : 'lowers the score');

function introduction(data, row) {
  const { threshold } = data.scores;
  const n = data.fitted.n_calibration;
  const least = row.p <= 1 / (n + 0.5)
    ? `, the smallest that ${plural(n, 'calibration row', 'calibration rows')} can give`
    : '';
  const side = row.score > threshold ? 'above' : 'not above';
  return (
    `Row ${count(row.row)} has a score of ${short(row.score)}, ${side} the threshold of ${short(threshold)}. ` +
    `Its p-value is ${pText(row.p)}${least}.`
  );
}

function remainder(data, row) {
  const others = row.rest + sum(row.cells.slice(REASONS).map((c) => c.contribution));
  const n = data.fitted.n_columns - Math.min(REASONS, row.cells.length);
  const columns = n === 1 ? 'column contributes' : `${count(n)} columns contribute`;
  const rest = n > 0 ? `The other ${columns} ${short(others)}. ` : '';
  const terms = Object.entries(row.terms).map(([name, amount]) => `${spaced(name)} ${short(amount)}`);
  return `${rest}Percentages are of all positive contributions. Terms of the score: ${terms.join(', ')}.`;
}

function Reason({ data, cell, largest }) {
  const raises = cell.contribution > 0;
  const part = raises ? ` (${percent(cell.percentage / 100)})` : '';
  return html`
    <div class="column">
      <${Name} text=${data.top.names[cell.column]} />
    </div>
    <div class="reason">
      <${Name} text=${reasonText(cell)} />
    </div>
    ${data.values_shown && html`
      <div class="observed">
        <${Value} text=${observedText(cell.observed)} />
      </div>
      <div class="expected">
        <${Value} text=${cell.expected ?? 'a new value'} />
      </div>
    `}
    <${Bar}
      share=${raises ? (cell.percentage / largest) * 0.6 : 0}
      text=${short(cell.contribution) + part}
      kind=${raises ? '' : 'is-nothing'}
    />
  `;
}

export function Explanation({ data, row }) {
  const shown = data.values_shown;
  const heads = ['Column', 'Reason', ...(shown ? ['Observed', 'Expected'] : []), 'Contribution'];
  const largest = Math.max(...row.cells.map((c) => c.percentage), 1e-30);
  return html`
    <div role="region" aria-label=${`Explanation of row ${row.row}`}>
      <p>${introduction(data, row)}</p>
      <div class=${shown ? 'reasons' : 'reasons valueless'}>
        ${heads.map((text) => html`<div class="head">${text}</div>`)}
        ${row.cells.slice(0, REASONS).map((cell) => html`<${Reason} ...${{ data, cell, largest }} />`)}
      </div>
      <p class="quiet">${remainder(data, row)}</p>
    </div>
  `;
}
