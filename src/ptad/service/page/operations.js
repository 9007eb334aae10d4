// The addresses of the service, drawn from /openapi.json: what they do, what they take and what they answer.

import { get } from './api.js';
import { Folded, Sheet } from './components.js';
import { html } from './vendor/preact.js';

const METHODS = ['get', 'post', 'patch', 'delete'];
const TITLES = {
  ask: 'Score and explain rows',
  models: 'Models',
  tables: 'Tables',
  jobs: 'Jobs',
  results: 'Results and comparisons',
  operation: 'Operation',
};

// Text with names in double backticks.
const Prose = ({ text }) =>
  text.replace(/\n/g, ' ').split('``').map((part, i) => (i % 2 ? html`<code>${part}</code>` : part));

let schemas = {};
const named = (ref) => ref.split('/').pop();
const resolved = (schema) => (schema?.$ref ? schemas[named(schema.$ref)] : schema);

// The type of a value in a few words.
function typeText(schema) {
  if (!schema || !Object.keys(schema).length) return 'any';
  if (schema.$ref) return named(schema.$ref);
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeText))].join(' or ');
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(', ');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === 'array') return `list of ${typeText(schema.items)}`;
  if (schema.type === 'object' && schema.additionalProperties) {
    return `object of ${typeText(schema.additionalProperties)}`;
  }
  return schema.type ?? 'any';
}

const Fields = ({ fields }) =>
  html`
    <div class="scroll" tabindex="0" role="region" aria-label="Fields">
      <table class="fields">
        <tbody>
          ${fields.map(({ name, schema, required, note }) =>
            html`
              <tr>
                <th scope="row"><code>${name}</code>${required && html`<small>required</small>`}</th>
                <td>
                  ${typeText(schema)}${schema?.default !== undefined &&
                    `; ${JSON.stringify(schema.default)} if not given`}
                </td>
                <td>${note ?? schema?.description ?? ''}</td>
              </tr>
            `
          )}
        </tbody>
      </table>
    </div>
  `;

function Body({ content, answer = false }) {
  const json = resolved(content['application/json']?.schema);
  const others = Object.keys(content).filter((type) => type !== 'application/json');
  const fields = Object.entries(json?.properties ?? {}).map(([name, schema]) => ({
    name,
    schema,
    required: !answer && json.required?.includes(name),
  }));
  return html`
    ${fields.length > 0 && html`<${Fields} fields=${fields} />`}
    ${json && !fields.length && html`<p><code>application/json</code>: ${typeText(json)}</p>`}
    ${others.length > 0 && html`<p class="small">${json ? 'Or ' : ''}as ${others.join(', ')}.</p>`}
  `;
}

function Operation({ method, path, operation }) {
  const { parameters = [], requestBody, responses, description = '' } = operation;
  const [first, ...rest] = description.split('\n\n');
  const good = Object.entries(responses).filter(([status]) => status < 300);
  const bad = Object.keys(responses).filter((status) => status >= 300);
  return html`
    <details class="operation" id=${operation.operationId}>
      <summary><span class=${`tag method ${method}`}>${method.toUpperCase()}</span> <code>${path}</code>
        <span class="quiet"> <${Prose} text=${first} /></span></summary>
      ${rest.map((text) =>
        html`
          <p>
            <${Prose} text=${text} />
          </p>
        `
      )}
      ${parameters.length > 0 && html`
        <h3>Parameters</h3>
        <${Fields} fields=${parameters.map((p) => ({
          name: p.name,
          schema: p.schema,
          required: p.required,
          note: p.description ?? (p.in === 'path' ? 'in the address' : ''),
        }))} />
      `}
      ${requestBody && html`
        <h3>Body</h3>
        <${Body} content=${requestBody.content} />
      `}
      ${good.map(([status, response]) =>
        html`
          <h3>Answer ${status}</h3>
          ${response.content
            ? html`<${Body} content=${response.content} answer=${true} />`
            : html`<p>${response.description}</p>`}
        `
      )}
      ${bad.length > 0 && html`<p class="quiet small">Problems: ${bad.join(', ')}, as application/problem+json.</p>`}
    </details>
  `;
}

function Operations({ description }) {
  const operations = Object.entries(description.paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => methods[method]).map((method) => ({ method, path, operation: methods[method] }))
  );
  const tags = [...new Set(operations.map(({ operation }) => operation.tags?.[0] ?? 'operation'))];
  const of = (tag) => operations.filter(({ operation }) => (operation.tags?.[0] ?? 'operation') === tag);
  const types = Object.entries(schemas).filter(([, schema]) => schema.properties);
  return html`
    <p class="lead">
      ptad ${description.info
        .version}. The whole description for programs: <a href="/openapi.json">openapi.json</a>. With
      a token, send it as the header <code>Authorization: Bearer TOKEN</code>.
    </p>
    ${tags.map((tag) =>
      html`
        <${Sheet} title=${TITLES[tag] ?? tag}>${of(tag).map((entry) => html`<${Operation} ...${entry} />`)}<//>
      `
    )}
    <${Sheet} title="Types">
      ${types.map(([name, schema]) =>
        html`
          <${Folded} summary=${name}>
            <p>${schema.description}</p>
            <${Fields} fields=${Object.entries(schema.properties).map(([field, inner]) => ({
              name: field,
              schema: inner,
              required: schema.required?.includes(field),
            }))} />
            <//>
        `
      )}
    <//>
  `;
}

export async function showApi(view) {
  const description = await get('/openapi.json');
  schemas = description.components?.schemas ?? {};
  view.title('API');
  view.show(html`<${Operations} description=${description} />`);
}
