import { assignOperators, fieldTypes, httpMethods, operators, variableTypes } from './document.js';
import { idPattern, namePattern } from './ids.js';
import { limits } from './limits.js';

type Schema = Readonly<Record<string, unknown>>;

/** An object without additional properties. */
const closed = (properties: Readonly<Record<string, Schema>>, ...required: string[]): Schema => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
  additionalProperties: false,
});

const ref = (name: string): Schema => ({ $ref: `#/$defs/${name}` });
const text = (description: string): Schema => ({ type: 'string', minLength: 1, description });
const template = (description: string): Schema => ({
  type: 'string',
  description: `${description} May contain references such as {{sys.query}} and {{component@output}}.`,
});
const ids = (description: string, minItems = 0): Schema => ({
  type: 'array',
  items: ref('id'),
  uniqueItems: true,
  ...(minItems > 0 && { minItems }),
  description,
});
const whole = (minimum: number, maximum: number, description: string): Schema => ({
  type: 'integer',
  minimum,
  maximum,
  description,
});
const model = text('The model: a key of `models`.');
const onError = ref('onError');
const retry = ref('retry');

const agent = closed(
  {
    llm_id: model,
    sys_prompt: template('The system prompt.'),
    prompts: {
      type: 'array',
      minItems: 1,
      items: closed(
        { role: { enum: ['user', 'assistant'] }, content: template('The text of the message.') },
        'role',
        'content',
      ),
      description:
        'The input of the agent; empty messages are left out. Default: the input of the flow.',
    },
    message_history_window_size: whole(
      0,
      1_000,
      'The number of earlier messages of the conversation that it sees. Default: 0.',
    ),
    max_rounds: whole(1, 1_000, 'The maximum number of model requests. Default: 10.'),
    tools: { type: 'array', items: text('The name of a tool.'), uniqueItems: true },
    mcp: { type: 'array', items: text('A key of `mcp`.'), uniqueItems: true },
    output: {
      type: 'object',
      description: 'The JSON Schema of the answer: an object, without patterns.',
    },
    temperature: { type: 'number', minimum: 0 },
    max_tokens: whole(1, Number.MAX_SAFE_INTEGER, 'Maximum tokens of each of its messages.'),
    retry,
    on_error: onError,
  },
  'llm_id',
);

const retrieval = closed(
  {
    retriever_id: text('A key of `retrievers`.'),
    query: template('The search query. Default: {{sys.query}}.'),
    top_n: whole(1, 1_000, 'The maximum number of passages. Default: 5.'),
    retry,
    on_error: onError,
  },
  'retriever_id',
);

const condition = closed(
  {
    value: template('The value to compare.'),
    operator: { enum: operators },
    operand: template('The other side of the comparison.'),
  },
  'value',
  'operator',
);

const conditions: Schema = { type: 'array', minItems: 1, items: condition };
const logic: Schema = { enum: ['and', 'or'], description: 'Default: and.' };

const choice = closed(
  {
    cases: {
      type: 'array',
      minItems: 1,
      items: closed(
        {
          conditions,
          logic,
          to: ids('The next components if this is the first matching case.', 1),
        },
        'conditions',
        'to',
      ),
    },
    otherwise: ids('The next components if no case matches. Default: none.', 1),
  },
  'cases',
);

const categorize = closed(
  {
    llm_id: model,
    query: template('The text to classify. Default: {{sys.query}}.'),
    categories: {
      type: 'object',
      minProperties: 1,
      propertyNames: { minLength: 1, maxLength: 100 },
      additionalProperties: closed(
        {
          description: text('Describes the category to the model.'),
          examples: { type: 'array', items: text('An example of the category.') },
          to: ids('The next components.', 1),
        },
        'description',
        'to',
      ),
    },
    otherwise: ids('The next components if the model chooses no category. Default: an error.', 1),
    retry,
    on_error: {
      ...closed({ value: template('The output.'), to: ids('The next components.', 1) }, 'to'),
    },
  },
  'llm_id',
  'categories',
);

const iterate = closed(
  {
    items: template('A JSON array, or text to split.'),
    delimiter: text('The delimiter of text that is not a JSON array. Default: line breaks.'),
    max_items: whole(1, 1_000, 'The maximum number of items; the rest is left out. Default: 20.'),
    concurrency: whole(1, 100, 'The number of items that run concurrently. Default: 1.'),
    separator: {
      type: 'string',
      description: 'The separator of the outputs as text. Default: a blank line.',
    },
    components: ref('components'),
    on_error: onError,
  },
  'items',
  'components',
);

const message = closed({ content: template('The text of the message.') }, 'content');

const input: Schema = {
  type: 'object',
  description: 'A template that is a single reference becomes the value itself. Default: {}.',
};
const code = closed(
  { function: text('A key of `code`.'), input, retry, on_error: onError },
  'function',
);
const tool = closed({ tool: text('The name of a tool.'), input, retry, on_error: onError }, 'tool');

