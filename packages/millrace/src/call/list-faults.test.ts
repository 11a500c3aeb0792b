import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { lastValueFrom, throwError } from 'rxjs';
import { createAgent, history, type Input, isMillraceError, textOf } from '../index.js';
import { inProcessCalls } from '../journal/index.js';
import { journalIn } from '../journal/stored-calls.test-support.js';
import { record, scriptedModel, text } from '../testing/index.js';

const q = { role: 'user', content: 'Q' };
const a = { role: 'assistant', content: 'A' };
const result = (toolCallId: string) => ({
  role: 'tool',
  content: [{ type: 'tool_result', toolCallId, content: [text('seen')], isError: false }],
});

const errorOf = async (input: unknown): Promise<string> => {
  const error: unknown = await createAgent({ model: scriptedModel() })
    .call(input as Input)
    .catch((it: unknown) => it);
  expect(isMillraceError(error) && error.code).toBe('invalidRequest');
  return String(error);
};

const openAiCall = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } };
const sdkCall = { type: 'tool-call', toolCallId: 'c', toolName: 'n', input: {} };

/** Messages as other APIs have them, and what is wrong with them here. */
const foreign: Readonly<Record<string, readonly [unknown, RegExp]>> = {
  'OpenAI, a tool call without text': [
    { role: 'assistant', content: null, tool_calls: [openAiCall] },
    /the content is null, and 'tool_calls' is of another API\. A tool call is a block/,
  ],
  'OpenAI, a tool call with an empty text': [
    { role: 'assistant', content: '', tool_calls: [openAiCall] },
    /the content is empty, and 'tool_calls'/,
  ],
  'OpenAI, a result': [
    { role: 'tool', tool_call_id: 'c1', content: 'seen' },
    /the content is a string, not a list of blocks\. A tool call is/,
  ],
  'OpenAI, an image': [
    { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a.example' } }] },
    /the content has a block 1, of the type "image_url", that is not valid for the role 'user'/,
  ],
  'OpenAI, a function': [{ role: 'function', content: 'x' }, /the role is "function", not user/],
  'Anthropic, a tool call': [
    { role: 'assistant', content: [text('Hm.'), { type: 'tool_use', id: 'c', name: 'n' }] },
    /a block 2, of the type "tool_use", that .*'assistant'\. A tool call is/,
  ],
  'Anthropic, a result': [
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'seen' }] },
    /a block 1, of the type "tool_result", that .*'user'\. A tool call is/,
  ],
  'AI SDK, a tool call': [
    { role: 'assistant', content: [sdkCall] },
    /a block 1, of the type "tool-call", that .*A tool call is/,
  ],
  'AI SDK, a result': [
    { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', toolName: 'n' }] },
    /a block 1, of the type "tool-result", that .*A tool call is/,
  ],
  'AI SDK, a message of a page': [
    { id: 'm', role: 'assistant', parts: [{ type: 'text', text: 'A' }] },
    /the content is undefined, and 'parts' is of another API/,
  ],
  'a number': [{ role: 'user', content: 7 }, /the content is a number, not a list of blocks/],
  'a block beside messages': [text('A'), /it is neither a string, a content block nor a message/],
  null: [null, /it is neither a string/],
  instructions: [{ role: 'system', content: 'Be kind.' }, /role 'system'.*'instructions'/],
};

describe('a list of messages of another program', () => {
  it.each(Object.entries(foreign))(
    'L9: names the entry and its fault: %s',
    async (_, [entry, why]) => {
      for (const list of [
        [q, a, entry, q],
        [q, entry],
      ]) {
        const error = await errorOf(list);
        expect(error).toContain(`The input cannot be read: entry ${list.indexOf(entry) + 1}: `);
        expect(error).toMatch(why);
      }
      const given = createAgent({ model: scriptedModel() }).call('Q', {
        use: [history([a, entry] as never)],
      });
      await expect(given).rejects.toThrow(/The history cannot be read: entry 2: /);
    },
  );

  const empty = fc.constantFrom<unknown>(
    { role: 'assistant', content: null },
    { role: 'assistant', content: '' },
    { role: 'assistant', content: [] },
    { role: 'assistant', content: null, tool_calls: [] },
    { role: 'assistant', content: '', name: 'other' },
    { role: 'assistant' },
    { role: 'user', content: '' },
    { role: 'user', content: null },
  );

  it('L9: empty messages before the question are left out, wherever they are', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(empty, fc.constantFrom<unknown>(q, a)), { maxLength: 8 }),
        async (before) => {
          const whole = before.filter((it) => it === q || it === a);
          const model = scriptedModel(...Array.from({ length: 2 }, () => [text('ok')]));
          const agent = createAgent({ model });
          await agent.call([...before, 'Last'] as Input, { callId: 'c' });
          await agent.call([...whole, 'Last'] as Input, { callId: 'c' });
          expect(model.requests[0]).toEqual(model.requests[1]);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('L9: an empty answer after the question is left out, an empty question is refused', async () => {
    const model = scriptedModel([text('ok')]);
    await createAgent({ model }).call([q, { role: 'assistant', content: '' }] as Input);
    expect(model.requests[0]?.messages.map(textOf)).toEqual(['Q']);
    const none = { role: 'user', content: '' };
    expect(await errorOf([q, a, none])).toContain('entry 3: the content is empty');
    expect(await errorOf([{ ...a, content: '' }])).toContain('entry 1: the content is empty');
    expect(await errorOf(none)).toContain('cannot be read: the content is empty');
  });

  it('L9: tool calls of another agent are left out with their results, without a warning', async () => {
    const model = scriptedModel([text('ok')]);
    const call = (id: string, name: string) => ({
      role: 'assistant',
      name,
      content: [text('I look.'), { type: 'tool_call', id, name: 'look', input: {} }],
    });
    const list = [q, call('c1', 'other'), result('c1'), call('c2', 'me'), result('c2'), q];
    const events = await record(createAgent({ name: 'me', model }).stream$(list as Input));
    expect(events.filter(({ type }) => type === 'warning')).toEqual([]);
    const roles = model.requests[0]?.messages.map(({ role }) => role);
    expect(roles).toEqual(['user', 'user', 'assistant', 'tool', 'user']);
  });

  it('L9, S7: what others have said is no part of the question when a call resumes', async () => {
    const durable = journalIn(inProcessCalls());
    const agentWith = (model: ReturnType<typeof scriptedModel>) =>
      createAgent({ name: 'me', model, use: [durable] });
    const first = scriptedModel(throwError(() => new Error('down')));
    const other = { ...a, name: 'other' };
    const list = [q, other, 'Now?', other, other] as Input;
    await agentWith(first)
      .call(list, { callId: 'c' })
      .catch(() => undefined);
    const second = scriptedModel([text('ok')]);
    await lastValueFrom(durable.resume$(agentWith(second), 'c'));
    const ids = ['history/0', 'history/1', 'c/input/0', 'given/c/1', 'given/c/2'];
    expect(first.requests[0]?.messages.map(({ id }) => id)).toEqual(ids);
    expect(second.requests[0]?.messages).toEqual(first.requests[0]?.messages);
  });
});
