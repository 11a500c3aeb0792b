import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, map, of, throwError } from 'rxjs';
import { createAgent, inProcessMemory, output, textOf, tool } from '../../index.js';
import { acting, insertAfter } from '../../phases/index.js';
import { retrieve } from '../retrieval/index.js';
import { jsonSchema } from '../../schema/index.js';
import { record, type ScriptedAnswer, scriptedModel, text, toolCall } from '../../testing/index.js';
import { completeTask, synthesize } from './index.js';
import type { SynthesizeOptions } from './synthesize.js';
import { sessions } from '../sessions/index.js';

const look = tool({ name: 'look', description: 'Looks.', run: () => 'Seen.' });
const sources = [
  { source: 'a.md', text: 'The mill stands at a.' },
  { source: 'b.md', text: 'It has a wheel.' },
];
const retriever = { retrieve$: () => of(sources) };

const agentOf = (
  answers: readonly ScriptedAnswer[],
  options: SynthesizeOptions = {},
  { cites = false, maxIterations = 10 } = {},
) => {
  const model = scriptedModel(...answers);
  const agent = createAgent({
    model,
    tools: [look, completeTask()],
    use: [insertAfter(acting, synthesize(options)), ...(cites ? [retrieve(retriever)] : [])],
    limits: { maxIterations },
  });
  return { agent, model };
};
const done = [toolCall('complete_task', {})];

