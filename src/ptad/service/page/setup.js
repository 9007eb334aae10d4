// An uploaded table: the form that starts a fit, then its columns.

import { get } from './api.js';
import { columnParameters, ColumnTable, defaultChoice } from './columns.js';
import { Sheet } from './components.js';
import {
  Field,
  InlineSelect,
  LabelFields,
  labelParameters,
  LinkButton,
  NO_LABEL,
  onValue,
  RATES,
  Select,
  versionName,
} from './parts.js';
import { attempt, start } from './shell.js';
import { count, plural } from './text.js';
import { html, useState } from './vendor/preact.js';

const PRESETS = { default: 'default', paper: 'paper: a network, trained for minutes' };
const DECIMALS = [['', 'found from the values'], ['.', 'point: 1.5'], [',', 'comma: 1,5']];
const LABEL_NOTE = 'All other rows are not fitted on, and count as known anomalies when the table is scored.';
const COLUMNS_NOTE =
  'Exclude what says nothing about a row, such as a number that only identifies it, and correct a type that was ' +
  'recognised wrongly.';

export async function setupView(id) {
  const addresses = [`/v1/tables/${id}`, '/v1/models', '/v1/service'];
  const [table, models, service] = await Promise.all(addresses.map(get));
  const columns = plural(table.columns.length, 'column');
  const isTooSmall = table.rows < 2;
  const body = html`
    <p class="lead">
      ${isTooSmall
        ? `1 row and ${columns}: it can be scored with an existing model. To fit a model, at least 2 rows are ` +
          'needed, better a few hundred.'
        : `${plural(table.rows, 'row')}, ${columns}.`}
    </p>
    ${models.length > 0 && html`<${WithModel} table=${table} models=${models} />`}
    ${isTooSmall
      ? html`<${LinkButton} href="#/">Choose another file<//>`
      : html`<${FitForm} table=${table} service=${service} />`}
  `;
  return { title: table.name, body };
}

function WithModel({ table, models }) {
  const [model, setModel] = useState(models[0].id);
  return html`
    <${Sheet} title="Score it with a model you have">
      <${InlineSelect} id="model" text="Model" value=${model} options=${models.map((m) => [m.id, versionName(m)])}
        onChange=${setModel}>
        <button id="score-with" type="button" onClick=${() => start('scorings', { table: table.id, model })}>
          Score it
        </button>
        <//>
        <//>
  `;
}

const markersOf = (text) => text.split(',').map((word) => word.trim()).filter(Boolean);

function FitForm({ table, service }) {
  const [{ columns, notes }, setTable] = useState(table);
  const [chosen, setChosen] = useState(() => defaultChoice(table.columns));
  const [label, setLabel] = useState(NO_LABEL);
  const [markers, setMarkers] = useState('');
  const [name, setName] = useState(table.name.replace(/\.[a-z0-9]+(\.[a-z0-9]+)?$/i, '').slice(0, 100) || 'model');
  const [rate, setRate] = useState('auto');
  const [preset, setPreset] = useState('default');
  const [steps, setSteps] = useState('');
  const [decimal, setDecimal] = useState('');
  const [isReading, setIsReading] = useState(false);
  const change = (column, values) => setChosen((now) => ({ ...now, [column]: { ...now[column], ...values } }));
  const chooseLabel = (value) => {
    if (value.label && value.label !== label.label) change(value.label, { use: false });
    setLabel(value);
  };
  // types depend on the markers of missing values: the service describes the columns again
  const readAgain = async () => {
    setIsReading(true);
    await attempt(async () => {
      const query = new URLSearchParams(markersOf(markers).map((word) => ['missing', word]));
      const described = await get(`/v1/tables/${table.id}?${query}`);
      const before = defaultChoice(columns);
      const isChanged = ([name, { use, type }]) => use !== before[name].use || type !== before[name].type;
      setTable(described);
      // choices of the user are kept
      setChosen((now) => {
        const changed = Object.entries(now).filter(isChanged);
        return { ...defaultChoice(described.columns), ...Object.fromEntries(changed) };
      });
    });
    setIsReading(false);
  };
  const enter = (event) => {
    if (event.key !== 'Enter') return;
    event.preventDefault(); // no fit before the user has seen the columns with the new markers
    readAgain();
  };
  const submit = (event) => {
    event.preventDefault();
    const presetFields = preset === 'paper'
      ? { preset, config: steps ? { 'network.n_steps': Number(steps) } : {} }
      : {};
    start('fits', {
      table: table.id,
      name: name.trim() || 'model',
      false_alarm_rate: rate === 'auto' ? 'auto' : Number(rate),
      missing: markersOf(markers),
      score: true,
      ...columnParameters(columns, chosen),
      ...labelParameters(label),
      ...presetFields,
      ...(decimal ? { decimal } : {}),
    });
  };
  const used = columns.filter((c) => chosen[c.name].use).length;
  return html`
    <form onSubmit=${submit}>
      <${Sheet} title="Fit a model to this table">
        <div class="form grid">
          <${LabelFields} columns=${columns} value=${label} onChange=${chooseLabel} note=${LABEL_NOTE} />
          <${Field} text="Missing markers"
            note="What stands for a missing value besides empty cells and NA, separated by commas.">
            <input id="missing" type="text" value=${markers} placeholder="such as ?, -999, unknown"
              onInput=${onValue(setMarkers)} onChange=${readAgain} onKeyDown=${enter} />
            <//>
            <${Field} text="Target false-alarm rate"
              note="The share of normal rows that may be flagged; automatic is 1 %, or what the rows support.">
              <${Select} id="rate" value=${rate} onChange=${setRate} options=${[['auto', 'automatic'], ...RATES]} />
              <//>
              <${Field} text="Decimal sign" note="Of numbers that are written as text.">
                <${Select} id="decimal" value=${decimal} onChange=${setDecimal} options=${DECIMALS} />
                <//>
                <${Field} text="Name">
            <input id="name" type="text" maxlength="100" required value=${name} onInput=${onValue(setName)} />
          <//>
          ${service.presets.length > 1 && html`
            <${Field} text="Preset">
              <${Select} id="preset" value=${preset} onChange=${setPreset}
                options=${service.presets.map((value) => [value, PRESETS[value] || value])} />
              <//>
          `}
          ${preset === 'paper' && html`
            <${Field} text="Training steps">
              <input id="steps" type="number" min="1" max="100000" placeholder="as the preset has it" value=${steps}
                onInput=${onValue(setSteps)} />
              <//>
          `}
        </div>
        <div class="actions more">
          <button id="fit" class="primary" type="submit" disabled=${!used}>Fit a model and score this table</button>
          <span class="quiet" role="status">
            ${isReading ? 'Reading the columns again …' : `With ${count(used)} of ${plural(columns.length, 'column')}.`}
          </span>
        </div>
        <//>
        <${Sheet} title="Columns">
          <p>${COLUMNS_NOTE}</p>
          <ul class="notes">${notes.map((text) => html`<li>${text[0].toUpperCase() + text.slice(1)}.</li>`)}</ul>
          <${ColumnTable} columns=${columns} chosen=${chosen} onChange=${change} />
          <//>
          </form>
  `;
}
