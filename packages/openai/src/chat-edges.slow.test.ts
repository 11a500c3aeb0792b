import { describe, expect, it } from '@jest/globals';
import {
  a,
  b,
  type Json,
  none,
  one,
  type Outcome,
  outcomeOf,
  settings,
  sse,
  two,
} from './edges.test-support.js';
import { openai } from './index.js';

describe('X7, X31: a chat completion', () => {
  const choice = (fields: Json): string => sse({ choices: [fields] });
  const delta = (fields: Json, finish_reason: string | null = null): string =>
    choice({ index: 0, delta: fields, finish_reason });
  const calls = (...list: readonly Json[]): string => delta({ tool_calls: list });
  const call = (index: unknown, id: unknown, name: string, written?: unknown): Json => ({
    index,
    id,
    function: { name, arguments: written },
  });
  const more = (fields: Json, called: Json): Json => ({ ...fields, function: called });
  const finish = (reason = 'tool_calls'): string => delta({}, reason);
  const done = `${delta({ content: 'Done.' }, 'stop')}${sse('[DONE]')}`;
  const raw = (json: string): string =>
    sse(`{"choices":[{"index":0,"delta":{"tool_calls":[${json}]},"finish_reason":null}]}`);

  const edges: Readonly<Record<string, readonly [expected: Outcome, stream: string]>> = {
    'a content filter after a call': [
      'refused',
      calls(call(0, 'a', 'pay', a)) + finish('content_filter'),
    ],
    'a refusal before a call': [
      'refused',
      delta({ refusal: 'No' }) + calls(call(0, 'a', 'pay', a)) + finish(),
    ],
    'a refusal after a call': [
      'refused',
      calls(call(0, 'a', 'pay', a)) + delta({ refusal: 'No' }) + finish(),
    ],
    'a refusal after the finish of a call': [
      'refused',
      calls(call(0, 'a', 'pay', a)) + finish() + delta({ refusal: 'No' }),
    ],
    'a finish by length with whole arguments': [
      'truncated',
      calls(call(0, 'a', 'pay', a)) + finish('length'),
    ],
    'a finish by length after that of a call': [
      'truncated',
      calls(call(0, 'a', 'pay', a)) + finish() + finish('length'),
    ],
    'an error after a call': [
      'server',
      calls(call(0, 'a', 'pay', a)) + sse({ error: { code: 500 } }),
    ],
    'an error after the finish of a call': [
      'server',
      calls(call(0, 'a', 'pay', a)) + finish() + sse({ error: { code: 500 } }),
    ],
    'an event named error': ['server', calls(call(0, 'a', 'pay', a)) + `event: error\n${finish()}`],
    'a call in another choice': [
      none,
      choice({ index: 1, delta: { tool_calls: [call(0, 'b', 'pay', b)] } }) +
        delta({ content: 'Hi' }, 'stop'),
    ],
    'a call in each choice': [
      one,
      sse({
        choices: [
          { index: 1, delta: { tool_calls: [call(0, 'b', 'pay', b)] } },
          { index: 0, delta: { tool_calls: [call(0, 'a', 'pay', a)] } },
        ],
      }) + finish(),
    ],
    'choices whose indexes are strings': [
      one,
      choice({ index: '0', delta: { tool_calls: [call(0, 'a', 'pay', a)] } }) +
        choice({ index: '1', delta: { tool_calls: [call(0, 'b', 'pay', b)] } }) +
        finish(),
    ],
    'a finish of another choice only': [
      'invalidResponse',
      calls(call(0, 'a', 'pay', a)) + choice({ index: 1, delta: {}, finish_reason: 'stop' }),
    ],
    'indexes that are strings': [
      [
        ['pay', { amount: 1 }],
        ['now', {}],
      ],
      calls(call('0', 'a', 'pay', ''), call('1', 'b', 'now', '')) +
        calls(more({ index: '0' }, { arguments: a })) +
        finish(),
    ],
    'ids that are numbers': [
      [
        ['pay', { amount: 1 }],
        ['pay', { amount: 2 }],
      ],
      calls(call(0, 7, 'pay', a)) + calls(call(0, 8, 'pay', b)) + finish(),
    ],
    'an id that comes later': [
      one,
      calls(call(0, undefined, 'pay', '')) +
        calls(more({ index: 0, id: 'a' }, { arguments: a })) +
        finish(),
    ],
    'the rest of a name after the arguments': [
      none,
      calls(call(0, 'a', 'delete', a)) + calls(more({ index: 0 }, { name: '_draft' })) + finish(),
    ],
    'the rest of a name after the finish': [
      none,
      calls(call(0, 'a', 'delete', a)) + finish() + calls(more({ index: 0 }, { name: '_draft' })),
    ],
    'a name in pieces after the arguments': [
      none,
      calls(more({ index: 0, id: 'a' }, { arguments: a })) +
        calls(more({ index: 0 }, { name: 'delete' })) +
        calls(more({ index: 0 }, { name: '_draft' })) +
        finish(),
    ],
    'the rest of the name of a function call': [
      none,
      delta({ function_call: { name: 'delete', arguments: a } }) +
        delta({ function_call: { name: '_draft' } }) +
        finish('function_call'),
    ],
    'two function calls': [
      none,
      delta({ function_call: { name: 'pay', arguments: a } }) +
        delta({ function_call: { name: 'pay', arguments: b } }) +
        finish('function_call'),
    ],
    'a function call that a tool call contradicts': [
      two,
      delta({ function_call: { name: 'delete', arguments: a } }) +
        calls(call(0, 'a', 'pay', b)) +
        finish(),
    ],
    'an event twice': [one, calls(call(0, 'a', 'pay', a)).repeat(2) + finish()],
    'one id at two indexes': [
      one,
      calls(call(0, 'a', 'pay', a)) + calls(call(1, 'a', 'pay', '{ "amount": 1 }')) + finish(),
    ],
    'one id with other arguments': [
      [
        ['pay', { amount: 1 }],
        ['pay', { amount: 2 }],
      ],
      calls(call(0, 'a', 'pay', a)) + calls(call(1, 'a', 'pay', b)) + finish(),
    ],
    'one id with another name': [
      [
        ['pay', { amount: 1 }],
        ['now', {}],
      ],
      calls(call(0, 'a', 'pay', a)) + calls(call(1, 'a', 'now', '{}')) + finish(),
    ],
    'one id and index with other arguments': [
      none,
      calls(call(0, 'a', 'pay', a)) + calls(call(0, 'a', 'pay', b)) + finish(),
    ],
    'one id with two objects': [
      none,
      calls(call(0, 'a', 'pay', { amount: 1 })) +
        calls(call(0, 'a', 'pay', { amount: 2 })) +
        finish(),
    ],
    'an object, and then other arguments': [
      none,
      calls(call(0, 'a', 'pay', { amount: 1 })) +
        calls(more({ index: 0 }, { arguments: b })) +
        finish(),
    ],
    'a preview, and then an object': [
      two,
      calls(call(0, 'a', 'pay', '{"amount":')) +
        calls(more({ index: 0 }, { arguments: { amount: 2 } })) +
        finish(),
    ],
    'an empty object, and then arguments': [
      none,
      calls(call(0, 'a', 'pay', '{}')) + calls(more({ index: 0 }, { arguments: a })) + finish(),
    ],
    'null, and then arguments': [
      none,
      calls(call(0, 'a', 'pay', 'null')) + calls(more({ index: 0 }, { arguments: a })) + finish(),
    ],
    'a number beyond all numbers': [
      none,
      raw('{"index":0,"id":"a","function":{"name":"pay","arguments":{"amount":1e400}}}') + finish(),
    ],
    'a number beyond all numbers, in a string': [
      none,
      calls(call(0, 'a', 'pay', '{"amount":[{"x":-1e999}]}')) + finish(),
    ],
    NaN: [none, calls(call(0, 'a', 'pay', '{"amount":NaN}')) + finish()],
    'an escaped key twice': [
      none,
      calls(call(0, 'a', 'pay', '{"amount":1,"\\u0061mount":2}')) + finish(),
    ],
    'text after the JSON': [none, calls(call(0, 'a', 'pay', `${a} ok?`)) + finish()],
    'two objects': [none, calls(call(0, 'a', 'pay', a + b)) + finish()],
    'a list with the arguments': [none, calls(call(0, 'a', 'pay', [a])) + finish()],
    'a number for the arguments': [none, calls(call(0, 'a', 'pay', 5)) + finish()],
    'two JSON documents in an event': [
      'invalidResponse',
      `data: {"choices":[]}\n${calls(call(0, 'a', 'pay', a))}${finish()}`,
    ],
    'a mark of byte order before an event': [
      'connection',
      calls(call(0, 'a', 'pay', '{"amount":1')) +
        '\uFEFF' +
        calls(more({ index: 0 }, { arguments: '0' })) +
        calls(more({ index: 0 }, { arguments: '}' })) +
        finish(),
    ],
    'a whole message that differs': [
      two,
      calls(call(0, 'a', 'pay', a)) +
        choice({
          index: 0,
          message: { content: null, tool_calls: [call(0, 'a', 'pay', b)] },
          finish_reason: 'tool_calls',
        }),
    ],
    'a whole message without the call': [
      none,
      calls(call(0, 'a', 'pay', a)) +
        choice({ index: 0, message: { content: 'No.' }, finish_reason: 'stop' }),
    ],
  };

  it.each(Object.entries(edges))('X7, X31: with %s', async (_, [expected, stream]) => {
    const found = await outcomeOf(
      (fetch) => openai.chat('gpt-5-mini', { ...settings, fetch }),
      stream + sse('[DONE]'),
      done,
    );
    expect(found).toEqual(expected);
  });
});
