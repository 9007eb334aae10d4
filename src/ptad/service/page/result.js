// A scored table: the report, with downloads, scores over time, comparisons, and a way to set the rate of the model.

import { download, get, send, ServiceError } from './api.js';
import { Sheet } from './components.js';
import { Drift } from './drift_table.js';
import { Drivers, Health, Model, Summary } from './panels.js';
import { InlineSelect, LinkButton, when } from './parts.js';
import { attempt, navigate, showMessage } from './shell.js';
import { percent } from './text.js';
import { Threshold } from './threshold.js';
import { Timeline } from './timeline.js';
import { html, useState } from './vendor/preact.js';

const PARTS = ['the report', 'scores over time', 'other scorings', 'the link to the model'];

export async function resultView(id) {
  const job = await get(`/v1/jobs/${id}`);
  if (!job.scores) return navigate(`#/jobs/${id}`);
  const addresses = [`/v1/jobs/${id}/report`, `/v1/jobs/${id}/timeline`, '/v1/jobs', '/v1/models'];
  const parts = await Promise.allSettled(addresses.map(get));
  const [data, timeline, jobs = [], models = []] = parts.map(({ value }) => value);
  const table = data?.table ?? job.title;
  const isModelListed = models.some((m) => m.id === job.model);
  const model = isModelListed ? html`<a href=${`#/models/${job.model}`}>${data?.model}</a>` : data?.model;
  const body = html`
    ${data && html`<p class="quiet">Scored with ${model} · ${data.made}</p>`}
    <${Downloads} id=${id} table=${table} badCells=${job.scores.bad_cells ?? 0} />
    ${data && html`
      <${Summary} data=${data} />
      <${Threshold} data=${data} keep=${(rate) => setRate(data, job, rate)} />
      <${Drivers} data=${data} />
    `}
    ${timeline && html`<${Timeline} job=${id} first=${timeline} rate=${job.scores.false_alarm_rate} />`}
    <${Comparisons} job=${job} jobs=${jobs} />
    ${data && [Drift, Model, Health].map((Part) => html`<${Part} data=${data} />`)}
  `;
  return { title: `${table}: anomalies`, body, error: partialError(parts) };
}

// The error that names the parts which cannot be shown, if there are any.
function partialError(parts) {
  const failed = parts.map(({ reason }, i) => ({ reason, name: PARTS[i] })).filter(({ reason }) => reason);
  if (!failed.length) return null;
  const reasons = [...new Set(failed.map(({ reason }) => reason.message))].join(' ');
  return new ServiceError(
    `Not shown: ${failed.map(({ name }) => name).join(', ')}. ${reasons}`,
    failed[0].reason.status,
  );
}

// Sets the target false-alarm rate of the model to that of the slider.
const setRate = (data, job, rate) =>
  attempt(async () => {
    await send('PATCH', `/v1/models/${job.model}`, { false_alarm_rate: rate });
    const former = percent(rate) === percent(data.rate) ? 'the former threshold' : percent(data.rate);
    showMessage(
      `The target false-alarm rate of ${data.model} is now ${percent(rate)}. ` +
        `This page still shows the rows flagged at ${former}.`,
      false,
    );
  });

function Downloads({ id, table, badCells }) {
  const name = table.replace(/\.[a-z0-9]+$/i, '').slice(0, 60) || 'table';
  const save = (path, file) => () => attempt(() => download(`/v1/jobs/${id}/${path}`, `${name}-${file}`));
  return html`
    <div class="actions">
      <button type="button" onClick=${save('report.html', 'report.html')}>Download the report</button>
      <button type="button" onClick=${save('scores?format=csv', 'scored.csv')}>Download as CSV</button>
      <button type="button" onClick=${save('scores?format=parquet', 'scored.parquet')}>Download as Parquet</button>
      ${badCells > 0 && html`
        <button id="save-bad-cells" type="button" onClick=${save('bad-cells', 'bad-cells.csv')}>
          Download the list of bad cells
        </button>
      `}
      <span class="quiet small">Tables come with scores, p-values, flags, and the reasons of flagged rows.</span>
    </div>
  `;
}

// Other scorings, those of the same table first: their rows can be compared one by one.
function Comparisons({ job, jobs }) {
  const others = jobs.filter((other) => other.scores && other.id !== job.id);
  const sorted = [...others.filter((o) => o.table === job.table), ...others.filter((o) => o.table !== job.table)];
  const [other, setOther] = useState(sorted[0]?.id);
  const name = (o) => `${o.title}, ${when(o.created)}${o.table === job.table ? ', the same table' : ''}`;
  return sorted.length > 0 && html`
    <${Sheet} title="Compare with another scoring">
      <${InlineSelect} id="other-scoring" text="Scoring" value=${other} options=${sorted.map((o) => [o.id, name(o)])}
        onChange=${setOther}>
        <${LinkButton} href=${`#/results/${other}/compare/${job.id}`}>Compare<//>
      <//>
    <//>
  `;
}
