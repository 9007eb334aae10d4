// What all views share: messages, navigation, starting a job, asking for the token.

import { send, ServiceError, setToken, token } from './api.js';
import { html, render, useLayoutEffect, useRef } from './vendor/preact.js';

const box = document.getElementById('news');
const main = document.getElementById('main');
let nextMessage = null; // shown when the next view opens
let lastFocused = main; // the element that gets the focus back when a message is closed
main.addEventListener('focusin', (event) => {
  lastFocused = event.target;
});

export function showMessage(text, isError = true) {
  const close = () => {
    box.hidden = true;
    (lastFocused.isConnected ? lastFocused : main).focus({ preventScroll: true });
  };
  render(html`<p>${text}</p><button type="button" onClick=${close}>Close</button>`, box);
  box.hidden = false;
  box.classList.toggle('fine', !isError);
  if (isError) box.scrollIntoView({ block: 'nearest' });
}

export function clearMessage() {
  box.hidden = true;
  if (nextMessage) showMessage(nextMessage, false);
  nextMessage = null;
}

// Opens a view, and shows a message there: one shown before would disappear with the old view.
export function navigate(hash, message = null) {
  nextMessage = message;
  if (location.hash === hash) window.dispatchEvent(new HashChangeEvent('hashchange'));
  else location.hash = hash;
}

// Runs an action; shows the message of an error, or asks for the token.
export async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    if (error instanceof ServiceError && error.status === 401) askToken();
    else if (error instanceof ServiceError) showMessage(error.message);
    else {
      showMessage('Something unexpected happened in this page. Reload it and try again.');
      console.error(error);
    }
    return undefined;
  }
}

// Starts a job and opens its view.
export const start = (kind, body) =>
  attempt(async () => {
    const job = await send('POST', `/v1/${kind}`, body);
    navigate(`#/jobs/${job.id}`);
  });

function askToken() {
  if (token()) showMessage('The service does not accept this token. Check it, or ask whoever runs the service.');
  setToken('');
  render(html`<${TokenForm} />`, main);
}

function TokenForm() {
  const input = useRef(null);
  useLayoutEffect(() => input.current.focus(), []);
  const submit = (event) => {
    event.preventDefault();
    setToken(input.current.value.trim());
    navigate(location.hash || '#/');
  };
  // password managers store a token under a user name
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
