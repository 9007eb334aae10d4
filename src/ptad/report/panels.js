// The sections without controls: summary, model, contributions by column, health of the model, settings.

import { Bar, Bars, Cards, Excluded, Folded, named, Pairs, Sheet } from './components.js';
import { LossChart } from './plot.js';
import { chosen, count, inPercent, listed, percent, plural, spaced, TYPE_NAMES } from './text.js';
import { html } from './vendor/preact.js';

const SYNTHETIC = {
  local: 'Local: somewhat away from its own group',
  global: 'Global: any value in any column',
  dependency: 'Dependency: usual values, unusual combination',
  clustered: 'Clustered: a group of rows, all elsewhere',
};

function headline({ rate, n_rows: all, n_flagged: n }) {
  const expected = rate * all;
  const margin = 3 * Math.sqrt(expected) + 1;
  const every = all === 1 ? 'The row' : `All ${count(n)} rows`;
  const rows = n === all ? every : `${plural(n, 'row')} of ${count(all)}`;
  const none = all === 1 ? 'The row is not flagged.' : `None of the ${count(all)} rows is flagged.`;
  const start = n ? `${rows}${inPercent(n, all)} ${chosen(n, 'is', 'are')} flagged.` : none;
  if (all < 20) return start;
  const usual =
    `If all rows were normal, about ${count(Math.max(1, expected))} would be flagged at the target false-alarm ` +
    `rate of ${percent(rate)}`;
  if (n > expected + margin) return `${start} ${usual}: there are anomalies here, or the table has drifted.`;
  if (n === 0 || n < expected - margin) return `${start} ${usual}.`;
  return `${start} ${usual}: this number alone does not show whether there are anomalies, so look at the highest ` +
    'scores.';
}

// Which columns hold missing values and unseen categories.
function Cells({ data }) {
  const where = ({ columns, n_columns: n }) =>
    listed(columns.map(([name, rows]) => `${name} (${plural(rows, 'row')})`)) +
    (n > columns.length ? ` of ${count(n)} columns` : '');
  const entries = [['Unseen categories', data.unseen], ['Missing values', data.missing]];
  const filled = entries.filter(([, cells]) => cells.rows);
  return filled.length > 0 && html`
    <ul id="cells" class="notes">
      ${filled.map(([title, cells]) => html`<li><b>${title}: </b>${named(where(cells))}</li>`)}
    </ul>
  `;
}

// Notes at the top of the page, and the cells that could not be read.
function Notes({ data: { notes = [], bad = { cells: 0, columns: [] } } }) {
  const where = listed(bad.columns.map(([name, n]) => `${name} (${count(n)})`));
  const unread = `${plural(bad.cells, 'cell')} could not be read and ${
    chosen(bad.cells, 'counts', 'count')
  } as missing`;
  const all = bad.cells ? [...notes, { id: 'bad-cells', text: `${unread}: ${where}.` }] : notes;
  return all.length > 0 && html`
    <ul id="notes" class="warnings" aria-label="Notes">${all.map(({ id, text }) =>
      html`<li id=${id}>${text}</li>`
    )}</ul>
  `;
}

export function Summary({ data }) {
  const { drift, n_rows: n, n_flagged: flagged, missing, unseen } = data;
  const drifted = drift.n_some + drift.n_strong;
  const auc = data.scores.labelled?.auc ?? null;
  const known = data.training_table ? 'AUC-ROC, anomalies of the training table' : 'AUC-ROC against the labels';
  const rows = (k) => chosen(k, 'row', 'rows');
  const cards = [
    [count(n), `${rows(n)} scored`],
    [count(flagged), `${rows(flagged)} flagged${inPercent(flagged, n)}`, flagged ? 'anomaly' : ''],
    [percent(data.rate), 'target false-alarm rate'],
    drift.n_unknown === drift.n_columns ? ['–', 'drift: too few rows to tell'] : [
      `${count(drifted)} of ${count(drift.n_columns)}`,
      'columns have drifted since training',
      drifted ? 'warn' : '',
    ],
    [count(unseen.rows), `${rows(unseen.rows)} with unseen categories`, unseen.rows ? 'warn' : ''],
    [count(missing.rows), `${rows(missing.rows)} with missing values`],
    ...(auc === null ? [] : [[auc.toFixed(3), known]]),
  ];
  return html`
    <${Notes} data=${data} />
    <${Sheet} title="Summary">
      <p id="headline" class="headline">${headline(data)}</p>
      <${Cards} id="cards" entries=${cards} />
      <${Cells} data=${data} />
      <//>
  `;
}

