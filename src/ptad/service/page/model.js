// One model: a table to score, new normal rows, its false-alarm rate, versions, scorings over time, columns.

import { download, get, send } from './api.js';
import { Excluded, Pairs, Sheet } from './components.js';
import { ModelItem, origin } from './lists.js';
import { ConfirmButton, InlineSelect, LinkButton, onValue, versionName } from './parts.js';
import { attempt, navigate, start } from './shell.js';
import { count, percent, plural, short, spaced, TYPE_NAMES } from './text.js';
import { Uploads } from './timeline.js';
import { Upload } from './upload.js';
import { html, useState } from './vendor/preact.js';

export async function modelView(id) {
  const addresses = [`/v1/models/${id}`, '/v1/models', `/v1/models/${id}/scorings?versions=true`];
  const [model, models, scorings] = await Promise.all(addresses.map(get));
  const shared = { compact: true, hint: 'or choose a file with the same columns' };
  const body = html`
    <p class="lead">${about(model)}</p>
    <${Sheet} title="Score another table">
      <${Upload} ...${shared} id="second-file" text="Drop a table to score"
        then=${(table) => start('scorings', { table: table.id, model: id })} />
      <//>
      <${Sheet} title="Update or recalibrate with new normal rows">
      <p>An update takes new rows into the model; a recalibration changes its threshold only. This version stays.</p>
      <${Upload} ...${shared} id="new-rows" text="Drop a table of new normal rows"
        then=${(table) => navigate(`#/models/${id}/renew/${table.id}`)} />
    <//>
    ${model.false_alarm_rate !== null && html`<${Rate} model=${model} />`}
    <${Versions} model=${model} models=${models} />
    <${Uploads} scorings=${scorings} />
    <${Columns} model=${model} />
    <${Details} model=${model} />
  `;
  return { title: versionName(model), body };
}

function about(model) {
  const rate = model.false_alarm_rate === null
    ? 'It has no threshold.'
    : `Of rows like the training rows, on average at most ${percent(model.false_alarm_rate)} are flagged.`;
  return `${plural(model.columns.length, 'column')}, ${origin(model)}. ${rate}`;
}

function Rate({ model }) {
  const [value, setValue] = useState(String(Number((100 * model.false_alarm_rate).toPrecision(6))));
  const submit = (event) => {
    event.preventDefault();
    attempt(async () => {
      const changed = await send('PATCH', `/v1/models/${model.id}`, { false_alarm_rate: Number(value) / 100 });
      navigate(
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
          onInput=${onValue(setValue)} />
        <button type="submit">Change</button>
      </form>
      <p class="quiet small more">
        Its ${plural(model.calibration_rows, 'calibration row')} support a rate down to ${percent(model.smallest_rate)}.
        The model is not fitted again.
      </p>
      <//>
  `;
}

// The other versions of a model, and a way to compare it with any model.
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
    return html`<${LinkButton} href=${`#/models/${first.id}/compare/${second.id}`}>Compare<//>`;
  };
  return html`
    <${Sheet} title=${family.length ? 'Other versions' : 'Compare with another model'}>
      ${family.length > 0 && html`
        <ul class="lines">${family.map((m) => html`<${ModelItem} model=${m}>${compare(m)}<//>`)}</ul>
      `}
      ${rest.length > 0 && html`
        <${InlineSelect} id="other-model" text=${family.length ? 'Another model' : 'Model'} value=${other}
          options=${rest.map((m) => [m.id, `${versionName(m)}, ${origin(m)}`])} onChange=${setOther}>
          ${compare(byId.get(other))}
        <//>
      `}
    <//>
  `;
}

function Columns({ model }) {
  const details = (c) => [TYPE_NAMES[c.type], c.missing_rate ? `${percent(c.missing_rate)} missing` : null];
  return html`
    <${Sheet} title="Columns">
      <${Pairs} entries=${model.columns.map((c) => [c.name, details(c).filter(Boolean).join(', ')])} />
      <${Excluded} entries=${Object.entries(model.excluded)} />
      <//>
  `;
}

function Details({ model }) {
  const { id } = model;
  const save = () => attempt(() => download(`/v1/models/${id}/download`, `${id}.zip`));
  const remove = () =>
    attempt(async () => {
      await send('DELETE', `/v1/models/${id}`);
      navigate('#/models', `${versionName(model)} is deleted.`);
    });
  const entries = [
    ['preset', model.preset],
    ['terms', model.terms.map((term) => spaced(term.name)).join(', ')],
    ['threshold (score)', model.false_alarm_rate === null ? 'none' : short(model.threshold)],
    ['calibration rows', count(model.calibration_rows)],
    ['reference rows', count(model.reference_rows)],
    ['missing markers', model.missing.join(', ') || 'none'],
    ['size', model.bytes < 1e6 ? `${short(model.bytes / 1e3)} kB` : `${short(model.bytes / 1e6)} MB`],
    ['written by', `ptad ${model.ptad_version}`],
  ];
  return html`
    <${Sheet} title="Details">
      <${Pairs} entries=${entries} />
      <div class="actions more">
        <button id="download-model" type="button" onClick=${save}>Download the model</button>
        ${!model.fixed && html`
          <${ConfirmButton} id="delete-model" text="Delete the model" question="Really delete it?" onDone=${remove} />
        `}
      </div>
      <//>
  `;
}
