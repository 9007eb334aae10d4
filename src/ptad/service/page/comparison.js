// Two scorings side by side, and two models.

import { get } from './api.js';
import { Cards, Legend, named, Sheet, Table } from './components.js';
import { flaggedText, kindName, ListItem, ListSheet } from './lists.js';
import { versionName, when } from './parts.js';
import { colour, DASH, Plot } from './plot.js';
import { count, percent, plural, pText, short, spaced, TYPE_NAMES } from './text.js';
import { html } from './vendor/preact.js';

const FIRST_ROWS = 20;
const SIDES = ['First', 'Second'];
const orDash = (value, text) => (value === null || value === undefined ? '–' : text(value));
const numbers = (...names) => names.map((name) => [name, 'number']);

// Quantiles of both sides, row by row.
const Quantiles = ({ title, note, levels, sides: [first, second] }) =>
  html`
    <${Sheet} title=${title}>
      <p class="quiet">${note}</p>
      <${Table} id="quantiles" label=${title} kind="narrow" columns=${numbers('Quantile', ...SIDES)}
        rows=${levels.map((level, i) => [percent(level), short(first[i]), short(second[i])])} />
      <//>
  `;

export async function scoringComparison(a, b) {
  const addresses = [`/v1/jobs/${a}`, `/v1/jobs/${b}`, `/v1/jobs/${a}/comparison?other=${b}`, '/v1/models'];
  const [first, second, comparison, models] = await Promise.all(addresses.map(get));
  const jobs = [first, second];
  const byId = new Map(models.map((m) => [m.id, versionName(m)]));
  const side = (job, i) => {
    const name = comparison.same_table ? byId.get(job.model) ?? job.title : job.title;
    const about = job.kind === 'fit' ? 'held-out scores of the training rows' : job.title;
    return html`
      <${ListItem} href=${`#/results/${job.id}`} title=${`${SIDES[i]}: ${name}`}
        about=${`${about}, ${when(job.created)}: ${flaggedText(job.scores)}`} />
    `;
  };
  const body = html`
    <${ListSheet} title="Compared" lines=${jobs.map(side)} />
    ${comparison.same_table
      ? html`<${Rows} comparison=${comparison} thresholds=${jobs.map((job) => job.scores.threshold)} />`
      : html`
        <p class="lead">
          These are two different tables: rows cannot be compared one by one, flag rates and scores can.
        </p>
      `}
    <${Quantiles} title="Quantiles of the scores" levels=${comparison.levels}
      note="The score that this share of the rows does not exceed. Scores of different models have different scales."
      sides=${[comparison.first.quantiles, comparison.second.quantiles]} />
  `;
  return { title: 'Two scorings', body };
}

// Flags and scores of the same rows.
function Rows({ comparison, thresholds }) {
  const { flags, changed, points } = comparison;
  const moved = flags.first_only + flags.second_only;
  const cards = [
    [count(flags.both), 'flagged in both'],
    [count(flags.first_only), 'flagged in the first only'],
    [count(flags.second_only), 'flagged in the second only'],
    [count(flags.neither), 'flagged in neither'],
    [orDash(comparison.rank_correlation, (value) => value.toFixed(3)), 'rank correlation of the scores'],
  ];
  return html`
    <${Sheet} title="Summary">
      <p id="moved" class="headline">
        ${moved ? `${plural(moved, 'row')} changed ${moved === 1 ? 'its' : 'their'} flag.` : 'No row changed its flag.'}
      </p>
      <${Cards} entries=${cards} />
      <//>
      <${Sheet} title="Scores of the same rows">
      <p class="quiet">
        Both axes have a symmetric log scale; the dashed lines are the thresholds.
        ${points.length < comparison.first.rows && ` A sample of ${count(points.length)} rows.`}
      </p>
      <${Legend} entries=${[['normal', 'same flag in both'], ['anomaly', 'flag changed']]} />
      <${Scatter} points=${points} thresholds=${thresholds} marked=${new Set(changed.map(({ row }) => row))} />
    <//>
    ${changed.length > 0 && html`<${Changed} changed=${changed} moved=${moved} note=${comparison.counting.note} />`}
  `;
}

// ``points``: [row, score, score]; those whose row is ``marked`` stand out.
function Scatter({ points, thresholds: [first, second], marked }) {
  const sorted = [...points].sort((a, b) => a[1] - b[1]);
  const scoresOf = (isMarked) => sorted.map(([row, , score]) => (marked.has(row) === isMarked ? score : null));
  const dots = (tone, size) => ({ tone, paths: () => null, points: { show: true, size, width: 0 } });
  // dashed lines at both thresholds
  const draw = (plot) => {
    const { ctx, bbox } = plot;
    const x = plot.valToPos(first, 'x', true);
    const y = plot.valToPos(second, 'y', true);
    ctx.save();
    ctx.strokeStyle = colour(plot, 'ink');
    ctx.setLineDash(DASH);
    ctx.stroke(new Path2D(`M${x} ${bbox.top}v${bbox.height}M${bbox.left} ${y}h${bbox.width}`));
    ctx.restore();
  };
  return html`
    <${Plot} label="Scatter of the scores of both scorings" height=${380}
      data=${[sorted.map(([, score]) => score), scoresOf(false), scoresOf(true)]}
      x=${{ label: 'score of the first' }} y=${{ label: 'score of the second' }}
      series=${[dots('normal', 4), dots('anomaly', 7)]}
      scales=${{ x: { time: false, distr: 4 }, y: { distr: 4 } }} hooks=${{ draw: [draw] }} />
  `;
}

function Changed({ changed, moved, note }) {
  const columns = SIDES.flatMap((side) => [[side], ...numbers('Score', 'p-value')]);
  const flag = ({ flagged }) => flagged ? html`<span class="tag anomaly">flagged</span>` : 'normal';
  const cells = (side) => [flag(side), short(side.score), pText(side.p_value)];
  return html`
    <${Sheet} title="Rows that changed their flag">
      <p class="quiet">
        The clearest changes first; ${note}.
        ${changed.length < moved && ` ${count(changed.length)} of ${count(moved)} are listed.`}
      </p>
      <${Table} id="changed" label="Rows that changed their flag" columns=${[...numbers('Row'), ...columns]}
        rows=${changed.map(({ number, first, second }) => [count(number), ...cells(first), ...cells(second)])}
        few=${FIRST_ROWS} />
      <//>
  `;
}

const DETAILS = [
  ['made_by', 'made by', kindName],
  ['table', 'table', String],
  ['created', 'made', when],
  ['preset', 'preset', String],
  ['columns', 'columns', count],
  ['training_rows', 'training rows', count],
  ['new_rows', 'new rows taken in', count],
  ['reference_rows', 'reference rows', count],
  ['calibration_rows', 'calibration rows', count],
  ['false_alarm_rate', 'target false-alarm rate', percent],
  ['threshold', 'threshold (score)', short],
];

export async function modelComparison(a, b) {
  const { first, second, columns, settings, levels } = await get(`/v1/models/${a}/comparison?other=${b}`);
  const sides = [first, second];
  const link = (m) => html`<a href=${`#/models/${m.id}`}>${named(versionName(m))}</a>`;
  const detail = ([key, name, text]) => {
    const differs = key !== 'created' && first[key] !== second[key];
    const cell = (m) => differs ? html`<b>${orDash(m[key], text)}</b>` : orDash(m[key], text);
    return [name, ...sides.map(cell)];
  };
  const list = (title, names) => names.length > 0 && html`<p><b>${title}: </b>${named(names.join(', '))}</p>`;
  const type = (name) => TYPE_NAMES[name] ?? name;
  const same = !columns.first_only.length && !columns.second_only.length && !columns.types.length;
  const body = html`
    <${Sheet} title="Side by side">
      <${Table} id="details" label="Details of both models" columns=${[['', 'quiet'], ...sides.map((m) => [link(m)])]}
        rows=${DETAILS.map(detail)} />
      <//>
      <${Sheet} title="Columns and settings">
      ${same && html`<p>Both use the same columns, with the same types.</p>`}
      ${list('In the first only', columns.first_only)} ${list('In the second only', columns.second_only)}
      ${list('Other types', columns.types.map(([name, one, two]) => `${name} (${type(one)}, then ${type(two)})`))}
      ${list(
        'Other settings',
        settings.map(([name, one, two]) => `${spaced(name)} (${one ?? 'none'}, then ${two ?? 'none'})`),
      )}
      ${!settings.length && html`<p>All settings are the same.</p>`}
    <//>
    ${sides.every((m) => m.quantiles) && html`
      <${Quantiles} title="Scores of the calibration rows" levels=${levels} sides=${sides.map((m) => m.quantiles)}
        note="The score that this share of the calibration rows does not exceed." />
    `}
  `;
  return { title: 'Two models', body };
}
