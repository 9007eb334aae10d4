// New normal rows for a model: the form that starts an update or a recalibration.

import { get } from './api.js';
import { Sheet } from './components.js';
import { Field, LabelFields, labelParameters, LinkButton, NO_LABEL, RATES, Select, versionName } from './parts.js';
import { start } from './shell.js';
import { percent, plural } from './text.js';
import { html, useState } from './vendor/preact.js';

const RENEWALS = [
  ['updates', 'Update', 'Half of the new rows join the reference rows, the other half gives the threshold.'],
  ['recalibrations', 'Recalibrate', 'The new rows give the threshold and the p-values; scores stay the same.'],
];

export async function renewalView(id, tableId) {
  const [model, table] = await Promise.all([get(`/v1/models/${id}`), get(`/v1/tables/${tableId}`)]);
  return { title: `New rows for ${versionName(model)}`, body: html`<${Renewal} model=${model} table=${table} />` };
}

function Renewal({ model, table }) {
  const [kind, setKind] = useState('updates');
  const [label, setLabel] = useState(NO_LABEL);
  const [rate, setRate] = useState('');
  const submit = (event) => {
    event.preventDefault();
    const body = { table: table.id, model: model.id, ...labelParameters(label) };
    start(kind, rate ? { ...body, false_alarm_rate: Number(rate) } : body);
  };
  const current = model.false_alarm_rate === null ? 'the model has none: choose one' : percent(model.false_alarm_rate);
  const choice = ([value, text, note]) =>
    html`
      <label class="choice">
        <input type="radio" name="kind" value=${value} checked=${kind === value} onChange=${() => setKind(value)} />
        <span><b>${text}</b><small>${note}</small></span>
      </label>
    `;
  return html`
    <p class="lead">
      ${table.name}: ${plural(table.rows, 'row')}. The result is a new version; ${versionName(model)} stays as it is.
      Rows that are too few for the rate are refused.
    </p>
    <form onSubmit=${submit}>
      <${Sheet} title="What to do with the new rows">
        <div class="choices grid" role="radiogroup" aria-label="What to do">${RENEWALS.map(choice)}</div>
        <div class="form grid more">
          <${LabelFields} columns=${table.columns} value=${label} onChange=${setLabel}
            note="Rows with other values are not used." />
          <${Field} text="Target false-alarm rate">
            <${Select} id="rate" value=${rate} onChange=${setRate} options=${[
              ['', `unchanged: ${current}`],
              ...RATES,
            ]} />
            <//>
            </div>
            <div class="actions more">
              <button id="renew" class="primary" type="submit">
            ${kind === 'updates' ? 'Update the model' : 'Recalibrate the model'}
          </button>
              <${LinkButton} href=${`#/models/${model.id}`}>Back to the model<//>
        </div>
      <//>
    </form>
  `;
}
