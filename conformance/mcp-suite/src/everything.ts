import { type ContentBlock, type JsonSchema, type Tool, tool, toolOutput } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import {
  type McpClient,
  type McpForm,
  mcpClient,
  type McpPrompt,
  type McpResource,
  type McpResourceTemplate,
  type ServingOptions,
} from '@millrace/mcp/server';
import {
  concat,
  defer,
  delay,
  forkJoin,
  from,
  ignoreElements,
  map,
  mergeMap,
  NEVER,
  type Observable,
  of,
} from 'rxjs';

const picture =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const silence = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=';

const image: ContentBlock = {
  type: 'image',
  source: { kind: 'base64', mediaType: 'image/png', data: picture },
};
const fileNamed = (name: string, mediaType: string, text: string): ContentBlock => ({
  type: 'file',
  name,
  source: { kind: 'base64', mediaType, data: Buffer.from(text).toString('base64') },
});

const giving = (name: string, ...content: readonly ContentBlock[]): Tool =>
  tool({ name, description: `Is for the scenario ${name}.`, run: () => toolOutput({ content }) });

const fields = (properties: Readonly<Record<string, object>>, required: readonly string[] = []) =>
  jsonSchema<JsonSchema>({ type: 'object', properties, required });

/** A tool that asks the user, and returns the answer as text. */
const asking = (name: string, schema: McpForm<unknown>['schema'], start: string): Tool =>
  tool({
    name,
    description: 'Asks the user.',
    input: jsonSchema({ type: 'object', properties: { message: { type: 'string' } } }),
    run: ({ message = 'Please fill in.' }, context) =>
      mcpClient(context)
        .elicit$({ message, schema })
        .pipe(
          map((answer) => {
            const content = 'content' in answer ? answer.content : {};
            return `${start}: action=${answer.action}, content=${JSON.stringify(content)}`;
          }),
        ),
  });

const form = (id: string, message: string, key: string, type = 'string') => ({
  id,
  message,
  schema: fields({ [key]: { type } }, [key]),
});

const answerOf = (answer: object): string =>
  JSON.stringify('content' in answer ? answer.content : answer);

/** A tool of the scenarios in which a client of version 2026-07-28 repeats a call with answers. */
const round = (name: string, run: (client: McpClient) => Observable<string>): Tool =>
  tool({
    name: `test_input_required_result_${name}`,
    description: 'Asks the client.',
    run: (_input, context) => run(mcpClient(context)),
  });

const userName = form('user_name', 'What is your name?', 'name');
const confirm = form('confirm', 'Please confirm', 'ok', 'boolean');

const rounds: readonly Tool[] = [
  round('elicitation', (client) =>
    client.elicit$(userName).pipe(map((answer) => `Hello, ${answerOf(answer)}!`)),
  ),
  round('sampling', (client) =>
    client
      .sample$({
        id: 'capital_question',
        messages: 'What is the capital of France?',
        maxTokens: 100,
      })
      .pipe(map(({ text }) => text)),
  ),
  round('list_roots', (client) => client.roots$.pipe(map((roots) => JSON.stringify(roots)))),
  round('request_state', (client) => client.elicit$(confirm).pipe(map(() => 'state-ok'))),
  round('tampered_state', (client) => client.elicit$(confirm).pipe(map(() => 'state-ok'))),
  round('multiple_inputs', (client) =>
    forkJoin([
      client.elicit$(userName),
      client.sample$({ id: 'greeting', messages: 'Generate a greeting', maxTokens: 50 }),
      client.roots$,
    ]).pipe(map((answers) => JSON.stringify(answers))),
  ),
  round('multi_round', (client) =>
    client
      .elicit$(form('step1', 'Step 1: What is your name?', 'name'))
      .pipe(
        mergeMap((first) =>
          client
            .elicit$(form('step2', 'Step 2: What is your favorite color?', 'color'))
            .pipe(map((second) => `${answerOf(first)} ${answerOf(second)}`)),
        ),
      ),
  ),
  round('capabilities', ({ supports, elicit$, sample$ }) =>
    supports.forms
      ? elicit$(userName).pipe(map(answerOf))
      : sample$({ messages: 'Name someone.', maxTokens: 50 }).pipe(map(({ text }) => text)),
  ),
];