const loop = closed(
  {
    max_rounds: whole(1, limits.rounds, 'The maximum number of rounds.'),
    until: {
      ...closed({ conditions, logic }, 'conditions'),
      description: 'Ends the loop after a round in which this is true. Default: never.',
    },
    components: ref('components'),
    on_error: onError,
  },
  'max_rounds',
  'components',
);

const choices: Schema = {
  type: 'array',
  minItems: 1,
  uniqueItems: true,
  items: text('A possible answer.'),
};

const human = closed(
  {
    message: template('What the person reads.'),
    choices,
    fields: {
      type: 'object',
      minProperties: 1,
      maxProperties: 50,
      propertyNames: ref('name'),
      additionalProperties: closed(
        {
          type: { enum: fieldTypes },
          label: text('What the person reads. Default: the name of the field.'),
          choices,
          required: { type: 'boolean', description: 'Default: true.' },
        },
        'type',
      ),
    },
    timeout_ms: whole(
      1,
      limits.delay,
      'The maximum time to wait, in milliseconds. Default: 24 days.',
    ),
    on_error: onError,
  },
  'message',
);

const http = closed(
  {
    url: template('The URL; inserted values are percent-encoded.'),
    method: { enum: httpMethods, description: 'Default: GET.' },
    headers: {
      type: 'object',
      propertyNames: { pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" },
      additionalProperties: template('The value of the header.'),
    },
    body: { description: 'A string is sent as it is, any other value as JSON.' },
    timeout_ms: whole(1, limits.delay, 'Of each attempt, in milliseconds. Default: 30,000.'),
    max_bytes: whole(1, limits.response, 'The maximum size of the response. Default: 1,000,000.'),
    max_redirects: whole(0, 20, 'The maximum number of redirects. Default: 5.'),
    result: text('The path of the output in a JSON response: data.items.0.'),
    idempotency_key: { type: 'boolean', description: 'Sends Idempotency-Key. Default: false.' },
    retry,
    on_error: onError,
  },
  'url',
);

const set = closed(
  {
    assign: {
      type: 'array',
      minItems: 1,
      items: closed(
        {
          variable: { type: 'string', description: 'A key of `variables`.' },
          operator: { enum: assignOperators, description: 'Default: set.' },
          value: { description: 'A template that is a single reference becomes the value itself.' },
        },
        'variable',
      ),
    },
    on_error: onError,
  },
  'assign',
);

const params = {
  begin: closed({}),
  agent,
  retrieval,
  switch: choice,
  categorize,
  iterate,
  message,
  code,
  tool,
  loop,
  human,
  http,
  set,
};

const component: Schema = {
  ...closed(
    {
      component_name: { enum: Object.keys(params) },
      params: { type: 'object' },
      upstream: ids('The components before it.'),
      downstream: ids('The components after it.'),
    },
    'component_name',
  ),
  allOf: Object.keys(params).map((name) => ({
    if: { properties: { component_name: { const: name } }, required: ['component_name'] },
    then: {
      properties: { params: ref(`${name}Params`) },
      ...(name !== 'begin' && { required: ['params'] }),
    },
  })),
};

/** The JSON Schema of a flow, draft 2020-12. `@millrace/flow/schema.json` is a copy for editors. */
export const documentSchema: Schema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'A Millrace flow',
  ...closed(
    {
      $schema: { type: 'string', description: 'The location of this schema, for editors.' },
      version: { const: 1 },
      name: { type: 'string', minLength: 1, maxLength: 100 },
      description: { type: 'string' },
      variables: {
        type: 'object',
        maxProperties: limits.variables,
        propertyNames: ref('name'),
        additionalProperties: ref('variable'),
      },
      components: ref('components'),
    },
    'version',
    'name',
    'components',
  ),
  $defs: {
    id: { type: 'string', pattern: idPattern },
    name: { type: 'string', pattern: namePattern },
    variable: closed(
      {
        type: { enum: variableTypes },
        default: { description: 'The value at the start of a call. Default: the empty value.' },
        description: { type: 'string' },
      },
      'type',
    ),
    components: {
      type: 'object',
      minProperties: 1,
      maxProperties: limits.components,
      propertyNames: ref('id'),
      additionalProperties: ref('component'),
    },
    component,
    onError: {
      ...closed({
        value: template('The output if the component fails.'),
        to: ids('The next components if it fails, instead of the usual ones.', 1),
      }),
      minProperties: 1,
    },
    retry: {
      ...closed(
        {
          times: whole(1, 10, 'The maximum number of repetitions.'),
          delay_ms: whole(0, 600_000, 'Before the first one; it doubles. Default: 1,000.'),
        },
        'times',
      ),
      description: 'Repeats a failed request or run before its error counts.',
    },
    ...Object.fromEntries(Object.entries(params).map(([name, it]) => [`${name}Params`, it])),
  },
};
