// Building blocks. Text from a table only ever becomes text nodes; no markup is made from strings.

import { count } from './text.js';
import { html, useLayoutEffect, useRef, useState } from './vendor/preact.js';

// A name with line breaks allowed between its words only; kPa is one word.
export function named(text) {
  const words = text.split(/(?<=[_\-./:,;)])(?=.)|(?<=[a-z0-9]{3})(?=[A-Z])/);
  return words.flatMap((word, i) => (i ? [html`<wbr />`, word] : [word]));
}

// A value of the table, without line breaks at the hyphens of a date.
export const valued = (text) =>
  /^\d{4}-\d\d-\d\d/.test(text)
    ? text.split(' ').flatMap((word, i) => [i ? ' ' : null, html`<span class="whole">${word}</span>`])
    : text;

export const Sheet = ({ title, children }) =>
  html`<section class="sheet" aria-label=${title}><h2>${title}</h2>${children}</section>`;

// Numbers with their captions: [value, text, tone].
export const Cards = ({ id, entries }) =>
  html`
    <div id=${id} class="cards grid">
      ${entries.map(([value, text, tone]) =>
        html`<div class="card"><b class=${tone}>${value}</b><p class="quiet small">${text}</p></div>`
      )}
    </div>
  `;

// A bar with a text behind it; ``share`` is its part of the available width.
export function Bar({ share, text, tone = 'anomaly' }) {
  const size = { '--size': `${Math.max(0, Math.min(100, 100 * share))}%` };
  return html`
    <div class="bar">${share > 0 &&
      html`<i class=${tone} style=${size} aria-hidden="true" />`}<span>${text}</span></div>
  `;
}

// Names with bars, or with texts in place of bars.
export const Bars = ({ id, entries }) =>
  html`<div id=${id} class="bars">${entries.map(([name, bar]) => html`<div>${named(name)}</div>${bar}`)}</div>`;

export const Pairs = ({ entries }) =>
  html`
    <dl class="pairs">
      ${entries.map(([name, value]) =>
        html`
          <div>
            <dt>${named(name)}</dt>
            <dd>${value}</dd>
          </div>
        `
      )}
    </dl>
  `;

export const Folded = ({ summary, children }) => html`<details><summary>${summary}</summary>${children}</details>`;

export const Excluded = ({ entries }) =>
  entries.length > 0 &&
  html`
    <${Folded} summary=${`Excluded columns (${count(entries.length)})`}>
      <${Pairs} entries=${entries} />
      <//>
  `;

export const Legend = ({ entries }) =>
  html`<ul class="legend">${
    entries.map(([kind, text]) => html`<li>${kind && html`<i class=${kind} />`}${text}</li>`)
  }</ul>`;

// A container that scrolls a wide table, also with the keyboard, so that the page itself does not scroll.
export const Scroller = ({ id, label, place, children }) =>
  html`<div id=${id} class="scroll" role="region" aria-label=${label} tabindex="0" ref=${place}>${children}</div>`;

// ``columns`` are [heading, class]; ``rows`` are lists of cells, the first of which names the row. Of more than ``few``
// rows, a button shows the others. ``children`` are rows that were rendered elsewhere.
export function Table({ id, label, kind, columns, rows = [], few = rows.length, what = 'rows', children }) {
  const place = useRef(null);
  const [n, more] = useLimit(rows.length, few, place);
  const cell = (content, i) =>
    i ? html`<td class=${columns[i][1]}>${content}</td>` : html`<th scope="row" class=${columns[0][1]}>${content}</th>`;
  const heading = ([text, kind]) => html`<th scope="col" class=${kind}>${text}</th>`;
  return html`
    <${Scroller} id=${id} label=${label} place=${place}>
      <table class=${kind}>
        ${columns.some(([text]) => text) && html`
          <thead>
            <tr>${columns.map(heading)}</tr>
          </thead>
        `}
        <tbody>${children ?? rows.slice(0, n).map((cells) => html`<tr>${cells.map(cell)}</tr>`)}</tbody>
      </table>
    <//>
    ${more(what)}
  `;
}

// The width of an element, now and whenever it changes.
export function useWidth(place) {
  const [width, setWidth] = useState(Math.min(document.documentElement.clientWidth, 1180));
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      const now = Math.round(entry.contentRect.width);
      if (now) setWidth(now);
    });
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  return width;
}

// The number of rows to show of a long table, and a button for the others, which moves the focus to the table.
export function useLimit(n, few, place) {
  const [all, setAll] = useState(n <= few);
  const show = () => {
    setAll(true);
    place.current.focus();
  };
  const more = (what) =>
    !all && html`<button class="more" type="button" onClick=${show}>Show all ${count(n)} ${what}</button>`;
  return [all ? n : few, more];
}
