import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { lastValueFrom } from 'rxjs';
import { createAgent } from '../agent.js';
import { inProcessMemory } from './in-process-memory.js';
import { textOf } from '../values/message.js';
import { unpaired } from '../values/pairing.js';
import { memoryContract } from '../testing/memory-contract.js';
import { scriptedModel, text, thinking, toolCall } from '../testing/index.js';
import { tool } from '../tools/tool.js';
import { suspend, toolResults } from './suspend.js';
import {
  add,
  answer,
  appendsOf,
  brought,
  exchange,
  held,
  idsOf,
  someTurns,
  user,
} from './conversations.test-support.js';
import { inputAndAnswer } from './window-memory.js';
import { isWaiting } from './transcript.js';
import { sessions } from '../layers/sessions/index.js';

describe('inputAndAnswer', () => {
  for (const { name, run } of memoryContract(() => inputAndAnswer(inProcessMemory()))) {
    it(`G2: ${name}`, run);
  }

  it('G2: keeps what was asked and what was answered, below too', async () => {
    const inner = inProcessMemory();
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'blue' });
    const model = scriptedModel(
      [text('Let me see.'), toolCall('look')],
      [thinking('Blue.'), text('It is blue.')],
      [text('You are welcome.')],
    );
    const chat = sessions(createAgent({ model, tools: [look] }), {
      memory: inputAndAnswer(inner),
    }).open('s');
    await chat.call('Which colour?');
    await chat.call('Thanks!');
    expect(model.requests[2]?.messages.map(textOf)).toEqual([
      'Which colour?',
      'It is blue.',
      'Thanks!',
    ]);
    expect(
      held(inner('s')).map(({ role, content }) => [role, content.map(({ type }) => type)]),
    ).toEqual([
      ['user', ['text']],
      ['assistant', ['text']],
      ['user', ['text']],
      ['assistant', ['text']],
    ]);
  });

  it('I1: for any conversation, it holds no tools but those that wait, and repeats nothing', () => {
    fc.assert(
      fc.property(someTurns, (turns) => {
        const inner = inProcessMemory();
        const memory = inputAndAnswer(inner)('s');
        const appends = appendsOf(turns);
        appends.forEach((messages) => {
          add(memory, ...messages);
          add(memory, ...messages);
        });
        const given = held(memory);
        const all = appends.flat();
        expect(unpaired(given)).toBeUndefined();
        const said = all.filter(({ role }) => role === 'user');
        expect(given.filter(({ role }) => role === 'user')).toEqual(said);
        // A turn that was never answered continues in the next one.
        const answered = turns.findLastIndex(({ end }) => end === 'answer');
        const isOpen = turns.slice(answered + 1).some(({ end }) => end === 'suspension');
        expect(given.some(({ role }) => role === 'tool')).toBe(isOpen);
        expect(given.some(isWaiting)).toBe(turns.at(-1)?.end === 'suspension');
        const answers = all.filter((it) => it.role === 'assistant' && textOf(it) !== '');
        const kept = given.filter((it) => it.role === 'assistant' && textOf(it) !== '');
        expect(kept.map((it) => [it.id, textOf(it)])).toEqual(
          answers.map((it) => [it.id, textOf(it)]),
        );
        expect(kept.every(({ content }) => content.every(({ type }) => type === 'text'))).toBe(
          true,
        );
        const order = idsOf(all);
        const places = idsOf(given).map((id) => order.indexOf(id));
        expect(places).toEqual([...places].sort((a, b) => a - b));
        // All at once, as it comes without storeMemory, is the same, but for a turn without an answer: that is whole.
        if (turns.at(-1)?.end !== 'answer') return;
        const whole = inputAndAnswer(inProcessMemory())('s');
        add(whole, ...all);
        expect(held(whole)).toEqual(given);
      }),
    );
  });

  it('T13: a suspended call can be continued, and then only its answer is shown', async () => {
    const inner = inProcessMemory();
    const ask = tool({ name: 'ask', description: 'Asks.', run: () => suspend('may I?') });
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'blue' });
    const model = scriptedModel(
      [toolCall('look')],
      [thinking('May I?'), toolCall('ask')],
      [text('Thank you.')],
      [text('Bye.')],
    );
    const agent = createAgent({ model, tools: [ask, look] });
    const first = await sessions(agent, { memory: inputAndAnswer(inner) })
      .open('s')
      .call('Do it.');
    const [waiting] = first.suspensions ?? [];
    expect(
      held(sessions(agent, { memory: inputAndAnswer(inner) }).open('s').memory).map(
        ({ role }) => role,
      ),
    ).toEqual(['user', 'assistant', 'tool']);
    await expect(
      sessions(agent, { memory: inputAndAnswer(inner) })
        .open('s')
        .call('Well?', { onSuspended: 'refuse' }),
    ).rejects.toMatchObject({ code: 'invalidResume' });
    const reply = await sessions(agent, { memory: inputAndAnswer(inner) })
      .open('s')
      .call(toolResults({ [waiting?.toolCall.id ?? '']: 'yes' }));
    expect(textOf(reply)).toBe('Thank you.');
    expect(model.requests[2]?.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
    ]);
    expect(JSON.stringify(model.requests[2]?.messages)).toContain('yes');
    expect(
      held(sessions(agent, { memory: inputAndAnswer(inner) }).open('s').memory).map(textOf),
    ).toEqual(['Do it.', 'Thank you.']);
    await sessions(agent, { memory: inputAndAnswer(inner) })
      .open('s')
      .call('Good.');
    expect(model.requests[3]?.messages.map(textOf)).toEqual(['Do it.', 'Thank you.', 'Good.']);
  });

  it('G2: of several answers in a row, gives the last', () => {
    const memory = inputAndAnswer(inProcessMemory())('s');
    add(memory, user('a/input/0'), answer('a/1', 'A plan.'));
    add(memory, answer('a/2', 'Done.'));
    expect(held(memory).map(textOf)).toEqual(['I am a/input/0.', 'Done.']);
  });

  it('G2: keeps no answer of thoughts alone, and pictures as well as text', () => {
    const memory = inputAndAnswer(inProcessMemory())('s');
    const image = {
      type: 'image',
      source: { kind: 'url', url: 'https://example.com/a.png' },
    } as const;
    const thought = { type: 'thinking', text: 'Hm.' } as const;
    add(memory, user('a/input/0'), { id: 'a/1', role: 'assistant', content: [thought] });
    add(memory, user('b/input/0'), { id: 'b/1', role: 'assistant', content: [thought, image] });
    expect(idsOf(held(memory))).toEqual(['a/input/0', 'b/input/0', 'b/1']);
    expect(held(memory).at(-1)?.content).toEqual([image]);
  });

  it('I1: refuses tools without results, and writes nothing', async () => {
    const inner = inProcessMemory();
    const memory = inputAndAnswer(inner)('s');
    const [asks] = exchange('a/1');
    if (asks === undefined) throw new Error('no message');
    await expect(lastValueFrom(memory.append$([user('a/input/0'), asks]))).rejects.toMatchObject({
      code: 'invalidState',
    });
    expect(held(inner('s'))).toEqual([]);
  });

  it('T13: results without a waiting call are not shown', () => {
    const memory = inputAndAnswer(inProcessMemory())('s');
    add(memory, user('a/input/0'), ...exchange('a/1', 1, true));
    add(memory, brought('b/input/0', 'a/1'), answer('b/1'));
    expect(idsOf(held(memory))).toEqual(['a/input/0', 'b/1']);
  });
});
