// Building blocks of the report. Text from a table only ever becomes text nodes; no markup is made from strings.

import { count } from './dom.js';
import { html, render, useLayoutEffect, useRef, useState } from './vendor/preact.js';

// A node for pages that are put together by hand; it takes no part in the layout.
export function mounted(component) {
  const node = document.createElement('div');
  node.className = 'mount';
  render(component, node);
  return node;
}

// Nodes that were made by hand, inside a component.
export function Nodes({ nodes }) {
  const place = useRef(null);
  useLayoutEffect(() => place.current.replaceChildren(...nodes), []);
  return html`<div class="mount" ref=${place} />`;
}

// A name that breaks between its words only, never inside one unless it has to.
export function Name({ text }) {
  const words = text.split(/(?<=[_\-./:,;)])(?=.)|(?<=[a-z0-9])(?=[A-Z])/);
  return words.flatMap((word, i) => (i ? [html`<wbr />`, word] : [word]));
}

// A value of the table; a date does not break at its hyphens.
export const Value = ({ text }) =>
  /^\d{4}-\d\d-\d\d/.test(text)
    ? text.split(' ').flatMap((word, i) => [i ? ' ' : null, html`<span class="whole">${word}</span>`])
    : text;

export const Sheet = ({ title, children }) =>
  html`
    <section class="sheet" aria-label=${title}>
      <h2>${title}</h2>
      ${children}
    </section>
  `;

export const Card = ({ value, text, tone = '' }) =>
  html`<div class=${`card ${tone}`}><b>${value}</b><span>${text}</span></div>`;

// A bar whose length is a share of the room, with its text behind it.
export const Bar = ({ share, text, kind = '' }) =>
  html`
    <div class="bar">
      <i class=${kind} style=${{ '--size': `${Math.max(0, Math.min(100, 100 * share))}%` }} aria-hidden="true" />
      <span>${text}</span>
    </div>
  `;

export const Pairs = ({ entries }) =>
  html`
    <dl class="pairs">
      ${entries.map(([name, value]) =>
        html`
          <div>
            <dt>
              <${Name} text=${name} />
            </dt>
            <dd>${value}</dd>
          </div>
        `
      )}
    </dl>
  `;

export const Folded = ({ summary, children }) => html`<details><summary>${summary}</summary>${children}</details>`;

export const Legend = ({ entries }) =>
  html`
    <ul class="legend">
      ${entries.map(([kind, text]) => html`<li>${kind && html`<i class=${kind} />`}${text}</li>`)}
    </ul>
  `;

// A wide table scrolls by itself, also with the keyboard, and never the page.
export const Scroller = ({ id, label, place, children }) =>
  html`<div id=${id} class="scroll" role="region" aria-label=${label} tabindex="0" ref=${place}>${children}</div>`;

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

// Long tables start short; one button shows the rest, and the keyboard goes on where the button was.
export function useLimit(n, few, place) {
  const [all, setAll] = useState(n <= few);
  const show = () => {
    setAll(true);
    place.current.focus();
  };
  const more = (what) =>
    all ? null : html`<button class="more" type="button" onClick=${show}>Show all ${count(n)} ${what}</button>`;
  return [all ? n : few, more];
}

// What the reader has to know before the rest: each note is a sentence or two, and may have an id.
export const Notes = ({ notes }) =>
  notes.length > 0 &&
  html`
    <ul id="notes" class="warnings" aria-label="Notes">
      ${notes.map(({ id, text }) => html`<li id=${id}>${text}</li>`)}
    </ul>
  `;
