// A job while it runs, and how it ended.

import { follow, get, send } from './api.js';
import { Sheet } from './components.js';
import { count, plural, short } from './dom.js';
import { StateTag } from './jobs.js';
import { lossChart } from './loss_chart.js';
import { LinkButton } from './parts.js';
import { attempt, go } from './shell.js';
import { html, useEffect, useRef, useState } from './vendor/preact.js';

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
const ended = (job) => ['done', 'failed', 'cancelled'].includes(job.state);

export async function showJob(view, id) {
  const job = await get(`/v1/jobs/${id}`);
  if (job.scores) {
    go(`#/results/${id}`);
    return;
  }
  view.title(`${VERBS[job.kind]} ${job.title}`);
  view.show(html`<${Job} first=${job} />`);
}

function Job({ first }) {
  const [job, setJob] = useState(first);
  const [progress, setProgress] = useState(null); // {share, text} once something can be counted
  const [remark, setRemark] = useState('');
  const [curves, setCurves] = useState(null);
  useEffect(() => {
    const collect = collector();
    const onProgress = (entry) => {
      if (entry.note) setRemark(entry.note);
      else if (entry.step) {
        setCurves(collect(entry));
        const last = entry.step === entry.steps ? '; now the threshold is set …' : '';
        const text = `Step ${count(entry.step)} of ${count(entry.steps)}, loss ${short(entry.loss)}${last}`;
        setProgress({ share: entry.step / entry.steps, text });
      } else if (entry.stage) {
        const { stage, done, total, unit } = entry;
        const far = done ? `: ${count(done)}${total ? ` of ${count(total)}` : ''} ${unit}` : ' …';
        setProgress({ share: total ? done / total : null, text: `${STAGES[stage] ?? stage}${far}` });
      }
    };
    const onState = (now) => {
      setJob(now);
      if (now.scores) go(`#/results/${now.id}`);
    };
    const onLost = (error) => {
      const away = 'The service cannot be reached just now; trying again …';
      setRemark(error ? (error.status ? error.message : away) : '');
    };
    return follow(first.id, (event, data) => event === 'state' ? onState(data) : onProgress(data), onLost);
  }, []);
  const cancel = () => attempt(() => send('POST', `/v1/jobs/${job.id}/cancel`));
  return html`
    <p role="status">
      <${StateTag} state=${job.state} />
    </p>
    <${Sheet} title="Progress">
      ${ended(job) ? html`<${Ended} job=${job} />` : html`<${Running} job=${job} progress=${progress} />`}
      <p class="quiet small">${remark}</p>
      <div class="actions more">
        ${ended(job) ? html`<${Next} job=${job} />` : html`
          <button id="cancel" class="danger" type="button" onClick=${cancel}>Cancel</button>
          <span class="quiet small">The job goes on when you leave this page.</span>
        `}
      </div>
    <//>
    ${curves && html`
      <${Sheet} title="Training">
        <p class="quiet">${LOSS_NOTE}</p>
        <${Loss} ...${curves} />
        <//>
    `}
  `;
}

function Running({ job, progress }) {
  const text = job.state === 'waiting' ? 'Waiting for other jobs to end …' : progress?.text ?? BEGINNINGS[job.kind];
  const share = progress?.share ?? null;
  const known = share === null ? {} : { 'aria-valuenow': Math.round(100 * share) };
  return html`
    <p class="lead">${text}</p>
    <div class=${share === null ? 'meter unknown' : 'meter'} role="progressbar" aria-label=${VERBS[job.kind]}
      aria-valuemin="0" aria-valuemax="100" ...${known}>
      <i style=${{ '--size': `${100 * (share ?? 0)}%` }} />
    </div>
  `;
}

function Ended({ job }) {
  if (job.state === 'failed') return html`<p class="lead" role="alert">${job.error}</p>`;
  if (job.state === 'cancelled') return html`<p class="lead">Cancelled. Nothing of it is kept.</p>`;
  const rows = plural(job.summary.training_rows, 'row', 'rows');
  const texts = {
    fit: `The model is ready. It was fitted on ${rows}.`,
    update: `The updated model is ready. It took in ${rows}; the version before is still there.`,
    recalibrate:
      `The recalibrated model is ready. Its threshold comes from ${rows}; the version before is still there.`,
  };
  const failed = job.summary.scores_error;
  return html`
    <p class="lead">${texts[job.kind]}</p>
    ${failed && html`<p role="alert">The table could not be scored: ${failed}</p>`}
  `;
}

// Where one goes from here.
function Next({ job }) {
  const again = () =>
    attempt(async () => {
      const next = await send('POST', '/v1/scorings', { table: job.table, model: job.model });
      go(`#/jobs/${next.id}`);
    });
  const back = ['fit', 'score'].includes(job.kind)
    ? `#/tables/${job.table}`
    : `#/models/${job.parent}/renew/${job.table}`;
  if (job.state === 'done') {
    return html`
      <${LinkButton} href=${`#/models/${job.model}`} main=${true}>Look at the model<//>
      ${job.parent && html`
        <${LinkButton} href=${`#/models/${job.parent}/compare/${job.model}`}>Compare with the version before<//>
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

// Collects what a training tells into curves, one per training.
function collector() {
  const curves = [];
  return ({ group, step, steps, loss }) => {
    curves.length = Math.min(curves.length, group + 1);
    const curve = curves[group] || { step: [], total: [] };
    // a fit that went on from a checkpoint tells some steps again
    const known = curve.step.findIndex((s) => s >= step);
    if (known >= 0) {
      curve.step.length = known;
      curve.total.length = known;
    }
    curve.step.push(step);
    curve.total.push(loss);
    curves[group] = curve;
    return { curves: curves.filter(Boolean), steps };
  };
}

function Loss({ curves, steps }) {
  const place = useRef(null);
  const draw = useRef(null);
  useEffect(() => {
    draw.current ??= lossChart(place.current, { empty: 'The curve begins with the first steps.', live: true });
    draw.current(curves, steps);
  });
  return html`<div id="loss" class="chart" ref=${place} />`;
}
