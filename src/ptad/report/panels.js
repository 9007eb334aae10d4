// The quiet parts: the summary, the model, missing values and unseen categories, drivers, the health of the model.

import { bar, card, count, folded, inPercent, listed, make, pairs, percent, plural, sheet, spaced } from './dom.js';
import { lossChart } from './loss_chart.js';

export const TYPE_NAMES = {
  number: 'numeric',
  boolean: 'boolean',
  category: 'categorical',
  text: 'text',
  datetime: 'datetime',
  date: 'date',
  time: 'time of day',
  duration: 'duration',
};

const HELD_OUT = 'The model was fitted on this table: each row is scored by a model that was fitted without it.';

function headline(data) {
  const expected = data.rate * data.n_rows;
  const margin = 3 * Math.sqrt(expected) + 1;
  const n = data.n_flagged;
  const rows = data.n_rows === 1 ? 'The row' : `${plural(n, 'row', 'rows')} of ${count(data.n_rows)}`;
  const start = n
    ? `${rows}${inPercent(n, data.n_rows)} ${n === 1 ? 'is' : 'are'} flagged.`
    : data.n_rows === 1
      ? 'The row is not flagged.'
      : `None of the ${count(data.n_rows)} rows is flagged.`;
  if (data.n_rows < 20) return start;
  const usual =
    `If all rows were normal, about ${count(Math.max(1, expected))} would be flagged at the target false-alarm ` +
    `rate of ${percent(data.rate)}`;
  if (n > expected + margin) return `${start} ${usual}: there are anomalies here, or the table has drifted.`;
  if (n === 0 || n < expected - margin) return `${start} ${usual}.`;
  return `${start} ${usual}: the number alone tells nothing, so look at the highest scores.`;
}

export function summarySheet(data, ...more) {
  const { drift, n_rows: n, n_flagged: flagged } = data;
  const drifted = `${count(drift.n_some + drift.n_strong)} of ${count(drift.n_columns)}`;
  const cards = make(
    'div',
    { id: 'cards', class: 'cards' },
    card(count(n), n === 1 ? 'row scored' : 'rows scored'),
    card(count(flagged), `${flagged === 1 ? 'row' : 'rows'} flagged${inPercent(flagged, n)}`),
    card(percent(data.rate), 'target false-alarm rate'),
    drift.n_unknown === drift.n_columns
      ? card('–', 'drift: too few rows to tell')
      : card(drifted, 'columns have drifted since training'),
    card(count(data.unseen.rows), `${data.unseen.rows === 1 ? 'row' : 'rows'} with unseen categories`),
    card(count(data.missing.rows), `${data.missing.rows === 1 ? 'row' : 'rows'} with missing values`),
  );
  const auc = data.scores.labelled?.auc;
  if (auc !== null && auc !== undefined) cards.append(card(auc.toFixed(3), 'AUC-ROC against the labels'));
  const text = headline(data);
  const note = data.held_out ? make('p', { id: 'held-out', class: 'quiet', text: HELD_OUT }) : null;
  return sheet(
    'Summary',
    make('p', { id: 'headline', class: 'headline', text }),
    note,
    cards,
    cellsNote(data),
    ...more,
  );
}

// Which columns hold missing values and unseen categories.
function cellsNote(data) {
  const named = ({ columns, n_columns: n }) =>
    listed(columns.map(([name, rows]) => `${name} (${plural(rows, 'row', 'rows')})`)) +
    (n > columns.length ? ` of ${count(n)} columns` : '');
  const entries = [
    ['Unseen categories', data.unseen],
    ['Missing values', data.missing],
  ].filter(([, found]) => found.rows);
  const lines = entries.map(([title, found]) => make('li', {}, make('b', { text: `${title}: ` }), named(found)));
  if (data.bad.cells) {
    const columns = listed(data.bad.columns.map(([name, cells]) => `${name} (${plural(cells, 'cell', 'cells')})`));
    lines.push(make('li', {}, make('b', { text: 'Cells that cannot be read, and count as missing: ' }), columns));
  }
  if (!lines.length) return null;
  return make('ul', { id: 'cells', class: 'notes' }, ...lines);
}

