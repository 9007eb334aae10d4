// Formats numbers and lists for people.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const digits = (n) => new Intl.NumberFormat('en', { maximumSignificantDigits: n });

export const count = (n) => whole.format(n);
export const chosen = (n, one, many) => (n === 1 ? one : many);
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${chosen(n, one, many)}`;
export const sum = (values) => values.reduce((a, b) => a + b, 0);
export const pText = (p) => digits(2).format(p);

// Three significant digits, in scientific notation only if very large or small.
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

// A percentage in brackets, unless there are too few rows for one.
export const inPercent = (n, all) => (n && all >= 20 ? ` (${percent(n / all)})` : '');

// Names of terms and settings in words.
export const spaced = (name) => name.replaceAll('_', ' ');

// The first names, and how many more there are.
export function listed(names, most = 8) {
  const more = names.length > most ? ` and ${count(names.length - most)} more` : '';
  return names.slice(0, most).join(', ') + more;
}

export const TYPE_NAMES = {
  numeric: 'numeric',
  boolean: 'boolean',
  categorical: 'categorical',
  text: 'text',
  datetime: 'datetime',
  date: 'date',
  time: 'time of day',
  duration: 'duration',
};
