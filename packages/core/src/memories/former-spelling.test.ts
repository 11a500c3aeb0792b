import { describe, expect, it } from '@jest/globals';
import { of } from 'rxjs';
import { createAgent, type Memory, type Message } from '../index.js';
import { scriptedModel, text } from '../testing/index.js';
import { sessions } from '../layers/sessions/index.js';
import { respelled } from './former-spelling.js';
import { inProcessMemory } from './in-process-memory.js';

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
    expect(respelled({ status: 'interrupted', says: 'Stop.' })).toEqual({
      status: 'interrupted',
      instead: 'Stop.',
    });
    expect(respelled({ behind: 3 })).toEqual({ afterSteps: 3 });
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
});
