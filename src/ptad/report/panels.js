// The quiet parts: the summary, the model, missing values and unseen categories, drivers, the health of the model.

import { Bar, Card, Folded, mounted, Name, Nodes, Notes, Pairs, Sheet } from './components.js';
import { count, inPercent, listed, percent, plural, spaced } from './dom.js';
import { lossChart } from './loss_chart.js';
import { html, useLayoutEffect, useRef } from './vendor/preact.js';

export const TYPE_NAMES = {
  numeric: 'numeric',
  boolean: 'boolean',
  categorical: 'categorical',
  text: 'text',
  datetime: 'datetime',
  date: 'date',
  time: 'time of day',
  duration: 'duration',
};

const TRAINING_AUC = 'AUC-ROC, anomalies of the training table';
const SYNTHETIC = {
  local: 'Local: somewhat away from its own group',
  global: 'Global: any value in any column',
  dependency: 'Dependency: usual values, unusual combination',
  clustered: 'Clustered: a group of rows, all elsewhere',
};

function headline(data) {
  const expected = data.rate * data.n_rows;
  const margin = 3 * Math.sqrt(expected) + 1;
  const n = data.n_flagged;
  const all = data.n_rows === 1 ? 'The row' : `All ${count(n)} rows`;
  const rows = n === data.n_rows ? all : `${plural(n, 'row', 'rows')} of ${count(data.n_rows)}`;
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

// Which columns hold missing values and unseen categories.
function Cells({ data }) {
  const named = ({ columns, n_columns: n }) =>
    listed(columns.map(([name, rows]) => `${name} (${plural(rows, 'row', 'rows')})`)) +
    (n > columns.length ? ` of ${count(n)} columns` : '');
  const entries = [['Unseen categories', data.unseen], ['Missing values', data.missing]];
  const filled = entries.filter(([, found]) => found.rows);
  if (!filled.length) return null;
  return html`
    <ul id="cells" class="notes">
      ${filled.map(([title, found]) => html`<li><b>${title}: </b><${Name} text=${named(found)} /></li>`)}
    </ul>
  `;
}

// What was said about the table, and cells that could not be read: {cells, columns: [[name, cells], ...]}.
function notesOf({ notes = [], bad }) {
  if (!bad?.cells) return notes;
  const where = listed(bad.columns.map(([name, n]) => `${name} (${count(n)})`));
  const counted = bad.cells === 1 ? 'counts' : 'count';
  const text = `${plural(bad.cells, 'cell', 'cells')} could not be read and ${counted} as missing: ${where}.`;
  return [...notes, { id: 'bad-cells', text }];
}

export function Summary({ data, more = [] }) {
  const { drift, n_rows: n, n_flagged: flagged, missing, unseen } = data;
  const drifted = drift.n_some + drift.n_strong;
  const auc = data.scores.labelled?.auc ?? null;
  return html`
    <${Notes} notes=${notesOf(data)} />
    <${Sheet} title="Summary">
      <p id="headline" class="headline">${headline(data)}</p>
      <div id="cards" class="cards">
        <${Card} value=${count(n)} text=${n === 1 ? 'row scored' : 'rows scored'} />
        <${Card}
          value=${count(flagged)}
          text=${`${flagged === 1 ? 'row' : 'rows'} flagged${inPercent(flagged, n)}`}
          tone=${flagged ? 'bad' : ''}
        />
        <${Card} value=${percent(data.rate)} text="target false-alarm rate" />
        ${drift.n_unknown === drift.n_columns ? html`<${Card} value="–" text="drift: too few rows to tell" />` : html`
          <${Card}
            value=${`${count(drifted)} of ${count(drift.n_columns)}`}
            text="columns have drifted since training"
            tone=${drifted ? 'warn' : ''}
          />
        `}
        <${Card}
          value=${count(unseen.rows)}
          text=${`${unseen.rows === 1 ? 'row' : 'rows'} with unseen categories`}
          tone=${unseen.rows ? 'warn' : ''}
        />
        <${Card} value=${count(missing.rows)} text=${`${missing.rows === 1 ? 'row' : 'rows'} with missing values`} />
        ${auc !== null &&
          html`<${Card} value=${auc.toFixed(3)} text=${
            data.training_table ? TRAINING_AUC : 'AUC-ROC against the labels'
          } />`}
      </div>
      <${Cells} data=${data} />
      <${Nodes} nodes=${more} />
      <//>
  `;
}

export function Model({ data: { fitted: f, ignored } }) {
  const types = Object.entries(f.types).map(([type, n]) => `${count(n)} ${TYPE_NAMES[type]}`);
  const names = f.columns.map(([name, type]) => [name, TYPE_NAMES[type]]);
  const more = f.n_columns - names.length;
  const text = `It uses ${plural(f.n_columns, 'column', 'columns')}: ${types.join(', ')}. It compares rows with ` +
    `${plural(f.n_reference, 'reference row', 'reference rows')}, and its threshold comes from ` +
    `${plural(f.n_calibration, 'calibration row', 'calibration rows')}. ` +
    `${f.terms.length === 1 ? 'The score has one term' : 'Terms of the score'}: ` +
    `${f.terms.map(([name]) => spaced(name)).join(', ')}.`;
  return html`
    <${Sheet} title="The model">
      <div id="fitted">
        <p>${text}</p>
        <${Folded} summary=${`Columns (${count(f.n_columns)})`}>
          <${Pairs} entries=${more > 0 ? [...names, ['and others', count(more)]] : names} />
        <//>
        ${f.excluded.length > 0 && html`
          <${Folded} summary=${`Excluded columns (${count(f.excluded.length)})`}>
            <${Pairs} entries=${f.excluded} />
            <//>
        `}
        ${ignored.length > 0 && html`
          <p class="quiet">Columns that the model does not know, and ignores: ${ignored.join(', ')}.</p>
        `}
      </div>
    <//>
  `;
}

export function Drivers({ data }) {
  const { drivers, n_flagged: n } = data;
  const largest = Math.max(...drivers.map((d) => d.share), 1e-30);
  const text = ({ share, first }) => {
    const main = first > 0 ? `main reason of ${plural(first, 'row', 'rows')}` : '';
    return n > 1 ? [percent(share), main].filter(Boolean).join(', ') : main;
  };
  return html`
    <${Sheet} title="Contributions by column">
      <p>
        ${drivers.length
          ? 'The share of each column in the positive contributions of flagged rows, on average, and of how many ' +
            'rows it is the main reason.'
          : 'No row is flagged, so there is nothing to explain.'}
      </p>
      <div id="drivers" class="bars">
        ${drivers.map((driver) =>
          html`
            <div>
              <${Name} text=${driver.name} />
            </div>
            <${Bar} share=${(driver.share / largest) * 0.6} text=${text(driver)} />
          `
        )}
      </div>
      <//>
  `;
}

function Training({ curves }) {
  const place = useRef(null);
  const last = Math.max(1, ...curves.flatMap((c) => c.step));
  useLayoutEffect(() => lossChart(place.current, { empty: '' })(curves, last), []);
  return html`
    <div>
      <h3>Training</h3>
      <p class="quiet">The loss should fall and then flatten.</p>
      <div id="history" class="chart" ref=${place} />
    </div>
  `;
}

export function Health({ data: { health } }) {
  const curves = health.history;
  return html`
    <${Sheet} title="Health of the model">
      <div class=${curves.length ? 'two' : ''}>
        <div>
          <h3>Synthetic anomalies</h3>
          <p class="quiet">
            How often the model scores a synthetic anomaly higher than a normal row that it was not fitted on
            (AUC-ROC). 50${'\u00a0'}% is guessing.
          </p>
          <div id="synthetic" class="bars">
            ${Object.entries(health.synthetic).map(([kind, auc]) =>
              html`
                <div>${SYNTHETIC[kind]}</div>
                ${auc === null
                  ? html`<div class="quiet">not possible with these rows and columns</div>`
                  : html`<${Bar} share=${auc * 0.6} text=${percent(auc)} kind="is-normal" />`}
              `
            )}
          </div>
        </div>
        ${curves.length > 0 && html`<${Training} curves=${curves} />`}
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

// The same as nodes, for pages that are put together by hand; ``more`` are nodes that end the summary.
export const summarySheet = (data, ...more) => mounted(html`<${Summary} data=${data} more=${more} />`);
export const modelSheet = (data) => mounted(html`<${Model} data=${data} />`);
export const driversSheet = (data) => mounted(html`<${Drivers} data=${data} />`);
export const healthSheet = (data) => mounted(html`<${Health} data=${data} />`);
