// What all views share: messages, and moving between views.

import { setToken, token, Trouble } from './api.js';
import { make } from './dom.js';

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
