import { shortenOnOverflow } from '../models/fit-messages.js';
import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, map, mergeMap, throwError } from 'rxjs';
import {
  createAgent,
  inProcessMemory,
  type Interceptor,
  MillraceError,
  on,
  suspend,
  textBlock,
  tool,
  toolOutput,
  toolResults,
  selectTools,
} from '../index.js';
import type { ToolSelection } from '../layers/select-tools.js';
import { record, type ScriptedAnswer, scriptedModel, text, toolCall } from '../testing/index.js';
import { sessions } from '../layers/sessions/index.js';

const sign = tool({ name: 'sign', description: 'Has a person sign.', run: () => suspend() });
const others = ['a', 'b', 'c'].map((name) =>
  tool({ name, description: `Does ${name}.`, run: () => name }),
);

/** A session that waits for a signature, under the id `i`. */
const suspended = async (
  answers: readonly ScriptedAnswer[],
  interceptors: readonly Interceptor[] = [],
  selection: ToolSelection = {},
) => {
  const model = scriptedModel([toolCall('sign', {}, 'i')], ...answers);
  const memory = inProcessMemory();
  const agent = createAgent({
    model: shortenOnOverflow(model),
    tools: [...others, sign],
    use: [...interceptors, selectTools(selection)],
  });
  const session = sessions(agent, { memory }).open('s');
  await session.call('Sign the paper.');
  return { model, session, stored: () => lastValueFrom(memory('s').load$()) };
};

const fails = (code: 'server' | 'contextTooLong'): ScriptedAnswer =>
  throwError(() => new MillraceError(code, 'no'));

describe('T13: a call that brings results', () => {
  it('stores them with its first turn: one whose model fails can be made again', async () => {
    const { model, session, stored } = await suspended([fails('server'), [text('Signed.')]]);
    const before = await stored();
    await expect(session.call(toolResults({ i: 'yes' }))).rejects.toMatchObject({ code: 'server' });
    expect(await stored()).toEqual(before);
    expect(await session.call(toolResults({ i: 'yes' }))).toMatchObject({ reason: 'answer' });
    expect(model.requests[2]?.messages.at(-1)).toMatchObject({
      role: 'tool',
      content: [{ toolCallId: 'i', content: [{ text: 'yes' }] }],
    });
    expect((await stored()).map(({ role }) => role)).toEqual([
      ...['user', 'assistant', 'tool'],
      ...['tool', 'assistant'],
    ]);
    await expect(session.call(toolResults({ i: 'yes' }))).rejects.toMatchObject({
      code: 'invalidResume',
    });
  });

  it('I11: leads them through postActing, to memory and to the model', async () => {
    const hides = on(
      'postActing',
      map((event) =>
        event.iteration === 0
          ? { ...event, result: { ...event.result, content: [textBlock('hidden')] } }
          : event,
      ),
    );
    const { model, session, stored } = await suspended([[text('Signed.')]], [hides]);
    const details = { by: 'Ada' };
    const events = await record(
      session.stream$(toolResults({ i: toolOutput({ content: 'SECRET', details }) })),
    );
    expect(events.map(({ type }) => type).slice(0, 3)).toEqual([
      ...['preCall', 'postActing', 'preReasoning'],
    ]);
    expect(events[1]).toMatchObject({ toolCall: { name: 'sign', id: 'i' }, result: { details } });
    expect(JSON.stringify(model.requests[1])).toContain('hidden');
    expect(JSON.stringify([model.requests[1], await stored()])).not.toContain('SECRET');
  });

  it('I11: a result that an interceptor would not have is a rejected one', async () => {
    const never = on(
      'postActing',
      mergeMap((event) => (event.iteration === 0 ? [] : [event])),
    );
    const { model, session } = await suspended([[text('I see.')]], [never]);
    await session.call(toolResults({ i: 'yes' }));
    expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
      { isError: true, content: [{ text: 'The result of this tool was rejected.' }] },
    ]);
  });

  it('T11: selects tools by what was asked, and keeps those that wait in sight', async () => {
    const asked: string[] = [];
    const select = ({ text: request }: { readonly text: string }) => {
      return asked.push(request) === 1 ? ['sign'] : ['b'];
    };
    const { model, session } = await suspended([[text('Signed.')]], [], { select, maxTools: 2 });
    await session.call(toolResults({ i: 'yes' }));
    expect(asked).toEqual(['Sign the paper.', 'Sign the paper.']);
    expect(model.requests[1]?.tools?.map(({ name }) => name)).toEqual(['b', 'sign']);
  });

  it('C11: is sent once more, shorter, around what was asked', async () => {
    const long = 'x'.repeat(4000);
    const { model, session } = await suspended([
      [text(long)],
      [toolCall('sign', {}, 'j')],
      fails('contextTooLong'),
      [text('Signed.')],
    ]);
    await session.call([toolResults({ i: 'yes' }), { role: 'user', content: [textBlock(long)] }]);
    await session.call('Once more.');
    expect(await session.call(toolResults({ j: 'yes' }))).toMatchObject({ reason: 'answer' });
    const sent = model.requests.slice(-2).map(({ messages }) => messages.length);
    expect(sent[1]).toBeLessThan(sent[0] ?? 0);
    expect(JSON.stringify(model.requests.at(-1))).toContain('Once more.');
  });

  it('refuses a promise, which would be an empty object', () => {
    expect(() => toolResults({ i: Promise.resolve('yes') })).toThrow(
      /is a Promise: await it first/,
    );
  });
});
