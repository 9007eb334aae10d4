// What all views share: messages, moving between views, uploading.

import { Trouble, setToken, token, upload } from './api.js';
import { make, percent } from './dom.js';

const news = document.getElementById('news');
const main = document.getElementById('main');
let later = null; // what the next view says when it opens
let last = main; // what had the keyboard last, before it went to a message
main.addEventListener('focusin', (event) => {
  last = event.target;
});

export function say(text, isError = true) {
  const close = () => {
    news.hidden = true;
    (last.isConnected ? last : main).focus({ preventScroll: true });
  };
  news.replaceChildren(
    make('p', { text }),
    make('button', { text: 'Close', attributes: { type: 'button' }, on: { click: close } }),
  );
  news.hidden = false;
  news.classList.toggle('good', !isError);
  if (isError) news.scrollIntoView({ block: 'nearest' });
}

export function hush() {
  news.hidden = true;
  if (later) say(later, false);
  later = null;
}

// Goes to a view, which opens with good news if there are any: said before, they would be gone with the old view.
export function go(hash, goodNews = null) {
  later = goodNews;
  if (location.hash === hash) window.dispatchEvent(new HashChangeEvent('hashchange'));
  else location.hash = hash;
}

// Every failure ends in words, never in silence.
export async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    if (error instanceof Trouble && error.status === 401) askToken();
    else if (error instanceof Trouble) say(error.message);
    else {
      say('Something unexpected happened in this page. Reload it and try again.');
      console.error(error);
    }
    return undefined;
  }
}

function askToken() {
  const input = make('input', {
    id: 'token',
    attributes: { type: 'password', autocomplete: 'current-password', required: true },
  });
  const form = make(
    'form',
    { class: 'sheet token' },
    make('h1', { text: 'This service asks for a token' }),
    // password managers keep a token under a name
    make('input', { attributes: { type: 'text', autocomplete: 'username', value: 'ptad', hidden: true } }),
    make(
      'div',
      { class: 'form' },
      make(
        'label',
        {},
        'Token',
        input,
        make('small', { text: 'Whoever runs the service knows it. It is kept in this tab only.' }),
      ),
      make('button', { class: 'primary', text: 'Go on', attributes: { type: 'submit' } }),
    ),
  );
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    setToken(input.value.trim());
    go(location.hash || '#/');
  });
  if (token()) say('The service does not accept this token. Check it, or ask whoever runs the service.');
  setToken('');
  main.replaceChildren(form);
  input.focus();
}

// Shows the way of a file to the service in the place of the drop zone.
export async function bringIn(zone, file, then) {
  hush();
  const fill = make('i');
  const meter = make('div', { class: 'meter', attributes: { role: 'progressbar', 'aria-label': 'Upload' } }, fill);
  const note = make('p', { text: `Sending ${file.name} …` });
  const stop = new AbortController();
  const box = make(
    'div',
    { class: 'sheet' },
    note,
    meter,
    make('button', {
      id: 'stop-upload',
      text: 'Stop',
      attributes: { type: 'button' },
      on: { click: () => stop.abort() },
    }),
  );
  zone.replaceWith(box);
  // whoever leaves the view does not wait for the file any more, and must not be taken to it later
  window.addEventListener('hashchange', () => stop.abort(), { once: true, signal: stop.signal });
  const table = await attempt(() =>
    upload(
      file,
      (share) => {
        if (share !== null) {
          fill.style.setProperty('--size', `${100 * share}%`);
          meter.setAttribute('aria-valuenow', Math.round(100 * share));
        }
        if (share === 1) {
          meter.removeAttribute('aria-valuenow');
          note.textContent = `Reading ${file.name} …`;
          meter.classList.add('unknown');
        } else if (share !== null) note.textContent = `Sending ${file.name}, ${percent(share)} …`;
      },
      stop.signal,
    ),
  );
  box.replaceWith(zone);
  stop.abort(); // nothing to stop any more; this ends the listening
  if (zone.isConnected) zone.querySelector('input').focus({ preventScroll: true }); // ready for another file
  if (table) await attempt(() => then(table));
}
