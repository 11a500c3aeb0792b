import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, of, throwError } from 'rxjs';
import { inProcessMemory } from '../memories/in-process-memory.js';
import { type Message, textBlock } from '../values/message.js';
import { append, end, startRun, type Run } from '../run.js';
import { storeMemory } from './limit.js';

const question: Message = { id: 'q', role: 'user', content: [textBlock('?')] };
const asks: Message = {
  id: 'a',
  role: 'assistant',
  content: [{ type: 'tool_call', id: '1', name: 'f', input: {} }],
};

const storing = (run: Run, memory = inProcessMemory()('s')) =>
  lastValueFrom(of(run).pipe(storeMemory({ hooks: { report: () => undefined } }, { memory })));

describe('storeMemory', () => {
  it('I1: refuses a tool use without its result, and writes nothing', async () => {
    const memory = inProcessMemory()('s');
    const run = append(startRun([], [question]), asks);
    await expect(storing(run, memory)).rejects.toMatchObject({ code: 'invalidState' });
    expect(await lastValueFrom(memory.load$())).toEqual([]);
  });

  it('writes what memory lacks, once', async () => {
    const memory = inProcessMemory()('s');
    const stored = await storing(startRun([], [question]), memory);
    expect(stored.stored).toBe(1);
    expect(await storing(stored, memory)).toBe(stored);
    expect(await lastValueFrom(memory.load$())).toEqual([question]);
  });

  it('leaves an ended run to the end of the call', async () => {
    const answer = { id: 'r', role: 'assistant', content: [textBlock('!')] } as const;
    const ended = end(startRun([], [question]), 'answer', answer);
    expect(await storing(ended)).toBe(ended);
  });

  it('I10: a memory that fails is a typed error', async () => {
    const broken = {
      ...inProcessMemory()('s'),
      append$: () => throwError(() => new Error('disk full')),
    };
    await expect(storing(startRun([], [question]), broken)).rejects.toMatchObject({
      code: 'memory',
    });
  });
});
