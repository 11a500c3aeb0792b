import { describe, expect, it } from '@jest/globals';
import { map } from 'rxjs';
import { acceptExtras, createAgent, on, textOf, tool, toolOutput } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { marbles, type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { action, flat, native } from './index.js';

const look = tool({
  name: 'look',
  description: 'Looks something up.',
  input: jsonSchema({ type: 'object', properties: { at: { type: 'string' } }, required: ['at'] }),
  run: ({ at }) => `${at}: ${'x'.repeat(1000)}`,
});
const says = (words: string): ScriptedAnswer => [text(words)];
const atOnce = { limits: { parseBackoffMs: 0, toolBackoffMs: 0 } };

describe('the preset action', () => {
  it('M2: asks in its dialect, at 0.7 and with 8,000 tokens, and runs one tool a step', async () => {
    const model = scriptedModel(
      says(
        'Thought: Look.\nAction: {"tool": "look", "inputs": {"at": "a", "odd": 1}}\nAction: {"tool": "look", "inputs": {"at": "b"}}',
      ),
      says('Action: {"final_answer": "Seen."}'),
    );
    const reply = await createAgent(action({ model, tools: [look] })).call('?');
    expect(textOf(reply)).toBe('Seen.');
    expect(reply.toolCalls.map(({ isError }) => isError)).toEqual([false, true]);
    expect(model.requests[0]).toMatchObject({ temperature: 0.7, maxTokens: 8_000 });
    expect(model.requests[0]?.tools).toBeUndefined();
    expect(model.requests[0]?.system).toContain('Action:');
  });

  it('M2: repairs twice, after 0.8 s and 1.6 s', () => {
    marbles(({ scheduler, expectObservable }) => {
      const bad = says('Action: {"tool": "look", "inputs": {');
      const model = scriptedModel(bad, bad, says('Action: {"final_answer": "Seen."}'));
      const reply$ = createAgent(action({ model, tools: [look] })).call$('?', { scheduler });
      expectObservable(reply$.pipe(map(textOf))).toBe('2400ms (a|)', { a: 'Seen.' });
    });
  });

  it('M2: reports each failure of a tool later, and asks for another way after the third', () => {
    const fails = tool({
      name: 'fails',
      description: 'Fails.',
      run: () => {
        throw new Error('no');
      },
    });
    const use = (n: number) => says(`Action: {"tool": "fails", "inputs": {"n": ${n}}}`);
    const model = scriptedModel(use(1), use(2), use(3), says('Action: {"final_answer": "No."}'));
    marbles(({ scheduler, expectObservable }) => {
      const reply$ = createAgent(action({ model, tools: [fails] })).call$('?', { scheduler });
      expectObservable(reply$.pipe(map(textOf))).toBe('4800ms (a|)', { a: 'No.' });
    });
    const observations = model.requests.map(({ messages }) => JSON.stringify(messages.at(-1)));
    expect(observations.map((it) => it.includes('Do not call it again'))).toEqual([
      ...[false, false, false],
      true,
    ]);
  });

  it('M2: prunes what a tool does not know, and passes on its extras', async () => {
    const seen: unknown[] = [];
    const schema = { type: 'object', properties: { title: { type: 'string' }, rows: {} } } as const;
    const plot = acceptExtras(
      tool({
        name: 'plot',
        description: 'Draws rows.',
        input: jsonSchema(schema),
        run: (input) => {
          seen.push(input);
          return 'drawn';
        },
      }),
      'rows',
    );
    const query = tool({
      name: 'query',
      description: 'Looks for rows.',
      run: () => toolOutput({ content: '2 rows', extras: { rows: [1, 2] } }),
    });
    const model = scriptedModel(
      says('Action: {"tool": "query", "inputs": {}}'),
      says('Action: {"tool": "plot", "inputs": {"title": "a", "odd": 1}}'),
      says('Action: {"final_answer": "Drawn."}'),
    );
    await createAgent(action({ model, tools: [query, plot] })).call('?');
    expect(seen).toEqual([{ title: 'a', rows: [1, 2] }]);
  });

  it('M2: ends with the final answer of a tool', async () => {
    const ends = tool({
      name: 'ends',
      description: 'Answers.',
      run: () => toolOutput({ content: 'It is noon.', finalAnswer: true }),
    });
    const model = scriptedModel(says('Action: {"tool": "ends", "inputs": {}}'));
    const reply = await createAgent(action({ model, tools: [ends] })).call('?');
    expect([reply.reason, textOf(reply)]).toEqual(['toolFinal', 'It is noon.']);
  });

  it('M2: is what its options say first', async () => {
    const model = scriptedModel(says('Hello.'));
    const agent = createAgent(
      action({ model, tools: [look], request: { temperature: 0 } }, { strict: true }),
    );
    await expect(agent.call('?', { limits: { maxParseRetries: 0 } })).resolves.toMatchObject({
      reason: 'answer',
    });
    expect(model.requests[0]).toMatchObject({ temperature: 0, maxTokens: 8_000 });
  });
});

describe('the preset flat', () => {
  it('M3: cuts observations at 500 characters', async () => {
    const model = scriptedModel(
      says('{"scratchpad": "Look.", "tool": "look", "arguments": {"at": "a"}}'),
      says('{"answer": "Seen."}'),
    );
    const reply = await createAgent(flat({ model, tools: [look] })).call('?');
    expect(textOf(reply)).toBe('Seen.');
    const observation = textOf(model.requests[1]?.messages.at(-1) ?? { content: [] });
    expect(observation.length).toBeGreaterThan(500);
    expect(observation.length).toBeLessThan(700);
  });

  it('M3: raises the temperature by 0.2 with each text that cannot be read', async () => {
    const bad = says('{"tool": "look", "arguments": {');
    const model = scriptedModel(bad, bad, says('{"answer": "Seen."}'));
    await createAgent(flat({ model, tools: [look] })).call('?', atOnce);
    const temperatures = model.requests.map(({ temperature = 0 }) => temperature.toFixed(1));
    expect(temperatures).toEqual(['0.7', '0.9', '1.1']);
    const own = scriptedModel(bad, says('{"answer": "Seen."}'));
    const options = { ...atOnce, request: { temperature: 0.5 } };
    await createAgent(flat({ model: own, tools: [look] })).call('?', options);
    expect(own.requests.map(({ temperature }) => temperature)).toEqual([0.5, 0.7]);
  });

  it('M3: has ten steps, then a closing attempt at temperature 0, then an error', async () => {
    const step = says('{"tool": "look", "arguments": {"at": "a"}}');
    const steps = Array.from({ length: 10 }, () => step);
    const model = scriptedModel(...steps, says('{"answer": "Enough."}'));
    const tools = [look];
    const reply = await createAgent(flat({ model, tools })).call('?', {
      request: { temperature: 0.9 },
    });
    expect(reply).toMatchObject({ reason: 'maxIterations', iterations: 10 });
    expect(textOf(reply)).toBe('Enough.');
    expect(model.requests.at(-1)?.temperature).toBe(0);
    const mute = scriptedModel(...steps, []);
    await expect(createAgent(flat({ model: mute, tools })).call('?')).rejects.toMatchObject({
      code: 'maxIterations',
    });
  });

  it('M3: lets interceptors of the agent have the last word', async () => {
    const model = scriptedModel(
      says('{"tool": "look", "arguments": {"at": "a"}}'),
      says('Enough.'),
    );
    const warm = on(
      'preSummary',
      map((event) => ({ ...event, options: { ...event.options, temperature: 1 } })),
    );
    const agent = createAgent(flat({ model, tools: [look], use: [[warm]] }));
    await agent.call('?', { limits: { maxIterations: 1 } });
    expect(model.requests.at(-1)?.temperature).toBe(1);
  });
});

describe('the preset native', () => {
  it('M1: runs native tools in parallel, and closes after ten turns', async () => {
    const running: number[] = [];
    let open = 0;
    const slow = tool({
      name: 'slow',
      description: 'Takes a moment.',
      run: async () => {
        running.push((open += 1));
        await Promise.resolve();
        open -= 1;
      },
    });
    const turns = Array.from({ length: 10 }, (_, n) => [
      toolCall('slow', { n }),
      toolCall('slow', { n: -1 - n }),
    ]);
    const model = scriptedModel(...turns, says('Enough.'));
    const reply = await createAgent(native({ model, tools: [slow] })).call('?');
    expect(reply).toMatchObject({ reason: 'maxIterations', iterations: 10, text: 'Enough.' });
    expect(Math.max(...running)).toBe(2);
  });

  it('M1: has ten iterations, and leaves the model as it is', async () => {
    const model = scriptedModel(says('Hello.'));
    const options = native({ model, tools: [look], request: { temperature: 1 } });
    expect(options).toMatchObject({
      model,
      limits: { maxIterations: 10, parallel: true },
      request: { temperature: 1 },
    });
    expect((await createAgent(options).call('?')).reason).toBe('answer');
  });
});
