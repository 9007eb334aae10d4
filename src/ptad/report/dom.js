// Building blocks. Text from a table only ever becomes text nodes; no markup is made from strings.

export function make(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  if (options.text !== undefined) node.textContent = options.text;
  if (options.class) node.className = options.class;
  if (options.id) node.id = options.id;
  for (const [name, value] of Object.entries(options.attributes || {})) {
    if (value === true) node.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  // set one by one: the content policy forbids style attributes
  for (const [name, value] of Object.entries(options.variables || {})) node.style.setProperty(name, value);
  for (const [name, value] of Object.entries(options.on || {})) node.addEventListener(name, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function draw(tag, attributes = {}, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export const write = (text, attributes) => draw('text', attributes, text);

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
export const count = (n) => whole.format(n);
export const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;
export const sum = (values) => values.reduce((a, b) => a + b, 0);

const digits = (n) => new Intl.NumberFormat('en', { maximumSignificantDigits: n });

// Three digits that matter, never in scientific notation unless it cannot be helped.
export function short(x) {
  const size = Math.abs(x);
  if (size !== 0 && (size >= 1e15 || size < 1e-9)) return x.toExponential(1);
  return digits(3).format(x);
}

export function percent(share) {
  if (share > 0 && share < 0.0001) return 'less than 0.01\u00a0%';
  if (share < 1 && share > 0.999) return 'more than 99.9\u00a0%';
  const size = Math.abs(share);
  const decimals = size === 0 || size >= 0.1 ? 0 : size >= 0.01 ? 1 : 2;
  return `${new Intl.NumberFormat('en', { maximumFractionDigits: decimals }).format(100 * share)}\u00a0%`;
}

// A part of a whole in brackets; of a handful of rows a percentage would say more than is known.
export const inPercent = (n, all) => (n && all >= 20 ? ` (${percent(n / all)})` : '');

export const pText = (p) => digits(2).format(p);

// Names of terms and settings, as words.
export const spaced = (name) => name.replaceAll('_', ' ');

// Some names, and how many more there are.
export function listed(names, most = 8) {
  const more = names.length > most ? ` and ${count(names.length - most)} more` : '';
  return names.slice(0, most).join(', ') + more;
}

export function pairs(entries) {
  const list = make('dl', { class: 'pairs' });
  for (const [name, value] of entries) {
    list.append(make('div', {}, make('dt', { text: name }), make('dd', { text: value })));
  }
  return list;
}

export const folded = (summary, ...children) => make('details', {}, make('summary', { text: summary }), ...children);
export const sheet = (title, ...children) =>
  make('section', { class: 'sheet', attributes: { 'aria-label': title } }, make('h2', { text: title }), ...children);
// A wide table scrolls by itself, also with the keyboard, and never the page.
export const scroller = (id, label, ...children) =>
  make(
    'div',
    { id, class: 'scroll', attributes: { role: 'region', 'aria-label': label, tabindex: '0' } },
    ...children,
  );
export const heading = (text, kind = '') => make('th', { text, class: kind, attributes: { scope: 'col' } });

// Charts are drawn for the width they have, and again when it changes.
export function responsive(container, paint) {
  let width = 0;
  const fit = () => {
    if (!container.clientWidth) return;
    const now = Math.max(240, Math.round(container.clientWidth));
    if (now !== width) {
      width = now;
      paint(now);
    }
  };
  new ResizeObserver(fit).observe(container);
  fit();
}
