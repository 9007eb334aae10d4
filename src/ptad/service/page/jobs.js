// The list of jobs.

import { get, send } from './api.js';
import { Name, Sheet } from './components.js';
import { count, inPercent, plural } from './dom.js';
import { Lines, LinkButton, when } from './parts.js';
import { attempt, go } from './shell.js';
import { html } from './vendor/preact.js';

const STATES = { waiting: 'waiting', running: 'under way', done: 'done', failed: 'failed', cancelled: 'cancelled' };
const KIND_NAMES = { fit: 'fit', score: 'scoring', update: 'update', recalibrate: 'recalibration' };
export const StateTag = ({ state }) => html`<span class=${`tag ${state}`}>${STATES[state]}</span>`;

const found = ({ flagged, rows }) =>
  `, ${count(flagged)} of ${plural(rows, 'row', 'rows')} flagged${inPercent(flagged, rows)}`;

export function JobLine({ job, reload }) {
  const word = ['waiting', 'running'].includes(job.state) ? 'Cancel' : 'Delete';
  const remove = () =>
    attempt(async () => {
      await send('DELETE', `/v1/jobs/${job.id}`);
      reload();
    });
  return html`
    <li>
      <div class="what">
        <a href=${job.scores ? `#/results/${job.id}` : `#/jobs/${job.id}`}><${Name} text=${job.title} /></a>
        <div class="quiet small">${KIND_NAMES[job.kind]}, ${when(job.created)}${job.scores
          ? found(job.scores)
          : ''}</div>
      </div>
      <div class="actions">
        <${StateTag} state=${job.state} />
        <button type="button" aria-label=${`${word} ${job.title}`} onClick=${remove}>${word}</button>
      </div>
    </li>
  `;
}

export async function showJobs(view) {
  view.title('Jobs');
  const jobs = await get('/v1/jobs');
  if (!jobs.length) {
    view.show(html`
      <p class="lead">There are no jobs yet. Fits and scorings are listed here, with their results.</p>
      <${LinkButton} href="#/" main=${true}>Start with a table<//>
    `);
    return;
  }
  const line = (job) => html`<${JobLine} job=${job} reload=${() => go('#/jobs', `${job.title} is deleted.`)} />`;
  view.show(html`
    <${Sheet} title="All jobs, the newest first">
      <${Lines}>${jobs.map(line)}<//><//>
  `);
}
