import type { ResponseScript } from '../scenario.js';
import { json, streamed } from '../steps.js';
import { chatBody, chatChunk, chatDelta, chatDone, chatUsage } from '../streams/chat-stream.js';
import { answering, askOslo, done, type Fault, isDone } from './fault.js';
import { type Oddity, oslo, rome, runsBoth, runsOslo } from './tool-calls.js';

type Json = Readonly<Record<string, unknown>>;

/** A turn whose deltas hold these lists of tool calls. */
const turn = (deltas: readonly (readonly Json[])[], finish = 'tool_calls'): ResponseScript =>
  streamed([
    chatDelta({ role: 'assistant', content: null }),
    ...deltas.map((tool_calls) => chatDelta({ tool_calls })),
    chatDelta({}, finish),
    chatChunk({ choices: [], usage: chatUsage({ input: 21, cached: 0, output: 7 }) }),
    chatDone,
  ]);

/** The first piece of a call. */
const begin = (id: string | undefined, args: unknown, rest: Json = {}): Json => ({
  ...rest,
  ...(id === undefined ? {} : { id }),
  type: 'function',
  function: { name: 'weather', arguments: args },
});

/** A later piece. */
const more = (args: string, rest: Json = {}): Json => ({ ...rest, function: { arguments: args } });

const at = (index: number): Json => ({ index });

const oddities: readonly Oddity[] = [
  {
    id: 'id-missing',
    about: 'Calls have no id.',
    script: turn([[begin(undefined, oslo, at(0))], [begin(undefined, rome, at(1))]]),
    runs: runsBoth,
  },
  {
    id: 'id-empty',
    about: 'Calls have an empty id.',
    script: turn([[begin('', oslo, at(0))], [begin('', rome, at(1))]]),
    runs: runsBoth,
  },
  {
    id: 'id-null',
    about: 'The id of a call is null, and so is that of its later pieces.',
    script: turn([
      [{ ...begin(undefined, '{"city":', at(0)), id: null }],
      [{ ...more('"Oslo"}', at(0)), id: null, type: null }],
    ]),
    runs: runsOslo,
  },
  {
    id: 'id-empty-later',
    about: 'The id is empty in all pieces but the first.',
    script: turn([[begin('call_1', '{"city":', at(0))], [{ ...more('"Oslo"}', at(0)), id: '' }]]),
    runs: runsOslo,
  },
  {
    id: 'id-repeated',
    about: 'The id and the name are in every piece.',
    script: turn([
      [begin('call_1', '{"city":', at(0))],
      [begin('call_1', '"Oslo"}', at(0))],
      [begin('call_2', '{"city":', at(1))],
      [begin('call_2', '"Rome"}', at(1))],
    ]),
    runs: runsBoth,
  },
  {
    id: 'index-gaps',
    about: 'Indexes have gaps, and do not begin with 0.',
    script: turn([
      [begin('call_1', '{"city":', at(3))],
      [more('"Oslo"}', at(3))],
      [begin('call_2', rome, at(17))],
    ]),
    runs: runsBoth,
  },
  {
    id: 'index-huge',
    about: 'An index is 1,000,000,000.',
    script: turn([[begin('call_1', '{"city":', at(1e9))], [more('"Oslo"}', at(1e9))]]),
    runs: runsOslo,
  },
  {
    id: 'index-negative',
    about: 'Indexes are below zero.',
    script: turn([[begin('call_1', oslo, at(-1))], [begin('call_2', rome, at(-2))]]),
    runs: runsBoth,
  },
  {
    id: 'index-missing',
    about: 'Calls have no index, and an id only in their first piece.',
    script: turn([
      [begin('call_1', '{"city":')],
      [more('"Oslo"}')],
      [begin('call_2', '{"city":')],
      [more('"Rome"}')],
    ]),
    runs: runsBoth,
  },
  {
    id: 'index-and-id-missing',
    about: 'Calls have neither an index nor an id: a name begins the next.',
    script: turn([[begin(undefined, oslo)], [begin(undefined, rome)]]),
    runs: runsBoth,
  },
  {
    id: 'index-always-0',
    about: 'The index is always 0: a new id begins the next call.',
    script: turn([
      [begin('call_1', '{"city":', at(0))],
      [more('"Oslo"}', at(0))],
      [begin('call_2', '{"city":', at(0))],
      [more('"Rome"}', at(0))],
    ]),
    runs: runsBoth,
  },
  {
    id: 'arguments-object',
    about: 'The arguments are an object, not its text.',
    script: turn([
      [begin('call_1', { city: 'Oslo' }, at(0)), begin('call_2', { city: 'Rome' }, at(1))],
    ]),
    runs: runsBoth,
  },
  {
    id: 'arguments-missing',
    about: 'There are no arguments, though the city is required.',
    script: turn([[{ index: 0, id: 'call_1', type: 'function', function: { name: 'weather' } }]]),
    runs: [],
  },
  {
    id: 'name-later',
    about: 'The name comes in a later piece than the id.',
    script: turn([
      [{ index: 0, id: 'call_1', type: 'function', function: { arguments: '' } }],
      [{ index: 0, function: { name: 'weather' } }],
      [more(oslo, at(0))],
    ]),
    runs: runsOslo,
  },
  {
    id: 'interleaved',
    about: 'The pieces of two calls alternate.',
    script: turn([
      [begin('call_1', '', at(0)), begin('call_2', '', at(1))],
      [more('{"city":', at(0))],
      [more('{"city":', at(1))],
      [more('"Oslo"}', at(0)), more('"Rome"}', at(1))],
    ]),
    runs: runsBoth,
  },
  {
    id: 'two-in-a-piece',
    about: 'Two whole calls are in one piece, behind an empty list and one that is null.',
    script: streamed([
      chatDelta({ role: 'assistant', content: '', tool_calls: [] }),
      chatDelta({ content: null, tool_calls: null }),
      chatDelta(
        { tool_calls: [begin('call_1', oslo, at(0)), begin('call_2', rome, at(1))] },
        'tool_calls',
      ),
      chatDone,
    ]),
    runs: runsBoth,
  },
  {
    id: 'function-call',
    about: 'The call is a `function_call`, as it was before there were tools.',
    script: streamed([
      chatDelta({ role: 'assistant', function_call: { name: 'weather', arguments: '' } }),
      chatDelta({ function_call: { arguments: '{"city":' } }),
      chatDelta({ function_call: { arguments: '"Oslo"}' } }),
      chatDelta({}, 'function_call'),
      chatDone,
    ]),
    runs: runsOslo,
  },
  {
    id: 'arguments-object-json',
    about: 'The answer is one JSON body, and the arguments are an object.',
    script: json(200, withObject(chatBody(askOslo))),
    runs: runsOslo,
  },
];

/** Writes the arguments of the calls of a body as objects. */
function withObject(body: Json): unknown {
  return JSON.parse(JSON.stringify(body), (key, value: unknown) =>
    key === 'arguments' ? { city: 'Oslo' } : value,
  );
}

/** Tool calls as they have been seen from servers that speak OpenAI's chat completions almost. */
export const chatToolFaults: readonly Fault[] = oddities.map(
  ({
    id,
    about,
    row = id.startsWith('index') || id.startsWith('id') ? 'X7' : 'X8',
    script,
    runs,
  }) => ({
    id: `chat-tool-${id}`,
    row,
    about,
    wires: ['chat'],
    scenario: () => ({ responses: [script, answering('chat', done)] }),
    expects: { outcome: isDone, requests: 2, runs },
  }),
);
