import { afterEach, describe, expect, it } from '@jest/globals';
import { createServer, type Server } from 'node:http';
import { createAgent, tool, toolOutput, toolResults } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { sessions } from 'millrace/sessions';
import { at, listAt } from '@millrace/wire';
import type { ResponsesOptions } from './options.js';
import { openai } from './vendors.js';

type Json = Readonly<Record<string, unknown>>;

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** Answers with one response after the other, and keeps the bodies of the requests. */
const serve = async (...outputs: readonly (readonly Json[])[]) => serveWith({}, ...outputs);

const serveWith = async (options: ResponsesOptions, ...outputs: readonly (readonly Json[])[]) => {
  const bodies: unknown[] = [];
  server = createServer((request, response) => {
    let text = '';
    request.on('data', (data: Buffer) => (text += data.toString()));
    request.on('end', () => {
      const output = outputs[bodies.push(JSON.parse(text)) - 1] ?? [];
      const end = { type: 'response.completed', response: { status: 'completed', output } };
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`data: ${JSON.stringify(end)}\n\n`);
    });
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const baseURL = `http://127.0.0.1:${port ?? 0}/v1`;
  const model = openai.responses('gpt-5-mini', {
    ...{ apiKey: 'k', baseURL, retry: false },
    ...options,
  });
  return { model, inputs: () => bodies.map((body) => listAt(body, 'input')), bodies };
};

const message = (text: string): Json => ({
  type: 'message',
  id: 'm',
  content: [{ type: 'output_text', text }],
});

const approval = {
  type: 'mcp_approval_request',
  id: 'mcpr_1',
  name: 'roll',
  server_label: 'dice',
  arguments: '{"dice":"2d4"}',
};

describe('X30: items that wait for the program', () => {
  it.each<[string, unknown, Json]>([
    ['yes', true, { approve: true }],
    ['yes, in full', { approved: true }, { approve: true }],
    ['no', false, { approve: false }],
    [
      'no, with a reason',
      { approved: false, reason: 'Too risky.' },
      { approve: false, reason: 'Too risky.' },
    ],
    ...['sure', 'yes', '"true"', 1, [true], null, { approve: true }, { approved: 'true' }].map(
      (other): [string, unknown, Json] => [
        `anything else: ${JSON.stringify(other)}`,
        other,
        { approve: false },
      ],
    ),
    ['a yes to the same arguments', { approved: true, input: { dice: '2d4' } }, { approve: true }],
    [
      'a yes to other arguments',
      { approved: true, input: { dice: '9d9' } },
      { approve: false, reason: 'The arguments cannot be edited.' },
    ],
    [
      'an error',
      toolOutput({ content: 'true', isError: true }),
      { approve: false, reason: 'true' },
    ],
  ])('an approval of a hosted tool is resumed: %s', async (_, decision, decided) => {
    const { model, inputs } = await serve([approval], [message('Done.')]);
    const session = sessions(createAgent({ model })).open('u');
    const { reason, suspensions } = await session.call('Roll.');
    expect(reason).toBe('suspended');
    expect(suspensions).toMatchObject([
      {
        toolCall: { id: 'mcpr_1', name: 'approve_roll', input: { dice: '2d4' } },
        request: { tool: 'roll', server: 'dice', input: { dice: '2d4' } },
        from: 'client',
      },
    ]);
    const reply = await session.call(toolResults({ mcpr_1: decision }));
    expect(reply.text).toBe('Done.');
    expect(inputs()[1]?.slice(1)).toEqual([
      approval,
      { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', ...decided },
    ]);
  });

  it.each([
    [undefined, 'client'],
    ['client', 'client'],
    ['program', 'program'],
  ] as const)(
    'T13: mcpApprovals: %s lets the %s decide, and changes no other call',
    async (given, from) => {
      const shell = item('shell_call', { action: { commands: ['ls'] } });
      const { model } = await serveWith({ mcpApprovals: given }, [approval, shell]);
      const { suspensions = [] } = await sessions(createAgent({ model })).open('u').call('?');
      expect(suspensions.map((it) => [it.toolCall.name, it.from])).toEqual([
        ['approve_roll', from],
        ['shell', 'program'],
      ]);
    },
  );

  it('mcpApprovals is a source of results', () => {
    const options = JSON.parse('{"apiKey":"k","mcpApprovals":"nobody"}') as ResponsesOptions;
    expect(() => openai.responses('gpt-5-mini', options)).toThrow(/'mcpApprovals' must be/u);
  });

  const item = (type: string, fields: Json): Json => ({ type, id: 'i1', call_id: 'c1', ...fields });

  it.each<[Json, unknown, Json]>([
    [
      item('shell_call', { action: { commands: ['ls'], max_output_length: 9 } }),
      'a.txt',
      {
        type: 'shell_call_output',
        call_id: 'c1',
        output: [{ stdout: 'a.txt', stderr: '', outcome: { type: 'exit', exit_code: 0 } }],
        max_output_length: 9,
      },
    ],
    [
      item('local_shell_call', { action: { command: ['ls'] } }),
      'a.txt',
      { type: 'local_shell_call_output', id: 'c1', output: 'a.txt' },
    ],
    [
      item('apply_patch_call', { operation: { type: 'delete_file', path: 'a' } }),
      'Gone.',
      { type: 'apply_patch_call_output', call_id: 'c1', status: 'completed', output: 'Gone.' },
    ],
    [
      item('custom_tool_call', { name: 'patch', input: '*** Begin' }),
      'Applied.',
      { type: 'custom_tool_call_output', call_id: 'c1', output: 'Applied.' },
    ],
  ])('%j is resumed with its own kind of result', async (call, result, expected) => {
    const { model, inputs } = await serve([call], [message('Done.')]);
    const session = sessions(createAgent({ model })).open('u');
    expect((await session.call('?')).reason).toBe('suspended');
    expect((await session.call(toolResults({ c1: result }))).text).toBe('Done.');
    expect(inputs()[1]?.at(-1)).toEqual(expected);
    expect(at(inputs()[1]?.at(-2), 'type')).toBe(call['type']);
  });

  const screenshot = (data: string) =>
    ({ type: 'image', source: { kind: 'base64', mediaType: 'image/png', data } }) as const;
  const checks = [{ id: 'sc1', code: 'malicious_instructions', message: 'Careful.' }];
  const png = { type: 'computer_screenshot', image_url: 'data:image/png;base64,iVBORw0KGgo=' };
  const blank = {
    type: 'computer_screenshot',
    image_url: expect.stringMatching(/^data:image\/png;base64,/u),
  };

  it.each<[string, Json, unknown, readonly unknown[]]>([
    ['a screenshot', {}, screenshot('iVBORw0KGgo='), [{ output: png }]],
    [
      'a screenshot after safety checks',
      { pending_safety_checks: checks },
      screenshot('iVBORw0KGgo='),
      [{ output: png, acknowledged_safety_checks: checks }],
    ],
    [
      'an uploaded screenshot',
      {},
      { type: 'image', source: { kind: 'id', id: 'file_1' } },
      [{ output: { type: 'computer_screenshot', file_id: 'file_1' } }],
    ],
    [
      'several screenshots and text',
      {},
      [screenshot('b2xk'), { type: 'text', text: 'Scrolled.' }, screenshot('iVBORw0KGgo=')],
      [
        { output: png },
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'The last computer call also returned: Scrolled.' },
            {
              type: 'input_image',
              detail: 'auto',
              image_url: 'data:image/png;base64,b2xk',
            },
          ],
        },
      ],
    ],
    [
      'no screenshot',
      { pending_safety_checks: checks },
      'The person said no.',
      [
        { output: blank, acknowledged_safety_checks: checks },
        {
          role: 'user',
          content:
            'There is no screenshot of the last computer call. Its result: The person said no.',
        },
      ],
    ],
  ])('a computer call is resumed with %s', async (_, fields, result, expected) => {
    const call = item('computer_call', { action: { type: 'click', x: 1, y: 2 }, ...fields });
    const { model, inputs } = await serve([call], [message('Done.')]);
    const session = sessions(createAgent({ model })).open('u');
    const { suspensions } = await session.call('?');
    expect(suspensions).toMatchObject([
      { toolCall: { name: 'computer', input: { type: 'click', x: 1, y: 2, ...fields } } },
    ]);
    expect((await session.call(toolResults({ c1: result }))).text).toBe('Done.');
    const [first, ...more] = expected;
    const output = { type: 'computer_call_output', call_id: 'c1' };
    expect(inputs()[1]?.slice(1)).toEqual([call, { ...output, ...Object(first) }, ...more]);
  });

  it('images in the result of a shell follow it', async () => {
    const call = item('shell_call', { action: { commands: ['plot'] } });
    const { model, inputs } = await serve([call], [message('Done.')]);
    const session = sessions(createAgent({ model })).open('u');
    await session.call('?');
    await session.call(toolResults({ c1: [{ type: 'text', text: 'ok' }, screenshot('b2xk')] }));
    expect(inputs()[1]?.slice(2)).toMatchObject([
      { type: 'shell_call_output', output: [{ stdout: 'ok' }] },
      { role: 'user', content: [{ type: 'input_text' }, { type: 'input_image' }] },
    ]);
  });

  it('a tool of that name runs instead, and a custom tool is declared as one', async () => {
    const seen: unknown[] = [];
    const patch = tool({
      name: 'patch',
      description: 'Applies a patch.',
      input: jsonSchema({
        type: 'object',
        properties: { text: { type: 'string' } },
        required: ['text'],
      }),
      vendorOptions: { OpenAI: { type: 'custom' } },
      run: (input) => {
        seen.push(input);
        return 'Applied.';
      },
    });
    const call = item('custom_tool_call', { name: 'patch', input: '*** "Begin"' });
    const { model, inputs, bodies } = await serve([call], [message('Done.')]);
    const reply = await createAgent({ model, tools: [patch] }).call('?');
    expect(reply.text).toBe('Done.');
    expect(seen).toEqual([{ text: '*** "Begin"' }]);
    expect(listAt(bodies[0], 'tools')).toEqual([
      { name: 'patch', description: 'Applies a patch.', type: 'custom' },
    ]);
    expect(inputs()[1]?.slice(1)).toEqual([
      { type: 'custom_tool_call', call_id: 'c1', name: 'patch', input: '*** "Begin"' },
      { type: 'custom_tool_call_output', call_id: 'c1', output: 'Applied.' },
    ]);
  });

  it.each<[string, Json, Json]>([
    ['a custom tool', { type: 'custom' }, { type: 'custom', name: 'patch' }],
    ['a function', { strict: false }, { type: 'function', name: 'patch' }],
    ['a custom tool of another vendor', {}, { type: 'function', name: 'patch' }],
  ])('%s is forced by its type and name', async (_, own, choice) => {
    const patch = tool({
      name: 'patch',
      description: 'Applies a patch.',
      vendorOptions: { OpenAI: own, Mistral: { type: 'custom' } },
      run: () => 'Applied.',
    });
    const { model, bodies } = await serve([message('Done.')]);
    const request = { toolChoice: { name: 'patch' } };
    await createAgent({ model, tools: [patch] }).call('?', { request });
    expect(at(bodies[0], 'tool_choice')).toEqual(choice);
  });

  it('an item that is not understood is sent back unchanged', async () => {
    const hologram = { type: 'hologram_call', id: 'h1', light: 'green' };
    const { model, inputs } = await serve([hologram, message('Look.')], [message('Done.')]);
    const session = sessions(createAgent({ model })).open('u');
    const reply = await session.call('?');
    expect(reply.content).toContainEqual({
      type: 'vendor',
      vendor: 'OpenAI',
      kind: 'hologram_call',
      data: hologram,
    });
    await session.call('More?');
    expect(inputs()[1]).toContainEqual(hologram);
  });
});