/** The tools that the scenarios for servers call. */
export const everything: readonly Tool[] = [
  tool({
    name: 'test_simple_text',
    description: 'Returns text.',
    run: () => 'This is a simple text response for testing.',
  }),
  giving('test_image_content', image),
  giving('test_audio_content', {
    type: 'audio',
    source: { kind: 'base64', mediaType: 'audio/wav', data: silence },
  }),
  giving(
    'test_embedded_resource',
    fileNamed('test://embedded-resource', 'text/plain', 'This is an embedded resource content.'),
  ),
  giving(
    'test_multiple_content_types',
    { type: 'text', text: 'Multiple content types test:' },
    image,
    fileNamed('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
  ),
  tool({
    name: 'test_error_handling',
    description: 'Fails.',
    run: () => {
      throw new Error('This tool intentionally returns an error for testing');
    },
  }),
  tool({
    name: 'test_tool_with_progress',
    description: 'Reports progress.',
    run: () =>
      from([
        { progress: 0, total: 100 },
        { progress: 50, total: 100 },
        { progress: 100, total: 100 },
        toolOutput({ content: 'Done.' }),
      ]),
  }),
  tool({
    name: 'test_tool_with_logging',
    description: 'Logs.',
    run: (_input, context) => {
      const { log } = mcpClient(context);
      const logged = (text: string, ms: number) =>
        defer(() => {
          log('info', text);
          return of(text).pipe(delay(ms), ignoreElements());
        });
      return concat(
        logged('Tool execution started', 50),
        logged('Tool processing data', 50),
        logged('Tool execution completed', 0),
        of('Done.'),
      );
    },
  }),
  tool({
    name: 'test_sampling',
    description: 'Asks the model of the client.',
    input: jsonSchema({
      type: 'object',
      properties: { prompt: { type: 'string' } },
      required: ['prompt'],
    }),
    run: ({ prompt }, context) =>
      mcpClient(context)
        .sample$({ messages: prompt, maxTokens: 100 })
        .pipe(map(({ text }) => `LLM response: ${text}`)),
  }),
  asking(
    'test_elicitation',
    fields(
      {
        username: { type: 'string', description: "User's response" },
        email: { type: 'string', description: "User's email address" },
      },
      ['username', 'email'],
    ),
    'User response',
  ),
  asking(
    'test_elicitation_sep1034_defaults',
    fields({
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    }),
    'Elicitation completed',
  ),
  asking(
    'test_elicitation_sep1330_enums',
    fields({
      untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
      titledSingle: {
        type: 'string',
        oneOf: [
          { const: 'value1', title: 'First Option' },
          { const: 'value2', title: 'Second Option' },
          { const: 'value3', title: 'Third Option' },
        ],
      },
      legacyEnum: {
        type: 'string',
        enum: ['opt1', 'opt2', 'opt3'],
        enumNames: ['Option One', 'Option Two', 'Option Three'],
      },
      untitledMulti: {
        type: 'array',
        items: { type: 'string', enum: ['option1', 'option2', 'option3'] },
      },
      titledMulti: {
        type: 'array',
        items: {
          anyOf: [
            { const: 'value1', title: 'First Choice' },
            { const: 'value2', title: 'Second Choice' },
            { const: 'value3', title: 'Third Choice' },
          ],
        },
      },
    }),
    'Elicitation completed',
  ),
  tool({
    name: 'json_schema_2020_12_tool',
    description: 'Tool with JSON Schema 2020-12 features',
    input: jsonSchema({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: {
        address: {
          $anchor: 'addressDef',
          type: 'object',
          properties: { street: { type: 'string' }, city: { type: 'string' } },
        },
      },
      properties: {
        name: { type: 'string' },
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: { type: 'string' },
        email: { type: 'string' },
      },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    }),
    run: () => 'Hello.',
  }),
  tool({
    name: 'test_x_mcp_header',
    description: 'Has an argument that clients repeat in a header.',
    input: jsonSchema({
      type: 'object',
      properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
      required: ['region'],
    }),
    run: ({ region }) => `The region is ${region}.`,
  }),
  tool({
    name: 'test_missing_capability',
    description: 'Needs the model of the client.',
    run: (_input, context) =>
      mcpClient(context)
        .sample$({ messages: 'Say pong.', maxTokens: 16 })
        .pipe(map(({ text }) => text)),
  }),
  tool({
    name: 'test_streaming_elicitation',
    description: 'Returns a result, and asks nothing.',
    run: () => 'No request of the server is in this stream.',
  }),
  tool({
    name: 'test_logging_tool',
    description: 'Logs.',
    run: (_input, context) => {
      mcpClient(context).log('info', 'Only for clients that want it.');
      return 'Logged.';
    },
  }),
  ...rounds,
];

const resources: readonly (McpResource | McpResourceTemplate)[] = [
  {
    uri: 'test://static-text',
    name: 'Static text',
    description: 'A static text resource.',
    mimeType: 'text/plain',
    read: () => 'This is the content of the static text resource.',
  },
  {
    uri: 'test://static-binary',
    name: 'Static binary',
    description: 'A static binary resource.',
    mimeType: 'image/png',
    read: () => Buffer.from(picture, 'base64'),
  },
  {
    uri: 'test://watched-resource',
    name: 'Watched',
    description: 'A resource to subscribe to.',
    mimeType: 'text/plain',
    read: () => 'Watched.',
  },
  {
    uriTemplate: 'test://template/{id}/data',
    name: 'Template',
    description: 'Data by id.',
    mimeType: 'application/json',
    read: ({ variables: { id } }) =>
      JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
  },
];

const prompts: readonly McpPrompt[] = [
  {
    name: 'test_simple_prompt',
    description: 'A simple prompt.',
    get: () => 'This is a simple prompt for testing.',
  },
  {
    name: 'test_prompt_with_arguments',
    description: 'A prompt with arguments.',
    arguments: [
      {
        name: 'arg1',
        description: 'First test argument',
        required: true,
        complete: ['paris', 'park'],
      },
      { name: 'arg2', description: 'Second test argument', required: true },
    ],
    get: ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  },
  {
    name: 'test_prompt_with_embedded_resource',
    description: 'A prompt with a resource.',
    arguments: [{ name: 'resourceUri', description: 'The URI to embed', required: true }],
    get: ({ resourceUri = '' }) => [
      {
        role: 'user',
        content: [fileNamed(resourceUri, 'text/plain', 'Embedded resource content for testing.')],
      },
      'Please process the embedded resource above.',
    ],
  },
  {
    name: 'test_prompt_with_image',
    description: 'A prompt with an image.',
    get: () => [{ role: 'user', content: [image] }, 'Please analyze the image above.'],
  },
  {
    name: 'test_input_required_result_prompt',
    description: 'A prompt that asks the user.',
    get: (_given, { client }) =>
      client
        .elicit$(form('user_context', 'What context should the prompt use?', 'context'))
        .pipe(map((answer) => [`Use the context ${answerOf(answer)}.`])),
  },
];

/** The resources and prompts of the scenarios for servers. */
export const offered: Pick<ServingOptions, 'resources' | 'resourceUpdates$' | 'prompts'> = {
  resources,
  resourceUpdates$: NEVER,
  prompts,
};
