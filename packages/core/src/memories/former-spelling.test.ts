import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, of } from 'rxjs';
import { createAgent, type Memory, type Message } from '../index.js';
import { scriptedModel, text } from '../testing/index.js';
import { sessions } from '../layers/sessions/index.js';
import { respelled } from './former-spelling.js';
import { inProcessMemory } from './in-process-memory.js';
import { windowMemory } from './window-memory.js';

/** As version 0.1 stored them. The input and the details of a tool are its own, whatever their names are. */
const stored = [
  { id: 'a/input/0', role: 'user', content: [{ type: 'text', text: 'Look.' }] },
  {
    id: 'a/1',
    role: 'assistant',
    content: [
      { type: 'tool_use', id: 'one', name: 'look', input: { type: 'tool_use', toolUseId: 'x' } },
    ],
  },
  {
    id: 'a/1/results',
    role: 'tool',
    content: [
      {
        type: 'tool_result',
        toolUseId: 'one',
        content: [{ type: 'text', text: 'Seen.' }],
        isError: false,
        details: { toolUse: 1, behind: 2 },
      },
    ],
  },
];

describe('S4, S9: the spelling of version 0.1', () => {
  it('is read in messages, except for what belongs to tools', () => {
    expect(respelled(stored)).toEqual([
      stored[0],
      {
        ...stored[1],
        content: [
          {
            type: 'tool_call',
            id: 'one',
            name: 'look',
            input: { type: 'tool_use', toolUseId: 'x' },
          },
        ],
      },
      {
        ...stored[2],
        content: [
          {
            type: 'tool_result',
            toolCallId: 'one',
            content: [{ type: 'text', text: 'Seen.' }],
            isError: false,
            details: { toolUse: 1, behind: 2 },
          },
        ],
      },
    ]);
  });

  it('is read in steps: decisions, cut messages and interrupts', () => {
    const decision = { toolUse: { type: 'tool_use', id: 'one', name: 'look', input: {} } };
    expect(respelled(decision)).toEqual({
      toolCall: { type: 'tool_call', id: 'one', name: 'look', input: {} },
    });
    const ended = { reason: 'answer', usage: {}, toolUses: [{ toolUseId: 'one', output: '' }] };
    expect(respelled(ended)).toEqual({
      reason: 'answer',
      usage: {},
      toolCalls: [{ toolCallId: 'one', output: '' }],
    });
  });

  it('is read in the approvals that a session waits for', () => {
    const approval = (key: string, type: string) => ({
      type: 'stateChanged',
      name: 'approvals',
      state: [{ callId: 'c', [key]: { type, id: 'one', name: 'pay', input: {} } }],
      patches: [],
    });
    expect(respelled(approval('toolUse', 'tool_use'))).toEqual(approval('toolCall', 'tool_call'));
  });

  it('is not read in the data of programs', () => {
    const data = {
      groups: { toolUse: true, behind: false },
      says: 'Good day',
      behind: 3,
      plan: { type: 'tool_use', toolUses: 2 },
      toolUse: 'a hammer',
    };
    expect(respelled(data)).toBe(data);
  });

  it('X13: is not looked for in what is nested without end', () => {
    const cyclic: { content: unknown[] } = { content: [] };
    cyclic.content.push(cyclic);
    expect(respelled(cyclic)).toBe(cyclic);
    const deep = Array.from({ length: 20_000 }).reduce<unknown>((inner) => [inner], []);
    expect(respelled({ content: deep })).toEqual({ content: deep });
  });

  it('returns the same value if there is nothing to change', () => {
    const present = respelled(stored);
    expect(respelled(present)).toBe(present);
  });

  it('is read from the memory of a session', async () => {
    const memories = inProcessMemory();
    const memory = (id: string): Memory => ({
      ...memories(id),
      load$: () => of(stored as readonly unknown[] as readonly Message[]),
    });
    const model = scriptedModel([text('Still there.')]);
    await sessions(createAgent({ model }), { memory }).open('s').call('And now?');
    expect(model.requests[0]?.messages.map(({ content }) => content[0]?.type)).toEqual([
      'text',
      'tool_call',
      'tool_result',
      'text',
    ]);
  });

  it('is read below another memory, and in the state of a session', async () => {
    const memories = inProcessMemory();
    const kept = (id: string): Memory => ({
      ...memories(id),
      load$: () => of(stored as readonly unknown[] as readonly Message[]),
      all$: () => of(stored as readonly unknown[] as readonly Message[]),
    });
    const session = sessions(createAgent({ model: scriptedModel() }), {
      memory: windowMemory(kept),
    }).open('s');
    const present = respelled(stored);
    expect((await session.saveState()).messages).toEqual(present);
    expect(await lastValueFrom(session.memory.load$())).toEqual(present);
  });
});
