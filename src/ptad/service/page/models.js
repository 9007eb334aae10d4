// The list of models.

import { get } from './api.js';
import { Name, Sheet } from './components.js';
import { plural } from './dom.js';
import { Lines, LinkButton, versionName, when } from './parts.js';
import { html } from './vendor/preact.js';

const ORIGINS = { update: 'updated with', recalibrate: 'recalibrated with' };

// Where a model comes from, in a line.
export function origin(model) {
  const rows = model.new_rows ?? model.training_rows;
  const said = [
    model.table ? `${ORIGINS[model.made_by] ?? 'from'} ${model.table}` : null,
    rows ? plural(rows, model.new_rows ? 'row' : 'training row', model.new_rows ? 'rows' : 'training rows') : null,
    when(model.created),
  ];
  return said.filter(Boolean).join(', ');
}

export const ModelLine = ({ model, children }) =>
  html`
    <li>
      <div class="what">
        <a href=${`#/models/${model.id}`}><${Name} text=${versionName(model)} /></a>
        <div class="quiet small">${origin(model)}</div>
      </div>
      <div class="actions">
        ${model.fixed && html`<span class="tag">given at the start</span>`}
        ${children ?? html`
          <a class="button" href=${`#/models/${model.id}`} aria-label=${`Score a table with ${versionName(model)}`}>
            Score a table
          </a>
        `}
      </div>
    </li>
  `;

export async function showModels(view) {
  view.title('Models');
  const models = await get('/v1/models');
  if (!models.length) {
    view.show(html`
      <p class="lead">
        There is no model yet. A model is fitted to a table of normal rows; it then scores any other table with the
        same columns.
      </p>
      <${LinkButton} href="#/" main=${true}>Start with a table<//>
    `);
    return;
  }
  view.show(html`
    <${Sheet} title="Models, the newest first">
      <${Lines}>${models.map((m) => html`<${ModelLine} model=${m} />`)}<//><//>
  `);
}
