// Components that several views share: times, links, choices, progress, the label column.

import { count, plural } from './text.js';
import { html, useState } from './vendor/preact.js';

export function when(seconds) {
  const ago = Date.now() / 1000 - seconds;
  if (ago < 60) return 'just now';
  if (ago < 3600) return `${plural(Math.floor(ago / 60), 'minute')} ago`;
  if (ago < 86400) return `${plural(Math.floor(ago / 3600), 'hour')} ago`;
  return new Date(seconds * 1000).toLocaleDateString('en', { day: 'numeric', month: 'short', year: 'numeric' });
}

export const versionName = (model) => (model.version > 1 ? `${model.name}, version ${model.version}` : model.name);

export const LinkButton = ({ href, main = false, label, children }) =>
  html`<a class=${main ? 'button primary' : 'button'} href=${href} aria-label=${label}>${children}</a>`;

// A progress bar; a share of null is not known.
export function Meter({ label, share }) {
  const known = share === null ? {} : { 'aria-valuenow': Math.round(100 * share) };
  return html`
    <div class=${share === null ? 'meter unknown' : 'meter'} role="progressbar" aria-label=${label} aria-valuemin="0"
      aria-valuemax="100" ...${known}><i style=${{ '--size': `${100 * (share ?? 0)}%` }} /></div>
  `;
}

// A button that has to be clicked twice: no dialog that takes the focus away.
export function ConfirmButton({ id, text, question, onDone }) {
  const [isAsking, setIsAsking] = useState(false);
  const click = () => {
    if (isAsking) onDone();
    setIsAsking(!isAsking);
    if (!isAsking) setTimeout(() => setIsAsking(false), 4000);
  };
  return html`<button id=${id} class="anomaly" type="button" onClick=${click}>${isAsking ? question : text}</button>`;
}

// A listener that passes the value of a field on.
export const onValue = (set) => (event) => set(event.target.value);

// A choice among [value, text] pairs.
export const Select = ({ id, value, options, onChange, label }) =>
  html`
    <select id=${id} aria-label=${label} value=${value} onChange=${onValue(onChange)}>
      ${options.map(([key, text]) => html`<option value=${key} selected=${key === value}>${text}</option>`)}
    </select>
  `;

// A choice on one line: its name before it, its buttons after it.
export const InlineSelect = ({ id, text, children, ...choice }) =>
  html`
    <div
      class="actions"><label for=${id}>${text}</label><${Select} id=${id} ...${choice} />${children}</div>
  `;

// A field of a form, with its name above and a note below.
export const Field = ({ text, note, children }) =>
  html`<label>${text}${children}${note && html`<small>${note}</small>`}</label>`;

export const RATES = [['0.1', '10 %'], ['0.05', '5 %'], ['0.01', '1 %'], ['0.001', '0.1 %'], ['0.0001', '0.01 %']];

export const NO_LABEL = { label: '', normal: [] };
export const labelParameters = ({ label, normal }) => (label ? { label, normal } : {});

// Which column is the label, and which of its values normal rows have; ``value`` is {label, normal}.
export function LabelFields({ columns, value, onChange, note }) {
  const candidates = columns.filter((c) => c.values && c.values.length > 1);
  const column = candidates.find((c) => c.name === value.label);
  const choose = (name) => {
    const chosen = candidates.find((c) => c.name === name);
    // the most frequent value is likely to be the normal one
    onChange(chosen ? { label: name, normal: [chosen.values[0][0]] } : NO_LABEL);
  };
  const toggle = (name) => {
    const { normal } = value;
    const values = normal.includes(name) ? normal.filter((other) => other !== name) : [...normal, name];
    onChange({ ...value, normal: values });
  };
  const box = (name) =>
    html`<input type="checkbox" value=${name} checked=${value.normal.includes(name)} onChange=${() => toggle(name)} />`;
  return html`
    <${Field} text="Label column" note="The column that tells normal rows from anomalies, if there is one.">
      <${Select} id="label" value=${value.label} onChange=${choose}
        options=${[['', 'None: all rows are normal'], ...candidates.map((c) => [c.name, c.name])]} />
    <//>
    ${column && html`
      <div class="field">
        Normal value
        <div class="values actions" role="group" aria-label="Values of normal rows">
          ${column.values.map(([name, n]) =>
            html`<label key=${name} class="choice">${box(name)}${name} (${count(n)})</label>`
          )}
        </div>
        <small>${note}</small>
      </div>
    `}
  `;
}