export function Model({ data: { fitted: f, ignored } }) {
  const types = Object.entries(f.types).map(([type, n]) => `${count(n)} ${TYPE_NAMES[type]}`);
  const names = f.columns.map(([name, type]) => [name, TYPE_NAMES[type]]);
  const more = f.n_columns - names.length;
  const text = `It uses ${plural(f.n_columns, 'column')}: ${types.join(', ')}. It compares rows with ` +
    `${plural(f.n_reference, 'reference row')}, and its threshold comes from ` +
    `${plural(f.n_calibration, 'calibration row')}. ` +
    `${f.terms.length === 1 ? 'The score has one term' : 'Terms of the score'}: ` +
    `${f.terms.map(([name]) => spaced(name)).join(', ')}.`;
  return html`
    <${Sheet} title="The model">
      <div id="fitted">
        <p>${text}</p>
        <${Folded} summary=${`Columns (${count(f.n_columns)})`}>
          <${Pairs} entries=${more > 0 ? [...names, ['and others', count(more)]] : names} />
        <//>
        <${Excluded} entries=${f.excluded} />
        ${ignored.length > 0 && html`
          <p class="quiet">Ignored columns (not in the training table): ${ignored.join(', ')}.</p>
        `}
      </div>
    <//>
  `;
}

export function Drivers({ data: { drivers, n_flagged: n } }) {
  const largest = Math.max(...drivers.map((d) => d.share), 1e-30);
  const text = ({ share, first }) => {
    const main = first > 0 ? `main reason of ${plural(first, 'row')}` : '';
    return n > 1 ? [percent(share), main].filter(Boolean).join(', ') : main;
  };
  const bar = (driver) => html`<${Bar} share=${(driver.share / largest) * 0.6} text=${text(driver)} />`;
  return html`
    <${Sheet} title="Contributions by column">
      <p>
        ${drivers.length
          ? 'The share of each column in the positive contributions of flagged rows, on average, and of how many ' +
            'rows it is the main reason.'
          : 'No row is flagged, so there is nothing to explain.'}
      </p>
      <${Bars} id="drivers" entries=${drivers.map((driver) => [driver.name, bar(driver)])} />
      <//>
  `;
}

export function Health({ data: { health } }) {
  const curves = health.history;
  const bar = (auc) =>
    auc === null
      ? html`<div class="quiet">not possible with these rows and columns</div>`
      : html`<${Bar} share=${auc * 0.6} text=${percent(auc)} tone="normal" />`;
  return html`
    <${Sheet} title="Health of the model">
      <div class=${curves.length ? 'two grid' : ''}>
        <div>
          <h3>Synthetic anomalies</h3>
          <p class="quiet">
            How often the model scores a synthetic anomaly higher than a normal row that it was not fitted on
            (AUC-ROC). 50${'\u00a0'}% is guessing.
          </p>
          <${Bars} id="synthetic"
            entries=${Object.entries(health.synthetic).map(([kind, auc]) => [SYNTHETIC[kind], bar(auc)])} />
        </div>
        ${curves.length > 0 && html`
          <div>
            <h3>Training</h3>
            <p class="quiet">The loss should fall and then flatten.</p>
            <${LossChart} id="history" curves=${curves} last=${Math.max(...curves.flatMap((c) => c.step))} />
          </div>
        `}
      </div>
      <//>
  `;
}

export const Settings = ({ data }) =>
  html`
    <${Sheet} title="Settings and versions">
      <div id="settings">
        <${Pairs} entries=${Object.entries(data.versions)} />
        <${Folded} summary="All settings">
          <${Pairs} entries=${data.settings} />
          <//>
          </div>
          <//>
  `;
