// Why a row has its score: its columns with reason, observed and expected value, and the terms of the score.

import { Bar, named, valued } from './components.js';
import { count, percent, plural, pText, short, spaced, sum } from './text.js';
import { html } from './vendor/preact.js';

const REASONS = 10;

// The number of a row in its file, and the file if there are several; older reports only have a position.
export const rowNumber = (row) => row.number ?? row.row;
export const rowName = (row) => count(rowNumber(row)) + (row.file ? ` of ${row.file}` : '');
export const observedText = (value) => (value === null ? 'missing' : value);
// A column that lowers the score has no reason to raise it.
export const reasonText = (cell) => (cell.contribution > 0 ? cell.reason : 'lowers the score');

function introduction(data, row) {
  const { threshold } = data.scores;
  const n = data.fitted.n_calibration;
  const least = row.p <= 1 / (n + 0.5) ? `, the smallest that ${plural(n, 'calibration row')} can give` : '';
  const side = row.score > threshold ? 'above' : 'not above';
  return (
    `Row ${rowName(row)} has a score of ${short(row.score)}, ${side} the threshold of ${short(threshold)}. ` +
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

export function Explanation({ data, row }) {
  const shown = data.values_shown;
  const heads = ['Column', 'Reason', ...(shown ? ['Observed', 'Expected'] : []), 'Contribution'];
  const largest = Math.max(...row.cells.map((c) => c.percentage), 1e-30);
  const reason = (cell) => {
    const share = cell.contribution > 0 ? cell.percentage : 0;
    const text = short(cell.contribution) + (cell.contribution > 0 ? ` (${percent(share / 100)})` : '');
    return html`
      <div class="column">${named(data.top.names[cell.column])}</div>
      <div class="quiet">${named(reasonText(cell))}</div>
      ${shown && html`
        <div class="observed">${valued(observedText(cell.observed))}</div>
        <div class="expected">${valued(cell.expected ?? 'a new value')}</div>
      `}
      <${Bar} share=${(share / largest) * 0.6} text=${text} />
    `;
  };
  return html`
    <div role="region" aria-label=${`Explanation of row ${rowName(row)}`}>
      <p>${introduction(data, row)}</p>
      <div class=${shown ? 'reasons' : 'reasons valueless'}>
        ${heads.map((text) => html`<b class="head">${text}</b>`)} ${row.cells.slice(0, REASONS).map(reason)}
      </div>
      <p class="quiet">${remainder(data, row)}</p>
    </div>
  `;
}