export function modelSheet(data) {
  const f = data.fitted;
  const types = Object.entries(f.kinds).map(([kind, n]) => `${count(n)} ${TYPE_NAMES[kind]}`);
  const names = f.columns.map(([name, kind]) => [name, TYPE_NAMES[kind]]);
  const more = f.n_columns - names.length;
  const terms = f.terms.map(([name]) => spaced(name)).join(', ');
  return sheet(
    'The model',
    make(
      'div',
      { id: 'fitted' },
      make('p', {
        text:
          `It uses ${plural(f.n_columns, 'column', 'columns')}: ${types.join(', ')}. It compares rows with ` +
          `${plural(f.n_reference, 'reference row', 'reference rows')}, and its threshold comes from ` +
          `${plural(f.n_calibration, 'calibration row', 'calibration rows')}. ` +
          `${f.terms.length === 1 ? 'The score has one term' : 'Terms of the score'}: ${terms}.`,
      }),
      folded(`Columns (${count(f.n_columns)})`, pairs(more > 0 ? [...names, ['and others', count(more)]] : names)),
      f.excluded.length ? folded(`Excluded columns (${count(f.excluded.length)})`, pairs(f.excluded)) : null,
      data.ignored.length
        ? make('p', {
            class: 'quiet',
            text: `Columns that the model does not know, and ignores: ${data.ignored.join(', ')}.`,
          })
        : null,
    ),
  );
}

export function driversSheet(data) {
  const grid = make('div', { id: 'drivers', class: 'bars' });
  const n = data.n_flagged;
  const largest = Math.max(...data.drivers.map((d) => d.share), 1e-30);
  for (const { name, share, first } of data.drivers) {
    const main = first > 0 ? `main reason of ${plural(first, 'row', 'rows')}` : '';
    const text = n > 1 ? [percent(share), main].filter(Boolean).join(', ') : main;
    grid.append(make('div', { text: name }), bar((share / largest) * 0.6, text));
  }
  const text = data.drivers.length
    ? 'The share of each column in the positive contributions of flagged rows, on average, and of how many rows it ' +
      'is the main reason.'
    : 'No row is flagged, so there is nothing to explain.';
  return sheet('Contributions by column', make('p', { text }), grid);
}

export function healthSheet(data) {
  const curves = data.health.history;
  const parts = [
    make(
      'div',
      {},
      make('h3', { text: 'Synthetic anomalies' }),
      make('p', {
        class: 'quiet',
        text:
          'How often the model scores a synthetic anomaly higher than a normal row that it was not fitted on ' +
          '(AUC-ROC). 50\u00a0% is guessing.',
      }),
      synthetic(data),
    ),
  ];
  if (curves.length) {
    const history = make('div', { id: 'history', class: 'chart' });
    lossChart(history, { empty: '' })(curves, Math.max(1, ...curves.flatMap((c) => c.step)));
    const note = make('p', { class: 'quiet', text: 'The loss should fall and then flatten.' });
    parts.push(make('div', {}, make('h3', { text: 'Training' }), note, history));
  }
  return sheet('Health of the model', make('div', { class: parts.length > 1 ? 'two' : '' }, ...parts));
}

function synthetic(data) {
  const kinds = {
    local: 'Local: somewhat away from its own group',
    global: 'Global: any value in any column',
    dependency: 'Dependency: usual values, unusual combination',
    clustered: 'Clustered: a group of rows, all elsewhere',
  };
  const grid = make('div', { id: 'synthetic', class: 'bars' });
  for (const [kind, auc] of Object.entries(data.health.synthetic)) {
    const nothing = make('div', { class: 'quiet', text: 'not possible with these rows and columns' });
    grid.append(
      make('div', { text: kinds[kind] }),
      auc === null ? nothing : bar(auc * 0.6, percent(auc), 'is-normal'),
    );
  }
  return grid;
}

export const settingsSheet = (data) =>
  sheet(
    'Settings and versions',
    make(
      'div',
      { id: 'settings' },
      pairs(Object.entries(data.versions)),
      folded('All settings', pairs(data.settings)),
    ),
  );
