// Lists of models and jobs, and their items.

import { get, send } from './api.js';
import { named, Sheet } from './components.js';
import { LinkButton, versionName, when } from './parts.js';
import { attempt, navigate } from './shell.js';
import { count, inPercent, plural } from './text.js';
import { html } from './vendor/preact.js';

// Text and colour of a state.
const STATES = {
  waiting: ['waiting', 'warn'],
  running: ['running', 'act'],
  done: ['done', 'good'],
  failed: ['failed', 'anomaly'],
  cancelled: ['cancelled', 'warn'],
};
const KINDS = { fit: 'fit', score: 'scoring', update: 'update', recalibrate: 'recalibration' };
const ORIGINS = { update: 'updated with', recalibrate: 'recalibrated with' };

export const kindName = (kind) => KINDS[kind] ?? kind;
export const isUnfinished = (job) => ['running', 'waiting'].includes(job.state);
export function StateTag({ state }) {
  const [text, tone] = STATES[state];
  return html`<span class=${`tag ${tone}`}>${text}</span>`;
}

export const flaggedText = ({ flagged, rows }) =>
  `${count(flagged)} of ${plural(rows, 'row')} flagged${inPercent(flagged, rows)}`;

// ``children`` are the buttons at its end.
export const ListItem = ({ href, title, about, children }) =>
  html`
    <li>
      <div class="what"><a href=${href}>${named(title)}</a><div class="quiet small">${about}</div></div>
      <div class="actions">${children}</div>
    </li>
  `;

// Where a model comes from, as one line of text.
export function origin(model) {
  const rows = model.new_rows ?? model.training_rows;
  const parts = [
    model.table ? `${ORIGINS[model.made_by] ?? 'from'} ${model.table}` : null,
    rows ? plural(rows, model.new_rows ? 'row' : 'training row') : null,
    when(model.created),
  ];
  return parts.filter(Boolean).join(', ');
}

export function ModelItem({ model, children }) {
  const href = `#/models/${model.id}`;
  const name = versionName(model);
  return html`
    <${ListItem} href=${href} title=${name} about=${origin(model)}>
      ${model.fixed && html`<span class="tag quiet">given at start-up</span>`}
      ${children ?? html`<${LinkButton} href=${href} label=${`Score a table with ${name}`}>Score a table<//>`}
    <//>
  `;
}

export function JobItem({ job, reload }) {
  const word = isUnfinished(job) ? 'Cancel' : 'Delete';
  const remove = () =>
    attempt(async () => {
      await send('DELETE', `/v1/jobs/${job.id}`);
      reload();
    });
  const about = [kindName(job.kind), when(job.created), ...(job.scores ? [flaggedText(job.scores)] : [])].join(', ');
  return html`
    <${ListItem} href=${`#/${job.scores ? 'results' : 'jobs'}/${job.id}`} title=${job.title} about=${about}>
      <${StateTag} state=${job.state} />
      <button type="button" aria-label=${`${word} ${job.title}`} onClick=${remove}>${word}</button>
      <//>
  `;
}

export const ListSheet = ({ title, lines }) =>
  lines.length > 0 && html`
    <${Sheet} title=${title}>
      <ul class="lines">${lines}</ul>
      <//>
  `;

const listed = (title, lines, empty) =>
  lines.length ? html`<${ListSheet} title=${title} lines=${lines} />` : html`
    <p class="lead">${empty}</p>
    <${LinkButton} href="#/" main=${true}>Start with a table<//>
  `;

export async function modelsView() {
  const models = await get('/v1/models');
  const empty = 'There is no model yet. A model is fitted to a table of normal rows; it then scores any other table ' +
    'with the same columns.';
  const lines = models.map((model) => html`<${ModelItem} model=${model} />`);
  return { title: 'Models', body: listed('Models, the newest first', lines, empty) };
}

export async function jobsView() {
  const jobs = await get('/v1/jobs');
  const empty = 'There are no jobs yet. Fits and scorings are listed here, with their results.';
  const line = (job) => html`<${JobItem} job=${job} reload=${() => navigate('#/jobs', `${job.title} is deleted.`)} />`;
  return { title: 'Jobs', body: listed('All jobs, the newest first', jobs.map(line), empty) };
}
