// What all views share: messages, moving between views, starting a job.

import { send, setToken, token, Trouble } from './api.js';
import { html, render, useLayoutEffect, useRef } from './vendor/preact.js';

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
  render(html`<p>${text}</p><button type="button" onClick=${close}>Close</button>`, news);
  news.hidden = false;
  news.classList.toggle('fine', !isError);
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

// Starts a job and goes to it.
export const start = (kind, wanted) =>
  attempt(async () => {
    const job = await send('POST', `/v1/${kind}`, wanted);
    go(`#/jobs/${job.id}`);
  });

function askToken() {
  if (token()) say('The service does not accept this token. Check it, or ask whoever runs the service.');
  setToken('');
  render(html`<${TokenForm} />`, main);
}

function TokenForm() {
  const input = useRef(null);
  useLayoutEffect(() => input.current.focus(), []);
  const submit = (event) => {
    event.preventDefault();
    setToken(input.current.value.trim());
    go(location.hash || '#/');
  };
  // password managers keep a token under a name
  return html`
    <form class="sheet token" onSubmit=${submit}>
      <h1>This service asks for a token</h1>
      <input type="text" autocomplete="username" value="ptad" hidden />
      <div class="form grid">
        <label>
          Token
          <input id="token" type="password" autocomplete="current-password" required ref=${input} />
          <small>Whoever runs the service knows it. It is kept in this tab only.</small>
        </label>
        <button class="primary" type="submit">Go on</button>
      </div>
    </form>
  `;
}
