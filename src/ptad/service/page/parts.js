// Parts that several views share: times as people say them, links, the label column and its normal values.

import { count, plural } from './dom.js';
import { html, useState } from './vendor/preact.js';

export function when(seconds) {
  const ago = Date.now() / 1000 - seconds;
  if (ago < 60) return 'just now';
  if (ago < 3600) return `${plural(Math.floor(ago / 60), 'minute', 'minutes')} ago`;
  if (ago < 86400) return `${plural(Math.floor(ago / 3600), 'hour', 'hours')} ago`;
  return new Date(seconds * 1000).toLocaleDateString('en', { day: 'numeric', month: 'short', year: 'numeric' });
}

export const versionName = (model) => (model.version > 1 ? `${model.name}, version ${model.version}` : model.name);

export const LinkButton = ({ href, main = false, children }) =>
  html`<a class=${main ? 'button primary' : 'button'} href=${href}>${children}</a>`;

export const Lines = ({ children }) => html`<ul class="lines">${children}</ul>`;

// The first click asks, the second does it: no dialog that takes the keyboard away.
export function Confirmed({ id, text, question, onDone }) {
  const [asked, setAsked] = useState(false);
  const click = () => {
    if (asked) onDone();
    setAsked(!asked);
    if (!asked) setTimeout(() => setAsked(false), 4000);
  };
  return html`<button id=${id} class="danger" type="button" onClick=${click}>${asked ? question : text}</button>`;
}

// A choice among [value, text] pairs.
export const Select = ({ id, value, options, onChange, label }) =>
  html`
    <select id=${id} aria-label=${label} value=${value} onChange=${(event) => onChange(event.target.value)}>
      ${options.map(([key, text]) => html`<option value=${key} selected=${key === value}>${text}</option>`)}
    </select>
  `;

export const RATES = [
  ['0.1', '10 %'],
  ['0.05', '5 %'],
  ['0.01', '1 %'],
  ['0.001', '0.1 %'],
  ['0.0001', '0.01 %'],
];

// Which column is the label, and which of its values normal rows have; ``value`` is {label, normal}.
export function LabelFields({ columns, value, onChange, note }) {
  const candidates = columns.filter((c) => c.values && c.values.length > 1);
  const column = candidates.find((c) => c.name === value.label);
  const choose = (name) => {
    const chosen = candidates.find((c) => c.name === name);
    // the most frequent value is the likeliest to be normal
    onChange(chosen ? { label: name, normal: [chosen.values[0][0]] } : { label: '', normal: [] });
  };
  const toggle = (name) => {
    const { normal } = value;
    const now = normal.includes(name) ? normal.filter((other) => other !== name) : [...normal, name];
    onChange({ ...value, normal: now });
  };
  const box = (name) =>
    html`<input type="checkbox" value=${name} checked=${value.normal.includes(name)} onChange=${() => toggle(name)} />`;
  return html`
    <label>
      Label column
      <${Select} id="label" value=${value.label} onChange=${choose}
        options=${[['', 'None: all rows are normal'], ...candidates.map((c) => [c.name, c.name])]} />
      <small>The column that tells normal rows from anomalies, if there is one.</small>
    </label>
    ${column && html`
      <div class="field">
        Normal value
        <div class="values" role="group" aria-label="Values of normal rows">
          ${column.values.map(([name, n]) => html`<label key=${name}>${box(name)}${name} (${count(n)})</label>`)}
        </div>
        <small>${note}</small>
      </div>
    `}
  `;
}

export const labelChoice = ({ label, normal }) => (label ? { label, normal } : {});
