import { operators } from './document.js';
import { idPattern } from './ids.js';
import { limits } from './limits.js';

type Schema = Readonly<Record<string, unknown>>;

/** An object of these keys and no others. */
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
  description: `${description} May hold {{sys.query}}, {{component@output}} and their like.`,
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
const model = text('Which model: a key of `models`.');
const onError = ref('onError');

const agent = closed(
  {
    llm_id: model,
    sys_prompt: template('What the model is told in every request.'),
    prompts: {
      type: 'array',
      minItems: 1,
      items: closed(
        { role: { enum: ['user', 'assistant'] }, content: template('What is said.') },
        'role',
        'content',
      ),
      description:
        'What it is asked; those that are empty are left out. Default: what the flow is asked, as it is.',
    },
    message_history_window_size: whole(
      0,
      1_000,
      'Messages of the conversation before that it sees. Default: 0.',
    ),
    max_rounds: whole(1, 1_000, 'How often it may ask its model. Default: 10.'),
    tools: { type: 'array', items: text('The name of a tool.'), uniqueItems: true },
    mcp: { type: 'array', items: text('A key of `mcp`.'), uniqueItems: true },
    output: {
      type: 'object',
      description: 'A JSON Schema of an object: what the answer must be. It may not use patterns.',
    },
    temperature: { type: 'number', minimum: 0 },
    max_tokens: whole(1, Number.MAX_SAFE_INTEGER, 'Tokens that each of its messages may have.'),
    on_error: onError,
  },
  'llm_id',
);

const retrieval = closed(
  {
    retriever_id: text('A key of `retrievers`.'),
    query: template('What is looked for. Default: {{sys.query}}.'),
    top_n: whole(1, 1_000, 'Passages at most. Default: 5.'),
    on_error: onError,
  },
  'retriever_id',
);

const condition = closed(
  {
    value: template('What is looked at.'),
    operator: { enum: operators },
    operand: template('What the value is compared with.'),
  },
  'value',
  'operator',
);

const choice = closed(
  {
    cases: {
      type: 'array',
      minItems: 1,
      items: closed(
        {
          conditions: { type: 'array', minItems: 1, items: condition },
          logic: { enum: ['and', 'or'], description: 'Default: and.' },
          to: ids('Where it leads where this is the first case that holds.', 1),
        },
        'conditions',
        'to',
      ),
    },
    otherwise: ids('Where it leads where no case holds. Default: nowhere.', 1),
  },
  'cases',
);

const categorize = closed(
  {
    llm_id: model,
    query: template('What is to be put into a category. Default: {{sys.query}}.'),
    categories: {
      type: 'object',
      minProperties: 1,
      propertyNames: { minLength: 1, maxLength: 100 },
      additionalProperties: closed(
        {
          description: text('Tells the model what belongs to it.'),
          examples: { type: 'array', items: text('What belongs to it, for example.') },
          to: ids('Where it leads.', 1),
        },
        'description',
        'to',
      ),
    },
    otherwise: ids('Where it leads where the model chooses none. Default: an error.', 1),
    on_error: {
      ...closed({ value: template('Its output.'), to: ids('Where it leads.', 1) }, 'to'),
    },
  },
  'llm_id',
  'categories',
);

const iterate = closed(
  {
    items: template('A JSON list, or a text that is split.'),
    delimiter: text('What splits a text that is no JSON list. Default: the ends of lines.'),
    max_items: whole(1, 1_000, 'Items at most: others behind them are left out. Default: 20.'),
    concurrency: whole(1, 100, 'Items at once. Default: 1.'),
    separator: {
      type: 'string',
      description: 'Between the items as a text. Default: a blank line.',
    },
    components: ref('components'),
    on_error: onError,
  },
  'items',
  'components',
);

const message = closed({ content: template('What is said.') }, 'content');

const input: Schema = {
  type: 'object',
  description: 'A template that is one reference alone gives its value as it is. Default: {}.',
};
const code = closed({ function: text('A key of `code`.'), input, on_error: onError }, 'function');
const tool = closed({ tool: text('The name of a tool.'), input, on_error: onError }, 'tool');

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
};

const component: Schema = {
  ...closed(
    {
      component_name: { enum: Object.keys(params) },
      params: { type: 'object' },
      upstream: ids('The components that lead to it.'),
      downstream: ids('The components that it leads to.'),
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

/** The JSON Schema of a flow, draft 2020-12. `@millrace/flow/schema.json` is the same, for editors. */
export const documentSchema: Schema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'A Millrace flow',
  ...closed(
    {
      $schema: { type: 'string', description: 'Where this schema is, for editors.' },
      version: { const: 1 },
      name: { type: 'string', minLength: 1, maxLength: 100 },
      description: { type: 'string' },
      components: ref('components'),
    },
    'version',
    'name',
    'components',
  ),
  $defs: {
    id: { type: 'string', pattern: idPattern },
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
        value: template('Its output where it fails.'),
        to: ids('Where it leads where it fails, instead of where it leads otherwise.', 1),
      }),
      minProperties: 1,
    },
    ...Object.fromEntries(Object.entries(params).map(([name, it]) => [`${name}Params`, it])),
  },
};
