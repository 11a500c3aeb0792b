import { createAgent, inProcessMemory, type MillraceError, textOf, tool } from 'millrace';
import { sessions } from 'millrace/sessions';
import { scriptedModel, text } from 'millrace/testing';
import { describe, expect, it } from '@jest/globals';
import { lastValueFrom } from 'rxjs';
import { actionDialect, flatDialect, linesDialect, textTools } from './index.js';
import { textRequest } from './text-tools.js';

const look = tool({ name: 'look', description: 'Looks.', run: () => 'seen' });
const wait = tool({ name: 'wait', description: 'Waits.', run: () => 'waited' });
const tools = [look, wait];
const saying = (...replies: readonly string[]) =>
  scriptedModel(...replies.map((reply) => [text(reply)]));
const atOnce = { limits: { parseBackoffMs: 0 } } as const;

describe('R5: the choice of a tool in a text protocol', () => {
  it('runs nothing if no tool may be used', async () => {
    const model = saying('{"tool": "look"}', '{"answer": "Done."}');
    const agent = createAgent({ model: textTools(model, flatDialect()), tools });
    const reply = await agent.call('?', { request: { toolChoice: 'none' } });
    expect(textOf(reply)).toBe('Done.');
    expect(reply.toolCalls).toMatchObject([
      { isError: true, output: 'Not executed: no tool may be used now.' },
    ]);
  });

  it('asks again for a tool if one must be used, and for the right one', async () => {
    const model = saying(
      'Final Answer: guessed',
      'Action: wait\nAction Input: {}',
      'Action: look\nAction Input: {}',
      'Final Answer: seen',
    );
    const agent = createAgent({ model: textTools(model, linesDialect()), tools });
    const reply = await agent.call('?', { ...atOnce, request: { toolChoice: { name: 'look' } } });
    expect(textOf(reply)).toBe('seen');
    // A choice that forces a tool covers the first request only: the feedback speaks in the second.
    expect(model.requests[1]?.messages.map(textOf).at(-1)).toContain('but a tool must be called');
    expect(reply.toolCalls.map(({ name }) => name)).toEqual(['wait', 'look']);
  });

  it('refuses another tool than the one that must be used', async () => {
    const model = saying('{"tool": "wait"}', '{"answer": "Done."}');
    const agent = createAgent({ model: textTools(model, flatDialect()), tools });
    const reply = await agent.call('?', { request: { toolChoice: { name: 'look' } } });
    expect(reply.toolCalls[0]?.output).toBe('Not executed: the tool to use now is look.');
  });
});

describe('L3: the closing request of a text protocol', () => {
  const limited = { limits: { ...atOnce.limits, maxIterations: 1 } };

  it('takes no half answer', async () => {
    const model = saying(
      '{"tool": "look"}',
      String.raw`{"answer": "It is sunny", "answer": "It rains"}`,
    );
    const agent = createAgent({ model: textTools(model, flatDialect()), tools });
    const failure = agent.call('?', limited).catch((error: unknown) => error as MillraceError);
    expect(await failure).toMatchObject({
      code: 'maxIterations',
      partial: String.raw`{"answer": "It is sunny", "answer": "It rains"}`,
    });
  });

  it('takes a thought, if there is nothing else', async () => {
    const model = saying('{"tool": "look"}', '{"scratchpad": "It was seen."}');
    const agent = createAgent({ model: textTools(model, flatDialect()), tools });
    expect(textOf(await agent.call('?', limited))).toBe('It was seen.');
  });
});

describe('P6, P8: what is sent', () => {
  it('shows no use that was not run, but what became of it', async () => {
    const both = 'Action: {"tool": "look"}\nAction: {"tool": "wait"}';
    const model = saying(both, 'Action: {"final_answer": "Done."}');
    const memory = inProcessMemory();
    const agent = createAgent({ model: textTools(model, actionDialect()), tools });
    await sessions(agent, { memory }).open('s').call('?');
    const [, said, told] = model.requests[1]?.messages.map(textOf) ?? [];
    expect(said).toBe('Action: {"tool": "look", "inputs": {}}');
    expect(told).toContain('[wait] Error: Not executed: one action per step.');
    const stored = await lastValueFrom(memory('s').load$());
    expect(stored[1]?.content).toHaveLength(2);
  });

  it('has no more than four stop sequences, those of the call first', () => {
    const own = ['a', 'b', 'c', 'd'];
    const request = { messages: [], tools: [{ ...look }], stopSequences: own };
    expect(textRequest(request, linesDialect(), {}).stopSequences).toEqual(own);
    const three = { ...request, stopSequences: ['a', 'b', 'c'] };
    expect(textRequest(three, linesDialect(), {}).stopSequences).toHaveLength(4);
  });
});
