// Why a row has its score: its columns with reason, observed and expected value, and the terms of the score.

import { bar, count, make, percent, plural, pText, short, spaced, sum } from './dom.js';

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

export function explanation(data, row) {
  const { top, values_shown: shown } = data;
  const box = make('div', { attributes: { role: 'region', 'aria-label': `Explanation of row ${row.row}` } });
  box.append(make('p', { text: introduction(data, row) }));
  const grid = make('div', { class: shown ? 'reasons' : 'reasons valueless' });
  const head = ['Column', 'Reason', ...(shown ? ['Observed', 'Expected'] : []), 'Contribution'];
  grid.append(...head.map((text) => make('div', { text, class: 'head' })));
  const largest = Math.max(...row.cells.map((c) => c.percentage), 1e-30);
  for (const cell of row.cells.slice(0, REASONS)) {
    const raises = cell.contribution > 0;
    grid.append(make('div', { text: top.names[cell.column], class: 'column' }));
    grid.append(make('div', { text: reasonText(cell), class: 'reason' }));
    if (shown) {
      grid.append(make('div', { text: observedText(cell.observed), class: 'observed' }));
      grid.append(make('div', { text: cell.expected === null ? 'a new value' : cell.expected, class: 'expected' }));
    }
    const text = raises ? `${short(cell.contribution)} (${percent(cell.percentage / 100)})` : short(cell.contribution);
    grid.append(bar(raises ? (cell.percentage / largest) * 0.6 : 0, text, raises ? '' : 'is-nothing'));
  }
  box.append(grid, make('p', { class: 'quiet', text: remainder(data, row) }));
  return box;
}

function remainder(data, row) {
  const others = row.rest + sum(row.cells.slice(REASONS).map((c) => c.contribution));
  const n = data.fitted.n_columns - Math.min(REASONS, row.cells.length);
  const rest = n > 0 ? `The other ${plural(n, 'column contributes', 'columns contribute')} ${short(others)}. ` : '';
  const terms = Object.entries(row.terms).map(([name, amount]) => `${spaced(name)} ${short(amount)}`);
  return `${rest}Percentages are of all positive contributions. Terms of the score: ${terms.join(', ')}.`;
}
