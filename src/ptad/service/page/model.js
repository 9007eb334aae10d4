// One model: a table to score, new normal rows, its false-alarm rate, versions, scorings over time, columns.

import { download, get, send } from './api.js';
import { Folded, Pairs, Sheet } from './components.js';
import { count, percent, plural, short, spaced } from './dom.js';
import { ModelLine, origin } from './models.js';
import { TYPE_NAMES } from './panels.js';
import { Confirmed, Lines, LinkButton, versionName } from './parts.js';
import { attempt, go } from './shell.js';
import { Uploads } from './timeline.js';
import { Upload } from './upload.js';
import { html, useState } from './vendor/preact.js';

export async function showModel(view, id) {
  const addresses = [`/v1/models/${id}`, '/v1/models', `/v1/models/${id}/scorings?versions=true`];
  const [model, models, scorings] = await Promise.all(addresses.map(get));
  view.title(versionName(model));
  view.show(html`<${Model} model=${model} models=${models} scorings=${scorings} />`);
}

function about(model) {
  const rate = model.false_alarm_rate === null
    ? 'It has no threshold.'
    : `Of normal rows, at most ${percent(model.false_alarm_rate)} are flagged.`;
  return `${plural(model.columns.length, 'column', 'columns')}, ${origin(model)}. ${rate}`;
}

function Model({ model, models, scorings }) {
  const { id } = model;
  const score = async (table) => {
    const job = await send('POST', '/v1/scorings', { table: table.id, model: id });
    go(`#/jobs/${job.id}`);
  };
  return html`
    <p class="lead">${about(model)}</p>
    <${Sheet} title="Score another table">
      <${Upload} text="Drop a table to score" hint="or choose a file with the same columns" compact=${true}
        id="second-file" then=${score} />
      <//>
      <${Sheet} title="Update or recalibrate with new normal rows">
      <p>An update takes new rows into the model; a recalibration changes its threshold only. This version stays.</p>
      <${Upload} text="Drop a table of new normal rows" hint="or choose a file with the same columns" compact=${true}
        id="new-rows" then=${(table) => go(`#/models/${id}/renew/${table.id}`)} />
    <//>
    ${model.false_alarm_rate !== null && html`<${Rate} model=${model} />`}
    <${Versions} model=${model} models=${models} />
    <${Uploads} scorings=${scorings} />
    <${Columns} model=${model} />
    <${Details} model=${model} />
  `;
}

function Rate({ model }) {
  const [value, setValue] = useState(String(Number((100 * model.false_alarm_rate).toPrecision(6))));
  const submit = (event) => {
    event.preventDefault();
    attempt(async () => {
      const changed = await send('PATCH', `/v1/models/${model.id}`, { false_alarm_rate: Number(value) / 100 });
      go(
        `#/models/${model.id}`,
        `The target false-alarm rate is now ${percent(changed.false_alarm_rate)}: rows with a score above ` +
          `${short(changed.threshold)} are flagged.`,
      );
    });
  };
  return html`
    <${Sheet} title="False-alarm rate">
      <form class="actions" onSubmit=${submit}>
        <label for="rate">Target false-alarm rate, in % of normal rows</label>
        <input id="rate" type="number" min="0" max="100" step="any" required value=${value}
          onInput=${(event) => setValue(event.target.value)} />
        <button type="submit">Change</button>
      </form>
      <p class="quiet small more">
        ${`Its ${plural(model.calibration_rows, 'calibration row', 'calibration rows')} support a rate down to ` +
          `${percent(model.smallest_rate)}. The model is not fitted again.`}
      </p>
      <//>
  `;
}

// Models that come from one another by updates and recalibrations, and a way to compare any two.
function Versions({ model, models }) {
  const byId = new Map(models.map((m) => [m.id, m]));
  const root = (m) => (byId.has(m.parent) ? root(byId.get(m.parent)) : m.parent ?? m.id);
  const others = models.filter((m) => m.id !== model.id);
  const family = others.filter((m) => root(m) === root(model));
  const rest = others.filter((m) => !family.includes(m));
  const [other, setOther] = useState(rest[0]?.id);
  if (!others.length) return null;
  const compare = (m) => {
    const [first, second] = m.created < model.created ? [m, model] : [model, m];
    return `#/models/${first.id}/compare/${second.id}`;
  };
  const line = (m) =>
    html`
      <${ModelLine} model=${m}>
        <${LinkButton} href=${compare(m)}>Compare<//><//>
    `;
  return html`
    <${Sheet} title=${family.length ? 'Other versions' : 'Compare with another model'}>
      ${family.length > 0 && html`<${Lines}>${family.map(line)}<//>`}
      ${rest.length > 0 && html`
        <div class=${family.length ? 'actions more' : 'actions'}>
          <label for="other-model">${family.length ? 'Another model' : 'Model'}</label>
          <select id="other-model" value=${other} onChange=${(event) => setOther(event.target.value)}>
            ${rest.map((m) => html`<option value=${m.id}>${versionName(m)}, ${origin(m)}</option>`)}
          </select>
          <${LinkButton} href=${compare(byId.get(other))}>Compare<//>
        </div>
      `}
    <//>
  `;
}

function Columns({ model }) {
  const said = (c) => [TYPE_NAMES[c.type], c.missing_rate ? `${percent(c.missing_rate)} missing` : null];
  const excluded = Object.entries(model.excluded);
  return html`
    <${Sheet} title="Columns">
      <${Pairs} entries=${model.columns.map((c) => [c.name, said(c).filter(Boolean).join(', ')])} />
      ${excluded.length > 0 && html`
        <${Folded} summary=${`Excluded columns (${count(excluded.length)})`}>
          <${Pairs} entries=${excluded} />
          <//>
      `}
    <//>
  `;
}

function Details({ model }) {
  const { id } = model;
  const save = () => attempt(() => download(`/v1/models/${id}/download`, `${id}.zip`));
  const remove = () =>
    attempt(async () => {
      await send('DELETE', `/v1/models/${id}`);
      go('#/models', `${versionName(model)} is deleted.`);
    });
  const entries = [
    ['preset', model.preset],
    ['terms', model.terms.map((term) => spaced(term.name)).join(', ')],
    ['threshold (score)', model.false_alarm_rate === null ? 'none' : short(model.threshold)],
    ['calibration rows', count(model.calibration_rows)],
    ['reference rows', count(model.reference_rows)],
    ['missing markers', model.missing.join(', ') || 'none'],
    ['size', `${short(model.bytes / 1e6)} MB`],
    ['written by', `ptad ${model.ptad_version}`],
  ];
  return html`
    <${Sheet} title="Details">
      <${Pairs} entries=${entries} />
      <div class="actions more">
        <button id="download-model" type="button" onClick=${save}>Download the model</button>
        ${!model.fixed && html`
          <${Confirmed} id="delete-model" text="Delete the model" question="Really delete it?" onDone=${remove} />
        `}
      </div>
      <//>
  `;
}
