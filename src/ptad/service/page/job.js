// A job: its progress and its end.

import { followJob, get, send } from './api.js';
import { Sheet } from './components.js';
import { isUnfinished, StateTag } from './lists.js';
import { LinkButton, Meter } from './parts.js';
import { LossChart } from './plot.js';
import { attempt, navigate, start } from './shell.js';
import { count, plural, short } from './text.js';
import { html, useEffect, useState } from './vendor/preact.js';

const VERBS = { fit: 'Fitting', score: 'Scoring', update: 'Updating', recalibrate: 'Recalibrating' };
const BEGINNINGS = {
  fit: 'Reading the rows and fitting …',
  score: 'Loading the model …',
  update: 'Reading the new rows and updating …',
  recalibrate: 'Scoring the new rows …',
};
const STAGES = {
  reading: 'Reading the rows',
  calibration: 'Setting the threshold',
  scoring: 'Scoring the rows',
  'held-out scores': 'The model is fitted. Now its held-out scores',
};
const LOSS_NOTE =
  'The loss tells how far off the network is when it predicts hidden cells: it should fall and then flatten.';

export async function jobView(id) {
  const job = await get(`/v1/jobs/${id}`);
  if (job.scores) return navigate(`#/results/${id}`);
  return { title: `${VERBS[job.kind]} ${job.title}`, body: html`<${Job} first=${job} />` };
}

function Job({ first }) {
  const [job, setJob] = useState(first);
  const [progress, setProgress] = useState(null); // {share, text}
  const [note, setNote] = useState('');
  const [curves, setCurves] = useState(null);
  useEffect(() => {
    const collect = lossCollector();
    const onProgress = (entry) => {
      if (entry.note) setNote(entry.note);
      else if (entry.step) {
        setCurves(collect(entry));
        const last = entry.step === entry.steps ? '; now the threshold is set …' : '';
        const text = `Step ${count(entry.step)} of ${count(entry.steps)}, loss ${short(entry.loss)}${last}`;
        setProgress({ share: entry.step / entry.steps, text });
      } else if (entry.stage) {
        const { stage, done, total, unit } = entry;
        const amount = done ? `: ${count(done)}${total ? ` of ${count(total)}` : ''} ${unit}` : ' …';
        setProgress({ share: total ? done / total : null, text: `${STAGES[stage] ?? stage}${amount}` });
      }
    };
    const onState = (changed) => {
      setJob(changed);
      if (changed.scores) navigate(`#/results/${changed.id}`);
    };
    const onConnection = (error) => {
      const unreachable = 'The service cannot be reached just now; trying again …';
      setNote(error ? (error.status ? error.message : unreachable) : '');
    };
    return followJob(first.id, (event, data) => event === 'state' ? onState(data) : onProgress(data), onConnection);
  }, []);
  const cancel = () => attempt(() => send('POST', `/v1/jobs/${job.id}/cancel`));
  const text = job.state === 'waiting' ? 'Waiting for other jobs to end …' : progress?.text ?? BEGINNINGS[job.kind];
  const running = html`
    <p class="lead">${text}</p>
    <${Meter} label=${VERBS[job.kind]} share=${progress?.share ?? null} />
  `;
  return html`
    <p role="status">
      <${StateTag} state=${job.state} />
    </p>
    <${Sheet} title="Progress">
      ${isUnfinished(job) ? running : html`<${Ended} job=${job} />`}
      <p class="quiet small">${note}</p>
      <div class="actions more">
        ${isUnfinished(job)
          ? html`
            <button id="cancel" class="anomaly" type="button" onClick=${cancel}>Cancel</button>
            <span class="quiet small">The job continues when you leave this page.</span>
          `
          : html`<${Next} job=${job} />`}
      </div>
    <//>
    ${curves && html`
      <${Sheet} title="Training">
        <p class="quiet">${LOSS_NOTE}</p>
        <${LossChart} id="loss" live=${true} ...${curves} />
        <//>
    `}
  `;
}

function Ended({ job }) {
  if (job.state === 'failed') return html`<p class="lead" role="alert">${job.error}</p>`;
  if (job.state === 'cancelled') return html`<p class="lead">Cancelled. No result was kept.</p>`;
  const rows = plural(job.summary.training_rows, 'row');
  const texts = {
    fit: `The model is ready. It was fitted on ${rows}.`,
    update: `The updated model is ready. It was updated with ${rows}; the previous version is kept.`,
    recalibrate: `The recalibrated model is ready. Its threshold comes from ${rows}; the previous version is kept.`,
  };
  const failed = job.summary.scores_error;
  return html`
    <p class="lead">${texts[job.kind]}</p>
    ${failed && html`<p role="alert">The table could not be scored: ${failed}</p>`}
  `;
}

// The links of a job that has ended.
function Next({ job }) {
  const again = () => start('scorings', { table: job.table, model: job.model });
  const back = ['fit', 'score'].includes(job.kind)
    ? `#/tables/${job.table}`
    : `#/models/${job.parent}/renew/${job.table}`;
  if (job.state === 'done') {
    return html`
      <${LinkButton} href=${`#/models/${job.model}`} main=${true}>Look at the model<//>
      ${job.parent && html`
        <${LinkButton} href=${`#/models/${job.parent}/compare/${job.model}`}>Compare with the previous version<//>
      `}
    `;
  }
  return html`
    <${LinkButton} href=${back} main=${job.state === 'failed'}>Back to the table<//>
    ${job.state === 'failed' && job.kind === 'score' && job.label && html`
      <button type="button" onClick=${again}>Score it without the label</button>
    `}
  `;
}

// Returns a function that collects the losses of all trainings into curves, one for each.
function lossCollector() {
  const curves = [];
  return ({ group, step, steps, loss }) => {
    curves.length = Math.min(curves.length, group + 1);
    const curve = curves[group] ?? { step: [], total: [] };
    // a fit that was resumed from a checkpoint repeats some steps
    const known = curve.step.filter((s) => s < step).length;
    curves[group] = { step: [...curve.step.slice(0, known), step], total: [...curve.total.slice(0, known), loss] };
    return { curves: curves.filter(Boolean), last: steps };
  };
}
