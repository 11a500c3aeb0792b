import { join, relative } from 'node:path';
import { contextKey, createAgent, preset, tool } from 'millrace';
import { journal } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { finish, scriptedModel, text, toolCall } from 'millrace/testing';
import { openai } from '@millrace/openai';
import { openFiles } from '@millrace/store';
import { openSqlite } from '@millrace/store/sqlite';
import { fileTools } from '@millrace/tools/files';
import { of } from 'rxjs';
import { postJson } from '../driver/http.js';
import { bodyOf, openSite, serving, userOf } from '../driver/serving.js';
import { contentOf, filesIn, inDirectory } from '../driver/temporary.js';
import { type Attack, scene } from '../scene.js';

const secrets = {
  'a key': 'sk-proj-SECRET1234567890',
  'a header': 'corp-KEY-9876',
  'a preset parameter': 'hunter2-PASSWORD',
  'a value of the context': 'tenant-TOKEN-4711',
};

const vendorKey = contextKey<string>('vendorKey');

/** A journal records a call. Who reads its files gets what was said, but no secret of the program. */
const rests =
  (secret: string): Attack<undefined> =>
  () =>
    inDirectory(async (directory) => {
      const site = await openSite((request, response) => {
        void bodyOf(request).then((body) => {
          const choice = body.includes('"role":"tool"')
            ? { delta: { content: 'Found.' }, finish_reason: 'stop' }
            : {
                delta: {
                  tool_calls: [
                    {
                      index: 0,
                      id: 'c',
                      type: 'function',
                      function: { name: 'look', arguments: '{}' },
                    },
                  ],
                },
                finish_reason: 'tool_calls',
              };
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          response.end(
            `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, ...choice }] })}\n\ndata: [DONE]\n\n`,
          );
        });
      });
      const ran: string[] = [];
      const look = tool({
        name: 'look',
        description: 'Looks.',
        input: jsonSchema({
          type: 'object',
          properties: { password: { type: 'string' } },
          required: ['password'],
        }),
        run: ({ password }, context) => {
          ran.push(password, context.get(vendorKey));
          return 'Found.';
        },
      });
      const agent = createAgent({
        model: openai.chat('gpt-5-mini', {
          apiKey: secrets['a key'],
          baseURL: `${site.origin}/v1`,
          headers: { 'x-corp': secrets['a header'] },
        }),
        tools: [preset(look, { password: secrets['a preset parameter'] })],
        use: [journal(openFiles(directory).calls)],
        context: [vendorKey.of(secrets['a value of the context'])],
      });
      const reply = await agent.call('Look.').finally(() => site.close());
      if (ran.length !== 2) return 'the tool did not get the secrets';
      const stored = await contentOf(directory);
      if (!stored.includes('Found.')) return 'nothing was recorded';
      if (JSON.stringify(reply).includes(secret)) return 'the reply has it';
      return stored.includes(secret) ? 'it is on disk' : undefined;
    });

/** The defaults together: file tools read the working directory, in which the store keeps every conversation. */
const throughFiles =
  (place: string, open: typeof openFiles | typeof openSqlite = openFiles): Attack<undefined> =>
  () =>
    inDirectory(async (root) => {
      const diagnosis = 'The diagnosis is F32.1.';
      const directory = join(root, place);
      const store = open(directory);
      // Eve's model calls the tools with paths that are only known once Ann's conversation is on disk.
      const calls: { readonly name: string; readonly input: Readonly<Record<string, unknown>> }[] =
        [];
      const model = scriptedModel(
        [text('Noted.')],
        () =>
          of(
            ...calls.map(({ name, input }, index) => ({ ...toolCall(name, input, `c${index}`) })),
            finish(),
          ),
        [text('Here it is.')],
      );
      const agent = createAgent({ name: 'helper', model, tools: fileTools({ root }) });
      const served = await serving(agent, { store, user: userOf });
      const ask = (user: string, question: string) =>
        postJson(
          `${served.url}/api/chat`,
          {
            id: 'c',
            messages: [{ id: 'q', role: 'user', parts: [{ type: 'text', text: question }] }],
          },
          { authorization: user },
        );
      try {
        await ask('ann', diagnosis);
        const stored = (await filesIn(root)).filter((file) => /\.(?:jsonl|db.*)$/u.test(file));
        if (!(await contentOf(root)).includes(diagnosis)) return 'nothing was stored';
        calls.push(
          { name: 'list_files', input: { depth: 9 } },
          { name: 'search_files', input: { query: 'diagnosis' } },
          { name: 'search_files', input: { query: 'diagnosis', path: place } },
          ...stored.map((file) => ({ name: 'read_file', input: { path: relative(root, file) } })),
        );
        const { text: seen } = await ask('eve', 'Which files are there?');
        if (!seen.includes('tool-output-')) return `no tool ran: ${seen.slice(0, 300)}`;
        return seen.includes('F32.1') ? 'Eve reads what Ann has said' : undefined;
      } finally {
        served.close();
      }
    });

export const atRestScenes = [
  scene({
    rule: 'X10',
    promise: 'A journal records no key, header, preset parameter or value of the context',
    open: () => undefined,
    attacks: Object.fromEntries(
      Object.entries(secrets).map(([name, secret]) => [name, rests(secret)]),
    ),
  }),
  scene({
    rule: 'X17',
    promise: 'File tools show nothing of a store, also with the defaults of both',
    open: () => undefined,
    attacks: {
      'the conversation of another user, in .millrace': throughFiles('.millrace'),
      'the conversation of another user, in a directory with an ordinary name':
        throughFiles('data'),
      'the conversation of another user, in a database beside other files': throughFiles(
        'mill.db',
        openSqlite,
      ),
    },
  }),
];