describe('synthesize', () => {
  it('G1: writes the answer if the task is done without one', async () => {
    const { agent, model } = agentOf([[toolCall('look')], done, [text('It is there.')]]);
    const reply = await agent.call('?');
    expect(reply).toMatchObject({ reason: 'answer', iterations: 2 });
    expect(textOf(reply)).toBe('It is there.');
    expect(model.requests[2]).toMatchObject({ toolChoice: 'none' });
  });

  it('G1: leaves an answer that was given as it is, and one that is no completion', async () => {
    const given = agentOf([[toolCall('complete_task', { answer: 'There.' })]]);
    expect(await given.agent.call('?')).toMatchObject({ reason: 'toolFinal' });
    const plain = agentOf([[text('There.')]]);
    expect(await plain.agent.call('?')).toMatchObject({ reason: 'answer' });
    expect(plain.model.requests).toHaveLength(1);
  });

  it('I2: a completion beside other tools waits for them; one that failed completes nothing', async () => {
    const { agent, model } = agentOf([
      [toolCall('look'), toolCall('complete_task')],
      [text('Both.')],
    ]);
    expect(textOf(await agent.call('?'))).toBe('Both.');
    expect(JSON.stringify(model.requests[1]?.messages)).toContain('Seen.');
    const bad = agentOf([[toolCall('complete', {})], [text('So.')]]);
    expect(await bad.agent.call('?')).toMatchObject({ iterations: 2 });
  });

  it('G1: always writes another in the place of every answer, which becomes its draft', async () => {
    const memory = inProcessMemory();
    const { agent, model } = agentOf([[text('Draft.')], [text('Final.')]], { when: 'always' });
    const events = await record(
      sessions(agent, { memory }).open('s').stream$('?', { callId: 'c' }),
    );
    expect(events.filter(({ type }) => type === 'messageDiscarded')).toMatchObject([
      { messageId: 'c/1', why: 'synthesize' },
    ]);
    expect(model.requests[1]?.messages.map(textOf)[1]).toBe('Draft.');
    expect((await lastValueFrom(memory('s').load$())).map(textOf)).toEqual(['?', 'Final.']);
    const final = agentOf([[toolCall('complete_task', { answer: 'Draft.' })], [text('Final.')]], {
      when: 'always',
    });
    expect(textOf(await final.agent.call('?'))).toBe('Final.');
  });

  it('R3: has the form that the answer is to have', async () => {
    const { agent, model } = agentOf([done, [text('{"at":"a"}')]]);
    const schema = {
      type: 'object',
      properties: { at: { type: 'string' } },
      required: ['at'],
    } as const;
    expect((await agent.call('?', { use: [output(jsonSchema(schema))] })).output).toEqual({
      at: 'a',
    });
    expect(model.requests[1]).toHaveProperty('outputSchema');
  });

  it('R3: one of another form is asked for again, twice, as iterations, and then an error', async () => {
    const schema = {
      type: 'object',
      properties: { at: { type: 'string' } },
      required: ['at'],
    } as const;
    const good = agentOf([done, [text('nowhere')], [text('{"at":"a"}')]]);
    const events = await record(
      good.agent.stream$('?', { use: [output(jsonSchema(schema))], callId: 'c' }),
    );
    expect(events.at(-1)).toMatchObject({ reply: { output: { at: 'a' }, iterations: 2 } });
    expect(events.filter(({ type }) => type === 'messageDiscarded')).toMatchObject([
      { messageId: 'c/synthesis' },
    ]);
    const bad = agentOf([done, [text('1')], [text('2')], [text('3')]]);
    await expect(bad.agent.call('?', { use: [output(jsonSchema(schema))] })).rejects.toMatchObject({
      code: 'invalidResponse',
      partial: '3',
    });
    const spent = agentOf([done, [text('1')]], {}, { maxIterations: 1 });
    await expect(
      spent.agent.call('?', { use: [output(jsonSchema(schema))] }),
    ).rejects.toMatchObject({
      code: 'invalidResponse',
    });
  });

  it('R3: the answer of the completion tool has the form as well, or is written again', async () => {
    const schema = {
      type: 'object',
      properties: { at: { type: 'string' } },
      required: ['at'],
    } as const;
    const complete = (answer: unknown) => [toolCall('complete_task', { answer })];
    const asText = agentOf([complete('{"at":"a"}')]);
    expect(await asText.agent.call('?', { use: [output(jsonSchema(schema))] })).toMatchObject({
      reason: 'toolFinal',
      output: { at: 'a' },
    });
    const asIs = agentOf([complete({ at: 'a' })]);
    expect((await asIs.agent.call('?', { use: [output(jsonSchema(schema))] })).output).toEqual({
      at: 'a',
    });
    const words = agentOf([complete('At a.'), [text('{"at":"a"}')]]);
    expect(await words.agent.call('?', { use: [output(jsonSchema(schema))] })).toMatchObject({
      reason: 'answer',
      output: { at: 'a' },
    });
    expect(JSON.stringify(words.model.requests[1]?.messages)).toContain('At a.');
  });

  it('L5: an answer of nothing is one that is to be written', async () => {
    const { agent, model } = agentOf([[text(' ')], [text('At a.')]]);
    const reply = await agent.call('?');
    expect(reply).toMatchObject({ reason: 'answer', iterations: 1 });
    expect(JSON.stringify(model.requests[1]?.messages)).not.toContain('was empty');
  });

  it('L5: an answer of nothing is an error', async () => {
    await expect(agentOf([done, [text(' ')]]).agent.call('?')).rejects.toMatchObject({
      code: 'emptyAnswer',
    });
  });

  it('G1: cites what was retrieved, if there is something', async () => {
    const { agent, model } = agentOf([done, [text('At a [1].')]], {}, { cites: true });
    const reply = await agent.call('?');
    expect(reply.sources?.map(({ source }) => source)).toEqual(['a.md', 'b.md']);
    expect(JSON.stringify(model.requests[1]?.messages.at(-1))).toContain('such as [1]');
    const without = agentOf([done, [text('At a.')]]);
    await without.agent.call('?');
    expect(JSON.stringify(without.model.requests[1]?.messages.at(-1))).not.toContain('[1]');
  });

  it('G1, I7: what it cites exists, or it is asked for again, as one more iteration', async () => {
    const answers = [done, [text('At a [1], says [7].')], [text('At a [1].')]];
    const { agent, model } = agentOf(answers, {}, { cites: true });
    const events = await record(agent.stream$('?', { callId: 'c' }));
    expect(events.at(-1)).toMatchObject({
      reply: { iterations: 2, content: [{ text: 'At a [1].' }] },
    });
    expect(events.filter(({ type }) => type === 'messageDiscarded')).toMatchObject([
      { messageId: 'c/synthesis', why: expect.stringContaining('[7]') },
    ]);
    expect(textOf(model.requests[2]?.messages.at(-2) ?? { content: [] })).toContain(
      'cites [7], but only the passages [1] to [2] exist',
    );
    const stubborn = agentOf([done, [text('[7]')], [text('[8]')]], {}, { cites: true });
    const told = await record(stubborn.agent.stream$('?'));
    expect(told.filter(({ type }) => type === 'warning')).toMatchObject([
      { message: expect.stringContaining('cites [8]') },
    ]);
    expect(told.at(-1)).toMatchObject({ reply: { reason: 'answer' } });
    const years = agentOf([done, [text('Built [1850] at a [1].')]], {}, { cites: true });
    expect(textOf(await years.agent.call('?'))).toBe('Built [1850] at a [1].');
    const spent = agentOf([done, [text('[7]')]], {}, { cites: true, maxIterations: 1 });
    expect((await record(spent.agent.stream$('?'))).some(({ type }) => type === 'warning')).toBe(
      true,
    );
    expect(spent.model.requests).toHaveLength(2);
    const free = agentOf([done, [text('[7]')]], { citations: false }, { cites: true });
    expect(textOf(await free.agent.call('?'))).toBe('[7]');
  });

  it('R4: adds up what both requests cost', async () => {
    const spent = (inputTokens: number) => ({ type: 'usage', usage: { inputTokens } }) as const;
    const answers = [done, [text('[7]'), spent(1)], [text('[1]'), spent(10)]];
    const { agent } = agentOf(answers, {}, { cites: true });
    const { usage, usageByPhase } = await agent.call('?');
    expect(usage.inputTokens).toBe(11);
    expect(usageByPhase['synthesize']?.inputTokens).toBe(11);
  });

  it('I14: is refused what it does not have, and completes by the configured name', async () => {
    expect(() => synthesize({ when: 'never' as never })).toThrow(/'when' must be/);
    expect(() => completeTask({ name: '' })).toThrow(/'name' must be/);
    const model = scriptedModel([toolCall('finish', {})], [text('So.')]);
    const agent = createAgent({
      model,
      tools: [completeTask({ name: 'finish' })],
      use: [
        insertAfter(
          acting,
          synthesize({ completion: 'finish', prompt: ({ iteration }) => `After ${iteration}.` }),
        ),
      ],
    });
    expect(await lastValueFrom(agent.call$('?').pipe(map(textOf)))).toBe('So.');
    expect(model.requests[1]?.messages.map(textOf).at(-1)).toBe('After 1.');
  });

  it('G1: an answer with a false citation is better than none', async () => {
    for (const failing of [[text(' ')], throwError(() => new Error('Down.'))]) {
      const { agent } = agentOf([done, [text('At a [9].')], failing], {}, { cites: true });
      const events = await record(agent.stream$('?', { callId: 'c' }));
      expect(events.at(-1)).toMatchObject({
        reply: { id: 'c/synthesis/kept', content: [{ text: 'At a [9].' }], reason: 'answer' },
      });
      expect(events.filter(({ type }) => type === 'warning')).toHaveLength(1);
    }
  });
});
