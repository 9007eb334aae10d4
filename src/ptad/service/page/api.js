// Requests to the service. A token, if there is one, is kept for this tab only.

const KEY = 'ptad-token';

export class ServiceError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export const token = () => sessionStorage.getItem(KEY);
export const setToken = (value) => sessionStorage.setItem(KEY, value);
const withToken = (headers = {}) => (token() ? { ...headers, Authorization: `Bearer ${token()}` } : headers);

// The error of an answer, with the detail of its problem document if it is one.
function answerError(text, status) {
  let detail = `The service answered with ${status}.`;
  try {
    detail = JSON.parse(text).detail || detail;
  } catch {
    /* not a problem document */
  }
  return new ServiceError(detail, status);
}

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: withToken(options.headers) });
  } catch {
    throw new ServiceError(
      'The service cannot be reached. It may have been stopped; running jobs resume when it is started again.',
      0,
    );
  }
  if (!response.ok) throw answerError(await response.text(), response.status);
  return response;
}

export const get = async (path) => (await request(path)).json();
export const send = async (method, path, body) => {
  const options = body === undefined
    ? { method }
    : { method, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  const response = await request(path, options);
  return response.status === 204 ? null : response.json();
};

// Uploads a file; null if it was stopped. By XMLHttpRequest, since fetch does not report the progress of an upload.
export function upload(file, onProgress, signal) {
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest();
    xhr.open('POST', `/v1/tables?name=${encodeURIComponent(file.name.slice(0, 150))}`);
    for (const [name, value] of Object.entries(withToken({ 'Content-Type': 'application/octet-stream' }))) {
      xhr.setRequestHeader(name, value);
    }
    xhr.upload.addEventListener(
      'progress',
      (event) => onProgress(event.lengthComputable ? event.loaded / event.total : null),
    );
    xhr.addEventListener('load', () => {
      if (xhr.status === 201) resolve(JSON.parse(xhr.responseText));
      else reject(answerError(xhr.responseText, xhr.status));
    });
    const lost = 'The upload was interrupted: the service cannot be reached, or it refused a file this large.';
    xhr.addEventListener('error', () => reject(new ServiceError(lost, 0)));
    xhr.addEventListener('abort', () => resolve(null));
    signal.addEventListener('abort', () => xhr.abort());
    xhr.send(file);
  });
}

// The server-sent events of an answer, as {id, event, data}.
async function* serverSentEvents(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      yield Object.fromEntries(block.split('\n').map((line) => line.split(/:(.*)/s, 2).map((part) => part.trim())));
    }
  }
}

// Follows a job until it ends, also after interruptions; returns a function that stops it. By fetch, since EventSource
// cannot send a token. ``onConnection`` gets the error when the connection is lost, and null when it is there again.
export function followJob(job, onEvent, onConnection) {
  const stop = new AbortController();
  let last = 0;
  let ended = false;
  const listen = async () => {
    const options = { headers: withToken({ 'Last-Event-ID': String(last) }), signal: stop.signal };
    const response = await fetch(`/v1/jobs/${job}/events`, options);
    if (!response.ok) throw answerError(await response.text(), response.status);
    onConnection(null);
    for await (const { id, event, data } of serverSentEvents(response)) {
      if (id) last = Number(id);
      if (!event) continue;
      const content = JSON.parse(data);
      onEvent(event, content);
      if (event === 'state' && ['done', 'failed', 'cancelled'].includes(content.state)) ended = true;
    }
  };
  const listenUntilEnd = async () => {
    while (!ended) {
      try {
        await listen();
      } catch (error) {
        if (stop.signal.aborted) return;
        onConnection(error);
        if (error.status === 404 || error.status === 401) return;
      }
      if (!ended) await new Promise((resolve) => setTimeout(resolve, 1000));
      if (stop.signal.aborted) return;
    }
  };
  listenUntilEnd();
  return () => stop.abort();
}

export async function download(path, name) {
  const response = await request(path);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
