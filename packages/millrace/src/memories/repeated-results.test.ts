import { expect, it } from '@jest/globals';
import { createAgent } from '../agent.js';
import { inProcessSessions, keepSessions, sessions } from '../layers/sessions/index.js';
import { scriptedModel, text, toolCall } from '../testing/index.js';
import { tool } from '../tools/tool.js';
import { textOf } from '../values/message.js';
import { suspend, toolResults } from './suspend.js';

const agent = (asked: string[]) =>
  createAgent({
    model: scriptedModel([toolCall('sign', {}, 'u')], [text('Signed.')], [text('Again.')]),
    tools: [
      tool({
        name: 'sign',
        description: 'Signs.',
        run: () => {
          asked.push('sign');
          return suspend();
        },
      }),
    ],
  });

const places = {
  'in process': (asked: string[]) => Promise.resolve(sessions(agent(asked)).open('s')),
  'over a store': (asked: string[]) => keepSessions(agent(asked), inProcessSessions()).open('s'),
};

it.each(
  Object.entries(places).flatMap(([place, open]) =>
    ['Yes.', 'No.'].map((value) => ({ place, open, value })),
  ),
)('T13: a result that came is reported, $place, if $value comes for it too', async (given) => {
  const asked: string[] = [];
  const session = await given.open(asked);
  await session.call('Sign.');
  expect(textOf(await session.call(toolResults({ u: 'Yes.' })))).toBe('Signed.');
  const before = await session.saveState();
  await expect(session.call(toolResults({ u: given.value }))).rejects.toMatchObject({
    ...{ code: 'invalidResume', status: 409 },
    message: expect.stringContaining("The tool call 'u' already has a result."),
  });
  expect((await session.saveState()).messages).toEqual(before.messages);
  expect(asked).toEqual(['sign']);
  expect(textOf(await session.call('And now?'))).toBe('Again.');
});
