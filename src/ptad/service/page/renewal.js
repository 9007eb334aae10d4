// New normal rows for a model: update or recalibrate, with which rows, at which rate.

import { get, send } from './api.js';
import { Sheet } from './components.js';
import { percent, plural } from './dom.js';
import { labelChoice, LabelFields, LinkButton, RATES, Select, versionName } from './parts.js';
import { attempt, go } from './shell.js';
import { html, useState } from './vendor/preact.js';

const RENEWALS = [
  ['updates', 'Update', 'Half of the new rows join the reference rows, the other half gives the threshold.'],
  ['recalibrations', 'Recalibrate', 'The new rows give the threshold and the p-values; scores stay the same.'],
];

export async function showRenewal(view, id, tableId) {
  const [model, table] = await Promise.all([get(`/v1/models/${id}`), get(`/v1/tables/${tableId}`)]);
  view.title(`New rows for ${versionName(model)}`);
  view.show(html`<${Renewal} model=${model} table=${table} />`);
}

function Renewal({ model, table }) {
  const [kind, setKind] = useState('updates');
  const [label, setLabel] = useState({ label: '', normal: [] });
  const [rate, setRate] = useState('');
  const submit = (event) => {
    event.preventDefault();
    attempt(async () => {
      const wanted = { table: table.id, model: model.id, ...labelChoice(label) };
      const job = await send('POST', `/v1/${kind}`, rate ? { ...wanted, false_alarm_rate: Number(rate) } : wanted);
      go(`#/jobs/${job.id}`);
    });
  };
  const kept = model.false_alarm_rate === null ? 'the model has none: choose one' : percent(model.false_alarm_rate);
  const choice = ([value, text, note]) =>
    html`
      <label>
        <input type="radio" name="kind" value=${value} checked=${kind === value} onChange=${() => setKind(value)} />
        <span><b>${text}</b><small>${note}</small></span>
      </label>
    `;
  return html`
    <p class="lead">
      ${`${table.name}: ${plural(table.rows, 'row', 'rows')}. The result is a new version; ${
        versionName(model)
      } stays ` +
        'as it is. Rows that are too few for the rate are refused.'}
    </p>
    <form onSubmit=${submit}>
      <${Sheet} title="What to do with the new rows">
        <div class="choices" role="radiogroup" aria-label="What to do">${RENEWALS.map(choice)}</div>
        <div class="form more">
          <${LabelFields} columns=${table.columns} value=${label} onChange=${setLabel}
            note="Rows with other values are not used." />
          <label>
            Target false-alarm rate
            <${Select} id="rate" value=${rate} onChange=${setRate} options=${[['', `as it is: ${kept}`], ...RATES]} />
          </label>
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
